#pragma once

/* Users of the cluster as users of the dashboard (--user-tokens): the API server says whose a
 * bearer token is (TokenReview) and whether that user may list everything that is shown
 * (SubjectAccessReview). Nothing is stored there, and no token is kept here. A decision is renewed
 * after a minute, and is void after five. Belongs to the thread of its loop. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "cluster/api.h"

struct user_access;

#define USER_ACCESS_MAX 64	    /* users at a time */
#define USER_ACCESS_FRESH_MS 60000  /* then it is reviewed again */
#define USER_ACCESS_VALID_MS 300000 /* while it cannot be */
#define USER_ACCESS_WAITING 16	    /* requests that wait for one review */
#define USER_ACCESS_STREAMS 16	    /* of one user */

struct user_session {
	struct user_access *of;
	unsigned char digest[32]; /* of the token */
	struct buffer user;	  /* whose it is: user_of_review() */
	struct api_call call;
	unsigned question;
	uint64_t decided_ms, used_ms;
	uint64_t waiting[USER_ACCESS_WAITING], streams[USER_ACCESS_STREAMS]; /* connections */
	unsigned n_waiting, n_streams;
	bool is_used, is_allowed, is_reviewing;
};

struct user_access {
	struct api *api; /* set by the owner, like the next four */
	struct loop *loop;
	/* A request that waited for a review; `why` is NULL when its user is allowed. */
	void (*on_review)(void *context, uint64_t connection, const struct err *why);
	/* The user of this stream is no longer allowed. */
	void (*on_revoked)(void *context, uint64_t connection);
	void *context;
	struct user_session sessions[USER_ACCESS_MAX];
};

/* True when the user of the token is allowed. Renews a decision that is old. */
bool user_access_allows(struct user_access *u, struct str token);

/* The same for a stream, which on_revoked ends. */
bool user_access_add_stream(struct user_access *u, struct str token, uint64_t connection);

/* Reviews the token: on_review follows. */
int user_access_review(struct user_access *u, struct str token, uint64_t connection,
		       struct err *err);

/* Ends the streams whose decision was not renewed. */
void user_access_tick(struct user_access *u);
void user_access_close(struct user_access *u);
