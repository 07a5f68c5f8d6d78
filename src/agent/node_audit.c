/* Reads the status document as text, not the manager: `verify` runs in its own process and has to
 * work while no agent runs. */

#include "node_audit.h"

#include "base/arena.h"
#include "base/err.h"
#include "cgroup/audit.h"
#include "cgroup/partition.h"

/* The containers of the document and their snapshots. */
struct node_check {
	const struct node_audit_source *source;
	struct arena *a;
	struct str management;
	struct audit *audit;
	struct audit_container *containers;
	struct cgroup_snapshot *snapshots;
	struct processes machine;
	size_t n;
};

static struct str get_str(yyjson_val *v, const char *key)
{
	return doc_str(doc_get(v, str_from(key)));
}

static int64_t get_int(yyjson_val *v, const char *key)
{
	int64_t n;

	return doc_int(doc_get(v, str_from(key)), &n) ? n : 0;
}

static bool get_bool(yyjson_val *v, const char *key)
{
	return doc_bool(doc_get(v, str_from(key)), false);
}

static struct audit_subject read_subject(yyjson_val *v)
{
	return (struct audit_subject){ get_str(v, "namespace"), get_str(v, "pod"),
				       get_str(v, "container") };
}

/* hands_on stays false: the status lists running containers only, and an init container has ended
 * when other containers of its pod get its CPUs. */
static struct audit_container read_container(yyjson_val *v)
{
	struct audit_container c = {
		.name = read_subject(v),
		.is_exclusive = get_bool(v, "exclusive"),
	};

	(void)cpu_settings_get(v, &c.settings, NULL);
	return c;
}

/* --- snapshots --- */

/* Processes of the machine are read before the containers: see cgroup_snapshot_drop_ended(). */
static int read_snapshots(struct node_check *c, yyjson_val *containers, struct err *err)
{
	const size_t n = yyjson_arr_size(containers);
	bool has_owner = false;
	yyjson_val *item;
	int r = 0;

	c->containers = arena_array(c->a, struct audit_container, n);
	c->snapshots = arena_array(c->a, struct cgroup_snapshot, n);
	DOC_EACH_ITEM (containers, item) {
		c->containers[c->n] = read_container(item);
		has_owner |= c->containers[c->n++].is_exclusive;
	}
	/* Foreign processes matter on exclusive CPUs only, and reading all of /proc is slow. */
	if (has_owner)
		r = cgroup_snapshot_read_machine(c->source->proc_fd, c->a, &c->machine, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct str path = get_str(yyjson_arr_get(containers, i), "cgroup");

		r = cgroup_snapshot_read_cgroup(c->source->cgroups, c->source->proc_fd,
						str_cstr(c->a, path), c->a, &c->snapshots[i], err);
	}
	if (r >= 0)
		cgroup_snapshot_drop_ended(c->source->proc_fd, &c->machine);
	return r;
}

/* --- checks of a node --- */

/* Without an agent that receives containers, containers that it does not know are not checked, so
 * the result is never a pass. */
static void check_agent(struct node_check *c, yyjson_val *status)
{
	static const struct audit_subject node = { 0 };
	yyjson_val *runtime = doc_get(status, STR("runtime"));
	const struct str problem = get_str(runtime, "problem");

	if (!c->source->agent_runs)
		audit_add(c->audit, &node, "agent", STR("running"),
			  STR("not running, compared with its last status"));
	else if (!get_bool(runtime, "connected"))
		audit_add(c->audit, &node, "runtime", STR("connected"),
			  problem.n ? problem : STR("not connected"));
}

/* CRI-O's drop-in may pin management containers to other CPUs than the pools say. */
static void check_workload(struct node_check *c, yyjson_val *status)
{
	static const struct audit_subject node = { 0 }; /* no pod: the finding is the node's */
	yyjson_val *own = doc_find(status, "/runtime/workload");
	const struct str state = get_str(own, "state");

	if (!own || str_eq(state, STR("agrees")))
		return;
	if (str_eq(state, STR("differs"))) {
		const struct str want = get_str(doc_get(doc_get(status, STR("workloadTypes")),
							get_str(own, "type")),
						"cpus");

		audit_add(c->audit, &node, "crio-cpus", want.n ? want : c->management,
			  get_str(own, "cpus"));
	} else /* docs/reference/crio-workloads.md#cgroupfs-manager */
		audit_add(c->audit, &node, "crio-cgroup-manager", STR("systemd"), STR("cgroupfs"));
}

static void check_partition(struct node_check *c, size_t i, yyjson_val *item)
{
	struct partition_status s;

	if (!get_bool(item, "isolated") ||
	    partition_read(c->source->cgroups, str_cstr(c->a, get_str(item, "cgroup")), &s, NULL) <
		    0 ||
	    s.state == PARTITION_ISOLATED)
		return;
	audit_add(c->audit, &c->containers[i].name, "partition", STR("isolated"),
		  s.state == PARTITION_MEMBER ? STR("member") :
		  *s.reason		      ? str_dup(c->a, str_from(s.reason)) :
						STR("invalid"));
}

