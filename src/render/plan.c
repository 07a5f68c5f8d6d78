/* Compares two sets of files by path and content. What a change costs follows from the path alone.
 */

#include "plan.h"

#include "base/arena.h"
#include "file_set.h"
#include "kube/names.h"
#include "plan_sets.h"
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
	{ STR_INIT("/etc/systemd/system/pinfold-agent"), PLAN_RESTART, "agent" },
	{ STR_INIT("/etc/systemd/system/kubelet"), PLAN_RESTART, "kubelet" },
	{ STR_INIT("/etc/systemd/system/"), PLAN_REBOOT, "slices, and units that run at boot" },
	{ STR_INIT("/usr/local/bin/pinfold"), PLAN_RESTART, "agent" },
	{ STR_INIT("/kubelet.conf.d/"), PLAN_RESTART, "kubelet" },
	{ STR_INIT("/append/"), PLAN_RESTART, "kubelet" },
	{ STR_INIT("/etc/microshift/"), PLAN_RESTART, "MicroShift" },
	{ STR_INIT("/config-v3.toml.d/"), PLAN_RESTART, "containerd" },
	{ STR_INIT("/talos/kubelet.yaml"), PLAN_RESTART, "kubelet" },
	{ STR_INIT("/talos/agent-flags"), PLAN_RESTART, "agent" },
	{ STR_INIT("/talos/nri.yaml"), PLAN_REBOOT, "containerd" },
	{ STR_INIT("/talos/"), PLAN_REBOOT, "kernel arguments" },
	{ STR_INIT(NAME_KUBELET_MARKER), PLAN_NOTHING, "the agent applies it while it runs" },
	{ STR_INIT(NAME_POOLS_FILE), PLAN_NOTHING, "the agent applies it while it runs" },
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

enum plan_effect plan_effect_of(struct str path, const char **ret_why)
{
	size_t rule = 0;

	while (!str_has(path, rules[rule].part))
		rule++; /* the last one is in every path */
	*ret_why = rules[rule].why;
	return rules[rule].effect;
}

static void add_file(struct plan *plan, const struct layout *layout,
		     const struct rendered_file *before, const struct rendered_file *after)
{
	struct plan_file *file = &plan->files[plan->n_files++];

	*file = (struct plan_file){
		.change = !before ? PLAN_ADD :
			  after	  ? PLAN_REPLACE :
				    PLAN_REMOVE,
		.path = after ? after->path : before->path,
		.before = before,
		.after = after,
	};
	file->effect = plan_effect_of(file->path, &file->why);
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

bool plan_moves(const struct plan_pool *pool, enum profile_set_id id)
{
	return pool->sets.is_known[id] && !cpuset_eq(&pool->sets.before[id], &pool->part->cpus[id]);
}

static void make_pool(struct plan *plan, const struct file_set *before,
		      const struct partition *part, struct arena *a)
{
	struct plan_pool *pool = &plan->pools[plan->n_pools++];

	*pool = (struct plan_pool){ .part = part };
	plan_sets_read(before, part, a, &pool->sets);
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
