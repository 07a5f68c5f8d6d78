#include "user_access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/arena.h"
#include "base/macro.h"
#include "net/loop.h"
#include "user_review.h"

/* --- sessions --- */

static bool is_valid(const struct user_session *s)
{
	return s->is_allowed && loop_now_ms(s->of->loop) - s->decided_ms < USER_ACCESS_VALID_MS;
}

static void end_streams(struct user_session *s)
{
	while (s->n_streams)
		s->of->on_revoked(s->of->context, s->streams[--s->n_streams]);
}

static void forget(struct user_session *s)
{
	end_streams(s);
	if (s->is_reviewing)
		api_cancel(&s->call);
	buffer_done(&s->user);
	*s = (struct user_session){ 0 };
}

static void digest_of(struct str token, unsigned char *ret)
{
	if (EVP_Digest(token.p, token.n, ret, NULL, EVP_sha256(), NULL) != 1)
		abort();
}

static bool has_token(const struct user_session *s, const unsigned char *digest)
{
	return s->is_used && memcmp(s->digest, digest, sizeof(s->digest)) == 0;
}

static struct user_session *find(struct user_access *u, struct str token)
{
	unsigned char digest[sizeof(u->sessions[0].digest)];

	digest_of(token, digest);
	for (size_t i = 0; i < USER_ACCESS_MAX; i++)
		if (has_token(&u->sessions[i], digest)) {
			u->sessions[i].used_ms = loop_now_ms(u->loop);
			return &u->sessions[i];
		}
	return NULL;
}

/* A free place, or that of the one without a stream that was used least recently. */
static struct user_session *choose_place(struct user_access *u)
{
	struct user_session *best = NULL;

	for (size_t i = 0; i < USER_ACCESS_MAX; i++) {
		struct user_session *s = &u->sessions[i];

		if (!s->is_used)
			return s;
		if (!s->is_reviewing && !s->n_streams && (!best || s->used_ms < best->used_ms))
			best = s;
	}
	return best;
}

static struct user_session *add(struct user_access *u, struct str token)
{
	struct user_session *s = choose_place(u);

	if (!s)
		return NULL;
	if (s->is_used)
		forget(s);
	*s = (struct user_session){ .of = u, .is_used = true, .used_ms = loop_now_ms(u->loop) };
	digest_of(token, s->digest);
	return s;
}

/* --- reviews --- */

static void respond(struct user_session *s, const struct err *why)
{
	while (s->n_waiting)
		s->of->on_review(s->of->context, s->waiting[--s->n_waiting], why);
}

static void allow(struct user_session *s)
{
	s->is_reviewing = false;
	s->is_allowed = true;
	s->decided_ms = loop_now_ms(s->of->loop);
	respond(s, NULL);
}

static void refuse(struct user_session *s, const struct err *why)
{
	s->is_reviewing = false;
	s->is_allowed = false;
	end_streams(s);
	respond(s, why);
	forget(s);
}

/* The API server gave no decision: the present one stays as long as it is valid. */
static void fail(struct user_session *s, const struct err *err)
{
	struct err why = { 0 };

	s->is_reviewing = false;
	(void)err_set(&why, EIO, "cannot review the token: %s", err->msg);
	respond(s, &why);
	if (!is_valid(s))
		forget(s);
}

static void ask(struct user_session *s);

static void on_answer(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct user_session *s = container_of(call, struct user_session, call);
	struct err why = { 0 };

	if (!object) {
		fail(s, err);
		return;
	}
	if (user_answer(object, s->question, &why) < 0) {
		refuse(s, &why);
		return;
	}
	s->question++;
	ask(s);
}

static void ask(struct user_session *s)
{
	CLEANUP(arena_done) struct arena a;
	struct str body;

	arena_init(&a, 0);
	body = user_question(buffer_str(&s->user), s->question, &a);
	if (!body.n) {
		allow(s);
		return;
	}
	api_start(s->of->api, &s->call,
		  &(struct api_request){ .method = "POST",
					 .path = STR(ACCESS_REVIEWS),
					 .content_type = API_JSON,
					 .body = body },
		  on_answer);
}

static void on_user(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct user_session *s = container_of(call, struct user_session, call);
	CLEANUP(arena_done) struct arena a;
	struct err why = { 0 };
	struct str user;

	arena_init(&a, 0);
	if (!object) {
		fail(s, err);
		return;
	}
	if (user_of_review(object, &a, &user, &why) < 0) {
		refuse(s, &why);
		return;
	}
	buffer_done(&s->user);
	buffer_add(&s->user, user);
	s->question = 0;
	ask(s);
}

static void start_review(struct user_session *s, struct str token)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	s->is_reviewing = true;
	api_start(s->of->api, &s->call,
		  &(struct api_request){ .method = "POST",
					 .path = STR(TOKEN_REVIEWS),
					 .content_type = API_JSON,
					 .body = user_token_review(token, &a) },
		  on_user);
}

/* --- for requests --- */

static struct user_session *find_valid(struct user_access *u, struct str token)
{
	struct user_session *s = find(u, token);

	if (!s || !is_valid(s))
		return NULL;
	if (!s->is_reviewing && loop_now_ms(u->loop) - s->decided_ms > USER_ACCESS_FRESH_MS)
		start_review(s, token);
	return s;
}

bool user_access_allows(struct user_access *u, struct str token)
{
	return find_valid(u, token) != NULL;
}

bool user_access_add_stream(struct user_access *u, struct str token, uint64_t connection)
{
	struct user_session *s = find_valid(u, token);

	if (!s)
		return false;
	/* The oldest one is most likely gone. */
	if (s->n_streams == USER_ACCESS_STREAMS) {
		u->on_revoked(u->context, s->streams[0]);
		s->n_streams--;
		memmove(s->streams, s->streams + 1, s->n_streams * sizeof(s->streams[0]));
	}
	s->streams[s->n_streams++] = connection;
	return true;
}

int user_access_review(struct user_access *u, struct str token, uint64_t connection,
		       struct err *err)
{
	struct user_session *s = find(u, token);

	if (!s)
		s = add(u, token);
	if (!s || s->n_waiting == USER_ACCESS_WAITING)
		return err_set(err, EBUSY, "too many tokens are being reviewed");
	s->waiting[s->n_waiting++] = connection;
	if (!s->is_reviewing)
		start_review(s, token);
	return 0;
}

void user_access_tick(struct user_access *u)
{
	for (size_t i = 0; i < USER_ACCESS_MAX; i++)
		if (u->sessions[i].is_used && !u->sessions[i].is_reviewing &&
		    !is_valid(&u->sessions[i]))
			forget(&u->sessions[i]);
}

void user_access_close(struct user_access *u)
{
	for (size_t i = 0; i < USER_ACCESS_MAX; i++)
		if (u->sessions[i].is_used)
			forget(&u->sessions[i]);
}
