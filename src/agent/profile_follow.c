/* The kept file is the only way from a decision to the pools: an agent that ends at any point
 * starts with the same pools. A conflict and a profile with errors leave it as it is. */

#include "profile_follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "config_watch.h"
#include "nodesync/node_sync.h"
#include "partition/node_profile.h"
#include "pin/kept_profile.h"
#include "pin/manager.h"

/* Logs a decision that differs from the last one. */
static void log_decision(const struct node_profile *p)
{
	const struct log_field name = LOG_STR("profile", p->name),
			       reason = LOG_STR("reason", p->message);

	if (p->state == PROFILE_CONFLICT)
		log_error("profiles conflict, keeping the pools", reason);
	else if (p->state == PROFILE_INVALID)
		log_error("cannot apply the profile, keeping the pools", name, reason);
	else if (p->state == PROFILE_NONE)
		log_info("no profile selects this node");
	else
		log_info("profile selected", name, LOG_INT("generation", p->generation));
	if (p->state == PROFILE_SELECTED && p->message.n)
		log_warning("the profile has warnings", name, reason);
}

static bool report_decision(struct manager *m, const struct node_profile *p)
{
	struct profile_report now;

	memset(&now, 0, sizeof(now)); /* it is compared as bytes */
	now.state = p->state;
	now.generation = p->generation;
	(void)snprintf(now.name, sizeof(now.name), PRI_STR, FMT_STR(p->name));
	if (p->state == PROFILE_SELECTED)
		now.pools_hash = pool_config_hash(&p->pools);
	else
		(void)snprintf(now.message, sizeof(now.message), PRI_STR, FMT_STR(p->message));
	/* Both were zeroed as a whole, padding too.
	 * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	if (memcmp(&now, &m->status.profile, sizeof(now)) == 0)
		return false;
	m->status.profile = now;
	m->is_changed = true;
	return true;
}

/* Writes or removes the file. Returns 1 when it was changed. */
static int keep(const struct profile_follow *f, const struct node_profile *p, struct arena *a,
		struct err *err)
{
	const struct kept_profile want = { p->name, p->generation, p->pools, p->profile };
	struct kept_profile have;
	struct str text, old;
	int r;

	r = kept_profile_read(f->state_dir, a, &have, NULL);
	if (p->state == PROFILE_NONE) {
		if (r == -ENOENT || r == -ENOTDIR)
			return 0;
		r = kept_profile_remove(f->state_dir, err);
		return r < 0 ? r : 1;
	}
	if (kept_profile_encode(&want, a, &text, err) < 0)
		return -err->code;
	/* An unreadable file is replaced. */
	if (r == 0 && have.profile && kept_profile_encode(&have, a, &old, NULL) == 0 &&
	    str_eq(text, old))
		return 0;
	r = kept_profile_write(f->state_dir, text, err);
	return r < 0 ? r : 1;
}

void profile_follow_update(struct profile_follow *f, const struct node_sync *sync)
{
	CLEANUP(arena_done) struct arena a;
	struct node_profile decision;
	struct err err = { 0 };
	yyjson_val **profiles;
	struct doc labels;
	size_t n;
	int r;

	arena_init(&a, 0);
	profiles = profile_watch_objects(&sync->profiles, &a, &n);
	if (doc_parse(str_from(sync->labels), STR("labels"), NULL, &a, &labels, &err) < 0)
		return; /* text of doc_write() */
	node_profile_decide(profiles, n, labels.root, f->manager->ledger->now.topology, &a,
			    &decision);
	if (report_decision(f->manager, &decision))
		log_decision(&decision);
	if (decision.state != PROFILE_NONE && decision.state != PROFILE_SELECTED)
		return;
	r = keep(f, &decision, &a, &err);
	if (r < 0 && !f->must_retry)
		log_error("cannot keep the profile in the state directory, retrying",
			  LOG_ERR(&err));
	f->must_retry = r < 0;
	if (r > 0)
		config_watch_update(f->pools);
}

void profile_follow_tick(struct profile_follow *f, const struct node_sync *sync)
{
	if (f->must_retry)
		profile_follow_update(f, sync);
}
