/* Files are watched by inotify on their directories: an administrator or a ConfigMap replaces a
 * file by a rename, which a watch on the file itself would not follow. A directory that does not
 * exist yet is tried again once a second. */

#include "config_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "pin/manager.h"
#include "pin/reboot.h"
#include "pin/resize.h"

#define SCAN_DELAY_MS UINT64_C(200) /* editors write in several steps */
#define RETRY_MS UINT64_C(10000)    /* after a full disk or a read-only directory */
#define RESIZE_RETRY_MS 30000	    /* of a profile: there is no file to write again */

/* --- pools --- */

/* The comparison is repeated after every resize and hotplug; only a difference is logged. */
static bool same_notes(const struct reboot_notes *x, const struct reboot_notes *y)
{
	for (size_t i = 0; i < x->n && i < y->n; i++)
		if (x->items[i].what != y->items[i].what ||
		    !cpuset_eq(&x->items[i].have, &y->items[i].have) ||
		    !cpuset_eq(&x->items[i].want, &y->items[i].want))
			return false;
	return x->n == y->n;
}

void config_watch_check_boot(struct config_watch *l)
{
	CLEANUP(arena_done) struct arena a;
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct reboot_notes before = l->manager->status.reboot;
	struct cpuset management, guaranteed;
	struct boot_facts facts;

	arena_init(&a, 0);
	if (!l->config.is_host || root < 0)
		return;
	reboot_read(root, l->config.moves_services, &facts);
	(void)ledger_cpus(l->manager->ledger, POOL_MANAGEMENT, &management);
	(void)ledger_cpus(l->manager->ledger, POOL_GUARANTEED, &guaranteed);
	reboot_compare(&facts, &management, &guaranteed, &l->manager->status.reboot);
	if (same_notes(&before, &l->manager->status.reboot))
		return;
	for (size_t i = 0; i < l->manager->status.reboot.n; i++) {
		const struct reboot_note *n = &l->manager->status.reboot.items[i];

		log_warning("boot parameter differs from the pools, reboot needed",
			    LOG_STR("what", str_from(n->what)),
			    LOG_STR("have", cpuset_format(&n->have, &a)),
			    LOG_STR("want", cpuset_format(&n->want, &a)),
			    LOG_STR("reason", str_from(n->why)));
	}
}

static void log_resize(const struct resize_report *r, const char *from)
{
	if (r->state == RESIZE_DONE) {
		log_info("pools resized", LOG_STR("from", str_from(from)),
			 LOG_INT("us", r->took_us), LOG_INT("cgroups", r->n_writes));
		return;
	}
	if (r->state == RESIZE_DEFERRED)
		log_warning("resize of the pools deferred", LOG_STR("from", str_from(from)),
			    LOG_ERR(&r->why));
	else
		log_error("resize of the pools refused", LOG_STR("from", str_from(from)),
			  LOG_ERR(&r->why));
	for (size_t i = 0; i < r->n_obstacles && i < RESIZE_MAX_NAMED; i++)
		log_warning("container blocks the resize of the pools",
			    LOG_STR("container", str_from(r->obstacles[i].name)),
			    LOG_STR("cpus", str_from(r->obstacles[i].cpus)));
}

/* A deferred resize is tried again every second, one to a profile from time to time: logged once.
 */
static bool is_repeated(const struct resize_report *now, const struct resize_report *before)
{
	return now->state > RESIZE_DONE && now->state == before->state &&
	       (now->state == RESIZE_DEFERRED || strcmp(now->why.msg, before->why.msg) == 0);
}

static void resize(struct config_watch *l, const struct pool_config *pools,
		   const struct pools_found *found)
{
	struct resize_report *r = &l->manager->status.resize;
	const struct resize_report before = *r;

	(void)resize_apply(l->manager, pools, r);
	l->manager->is_changed = true;
	if (r->state == RESIZE_DONE)
		pools_in_force_set(&l->manager->status.pools, found);
	else if (r->state != RESIZE_DEFERRED && found->origin == POOLS_FROM_PROFILE)
		l->retry_ms = loop_now_ms(l->loop) + RESIZE_RETRY_MS;
	if (is_repeated(r, &before))
		return;
	log_resize(r, found->from);
	config_watch_check_boot(l);
	manager_flush(l->manager);
}

/* Ends a deferred resize without applying it; CPUs withheld for it can be assigned again. */
static void set_report(struct config_watch *l, const struct resize_report *report)
{
	l->manager->status.resize = *report;
	ledger_withhold(l->manager->ledger, NULL);
	l->manager->is_changed = true;
}

