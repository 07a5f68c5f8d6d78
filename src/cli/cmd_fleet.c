/* Clusters are read one after the other, and each is freed before the next: the memory does not
 * grow with their number. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "bundle/bundle_load.h"
#include "bundle/manifest_load.h"
#include "cluster_client.h"
#include "command.h"
#include "distro/distro.h"
#include "fleet_print.h"
#include "kube/names.h"
#include "kube/pod.h"

struct fleet_options {
	struct option_list kubeconfigs;
	struct option_list plan;
	const char *distro;
	bool all;
	const char *output;
};

static const struct option_desc options[] = {
	{ OPT_STRS, 0, "kubeconfig", "FILE",
	  "also read the cluster of this kubeconfig; may be repeated", NULL,
	  offsetof(struct fleet_options, kubeconfigs) },
	{ OPT_STRS, 0, "plan", "FILE",
	  "manifests with profiles: count the nodes that they would restart or reboot", NULL,
	  offsetof(struct fleet_options, plan) },
	{ OPT_ENUM, 0, "distro", "NAME", "with --plan: whose files are compared (default: kubeadm)",
	  "kubeadm|k3s|rke2|microk8s|talos|kind|microshift",
	  offsetof(struct fleet_options, distro) },
	{ OPT_FLAG, 0, "all", NULL, "print all rows of the tables", NULL,
	  offsetof(struct fleet_options, all) },
	OUTPUT_OPTION(struct fleet_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold fleet bundles/",
	  "versions, findings and outliers of the clusters in a directory" },
	{ "pinfold fleet bundles/ --plan new-profile.yaml",
	  "how many nodes a profile would reboot" },
	{ "pinfold fleet --kubeconfig site-1.conf --kubeconfig site-2.conf -o json",
	  "two clusters that run" },
	{ 0 },
};

/* --- saved clusters --- */

/* The name of a cluster: that of its directory or file, without an ending. */
static struct str cluster_name(struct str file)
{
	static const char *const endings[] = {
		".yaml", ".yml", ".json", ".tar.gz", ".tgz", ".tar"
	};

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (str_ends(file, str_from(endings[i]))) {
			file.n -= strlen(endings[i]);
			break;
		}
	return file;
}

static void add_saved(struct fleet *f, struct str name, const char *path)
{
	const struct option_list paths = { &path, 1 };
	CLEANUP(arena_done) struct arena a;
	struct manifest_files files;
	struct manifest_list list;
	struct err err = { 0 };

	arena_init(&a, 0);
	if (manifest_load(&paths, &a, NULL, &files, &err) < 0) {
		fleet_add_unreadable(f, name, str_from(err.msg));
		return;
	}
	list = manifest_files_objects(&files, &a);
	fleet_add(f, name, &list, 0);
}

static bool is_cluster(const char *path, struct str name)
{
	struct stat st;

	if (str_starts(name, STR(".")) || stat(path, &st) < 0)
		return false;
	return S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && cluster_name(name).n < name.n);
}

static struct str base_name(const char *path)
{
	struct str s = str_from(path);

	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	for (size_t i = s.n; i > 0; i--)
		if (s.p[i - 1] == '/')
			return str_skip(s, i);
	return s;
}