/* Under CRI-O the parent of a container's first process is its monitor, conmon. It is in a cgroup
 * that the status document does not list, and CRI-O leaves it on all CPUs
 * (docs/reference/crio-workloads.md#processes-left-on-all-cpus). */
static void check_monitor(struct node_check *c, size_t i, const struct cpuset *management)
{
	const int proc = c->source->proc_fd;

	for (size_t k = 0; k < c->snapshots[i].processes.n; k++) {
		struct proc_stat first, monitor;
		struct cpuset allowed;

		if (proc_stat(proc, c->snapshots[i].processes.items[k].pid, c->a, &first) &&
		    proc_stat(proc, first.parent, c->a, &monitor) &&
		    str_eq(monitor.name, STR("conmon")) &&
		    proc_allowed(proc, first.parent, &allowed) &&
		    !cpuset_is_subset(&allowed, management))
			audit_add(c->audit, &c->containers[i].name, "monitor", c->management,
				  cpuset_format(&allowed, c->a));
	}
}

static void check_pause(struct node_check *c, yyjson_val *item, const struct cpuset *management)
{
	const struct audit_subject name = read_subject(item);
	const char *path = str_cstr(c->a, get_str(item, "pauseCgroup"));
	struct cgroup_cpu now;

	if (*path && cgroup_exists(c->source->cgroups, path) &&
	    cgroup_read(c->source->cgroups, path, CGROUP_CPUS, &now, NULL) >= 0 &&
	    !cpuset_is_subset(&now.effective, management))
		audit_add(c->audit, &name, "pause", c->management,
			  cpuset_format(&now.effective, c->a));
}

/* Returns 1 when the pod was checked, 0 when it has no cgroup. Only weight and quota: the agent
 * writes nothing else to a pod's cgroup. The weight is linear in the shares, as the kubelet
 * computes it for pods (docs/reference/cgroups.md#shares-and-weight). */
static int check_pod(struct node_check *c, yyjson_val *item, struct err *err)
{
	const struct cgroup_fs *fs = c->source->cgroups;
	const char *path = str_cstr(c->a, get_str(item, "cgroup"));
	const struct audit_subject name = read_subject(item);
	const struct cpu_settings settings = { .shares = (uint64_t)get_int(item, "shares"),
					       .has_linear_weight = true,
					       .has_quota = get_bool(item, "noQuota"),
					       .quota_us = CGROUP_UNLIMITED };
	struct cgroup_cpu now;
	int r;

	if (!*path || !cgroup_exists(fs, path))
		return 0;
	r = cgroup_read(fs, path, cpu_settings_parts(&settings), &now, err);
	if (r < 0) /* a pod that ended meanwhile is no error */
		return cgroup_exists(fs, path) ? r : 0;
	audit_compare(c->audit, &name, fs->version, &now, &settings);
	return 1;
}

static int check_node(struct node_check *c, yyjson_val *containers, yyjson_val *pods,
		      struct err *err)
{
	struct cpuset management = { 0 };
	bool has_management;
	yyjson_val *item;
	size_t i = 0;

	(void)cpuset_parse(c->management, &management, NULL);
	has_management = !cpuset_is_empty(&management);
	DOC_EACH_ITEM (containers, item) {
		if (c->snapshots[i].is_there)
			check_partition(c, i, item);
		if (has_management)
			check_monitor(c, i, &management);
		i++;
	}
	DOC_EACH_ITEM (pods, item) {
		const int r = check_pod(c, item, err);

		if (r < 0)
			return r;
		if (r > 0 && has_management)
			check_pause(c, item, &management);
	}
	return 0;
}

int node_audit(const struct node_audit_source *source, yyjson_val *status, struct arena *a,
	       struct audit *ret, struct err *err)
{
	yyjson_val *containers = doc_get(status, STR("containers"));
	struct audit audit;
	struct node_check c = { .source = source,
				.a = a,
				.management = doc_str(doc_find(status, "/pools/management/cpus")),
				.audit = &audit };
	int r;

	audit_init(&audit, a);
	r = read_snapshots(&c, containers, err);
	if (r < 0)
		return r;
	check_agent(&c, status);
	check_workload(&c, status);
	audit_run(&audit, &(struct audit_input){ .version = source->cgroups->version,
						 .containers = c.containers,
						 .snapshots = c.snapshots,
						 .n = c.n,
						 .machine = &c.machine });
	r = check_node(&c, containers, doc_get(status, STR("pods")), err);
	if (r < 0)
		return r;
	audit_require_containers(&audit, c.n);
	*ret = audit;
	return 0;
}