/* The same pools may come from another source than before. */
static void set_source(struct config_watch *l, const struct pools_found *found)
{
	struct pools_in_force now;

	pools_in_force_set(&now, found);
	/* Both were zeroed as a whole, padding too.
	 * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
	if (memcmp(&now, &l->manager->status.pools, sizeof(now)) == 0)
		return;
	l->manager->status.pools = now;
	l->manager->is_changed = true;
}

static void read_pools(struct config_watch *l, bool is_requested)
{
	CLEANUP(arena_done) struct arena a;
	struct pools_found found = { 0 };
	struct pool_config pools;
	struct err err = { 0 };

	arena_init(&a, 0);
	l->retry_ms = 0;
	if (pools_source_read(l->config.pools, &a, &pools, &found, &err) < 0) {
		/* A file that is being written is read again at the next event. */
		set_report(l, &(struct resize_report){ .state = RESIZE_REFUSED, .why = err });
		log_error("cannot read the pools, keeping the current ones",
			  LOG_STR("from", str_from(found.from)), LOG_ERR(&err));
		return;
	}
	/* Compared with the pools in force, not with the last file: a refused file that is written
	 * again is tried again. */
	if (!pool_config_eq(&pools, &l->manager->ledger->now.config)) {
		resize(l, &pools, &found);
		return;
	}
	set_source(l, &found);
	/* Unchanged: a change that was refused or deferred has been reverted. */
	if (l->manager->status.resize.state > RESIZE_DONE)
		set_report(l, &(struct resize_report){ .state = RESIZE_NONE });
	if (is_requested)
		log_info("pools are unchanged", LOG_STR("from", str_from(found.from)));
}

void config_watch_update(struct config_watch *l)
{
	read_pools(l, false);
}

void config_watch_reload(struct config_watch *l)
{
	read_pools(l, true);
}

static void on_pools_file(struct config_watch *l, const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *file = slash ? slash + 1 : path;

	/* In a ConfigMap volume the file is a symlink through ..data, which is replaced by a
	 * rename. The marker of the node has the marker's name and a suffix. */
	if (!path ||
	    (name && strncmp(name, file, strlen(file)) != 0 && strncmp(name, "..", 2) != 0))
		return;
	read_pools(l, false);
}

static void on_pools(struct dir_watch *w, const char *name)
{
	struct config_watch *l = container_of(w, struct config_watch, pools);

	on_pools_file(l, l->config.pools->pools_file, name);
}

static void on_marker(struct dir_watch *w, const char *name)
{
	struct config_watch *l = container_of(w, struct config_watch, marker);

	on_pools_file(l, l->config.pools->marker_file, name);
}

/* Result of trying to watch a directory, once a second until it succeeds. */
enum watch_result {
	WATCH_UNCHANGED, /* watched before, or the directory does not exist */
	WATCH_STARTED,	 /* earlier changes raised no event, so the caller must read it */
	WATCH_FAILED,	 /* it exists and cannot be watched: the caller must poll */
};

static enum watch_result start_watch(struct config_watch *l, struct dir_watch *w, const char *dir)
{
	struct err err = { 0 };
	int r;

	if (w->fd >= 0)
		return WATCH_UNCHANGED;
	r = dir_watch_start(w, l->loop, dir, &err);
	/* 0 without a descriptor: the old watch is still closing. Tried again at the next tick. */
	if (r == -ENOENT || r == -ENOTDIR || (r == 0 && w->fd < 0))
		return WATCH_UNCHANGED;
	if (r < 0 && !l->watch_fails) {
		l->watch_fails = true;
		log_warning("cannot watch a directory, send SIGHUP after changing the pools",
			    LOG_ERR(&err));
	}
	return r < 0 ? WATCH_FAILED : WATCH_STARTED;
}

static bool watch_dir_of(struct config_watch *l, struct dir_watch *w, const char *file)
{
	char path[4096];

	if (!file || strlen(file) >= sizeof(path))
		return false;
	(void)snprintf(path, sizeof(path), "%s", file); /* dirname() changes its argument */
	return start_watch(l, w, dirname(path)) == WATCH_STARTED;
}

/* True when a watch was started: the files may have changed before. */
static bool watch_pools(struct config_watch *l)
{
	const bool pools = watch_dir_of(l, &l->pools, l->config.pools->pools_file);
	const bool marker = watch_dir_of(l, &l->marker, l->config.pools->marker_file);

	return pools || marker;
}

