/* Compares two sets of files by path and content. What a change costs follows from the path alone;
 * the CPU sets before the change are parsed from the old files, because the profile that they were
 * rendered from is not known. */

#include "plan.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "file_set.h"
#include "kube/names.h"
#include "profile/layout.h"

const char *plan_change_name(enum plan_change change)
{
	static const char *const names[] = { "add", "change", "remove" };

	return names[change];
}

const char *plan_effect_name(enum plan_effect effect)
{
	static const char *const names[] = { "nothing", "restart", "reboot" };

	return names[effect];
}

/* The first rule whose text is in the path decides, so special paths come before the directories
 * that they are in. OpenShift's operator drains and reboots for every rendered file
 * (docs/reference/openshift-render.md#reboots). */
static const struct {
	struct str part;
	enum plan_effect effect;
	const char *why;
} rules[] = {
	{ STR_INIT("_machineconfig.yaml"), PLAN_REBOOT, "MachineConfig: drain and reboot" },
	{ STR_INIT("_kubeletconfig.yaml"), PLAN_REBOOT, "kubelet configuration: drain and reboot" },
	{ STR_INIT("_tuned.yaml"), PLAN_REBOOT, "kernel arguments" },
	{ STR_INIT("_runtimeclass.yaml"), PLAN_NOTHING, "applies to new pods" },
	{ STR_INIT("cluster-infrastructure"), PLAN_NOTHING, "cluster flag" },
	{ STR_INIT("/etc/pinfold/kernel-args"), PLAN_REBOOT, "kernel arguments" },
	{ STR_INIT("/etc/systemd/system.conf.d/"), PLAN_REBOOT, "CPU affinity of all services" },
	{ STR_INIT("/etc/systemd/system/kubelet"), PLAN_RESTART, "kubelet" },
	{ STR_INIT("/etc/systemd/system/"), PLAN_REBOOT, "slices, and units that run at boot" },
	{ STR_INIT("/etc/kubernetes/kubelet.conf.d/"), PLAN_RESTART, "kubelet" },
	{ STR_INIT(NAME_KUBELET_MARKER), PLAN_RESTART, "agent and kubelet" },
	{ STR_INIT(NAME_POOLS_FILE), PLAN_RESTART, "agent" },
	{ STR_INIT("/etc/crio/"), PLAN_RESTART, "CRI-O" },
	{ STR_INIT("/etc/containerd/"), PLAN_RESTART, "containerd" },
	{ STR_INIT("/etc/tuned/"), PLAN_RESTART, "tuned" },
	{ STR_INIT("/etc/tmpfiles.d/"), PLAN_RESTART, "systemd-tmpfiles --create" },
	{ STR_INIT("/rootfs/"), PLAN_REBOOT, "read at boot" },
	{ STR_INIT("/boot/"), PLAN_REBOOT, "kernel arguments" },
	{ STR_INIT(""), PLAN_NOTHING, "the same files in another format" },
};

/* From the name of the file. The character behind a name is checked, too, because one name may be
 * the beginning of another: worker, worker-cnf. */
static struct str pool_of_file(struct str path, const struct layout *layout)
{
	for (size_t i = 0; i < layout->n_partitions; i++) {
		const struct partition *part = &layout->partitions[i];
		struct str name = part->profile->name, pool = part->pool->name;

		if ((str_starts(path, name) && path.n > name.n && path.p[name.n] == '_') ||
		    (str_starts(path, pool) && path.n > pool.n && path.p[pool.n] == '/'))
			return pool;
	}
	for (size_t i = 0; i < layout->n_pools; i++) {
		struct str pool = layout->pools[i].name;

		/* 01_01-<pool>-cpu-partitioning_..., 02_02-<pool>-workload-..., <pool>/...; the
		 * first six characters are a number twice. */
		if ((path.n > 6 + pool.n && path.p[0] == '0' && path.p[2] == '_' &&
		     str_starts(str_skip(path, 6), pool) && path.p[6 + pool.n] == '-') ||
		    (str_starts(path, pool) && path.n > pool.n && path.p[pool.n] == '/'))
			return pool;
	}
	return STR("");
}

static void add_file(struct plan *plan, const struct layout *layout,
		     const struct rendered_file *before, const struct rendered_file *after)
{
	struct plan_file *file = &plan->files[plan->n_files++];
	size_t rule = 0;

	*file = (struct plan_file){
		.change = !before ? PLAN_ADD :
			  after	  ? PLAN_REPLACE :
				    PLAN_REMOVE,
		.path = after ? after->path : before->path,
		.before = before,
		.after = after,
	};
	while (!str_has(file->path, rules[rule].part))
		rule++; /* the last one is in every path */
	file->effect = rules[rule].effect;
	file->why = rules[rule].why;
	file->pool = pool_of_file(file->path, layout);
}

static void compare(const struct file_set *before, const struct file_set *after,
		    const struct layout *layout, struct arena *a, struct plan *plan)
{
	plan->files = arena_array(a, struct plan_file, before->n + after->n + 1);
	for (size_t i = 0; i < after->n; i++) {
		const struct rendered_file *old = file_set_find(before, after->items[i].path);

		/* Not the mode: files that were read from a directory have none here. */
		if (!old || !str_eq(old->bytes, after->items[i].bytes))
			add_file(plan, layout, old, &after->items[i]);
	}
	for (size_t i = 0; i < before->n; i++)
		if (!file_set_find(after, before->items[i].path))
			add_file(plan, layout, &before->items[i], NULL);
}

/* The sets of a pool, as far as the old files have them. A set that is not found stays unknown and
 * is not reported as changed. */
struct old_render {
	const struct file_set *files;
	const struct partition *part;
	struct plan_sets *sets;
	struct arena *a;
};

