/* Opens, locks and replaces the ledger's file. Whatever its content is, the agent must start: a
 * file that cannot be used is kept aside for analysis, and the state is rebuilt from the running
 * containers. */

#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"

#define STATE_MODE 0600
#define MOST_ASIDE 10 /* corrupt files that are kept; a further one replaces the last */

static const char *const outcome_names[] = {
	[STORE_FRESH] = "fresh", [STORE_RESTORED] = "restored", [STORE_RESIZED] = "resized",
	[STORE_KEPT] = "kept",	 [STORE_REBOOTED] = "rebooted", [STORE_CORRUPT] = "corrupt",
};
_Static_assert(ARRAY_LEN(outcome_names) == STORE__OUTCOMES, "every outcome has a name");

const char *store_outcome_name(enum store_outcome outcome)
{
	return outcome_names[outcome];
}

int store_read_boot_id(int root_fd, char ret[STORE_BOOT_ID_MAX], struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	r = file_read_at(root_fd, "proc/sys/kernel/random/boot_id", STORE_BOOT_ID_MAX - 1, &a,
			 &text, err);
	if (r < 0)
		return err_wrap(err, "boot id");
	text = str_trim(text);
	if (!text.n)
		return err_set(err, EINVAL, "boot id: the file is empty");
	memcpy(ret, text.p, text.n);
	ret[text.n] = '\0';
	return 0;
}

/* If the last step fails, the sync of the directory, the new state may be on disk although this
 * reports a failure and the ledger rolls back. That is safe: a new assignment in it was never given
 * to a container, a released one had ended, and the next write replaces the file. */
static int persist(const struct ledger *l, void *data, struct err *err)
{
	struct store *s = data;
	struct ledger_state state;
	struct str text;
	int r;

	arena_reset(&s->scratch);
	ledger_to_state(l, &state);
	state.boot_id = str_from(s->boot_id);
	r = ledger_state_encode(&state, &s->scratch, &text, err);
	if (r < 0)
		return r;
	return file_replace_at(s->dir_fd, s->path, text, STATE_MODE, err);
}

/* A second writer would overwrite the first one's assignments. */
static int lock(struct store *s, struct err *err)
{
	char name[4096];

	if (snprintf(name, sizeof(name), "%s.lock", s->path) >= (int)sizeof(name))
		return err_set(err, ENAMETOOLONG, "%s: name too long", s->path);
	/* A file of its own: the state file is replaced by rename(), and a lock would stay with the
	 * old inode. */
	s->lock_fd = openat(s->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, STATE_MODE);
	if (s->lock_fd < 0)
		return err_set(err, errno, "open %s: %s", name, strerror(errno));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EBUSY, "%s: another process uses this state", s->path);
	return 0;
}

static int set_aside(struct store *s, struct store_report *report, struct err *err)
{
	struct stat st;

	/* Numbered, so that the first damage, which explains the others, is not overwritten by a
	 * restart loop. */
	for (int i = 0; i < MOST_ASIDE; i++) {
		int n = snprintf(report->aside, sizeof(report->aside), "%s.corrupt-%d", s->path, i);

		if (n >= (int)sizeof(report->aside))
			return err_set(err, ENAMETOOLONG, "%s: name too long", s->path);
		if (fstatat(s->dir_fd, report->aside, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
	}
	if (renameat(s->dir_fd, s->path, s->dir_fd, report->aside) < 0)
		return err_set(err, errno, "rename %s to %s: %s", s->path, report->aside,
			       strerror(errno));
	return 0;
}

/* Same boot: the containers of the entries may still run, so the entries take precedence over the
 * new configuration. */
static int resume(struct ledger *l, const struct ledger_state *state,
		  const struct store_settings *settings, struct store_report *report)
{
	const struct topology *t = settings->topology;
	const struct pool_config *c = settings->config;
	struct err *why = &report->why;
	int r;

	/* The old configuration may name CPUs that were removed since; the new one may not. */
	if (ledger_init(l, t, state->config, why) < 0 && ledger_init(l, t, c, why) < 0)
		return -1;
	r = ledger_load(l, state->entries, state->n_entries, why);
	if (r < 0) {
		ledger_done(l);
		return -1;
	}
	report->n_restored = state->n_entries;
	report->machine_differs = state->topology_hash != l->now.topology_hash;
	report->outcome = STORE_RESTORED;
	*why = (struct err){ 0 };
	/* A resize like any other: refused when it would take CPUs from a container. */
	if (state->config_hash != pool_config_hash(c))
		report->outcome = ledger_resize(l, c, why) < 0 ? STORE_KEPT : STORE_RESIZED;
	return 0;
}

static int start_afresh(struct ledger *l, const struct store_settings *settings, struct err *err)
{
	int r = ledger_init(l, settings->topology, settings->config, err);

	return r < 0 ? err_wrap(err, "CPU pools") : 0;
}

static int recover(struct store *s, struct ledger *l, const struct store_settings *settings,
		   struct store_report *report, struct err *err)
{
	struct ledger_state state;
	struct str text;
	struct err why = { 0 };
	int r;

	r = file_read_at(s->dir_fd, s->path, LEDGER_STATE_MAX_SIZE, &s->scratch, &text, &why);
	if (r == -ENOENT) {
		report->outcome = STORE_FRESH;
		return start_afresh(l, settings, err);
	}
	/* An I/O error or missing permission is not the content's fault: starting afresh would
	 * overwrite a good file. Too large is content. */
	if (r < 0 && r != -EFBIG) {
		if (err)
			*err = why;
		return r;
	}
	report->why = why;
	if (r >= 0)
		r = ledger_state_decode(text, str_from(s->path), &s->scratch, &state, &report->why);
	/* No container survives a reboot, and pods get their CPUs anew. */
	if (r >= 0 && !str_eq(state.boot_id, str_from(s->boot_id))) {
		report->outcome = STORE_REBOOTED;
		return start_afresh(l, settings, err);
	}
	if (r >= 0 && resume(l, &state, settings, report) >= 0)
		return 0;
	report->outcome = STORE_CORRUPT;
	r = set_aside(s, report, err);
	return r < 0 ? r : start_afresh(l, settings, err);
}

int store_open(struct store *s, struct ledger *l, const struct store_settings *settings,
	       struct store_report *ret, struct err *err)
{
	struct store_report report = { 0 };
	int r;

	*s = (struct store){ .dir_fd = settings->dir_fd, .lock_fd = -1 };
	*l = (struct ledger){ 0 };
	if (strlen(settings->boot_id) >= sizeof(s->boot_id))
		return err_set(err, EINVAL, "boot id: longer than %zu characters",
			       sizeof(s->boot_id) - 1);
	memcpy(s->boot_id, settings->boot_id, strlen(settings->boot_id) + 1);
	s->path = strdup(settings->path);
	if (!s->path)
		abort();
	arena_init(&s->scratch, 0);
	r = lock(s, err);
	if (r >= 0)
		r = recover(s, l, settings, &report, err);
	if (r >= 0) {
		l->persist = persist;
		l->persist_data = s;
		r = persist(l, s, err); /* also checks that the file can be written */
	}
	if (r < 0) {
		ledger_done(l);
		store_done(s);
		return r;
	}
	*ret = report;
	return 0;
}

void store_done(struct store *s)
{
	if (s->lock_fd >= 0)
		(void)close(s->lock_fd);
	free(s->path);
	arena_done(&s->scratch);
	*s = (struct store){ .lock_fd = -1 };
}
