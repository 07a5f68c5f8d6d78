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

#define SETTLE_MS UINT64_C(200)	 /* editors write in several steps */
#define RETRY_MS UINT64_C(10000) /* a disk that was full, a directory that was read-only */

/* Pools. */

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
	const struct reboot_notes before = l->manager->reboot;
	struct cpuset reserved, guaranteed;
	struct boot_facts facts;

	arena_init(&a, 0);
	if (!l->config.is_host || root < 0)
		return;
	reboot_read(root, &facts);
	(void)ledger_cpus(l->manager->ledger, POOL_MANAGEMENT, &reserved);
	(void)ledger_cpus(l->manager->ledger, POOL_GUARANTEED, &guaranteed);
	reboot_judge(&facts, &reserved, &guaranteed, &l->manager->reboot);
	if (same_notes(&before, &l->manager->reboot))
		return;
	for (size_t i = 0; i < l->manager->reboot.n; i++) {
		const struct reboot_note *n = &l->manager->reboot.items[i];

		log_warning("needs a reboot to follow the pools",
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
		log_warning("the new pools wait", LOG_STR("from", str_from(from)),
			    LOG_ERR(&r->why));
	else
		log_error("the pools stay as they are", LOG_STR("from", str_from(from)),
			  LOG_ERR(&r->why));
	for (size_t i = 0; i < r->n_obstacles && i < RESIZE_MAX_NAMED; i++)
		log_warning("a container is in the way of the new pools",
			    LOG_STR("container", str_from(r->obstacles[i].name)),
			    LOG_STR("cpus", str_from(r->obstacles[i].cpus)));
}

static void resize(struct config_watch *l, const struct pool_config *pools, const char *from)
{
	struct resize_report *r = &l->manager->resize;
	const bool waited = r->state == RESIZE_DEFERRED;

	(void)resize_apply(l->manager, pools, r);
	l->manager->is_changed = true;
	if (waited && r->state == RESIZE_DEFERRED)
		return; /* still: said before */
	log_resize(r, from);
	config_watch_check_boot(l);
	manager_flush(l->manager);
}

/* Without a resize: nobody waits any more, and no CPU is kept for one who did. */
static void set_report(struct config_watch *l, const struct resize_report *report)
{
	l->manager->resize = *report;
	ledger_withhold(l->manager->ledger, NULL);
	l->manager->is_changed = true;
}

/* A file that is not whole is replaced in a moment, or its author wants to know what is wrong. */
static void tell_unreadable(struct config_watch *l, const char *from, const struct err *err)
{
	set_report(l, &(struct resize_report){ .state = RESIZE_REFUSED, .why = *err });
	log_error("the pools stay as they are", LOG_STR("from", str_from(from)), LOG_ERR(err));
}

static void read_pools(struct config_watch *l, bool asked)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config pools;
	struct err err = { 0 };
	const char *from = "";

	arena_init(&a, 0);
	if (pools_source_read(l->config.pools, &a, &pools, &from, &err) < 0) {
		tell_unreadable(l, from, &err);
		return;
	}
	if (!pool_config_eq(&pools, &l->manager->ledger->now.config)) {
		resize(l, &pools, from);
		return;
	}
	/* As they are: whoever took a change back is no longer refused or waiting. */
	if (l->manager->resize.state > RESIZE_DONE)
		set_report(l, &(struct resize_report){ .state = RESIZE_NONE });
	if (asked)
		log_info("the pools are as they were", LOG_STR("from", str_from(from)));
}

void config_watch_reload(struct config_watch *l)
{
	read_pools(l, true);
}