/* A directory of clusters; a bundle or a file is one cluster. */
static int add_path(struct fleet *f, const char *path, struct arena *a, struct err *err)
{
	struct str *names;
	struct stat st;
	size_t n;
	int r;

	if (stat(path, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || bundle_at(path)) {
		add_saved(f, cluster_name(base_name(path)), path);
		return 0;
	}
	r = file_list_at(AT_FDCWD, path, a, &names, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const char *full =
			str_cstr(a, str_printf(a, "%s/" PRI_STR, path, FMT_STR(names[i])));

		if (is_cluster(full, names[i]))
			add_saved(f, cluster_name(names[i]), full);
	}
	return 0;
}

/* --- clusters that run --- */

struct reading {
	struct manifest_list list;
	struct arena *a;
	const char *kind; /* items of a list do not have one */
};

static int keep(void *context, yyjson_val *object, struct err *err)
{
	struct reading *r = context;
	yyjson_mut_doc *m = doc_build(r->a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, object);

	(void)err;
	(void)yyjson_mut_obj_remove_key(copy, "kind");
	doc_put_str(m, copy, STR("kind"), str_from(r->kind));
	manifest_list_add(&r->list, r->a, (struct manifest){ NULL, doc_freeze(copy, r->a) });
	return 0;
}

static int read_live(const char *kubeconfig, struct reading *to, struct err *err)
{
	static const struct {
		const char *path, *kind;
		bool is_required;
	} lists[] = {
		{ "/api/v1/nodes", "Node", true },
		{ "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE, NAME_PARTITION_KIND,
		  false },
		{ "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE, NAME_PROFILE_KIND, false },
		{ "/apis/" NAME_CONFIG_API "/infrastructures", NAME_INFRASTRUCTURE_KIND, false },
	};
	const struct cluster_client_options o = { .kubeconfig = kubeconfig };
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	int r = cluster_client_open(&s, &o, to->a, err);

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(lists); i++) {
		const struct api_sync_list list = { str_from(lists[i].path), NULL, keep, to };

		to->kind = lists[i].kind;
		r = api_sync_list(&s, &list, err);
		if (r == -ENOENT && !lists[i].is_required)
			r = 0; /* a kind that the cluster does not have */
	}
	return r;
}

static void add_live(struct fleet *f, const char *kubeconfig)
{
	CLEANUP(arena_done) struct arena a;
	struct reading reading = { .a = &a };
	struct err err = { 0 };

	arena_init(&a, 0);
	if (read_live(kubeconfig, &reading, &err) < 0)
		fleet_add_unreadable(f, base_name(kubeconfig), str_from(err.msg));
	else
		fleet_add(f, base_name(kubeconfig), &reading.list, (int64_t)time(NULL));
}

/* --- the command --- */

static int read_plan(const struct fleet_options *o, struct arena *a, struct fleet_plan *ret,
		     struct err *err)
{
	yyjson_val **profiles = NULL;
	struct manifest_files files;
	struct manifest_list list;
	int r = manifest_load(&o->plan, a, NULL, &files, err);

	if (r < 0)
		return r;
	*ret = (struct fleet_plan){ .a = a,
				    .distro = distro_find(o->distro ? o->distro : "kubeadm") };
	list = manifest_files_objects(&files, a);
	for (size_t i = 0; i < list.n; i++)
		if (str_eq(object_kind(list.items[i].object), STR(NAME_PROFILE_KIND))) {
			profiles =
				arena_one_more(a, profiles, ret->n_planned, sizeof(yyjson_val *));
			profiles[ret->n_planned++] = list.items[i].object;
		}
	ret->planned = profiles;
	if (!ret->n_planned)
		return err_set(err, EINVAL, "--plan: no " NAME_PROFILE_KIND " in the manifests");
	return 0;
}

static int print(const struct fleet *f, const struct fleet_options *o, struct arena *a,
		 struct err *err)
{
	const enum output_format format = output_format_of(o->output);
	yyjson_mut_doc *m;

	if (format == OUTPUT_TABLE)
		return output_readable(fleet_print_table(f, o->all, a), err);
	m = doc_build(a);
	return output_doc(fleet_print_doc(f, m, a), format, a, err);
}

static bool has_findings(const struct fleet *f)
{
	for (size_t i = 0; i < f->n_clusters; i++)
		if (f->clusters[i].n_findings || f->clusters[i].problem.n ||
		    f->clusters[i].effects[FLEET_INVALID])
			return true;
	return false;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct fleet_options *o = inv->options;
	struct fleet_plan plan;
	struct fleet f;
	int r = 0;

	if (!inv->args.n && !o->kubeconfigs.n)
		return err_set(
			err, EINVAL,
			"no clusters: give a directory of bundles or manifests, or --kubeconfig");
	if (o->plan.n)
		r = read_plan(o, inv->arena, &plan, err);
	if (r < 0)
		return r;
	fleet_init(&f, o->plan.n ? &plan : NULL, inv->arena);
	for (size_t i = 0; r == 0 && i < inv->args.n; i++)
		r = add_path(&f, inv->args.items[i], inv->arena, err);
	for (size_t i = 0; r == 0 && i < o->kubeconfigs.n; i++)
		add_live(&f, o->kubeconfigs.items[i]);
	if (r == 0 && !f.n_clusters)
		return err_set(err, EINVAL, "no cluster in %s", inv->args.items[0]);
	if (r == 0)
		r = print(&f, o, inv->arena, err);
	if (r < 0)
		return r;
	return has_findings(&f) ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_fleet = {
	.name = "fleet",
	.group = COMMAND_TOOL,
	.summary = "report on many clusters, and what a profile would cost them",
	.operands = "[DIR|FILE...]",
	.about = "Reads many clusters, from a directory with a bundle or a directory of manifests "
		 "for "
		 "each,\n"
		 "or from kubeconfigs, and prints their versions, profiles and pools, what is "
		 "wrong with\n"
		 "their nodes, and the clusters that differ from the rest. With --plan, how many "
		 "nodes\n"
		 "new profiles would leave alone, restart or reboot. Nothing is changed.\n"
		 "The exit status is 1 when there is a finding, a cluster could not be read, or a "
		 "planned\n"
		 "profile is invalid for a node.",
	.options = options,
	.options_size = sizeof(struct fleet_options),
	.examples = examples,
	.run = run,
};