static void old_set_parse(struct old_render *r, enum profile_set_id id, struct str list)
{
	r->sets->is_known[id] = cpuset_parse(list, &r->sets->before[id], NULL) == 0;
}

/* The first document of a file; NULL when there is none. */
static yyjson_val *read_document(const struct file_set *files, struct str path, struct arena *a)
{
	const struct rendered_file *file = file_set_find(files, path);
	struct doc_list docs;

	if (!file || yaml_parse(file->bytes, path, NULL, a, &docs, NULL) < 0 || !docs.n)
		return NULL;
	return docs.items[0].root;
}

yyjson_val *plan_kubelet_config(const struct file_set *files, const struct partition *part,
				struct arena *a)
{
	return read_document(
		files,
		str_printf(a, PRI_STR "/rootfs/etc/kubernetes/kubelet.conf.d/50-pinfold.conf",
			   FMT_STR(part->pool->name)),
		a);
}

static void old_pools_parse(struct old_render *r, struct str text)
{
	struct doc doc;

	if (!text.n || doc_parse(text, STR(""), NULL, r->a, &doc, NULL) < 0)
		return;
	old_set_parse(r, PROFILE_SHARED, doc_str(doc_get(doc.root, STR(NAME_POOLS_SHARED_KEY))));
	old_set_parse(r, PROFILE_ISOLATED,
		      doc_str(doc_get(doc.root, STR(NAME_POOLS_GUARANTEED_KEY))));
	old_set_parse(r, PROFILE_RESERVED,
		      doc_str(doc_get(doc.root, STR(NAME_POOLS_RESERVED_KEY))));
}

/* The text between `key` and the end of its line or word; "" when it is not there. */
static struct str value_after(struct str text, const char *key)
{
	const char *at = text.n ? memmem(text.p, text.n, key, strlen(key)) : NULL;
	size_t n = 0;

	if (!at)
		return STR("");
	at += strlen(key);
	while (at + n < text.p + text.n && at[n] != '\n' && at[n] != ' ')
		n++;
	return (struct str){ at, n };
}

static void read_openshift(struct old_render *r)
{
	const struct str prefix = STR("data:text/plain;charset=utf-8;base64,");
	struct str name = r->part->profile->name;
	yyjson_val *config, *tuned, *machine, *file;

	config = read_document(
		r->files, str_printf(r->a, PRI_STR "_kubeletconfig.yaml", FMT_STR(name)), r->a);
	tuned = read_document(r->files, str_printf(r->a, PRI_STR "_tuned.yaml", FMT_STR(name)),
			      r->a);
	machine = read_document(
		r->files, str_printf(r->a, PRI_STR "_machineconfig.yaml", FMT_STR(name)), r->a);
	if (config)
		old_set_parse(r, PROFILE_RESERVED,
			      doc_str(doc_find(config, "/spec/kubeletConfig/reservedSystemCPUs")));
	if (tuned)
		old_set_parse(r, PROFILE_ISOLATED,
			      value_after(doc_str(doc_find(tuned, "/spec/profile/0/data")),
					  "\nisolated_cores="));
	DOC_EACH_ITEM (doc_find(machine, "/spec/config/storage/files"), file) {
		struct str source = doc_str(doc_find(file, "/contents/source"));
		struct str text;

		if (str_eq(doc_str(doc_get(file, STR("path"))), STR(NAME_POOLS_FILE)) &&
		    base64_decode(str_skip(source, prefix.n), r->a, &text, NULL) == 0)
			old_pools_parse(r, text);
	}
}

static struct str host_file(struct old_render *r, const char *path)
{
	const struct rendered_file *file =
		file_set_find(r->files, str_printf(r->a, PRI_STR "/rootfs%s",
						   FMT_STR(r->part->pool->name), path));

	return file ? file->bytes : STR("");
}

static void read_host(struct old_render *r)
{
	yyjson_val *kubelet = plan_kubelet_config(r->files, r->part, r->a);
	struct str args = host_file(r, "/etc/pinfold/kernel-args");

	if (kubelet)
		old_set_parse(r, PROFILE_RESERVED,
			      doc_str(doc_get(kubelet, STR("reservedSystemCPUs"))));
	if (args.n)
		old_set_parse(r, PROFILE_ISOLATED, value_after(args, "nohz_full="));
	old_pools_parse(r, host_file(r, NAME_POOLS_FILE)); /* last: it has all three sets */
}

bool plan_moves(const struct plan_pool *pool, enum profile_set_id id)
{
	return pool->sets.is_known[id] && !cpuset_eq(&pool->sets.before[id], &pool->part->cpus[id]);
}

static void make_pool(struct plan *plan, const struct file_set *before,
		      const struct partition *part, struct arena *a)
{
	struct plan_pool *pool = &plan->pools[plan->n_pools++];
	struct old_render r = { before, part, &pool->sets, a };

	*pool = (struct plan_pool){ .part = part };
	/* The old files may be of either target; the other one's names are not found. */
	read_openshift(&r);
	read_host(&r);
	for (size_t i = 0; i < plan->n_files; i++)
		if (str_eq(plan->files[i].pool, part->pool->name) &&
		    plan->files[i].effect > pool->effect)
			pool->effect = plan->files[i].effect;
}

void plan_make(const struct file_set *before, const struct file_set *after,
	       const struct layout *layout, const struct manifests *ms, struct arena *a,
	       struct plan *ret)
{
	*ret = (struct plan){ .pools = arena_array(a, struct plan_pool, layout->n_partitions + 1) };
	compare(before, after, layout, a, ret);
	for (size_t i = 0; i < layout->n_partitions; i++)
		make_pool(ret, before, &layout->partitions[i], a);
	plan_pods(layout, ms, a, ret);
}
