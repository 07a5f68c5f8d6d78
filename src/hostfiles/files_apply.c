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

static const struct {
	enum systemd_method method;
	struct str verb;
} call_verbs[] = {
	{ SYSTEMD_RELOAD, STR_INIT("reload") },
	{ SYSTEMD_ENABLE, STR_INIT("enable") },
	{ SYSTEMD_DISABLE, STR_INIT("disable") },
	{ SYSTEMD_TRY_RESTART, STR_INIT("try-restart") },
};

static struct str unit_of_line(struct str line)
{
	struct str_split words = str_split(line);
	struct str verb, unit;

	return str_next(&words, ' ', &verb) && str_next(&words, ' ', &unit) ? unit : STR("");
}

static bool has_call_for(struct str lines, struct str unit)
{
	struct str_split split = str_split(lines);
	struct str line;

	while (str_next(&split, '\n', &line))
		if (line.n && str_eq(unit_of_line(line), unit))
			return true;
	return false;
}

static struct str new_calls(const struct host_files *files, struct arena *a)
{
	bool has_tuned = false;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("reload\n"));
	for (size_t i = 0; i < files->n; i++) {
		const struct host_file *f = &files->items[i];
		const struct str unit = unit_of(f);

		if (f->state == HOST_FILE_SAME || f->state == HOST_FILE_UNSEEN)
			continue;
		has_tuned |= str_starts(f->path, STR("/etc/tuned/"));
		if (unit.n && (f->is_absent || host_has_line(files->units, unit)))
			strbuf_printf(&b, "%s " PRI_STR "\n", f->is_absent ? "disable" : "enable",
				      FMT_STR(unit));
	}
	if (has_tuned)
		strbuf_add(&b, STR("try-restart tuned.service\n"));
	return strbuf_str(&b);
}

struct str files_unit_calls(const struct host_files *files, struct str owed, struct arena *a)
{
	const struct str calls = new_calls(files, a);
	struct str_split split = str_split(owed);
	struct strbuf b;
	struct str line;

	strbuf_init(&b, a);
	strbuf_add(&b, calls);
	while (str_next(&split, '\n', &line))
		if (line.n && !has_call_for(calls, unit_of_line(line)))
			strbuf_printf(&b, PRI_STR "\n", FMT_STR(line));
	return strbuf_str(&b);
}

static bool parse_method(struct str line, enum systemd_method *ret)
{
	const struct str unit = unit_of_line(line);

	for (size_t i = 0; i < ARRAY_LEN(call_verbs); i++) {
		const struct str verb = call_verbs[i].verb;
		const bool has_unit = call_verbs[i].method != SYSTEMD_RELOAD;

		*ret = call_verbs[i].method;
		if (str_starts(line, verb) && has_unit == (unit.n > 0) &&
		    line.n == verb.n + (has_unit ? 1 + unit.n : 0))
			return true;
	}
	return false;
}

bool files_are_calls(struct str lines)
{
	struct str_split split = str_split(lines);
	enum systemd_method method;
	struct str line;

	while (split.rest.n)
		if (!str_next(&split, '\n', &line) || split.ended || !parse_method(line, &method))
			return false;
	return true;
}

size_t files_parse_calls(struct str lines, struct systemd_call *calls, size_t max, struct arena *a)
{
	struct str_split split = str_split(lines);
	struct str line;
	size_t n = 0;

	while (n < max && str_next(&split, '\n', &line) && line.n) {
		const struct str unit = unit_of_line(line);

		calls[n] = (struct systemd_call){ .unit = unit.n ? str_cstr(a, unit) : NULL };
		n += parse_method(line, &calls[n].method);
	}
	return n;
}

int files_put_sentinel(const char *root, bool is_needed, struct arena *a, struct err *err)
{
	const char *path = host_file_path(root, STR(HOST_REBOOT_SENTINEL), a);
	const struct str have = host_file_content(root, HOST_REBOOT_SENTINEL, a);

	if (is_needed && access(path, F_OK) < 0)
		return file_replace_at(AT_FDCWD, path, STR(SENTINEL_TEXT), 0644, err);
	if (!is_needed && str_eq(have, STR(SENTINEL_TEXT)) && unlink(path) < 0)
		return err_set(err, errno, "remove %s: %s", path, strerror(errno));
	return 0;
}
