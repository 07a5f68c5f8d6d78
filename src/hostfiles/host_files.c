/* The files that are left out are sources of the agent's own pools: writing them would put the
 * pools file before the profile that it was made from. */

#include "host_files.h"

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/problems.h"
#include "distro/distro.h"
#include "kube/names.h"
#include "partition/node_profile.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/plan.h"

#define UNIT_DIR "/etc/systemd/system/"

/* %i is "update" or "undo". */
#define KERNEL_ARGS_UNIT_TEXT                                                                      \
	"[Unit]\n"                                                                                 \
	"Description=Kernel arguments of Pinfold: %i\n"                                            \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"ExecStart=/usr/local/sbin/pinfold-kernel-args %i\n"

enum host_file_class host_file_class_of(struct str path)
{
	/* What the agent configures live until the next boot, and what such files need. */
	static const struct str quiet[] = {
		STR_INIT("/etc/systemd/system.conf.d/"),
		STR_INIT(".slice.d/"),
		STR_INIT("init.scope.d/"),
		STR_INIT("/etc/tmpfiles.d/"),
		STR_INIT("/etc/tuned/"),
		STR_INIT("/usr/local/"),
		STR_INIT("/etc/pinfold/"),
		STR_INIT(UNIT_DIR HOST_KERNEL_ARGS_UNIT),
	};
	char text[512];
	struct str in_bundle;
	const char *why;

	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
		if (str_has(path, quiet[i]))
			return HOST_FILE_QUIET;
	in_bundle.p = text;
	in_bundle.n = (size_t)snprintf(text, sizeof(text), "/rootfs" PRI_STR, FMT_STR(path));
	if (in_bundle.n >= sizeof(text))
		in_bundle.n = sizeof(text) - 1;
	if (plan_effect_of(in_bundle, &why) == PLAN_REBOOT)
		return HOST_FILE_BOOT;
	if (str_eq(str_from(why), STR("containerd")) || str_eq(str_from(why), STR("CRI-O")))
		return HOST_FILE_RUNTIME;
	return HOST_FILE_KUBELET;
}

void host_files_add(struct host_files *f, struct host_file file)
{
	f->items = arena_reserve(f->a, f->items, f->n, &f->cap, sizeof(*f->items));
	f->items[f->n++] = file;
}

const struct host_file *host_files_find(const struct host_files *f, struct str path)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->items[i].path, path))
			return &f->items[i];
	return NULL;
}

static bool is_left_out(struct str path, bool has_crio)
{
	return str_starts(path, STR(NAME_KUBELET_MARKER)) || str_eq(path, STR(NAME_POOLS_FILE)) ||
	       str_starts(path, has_crio ? STR("/etc/containerd/") : STR("/etc/crio/"));
}

static void add_rendered(struct host_files *f, const struct host_files_source *source,
			 const struct file_set *set, bool is_by_hand)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct rendered_file *r = &set->items[i];
		struct host_file file = { .path = r->path,
					  .mode = r->mode,
					  .bytes = r->bytes,
					  .is_by_hand = is_by_hand };

		if (is_left_out(r->path, source->has_crio))
			continue;
		file.class = is_by_hand ? HOST_FILE_KUBELET : host_file_class_of(r->path);
		/* k3s runs kubelet and runtime in one unit. */
		if (file.class == HOST_FILE_RUNTIME && !source->distro->runtime_unit)
			file.class = HOST_FILE_KUBELET;
		host_files_add(f, file);
	}
}

static void add_units(struct host_files *f, const struct node_config *config)
{
	struct strbuf enabled;

	strbuf_init(&enabled, f->a);
	for (size_t i = 0; i < config->n_units; i++) {
		const struct systemd_unit *u = &config->units[i];
		struct str path = str_printf(f->a, UNIT_DIR PRI_STR, FMT_STR(u->name));

		host_files_add(f, (struct host_file){ .path = path,
						      .mode = MODE_PLAIN,
						      .bytes = u->contents,
						      .class = host_file_class_of(path) });
		if (u->enabled)
			strbuf_printf(&enabled, PRI_STR "\n", FMT_STR(u->name));
	}
	host_files_add(f, (struct host_file){ .path = STR(UNIT_DIR HOST_KERNEL_ARGS_UNIT),
					      .mode = MODE_PLAIN,
					      .bytes = STR(KERNEL_ARGS_UNIT_TEXT),
					      .class = HOST_FILE_QUIET });
	f->units = strbuf_str(&enabled);
}

static int render(const struct host_files_source *source, const struct partition *part, bool pinned,
		  struct host_files *f, struct err *err)
{
	const struct host_options options = {
		.distro = source->distro,
		.kubelet = { .cpu_manager = source->kubelet_is_static ? CPU_MANAGER_STATIC :
									CPU_MANAGER_DEFAULT,
			     .strict_reservation = true },
	};
	struct problem_list problems;
	const struct rendered_file *args;
	struct host_machine m;
	int r;

	problem_list_init(&problems, f->a);
	r = host_machine_build(part, pinned, &options, f->a, &m, &problems, err);
	if (r < 0)
		return r;
	if (problems.n_errors)
		return err_set(err, EINVAL, PRI_STR, FMT_STR(node_profile_errors(&problems, f->a)));
	add_rendered(f, source, &m.config.files, false);
	add_rendered(f, source, &m.lines, true);
	add_units(f, &m.config);
	args = file_set_find(&m.config.files, STR(HOST_KERNEL_ARGS));
	f->kernel_args = args ? args->bytes : STR("");
	f->kubelet_is_static =
		yyjson_mut_equals_str(yyjson_mut_obj_get(m.kubelet, "cpuManagerPolicy"), "static");
	return 0;
}

int host_files_build(const struct host_files_source *source, struct arena *a,
		     struct host_files *ret, struct err *err)
{
	struct problem_list problems;
	struct layout layout;

	*ret = (struct host_files){ .a = a };
	if (!source->profile)
		return 0;
	problem_list_init(&problems, a);
	if (!node_profile_layout(source->profile, source->topology, a, &layout, &problems))
		return err_set(err, EINVAL, PRI_STR, FMT_STR(node_profile_errors(&problems, a)));
	ret->has_profile = true;
	ret->changes = layout.partitions[0].profile->changes;
	if (source->distro == distro_get(DISTRO_TALOS) ||
	    source->distro == distro_get(DISTRO_KIND) ||
	    source->distro == distro_get(DISTRO_OPENSHIFT))
		return 0; /* configured by others */
	return render(source, &layout.partitions[0], layout.pinned, ret, err);
}

static bool has_word(struct str line, struct str word)
{
	struct str_split split = str_split(line);
	struct str each;

	while (str_next(&split, ' ', &each))
		if (str_eq(str_trim(each), word))
			return true;
	return false;
}

struct str host_missing_args(struct str wanted, struct str cmdline, struct arena *a)
{
	struct str_split split = str_split(wanted);
	struct strbuf b;
	struct str word;

	strbuf_init(&b, a);
	while (str_next(&split, '\n', &word))
		if (word.n && !has_word(cmdline, word))
			strbuf_printf(&b, "%s" PRI_STR, b.n ? " " : "", FMT_STR(word));
	return strbuf_str(&b);
}