static void on_pools_file(struct config_watch *l, const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *file = slash ? slash + 1 : path;

	/* A Kubernetes mount renames ..data, and the file itself is a link. */
	if (!path || (name && strcmp(name, file) != 0 && strncmp(name, "..", 2) != 0))
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

/* What became of a directory that was not watched a moment ago; tried again every second. */
enum beginning {
	NOTHING_NEW, /* it has been watched all the time, or is not there */
	BEGUN,	     /* and what happened before that was not heard */
	UNHEARD,     /* it is there and cannot be watched */
};

static enum beginning begin(struct config_watch *l, struct dir_watch *w, const char *dir)
{
	struct err err = { 0 };
	int r;

	if (w->fd >= 0)
		return NOTHING_NEW;
	r = dir_watch_start(w, l->loop, dir, &err);
	if (r == -ENOENT || r == -ENOTDIR || (r == 0 && w->fd < 0))
		return NOTHING_NEW;
	if (r < 0 && !l->said_unheard) {
		l->said_unheard = true;
		log_warning("a directory cannot be watched; SIGHUP makes us read the pools",
			    LOG_ERR(&err));
	}
	return r < 0 ? UNHEARD : BEGUN;
}

static bool begin_beside(struct config_watch *l, struct dir_watch *w, const char *file)
{
	char path[4096];

	if (!file || strlen(file) >= sizeof(path))
		return false;
	(void)snprintf(path, sizeof(path), "%s", file);
	return begin(l, w, dirname(path)) == BEGUN;
}

/* True when the files may have changed before we began to watch. */
static bool watch_pools(struct config_watch *l)
{
	const bool pools = begin_beside(l, &l->pools, l->config.pools->pools_file);
	const bool marker = begin_beside(l, &l->marker, l->config.pools->marker_file);

	return pools || marker;
}

/* Static pods. */

static void log_entry(const struct static_entry *e)
{
	const struct log_field file = LOG_STR("file", str_from(e->file)),
			       pod = LOG_STR("pod", str_from(e->pod)),
			       why = LOG_STR("reason", str_from(e->why));

	if (e->verdict == STATIC_CONVERTED)
		log_info("static pod is converted", file, pod);
	else if (e->verdict == STATIC_REFUSED)
		log_error("static pod cannot be converted and runs as it is", file, pod, why);
	else
		log_warning("manifest cannot be read, ignoring", file, why);
}

static void scan(struct config_watch *l)
{
	struct err err = { 0 };
	bool fails;
	int r;

	if (l->static_pods.dir_fd < 0) {
		if (static_pods_open(&l->static_pods, l->config.static_pods, &err) < 0)
			return;
		l->manager->static_pods = &l->static_pods;
	}
	r = static_pods_scan(&l->static_pods, &err);
	fails = r < 0 && r != -EAGAIN;
	if (fails && !l->scan_fails)
		log_error("cannot look after the static pods", LOG_ERR(&err));
	l->scan_fails = fails;
	if (r < 0) /* -EAGAIN: somebody is at it; his close tells us, and a second later we look */
		timer_start(&l->settle, fails ? RETRY_MS : 5 * SETTLE_MS, 0);
	if (!l->static_pods.is_changed)
		return;
	l->static_pods.is_changed = false;
	l->manager->is_changed = true;
	for (size_t i = 0; i < l->static_pods.n; i++)
		log_entry(&l->static_pods.items[i]);
}

static void on_settled(struct timer *t)
{
	scan(container_of(t, struct config_watch, settle));
}

static void on_manifest(struct dir_watch *w, const char *name)
{
	struct config_watch *l = container_of(w, struct config_watch, manifests);

	if (!name || static_manifest_is_read(name))
		timer_start(&l->settle, SETTLE_MS, 0);
}

static void watch_manifests(struct config_watch *l)
{
	enum beginning begun;

	if (!l->config.static_pods)
		return;
	begun = begin(l, &l->manifests, l->config.static_pods);
	if (begun == BEGUN) {
		l->manager->static_pods = NULL; /* it may be another directory of the same name */
		static_pods_done(&l->static_pods);
	}
	if (begun != NOTHING_NEW)
		scan(l);
}

/* All of it. */

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
	timer_init(&l->settle, loop, on_settled);
	(void)watch_pools(l);
	watch_manifests(l);
	if (l->config.static_pods && l->static_pods.dir_fd < 0)
		log_warning("the directory of static pods is not there yet",
			    LOG_STR("directory", str_from(l->config.static_pods)));
	config_watch_check_boot(l);
	read_pools(l, false); /* those of a start that did not fit are refused, or wait */
}

void config_watch_tick(struct config_watch *l)
{
	const bool may_differ = watch_pools(l);

	watch_manifests(l);
	if (may_differ || l->manager->resize.state == RESIZE_DEFERRED)
		read_pools(l, false);
}

void config_watch_done(struct config_watch *l)
{
	dir_watch_stop(&l->pools);
	dir_watch_stop(&l->marker);
	dir_watch_stop(&l->manifests);
	l->manager->static_pods = NULL;
	static_pods_done(&l->static_pods);
}
