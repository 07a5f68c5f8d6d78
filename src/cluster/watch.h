#pragma once

/* Follows one collection of an API server: lists it in pages, then watches from that version on.
 * A lost connection is resumed from the last version seen (bookmarks keep that fresh), so nothing
 * is listed again; only when the server says that the version is too old is the list read anew, and
 * until it is complete what was known stays known. Never gives up. */

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

	/* A list begins, and is complete: what was not seen in between is gone. */
	void (*on_list)(struct watch *w);
	void (*on_synced)(struct watch *w);

	/* For the log: something failed, and is tried again. May be NULL. */
	void (*on_trouble)(struct watch *w, const struct err *err);

	/* The server says 403, and it is not because it has just started. Asked rarely from now on,
	 * and told each time. NULL: that is trouble like any other. */
	void (*on_forbidden)(struct watch *w, const struct err *err);
};

struct watch_config {
	const char *path;     /* "/api/v1/nodes" */
	const char *selector; /* "fieldSelector=...", or NULL */
	bool only_metadata;   /* ask for metadata alone: less to send and to read */
	bool may_be_absent;   /* 404 means that there are none: a CRD that is not installed */
	unsigned page;	      /* objects in one answer */
	bool frees_memory;    /* of every event, at once: where it is dear and events are few */
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
	struct buffer next_page; /* the server's token; empty: from the beginning */
	struct http_call http;
	char *path;
	struct watch_lines lines;
	struct arena arena; /* of one event */
	char version[WATCH_VERSION_SIZE];
	struct backoff backoff;
	bool must_list;
	bool is_synced;	  /* a list was complete once */
	bool is_current;  /* the watch is established at this moment */
	bool is_absent;	  /* the server does not know the collection */
	uint64_t lost_ms; /* since when it is not current */

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
void watch_close(struct watch *w); /* memory stays until the loop is done */
void watch_done(struct watch *w);  /* after that */

/* What to do after a list or a watch ended. Pure. */
struct watch_outcome {
	bool was_list;
	bool failed;	     /* no whole answer, or an unreadable one */
	bool unreadable;     /* it is the content that failed */
	unsigned status;     /* 0: none came */
	unsigned event_code; /* of an ERROR event; 0: none came */
	bool was_brief;	     /* a watch that ended almost at once, without an event */
	bool may_be_absent, may_be_forbidden;
	unsigned failures; /* in a row, before this one */
};

enum watch_delay { WATCH_AT_ONCE, WATCH_BACK_OFF, WATCH_ABSENT, WATCH_FORBIDDEN };

struct watch_plan {
	bool relist;
	enum watch_delay delay;
};

struct watch_plan watch_decide(const struct watch_outcome *o);