/* --- static pods --- */

static void log_static_pod(const struct static_entry *e)
{
	const struct log_field file = LOG_STR("file", str_from(e->file)),
			       pod = LOG_STR("pod", str_from(e->pod)),
			       why = LOG_STR("reason", str_from(e->why));

	if (e->verdict == STATIC_CONVERTED)
		log_info("static pod converted", file, pod);
	else if (e->verdict == STATIC_REFUSED)
		log_error("cannot convert static pod, leaving it unchanged", file, pod, why);
	else
		log_warning("cannot read static pod manifest, ignoring", file, why);
}

static void scan_manifests(struct config_watch *l)
{
	struct err err = { 0 };
	bool fails;
	int r;

	if (l->static_pods.dir_fd < 0) { /* it may not exist yet */
		if (static_pods_open(&l->static_pods, l->config.static_pods, &err) < 0)
			return;
		l->static_pods.is_legacy = l->config.is_legacy;
		l->manager->status.static_pods = &l->static_pods;
	}
	r = static_pods_scan(&l->static_pods, &err);
	fails = r < 0 && r != -EAGAIN;
	if (fails && !l->scan_fails)
		log_error("cannot convert static pods", LOG_ERR(&err));
	l->scan_fails = fails;
	/* -EAGAIN: a manifest is being written. Its close raises an event; the timer is for writers
	 * whose close was missed. */
	if (r < 0)
		timer_start(&l->scan_timer, fails ? RETRY_MS : 5 * SCAN_DELAY_MS, 0);
	if (!l->static_pods.is_changed)
		return;
	l->static_pods.is_changed = false;
	l->manager->is_changed = true;
	for (size_t i = 0; i < l->static_pods.n; i++)
		log_static_pod(&l->static_pods.items[i]);
}

static void on_scan_timer(struct timer *t)
{
	scan_manifests(container_of(t, struct config_watch, scan_timer));
}

static void on_manifest(struct dir_watch *w, const char *name)
{
	struct config_watch *l = container_of(w, struct config_watch, manifests);

	/* Each event starts the delay again, so that a series of writes is one scan. Files that the
	 * kubelet does not read, such as the originals of converted pods, start none. */
	if (!name || static_manifest_is_read(name))
		timer_start(&l->scan_timer, SCAN_DELAY_MS, 0);
}

static void watch_manifests(struct config_watch *l)
{
	enum watch_result result;

	if (!l->config.static_pods)
		return;
	result = start_watch(l, &l->manifests, l->config.static_pods);
	if (result == WATCH_STARTED) {
		l->manager->status.static_pods = NULL; /* the path may name another directory now */
		static_pods_done(&l->static_pods);
	}
	if (result != WATCH_UNCHANGED)
		scan_manifests(l);
}

/* --- start and stop --- */

void config_watch_init(struct config_watch *l, const struct config_watch_settings *config,
		       struct manager *m)
{
	*l = (struct config_watch){ .config = *config, .manager = m, .static_pods.dir_fd = -1 };
	dir_watch_init(&l->pools, on_pools);
	dir_watch_init(&l->marker, on_marker);
	dir_watch_init(&l->manifests, on_manifest);
}

void config_watch_start(struct config_watch *l, struct loop *loop)
{
	l->loop = loop;
	timer_init(&l->scan_timer, loop, on_scan_timer);
	(void)watch_pools(l);
	watch_manifests(l);
	if (l->config.static_pods && l->static_pods.dir_fd < 0)
		log_warning("static pod directory does not exist yet",
			    LOG_STR("directory", str_from(l->config.static_pods)));
	config_watch_check_boot(l);
	read_pools(l, false); /* pools that did not fit at start-up are refused or deferred here */
}

void config_watch_tick(struct config_watch *l)
{
	const bool may_differ = watch_pools(l);

	watch_manifests(l);
	if (may_differ || l->manager->status.resize.state == RESIZE_DEFERRED ||
	    (l->retry_ms && loop_now_ms(l->loop) >= l->retry_ms))
		read_pools(l, false);
}

void config_watch_done(struct config_watch *l)
{
	dir_watch_stop(&l->pools);
	dir_watch_stop(&l->marker);
	dir_watch_stop(&l->manifests);
	l->manager->status.static_pods = NULL;
	static_pods_done(&l->static_pods);
}
