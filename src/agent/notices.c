#include "notices.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *reason;
	bool is_warning;
} kinds[] = {
	[NOTICE_REFUSED] = { "ContainerRefused", true },
	[NOTICE_DOUBTED] = { "AnnotationNotBelieved", true },
	[NOTICE_REPAIRED] = { "DriftRepaired", true },
	[NOTICE_LOST] = { "RuntimeDisconnected", true },
	[NOTICE_BACK] = { "RuntimeConnected", false },
	[NOTICE_RESTORED] = { "ResourcesRestored", false },
};

const char *notice_reason(enum notice_kind kind)
{
	return kinds[kind].reason;
}

bool notice_is_warning(enum notice_kind kind)
{
	return kinds[kind].is_warning;
}

static char *copy(const char *text)
{
	char *p = strdup(text ? text : "");

	if (!p)
		abort();
	return p;
}

static void clear(struct notice *notice)
{
	free(notice->namespace);
	free(notice->pod);
	free(notice->uid);
	free(notice->container);
	free(notice->text);
	*notice = (struct notice){ 0 };
}

void notices_init(struct notices *n)
{
	*n = (struct notices){ .tokens_ms = (uint64_t)NOTICES_BURST * NOTICES_EVERY_MS };
}

void notices_done(struct notices *n)
{
	for (size_t i = 0; i < n->n; i++)
		clear(&n->items[i]);
	n->n = 0;
}

static bool is_same(const char *have, const char *want)
{
	return strcmp(have, want ? want : "") == 0;
}

static struct notice *find(struct notices *n, enum notice_kind kind,
			   const struct notice_subject *about)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->items[i].kind == kind && is_same(n->items[i].uid, about->uid) &&
		    is_same(n->items[i].pod, about->pod) &&
		    is_same(n->items[i].namespace, about->namespace) &&
		    is_same(n->items[i].container, about->container))
			return &n->items[i];
	return NULL;
}

/* Nothing that still has to be said is forgotten for something new. */
static struct notice *make_room(struct notices *n)
{
	struct notice *oldest = NULL;

	if (n->n < NOTICES_MAX)
		return &n->items[n->n++];
	for (size_t i = 0; i < n->n; i++)
		if (!n->items[i].count && (!oldest || n->items[i].age < oldest->age))
			oldest = &n->items[i];
	if (oldest)
		clear(oldest);
	return oldest;
}

void notices_add(struct notices *n, enum notice_kind kind, const struct notice_subject *about,
		 struct str text)
{
	struct notice *notice;

	if (!n)
		return;
	notice = find(n, kind, about);
	if (!notice) {
		notice = make_room(n);
		if (!notice) {
			n->dropped++;
			return;
		}
		*notice = (struct notice){
			.kind = kind,
			.namespace = copy(about->namespace),
			.pod = copy(about->pod),
			.uid = copy(about->uid),
			.container = copy(about->container),
		};
	}
	free(notice->text); /* the last one is what is told */
	notice->text = strndup(text.p ? text.p : "", text.n);
	if (!notice->text)
		abort();
	notice->count++;
	notice->age = ++n->added;
}

static void refill(struct notices *n, uint64_t now_ms)
{
	const uint64_t full_ms = (uint64_t)NOTICES_BURST * NOTICES_EVERY_MS;

	if (now_ms > n->refilled_ms)
		n->tokens_ms += now_ms - n->refilled_ms;
	if (n->tokens_ms > full_ms)
		n->tokens_ms = full_ms;
	n->refilled_ms = now_ms;
}

const struct notice *notices_next(struct notices *n, uint64_t now_ms)
{
	refill(n, now_ms);
	if (n->tokens_ms < NOTICES_EVERY_MS)
		return NULL;
	for (size_t i = 0; i < n->n; i++) {
		const struct notice *notice = &n->items[i];

		if (notice->count &&
		    (!notice->was_sent || now_ms - notice->sent_ms >= NOTICES_REPEAT_MS))
			return notice;
	}
	return NULL;
}

void notices_sent(struct notices *n, const struct notice *notice, uint32_t count, uint64_t now_ms)
{
	struct notice *own = &n->items[notice - n->items];

	n->tokens_ms -= NOTICES_EVERY_MS;
	n->sent++;
	own->count -= count < own->count ? count : own->count;
	own->was_sent = true;
	own->sent_ms = now_ms;
}
