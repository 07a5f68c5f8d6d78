#pragma once

/* Lists one collection of an API server in pages and then watches it from that version on. After a
 * lost connection the watch resumes from the last version seen (bookmarks keep it recent) without a
 * new list. Only when the server reports that the version is too old, the list is read again; until
 * it is complete, the objects of the previous list stay valid. Retries forever. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "backoff.h"
#include "base/arena.h"
#include "watch_event.h"

struct watch;

struct watch_callbacks {
	void (*on_object)(struct watch *w, yyjson_val *object); /* new or changed */
	void (*on_deleted)(struct watch *w, yyjson_val *object);

	/* A list begins and is complete: objects that were not in it no longer exist. */
	void (*on_list)(struct watch *w);
	void (*on_synced)(struct watch *w);

	/* For the log: a request failed and is retried. May be NULL. */
	void (*on_failure)(struct watch *w, const struct err *err);

	/* The server responds 403, and not only because it has just started. Retried rarely from
	 * now on, with a call each time. NULL: a failure like any other. */
	void (*on_forbidden)(struct watch *w, const struct err *err);
};

struct watch_config {
	const char *path;     /* "/api/v1/nodes" */
	const char *selector; /* "fieldSelector=...", or NULL */
	bool only_metadata;   /* request PartialObjectMetadata: less to send and to parse */
	bool may_be_absent;   /* 404 means an empty collection: its CRD is not installed */
	unsigned page;	      /* objects per response */
	bool frees_memory;    /* after every event: less memory for more allocations */
};

enum watch_phase { WATCH_WAITING, WATCH_LISTING, WATCH_WATCHING };

#define WATCH_VERSION_SIZE 128

struct watch {
	struct api *api;
	const struct watch_config *config;
	const struct watch_callbacks *events;
	struct loop *loop;
	struct timer timer;
	enum watch_phase phase;
	struct api_call list;
	struct buffer next_page; /* the server's continue token; empty: first page */
	struct http_call http;
	char *path;
	struct watch_lines lines;
	struct arena arena; /* of one event */
	char version[WATCH_VERSION_SIZE];
	struct backoff backoff;
	unsigned refusals; /* 403 in a row */
	unsigned absences; /* lists in a row that found no such collection */
	bool must_list;
	bool is_synced;	  /* a list was complete once */
	bool is_current;  /* the watch is established now */
	bool is_absent;	  /* the collection does not exist */
	uint64_t lost_ms; /* when it was last current */

	/* Of the present watch. */
	uint64_t started_ms, events_before;
	unsigned event_code;
	bool is_unreadable;
	struct err broken;

	/* Counted from the start. */
	uint64_t lists, watches, events_seen, too_old, failures;
};

/* `config` and `events` must outlive it. Starts at once. */
void watch_init(struct watch *w, struct api *api, const struct watch_config *config,
		const struct watch_callbacks *events);

/* Ends the requests and keeps what was counted; on_list and on_synced follow a resume. Not from a
 * callback of this watch. */
void watch_pause(struct watch *w);
void watch_resume(struct watch *w);

void watch_close(struct watch *w); /* memory stays until the loop is done */
void watch_done(struct watch *w);  /* after that */

/* What to do after a list or a watch ended. Pure. */
struct watch_outcome {
	bool was_list;
	bool failed;	     /* no complete response, or an unreadable one */
	bool unreadable;     /* the content could not be parsed */
	unsigned status;     /* 0: no response */
	unsigned event_code; /* of an ERROR event; 0: none */
	bool was_brief;	     /* a watch that ended within a second without an event */
	bool may_be_absent, may_be_forbidden;
	unsigned failures; /* in a row, before this one */
	unsigned refusals; /* 403 in a row, likewise: an outage before them does not count */
	unsigned absences; /* of the collection, likewise */
};

enum watch_delay {
	WATCH_AT_ONCE,
	WATCH_BACK_OFF,
	WATCH_ABSENT,
	WATCH_LONG_ABSENT,
	WATCH_FORBIDDEN
};

struct watch_plan {
	bool relist;
	enum watch_delay delay;
	bool keeps_page; /* the list goes on with the page that failed, not with the first one */
};

struct watch_plan watch_decide(const struct watch_outcome *o);
