#include "files_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "distro/distro.h"
#include "files_follow.h"
#include "host_files_read.h"

#define UNIT_DIR "/etc/systemd/system/"
#define SENTINEL "/run/reboot-required" /* /var/run is a link to /run */
#define SENTINEL_TEXT "pinfold: kernel arguments or units that run at boot have changed\n"

static const char *const kubelet_states[] = { "cpu_manager_state", "memory_manager_state" };

static const char *kept_state(const struct files_settings *s, const char *name, struct arena *a)
{
	return str_cstr(a, str_printf(a, "%s/kubelet-%s", s->state_dir, name));
}

static bool has_policy_none(struct str state)
{
	return str_has(state, STR("\"policyName\":\"none\"")) ||
	       str_has(state, STR("\"policyName\":\"None\""));
}

/* Not renamed: the kernel's rules for the confined agent do not allow it between directories. */
static int move_state(const struct files_settings *s, const char *name, bool will_be_static,
		      struct arena *a, struct err *err)
{
	const char *path = distro_kubelet_path(s->distro, name, a);
	const char *from = host_file_path(s->root, str_from(path), a);
	const struct str state = host_file_content(s->root, path, a);
	int r;

	if (!state.n || (has_policy_none(state) && !will_be_static))
		return 0;
	r = file_replace_at(AT_FDCWD, kept_state(s, name, a), state, 0600, err);
	if (r < 0)
		return r;
	if (unlink(from) < 0 && errno != ENOENT)
		return err_set(err, errno, "remove %s: %s", from, strerror(errno));
	log_info("moved the kubelet's state to the state directory",
		 LOG_STR("file", str_from(path)));
	return 0;
}

int files_forget_kubelet_state(const struct files_settings *settings, bool will_be_static,
			       struct arena *a, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(kubelet_states) && r == 0; i++)
		r = move_state(settings, kubelet_states[i], will_be_static, a, err);
	return r;
}

void files_remove_kubelet_state(const struct files_settings *settings, struct arena *a)
{
	for (size_t i = 0; i < ARRAY_LEN(kubelet_states); i++)
		(void)unlink(kept_state(settings, kubelet_states[i], a));
}

/* "x.service" of a unit that is enabled; templates are not. */
static struct str unit_of(const struct host_file *f)
{
	struct str name = str_skip(f->path, strlen(UNIT_DIR));

	if (!str_starts(f->path, STR(UNIT_DIR)) || str_has(name, STR("/")) ||
	    str_has(name, STR("@")) || !str_ends(name, STR(".service")))
		return STR("");
	return name;
}

size_t files_unit_calls(const struct host_files *files, struct systemd_call *calls, size_t max,
			struct arena *a)
{
	bool has_tuned = false;
	size_t n = 0;

	for (size_t i = 0; i < files->n && n + 1 < max; i++) {
		const struct host_file *f = &files->items[i];
		const struct str unit = unit_of(f);

		if (f->state == HOST_FILE_SAME || f->state == HOST_FILE_UNSEEN)
			continue;
		has_tuned |= str_starts(f->path, STR("/etc/tuned/"));
		if (unit.n && (f->is_absent || host_has_line(files->units, unit)))
			calls[n++] = (struct systemd_call){ .method = f->is_absent ?
									      SYSTEMD_DISABLE :
									      SYSTEMD_ENABLE,
							    .unit = str_cstr(a, unit) };
	}
	if (has_tuned)
		calls[n++] = (struct systemd_call){ .method = SYSTEMD_TRY_RESTART,
						    .unit = "tuned.service" };
	return n;
}

int files_put_sentinel(const char *root, bool is_needed, struct arena *a, struct err *err)
{
	const char *path = host_file_path(root, STR(SENTINEL), a);
	const struct str have = host_file_content(root, SENTINEL, a);

	if (is_needed && access(path, F_OK) < 0)
		return file_replace_at(AT_FDCWD, path, STR(SENTINEL_TEXT), 0644, err);
	if (!is_needed && str_eq(have, STR(SENTINEL_TEXT)) && unlink(path) < 0)
		return err_set(err, errno, "remove %s: %s", path, strerror(errno));
	return 0;
}
