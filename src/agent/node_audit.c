#include "node_audit.h"

#include "base/arena.h"
#include "base/err.h"
#include "cgroup/audit.h"
#include "cgroup/partition.h"

/* The containers of the document, and what was seen of them. */
struct check {
	const struct node_audit_source *source;
	struct arena *a;
	struct str management;
	struct audit *audit;
	struct audit_container *containers;
	struct cgroup_snapshot *snapshots;
	struct processes machine;
	size_t n;
};

static struct str field(yyjson_val *v, const char *key)
{
	return doc_str(doc_get(v, str_from(key)));
}

static int64_t number(yyjson_val *v, const char *key)
{
	int64_t n;

	return doc_int(doc_get(v, str_from(key)), &n) ? n : 0;
}

static bool flag(yyjson_val *v, const char *key)
{
	return doc_bool(doc_get(v, str_from(key)), false);
}

static struct audit_subject name_of(yyjson_val *v)
{
	return (struct audit_subject){ field(v, "namespace"), field(v, "pod"),
				       field(v, "container") };
}

/* Nobody hands on: an init container has ended when others of its pod get its CPUs. */
static struct audit_container container_of_doc(yyjson_val *v)
{
	struct audit_container c = {
		.name = name_of(v),
		.is_exclusive = flag(v, "exclusive"),
	};

	(void)cpu_settings_get(v, &c.settings, NULL);
	return c;
}

/* --- looking --- */

static int look(struct check *c, yyjson_val *containers, struct err *err)
{
	const size_t n = yyjson_arr_size(containers);
	bool has_owner = false;
	yyjson_val *item;
	int r = 0;

	c->containers = arena_array(c->a, struct audit_container, n);
	c->snapshots = arena_array(c->a, struct cgroup_snapshot, n);
	DOC_EACH_ITEM (containers, item) {
		c->containers[c->n] = container_of_doc(item);
		has_owner |= c->containers[c->n++].is_exclusive;
	}
	if (has_owner)
		r = cgroup_snapshot_read_machine(c->source->proc_fd, c->a, &c->machine, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const struct str path = field(yyjson_arr_get(containers, i), "cgroup");

		r = cgroup_snapshot_read_cgroup(c->source->cgroups, c->source->proc_fd,
						str_cstr(c->a, path), c->a, &c->snapshots[i], err);
	}
	if (r >= 0)
		cgroup_snapshot_drop_ended(c->source->proc_fd, &c->machine);
	return r;
}

/* --- what only a node has --- */

/* CRI-O's own idea of where management containers belong. */
static void check_workload(struct check *c, yyjson_val *status)
{
	static const struct audit_subject node = { 0 };
	yyjson_val *own = doc_find(status, "/runtime/workload");
	const struct str state = field(own, "state");

	if (!own || str_eq(state, STR("agrees")))
		return;
	if (str_eq(state, STR("differs")))
		audit_add(c->audit, &node, "crio-cpus", c->management, field(own, "cpus"));
	else
		audit_add(c->audit, &node, "crio-cgroup-manager", STR("systemd"), STR("cgroupfs"));
}

/* What the agent says is isolated, the kernel must say, too. */
static void check_partition(struct check *c, size_t i, yyjson_val *item)
{
	struct partition_status s;

	if (!flag(item, "isolated") ||
	    partition_read(c->source->cgroups, str_cstr(c->a, field(item, "cgroup")), &s, NULL) <
		    0 ||
	    s.state == PARTITION_ISOLATED)
		return;
	audit_add(c->audit, &c->containers[i].name, "partition", STR("isolated"),
		  s.state == PARTITION_MEMBER ? STR("member") :
		  *s.reason		      ? str_dup(c->a, str_from(s.reason)) :
						STR("invalid"));
}

/* Under CRI-O a container's first process is its monitor's child. */
static void check_monitor(struct check *c, size_t i, const struct cpuset *management)
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

static void check_pause(struct check *c, yyjson_val *item, const struct cpuset *management)
{
	const struct audit_subject name = name_of(item);
	const char *path = str_cstr(c->a, field(item, "pauseCgroup"));
	struct cgroup_cpu now;

	if (*path && cgroup_exists(c->source->cgroups, path) &&
	    cgroup_read(c->source->cgroups, path, CGROUP_CPUS, &now, NULL) >= 0 &&
	    !cpuset_is_subset(&now.effective, management))
		audit_add(c->audit, &name, "pause", c->management,
			  cpuset_format(&now.effective, c->a));
}

static int check_pod(struct check *c, yyjson_val *item, struct err *err)
{
	const struct cgroup_fs *fs = c->source->cgroups;
	const char *path = str_cstr(c->a, field(item, "cgroup"));
	const struct audit_subject name = name_of(item);
	const struct cpu_settings settings = { .shares = (uint64_t)number(item, "shares"),
					       .has_linear_weight = true,
					       .has_quota = flag(item, "noQuota"),
					       .quota_us = CGROUP_UNLIMITED };
	struct cgroup_cpu now;
	int r;

	if (!*path || !cgroup_exists(fs, path))
		return 0;
	r = cgroup_read(fs, path, cpu_settings_parts(&settings), &now, err);
	if (r < 0)
		return cgroup_exists(fs, path) ? r : 0;
	audit_compare(c->audit, &name, fs->version, &now, &settings);
	return 1;
}

static int check_node(struct check *c, yyjson_val *containers, yyjson_val *pods, struct err *err)
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
	struct check c = { .source = source,
			   .a = a,
			   .management = doc_str(doc_find(status, "/pools/management/cpus")),
			   .audit = &audit };
	int r;

	audit_init(&audit, a);
	r = look(&c, containers, err);
	if (r < 0)
		return r;
	check_workload(&c, status);
	audit_run(&audit, &(struct audit_input){ .version = source->cgroups->version,
						 .containers = c.containers,
						 .snapshots = c.snapshots,
						 .n = c.n,
						 .machine = &c.machine });
	r = check_node(&c, containers, doc_get(status, STR("pods")), err);
	if (r == 0)
		*ret = audit;
	return r;
}
