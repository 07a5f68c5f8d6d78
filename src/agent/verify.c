#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/partition.h"
#include "cpu/cpuset.h"
#include "enforce.h"

#define MAX_PROC_FILE 65536
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD in /proc/PID/stat */

/* CPUs that one container owns, and the processes it has. */
struct owner {
	struct str label;
	struct cpuset cpus;
	pid_t *pids;
	size_t n_pids;
};

struct check {
	const struct verify_source *source;
	struct arena *a;
	struct verify_result *result;
	size_t cap_findings, cap_strangers;
	struct owner *owners;
	size_t n_owners;
	yyjson_val *item; /* the container or pod being looked at */
};

static void *grow(struct check *c, void *items, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 16;
	return arena_realloc(c->a, items, n * size, *cap * size);
}

static struct str field(yyjson_val *v, const char *key)
{
	return doc_str(doc_get(v, str_from(key)));
}

static int64_t number(yyjson_val *v, const char *key)
{
	int64_t n;

	return doc_int(doc_get(v, str_from(key)), &n) ? n : 0;
}

static void found(struct check *c, const char *what, struct str want, struct str got)
{
	struct verify_result *r = c->result;

	r->findings = grow(c, r->findings, r->n_findings, &c->cap_findings, sizeof(*r->findings));
	r->findings[r->n_findings++] = (struct finding){ field(c->item, "namespace"),
							 field(c->item, "pod"),
							 field(c->item, "container"),
							 what,
							 want,
							 got };
}

static struct str quota_text(int64_t quota_us, uint64_t period_us, struct arena *a)
{
	if (quota_us < 0)
		return STR("none");
	return str_printf(a, "%lld/%llu", (long long)quota_us, (unsigned long long)period_us);
}

static void compare(struct check *c, const struct cgroup_cpu *now, const struct intent *intent)
{
	const unsigned drift = enforce_compare(c->source->cgroups->version, now, intent);
	const struct cpuset *cpus = cpuset_is_empty(&now->cpus) ? &now->effective : &now->cpus;

	if (drift & DRIFT_CPUS)
		found(c, "cpus", str_from(intent->cpus), cpuset_format(cpus, c->a));
	if (drift & DRIFT_WEIGHT)
		found(c, "weight",
		      str_printf(c->a, "%llu",
				 (unsigned long long)cgroup_weight_expected(c->source->cgroups,
									    intent->shares)),
		      str_printf(c->a, "%llu", (unsigned long long)now->weight));
	if (drift & DRIFT_QUOTA)
		found(c, "quota",
		      quota_text(intent->quota_us,
				 intent->period_us ? intent->period_us : CGROUP_PERIOD_US, c->a),
		      quota_text(now->quota_us, now->period_us, c->a));
}

/* The line "Cpus_allowed_list:" of a thread. False when the thread is gone. */
static bool read_allowed(struct check *c, const char *path, struct cpuset *ret)
{
	struct str text, line;
	struct str_split lines;

	if (file_read_at(c->source->proc_fd, path, MAX_PROC_FILE, c->a, &text, NULL) < 0)
		return false;
	lines = str_split(text);
	while (str_next(&lines, '\n', &line))
		if (str_starts(line, STR("Cpus_allowed_list:")))
			return cpuset_parse_kernel(
				       str_trim(str_skip(line, sizeof("Cpus_allowed_list:") - 1)),
				       ret, NULL) == 0;
	return false;
}

typedef bool (*thread_fn)(struct check *c, int pid, struct str tid, const struct cpuset *allowed,
			  void *data);

/* Every thread of a process, until `fn` says no. */
static void each_thread(struct check *c, int pid, thread_fn fn, void *data)
{
	struct str *tids;
	char path[64];
	size_t n;

	(void)snprintf(path, sizeof(path), "%d/task", pid);
	if (file_list_at(c->source->proc_fd, path, c->a, &tids, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct cpuset allowed;

		(void)snprintf(path, sizeof(path), "%d/task/" PRI_STR "/status", pid,
			       FMT_STR(tids[i]));
		if (read_allowed(c, path, &allowed) && !fn(c, pid, tids[i], &allowed, data))
			return;
	}
}

static bool check_thread(struct check *c, int pid, struct str tid, const struct cpuset *allowed,
			 void *data)
{
	const struct cpuset *want = data;

	if (!cpuset_is_subset(allowed, want))
		found(c, "thread", cpuset_format(want, c->a),
		      str_printf(c->a, PRI_STR " (thread " PRI_STR " of process %d)",
				 FMT_STR(cpuset_format(allowed, c->a)), FMT_STR(tid), pid));
	return true;
}

struct process {
	struct str name;
	int parent;
	bool is_kernel; /* where the kernel wants it */
};

/* From /proc/PID/stat; false when it is gone. */
static bool read_process(struct check *c, int pid, struct process *ret)
{
	char path[64];
	struct str text;
	const char *open_at, *close_at;
	unsigned flags;
	int parent;

	(void)snprintf(path, sizeof(path), "%d/stat", pid);
	if (file_read_at(c->source->proc_fd, path, MAX_PROC_FILE, c->a, &text, NULL) < 0)
		return false;
	text = str_dup(c->a, text);
	open_at = memchr(text.p, '(', text.n);
	close_at = memrchr(text.p, ')', text.n);
	if (!open_at || !close_at || close_at < open_at ||
	    sscanf(close_at + 1, " %*c %d %*d %*d %*d %*d %u", &parent, &flags) != 2)
		return false;
	*ret = (struct process){ { open_at + 1, (size_t)(close_at - open_at - 1) },
				 parent,
				 flags & KERNEL_THREAD };
	return true;
}

/* Under CRI-O a container's first process is its monitor's child. */
static void check_monitor(struct check *c, const pid_t *pids, size_t n, struct str reserved)
{
	struct cpuset want, allowed;

	if (cpuset_parse(reserved, &want, NULL) < 0 || cpuset_is_empty(&want))
		return;
	for (size_t i = 0; i < n; i++) {
		struct process process, monitor;
		char path[64];

		if (!read_process(c, pids[i], &process) ||
		    !read_process(c, process.parent, &monitor) ||
		    !str_eq(monitor.name, STR("conmon")))
			continue;
		(void)snprintf(path, sizeof(path), "%d/status", process.parent);
		if (read_allowed(c, path, &allowed) && !cpuset_is_subset(&allowed, &want))
			found(c, "monitor", reserved, cpuset_format(&allowed, c->a));
	}
}

/* CRI-O's own idea of where management containers belong. */
static void check_workload(struct check *c, yyjson_val *status, struct str reserved)
{
	yyjson_val *own = doc_find(status, "/runtime/workload");
	const struct str state = field(own, "state");

	if (own && !str_eq(state, STR("agrees")))
		found(c, str_eq(state, STR("differs")) ? "crio-cpus" : "crio-cgroup-manager",
		      str_eq(state, STR("differs")) ? reserved : STR("systemd"),
		      str_eq(state, STR("differs")) ? field(own, "cpus") : STR("cgroupfs"));
}

static struct intent intent_of(yyjson_val *v, struct arena *a)
{
	return (struct intent){
		.cpus = (char *)str_cstr(a, field(v, "cpus")),
		.shares = (uint64_t)number(v, "shares"),
		.has_quota = doc_get(v, STR("quotaUs")) != NULL,
		.quota_us = number(v, "quotaUs"),
		.period_us = (uint64_t)number(v, "periodUs"),
	};
}

static void note_owner(struct check *c, const struct cpuset *cpus, pid_t *pids, size_t n)
{
	c->owners[c->n_owners++] = (struct owner){ str_printf(c->a, PRI_STR "/" PRI_STR "/" PRI_STR,
							      FMT_STR(field(c->item, "namespace")),
							      FMT_STR(field(c->item, "pod")),
							      FMT_STR(field(c->item, "container"))),
						   *cpus, pids, n };
}

/* What the agent says is isolated, the kernel must say, too. */
static void check_partition(struct check *c, const char *path)
{
	struct partition_status s;

	if (!doc_bool(doc_get(c->item, STR("isolated")), false) ||
	    partition_read(c->source->cgroups, path, &s, NULL) < 0 || s.state == PARTITION_ISOLATED)
		return;
	found(c, "partition", STR("isolated"),
	      s.state == PARTITION_MEMBER ? STR("member") :
	      *s.reason			  ? str_dup(c->a, str_from(s.reason)) :
					    STR("invalid"));
}

static int check_container(struct check *c, struct str reserved, struct err *err)
{
	const struct cgroup_fs *fs = c->source->cgroups;
	const char *path = str_cstr(c->a, field(c->item, "cgroup"));
	const struct intent intent = intent_of(c->item, c->a);
	struct cgroup_cpu now;
	struct cpuset want;
	pid_t *pids;
	size_t n;
	int r;

	c->result->n_containers++;
	if (!*path || !cgroup_exists(fs, path)) {
		c->result->n_gone++;
		return 0;
	}
	r = cgroup_read(fs, path, c->a, &now, err);
	if (r == 0)
		r = cgroup_procs(fs, path, c->a, &pids, &n, err);
	if (r < 0)
		return r;
	compare(c, &now, &intent);
	check_partition(c, path);
	check_monitor(c, pids, n, reserved);
	if (!*intent.cpus || cpuset_parse(str_from(intent.cpus), &want, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		each_thread(c, pids[i], check_thread, &want);
	if (doc_bool(doc_get(c->item, STR("exclusive")), false))
		note_owner(c, &want, pids, n);
	return 0;
}

static void check_pause(struct check *c, struct str reserved)
{
	const char *path = str_cstr(c->a, field(c->item, "pauseCgroup"));
	struct cgroup_cpu now;
	struct cpuset want;

	if (!*path || cpuset_parse(reserved, &want, NULL) < 0 ||
	    !cgroup_exists(c->source->cgroups, path) ||
	    cgroup_read(c->source->cgroups, path, c->a, &now, NULL) < 0)
		return;
	if (!cpuset_is_subset(&now.effective, &want))
		found(c, "pause", reserved, cpuset_format(&now.effective, c->a));
}

static int check_pod(struct check *c, struct str reserved, struct err *err)
{
	const struct cgroup_fs *fs = c->source->cgroups;
	const char *path = str_cstr(c->a, field(c->item, "cgroup"));
	const uint64_t shares = (uint64_t)number(c->item, "shares");
	const uint64_t weight = enforce_pod_weight(fs, shares);
	struct cgroup_cpu now;
	int r;

	if (!*path || !cgroup_exists(fs, path))
		return 0;
	r = cgroup_read(fs, path, c->a, &now, err);
	if (r < 0)
		return r;
	if (shares && now.weight != weight)
		found(c, "weight", str_printf(c->a, "%llu", (unsigned long long)weight),
		      str_printf(c->a, "%llu", (unsigned long long)now.weight));
	if (doc_bool(doc_get(c->item, STR("noQuota")), false) && now.quota_us >= 0)
		found(c, "quota", STR("none"), quota_text(now.quota_us, now.period_us, c->a));
	check_pause(c, reserved);
	return 0;
}

/* Strangers. */

static bool is_owned_by(const struct owner *o, int pid)
{
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

struct suspect {
	struct cpuset cpus; /* of others, that it may use */
	const struct owner *owner;
};

static bool check_stranger(struct check *c, int pid, struct str tid, const struct cpuset *allowed,
			   void *data)
{
	struct suspect *s = data;

	(void)tid;
	for (size_t i = 0; i < c->n_owners; i++) {
		struct cpuset shared = c->owners[i].cpus;

		if (is_owned_by(&c->owners[i], pid) || !cpuset_intersects(allowed, &shared))
			continue;
		cpuset_intersect(&shared, allowed);
		cpuset_union(&s->cpus, &shared);
		if (!s->owner)
			s->owner = &c->owners[i];
	}
	return true;
}

static int find_strangers(struct check *c, struct err *err)
{
	struct verify_result *r = c->result;
	struct str *names;
	size_t n;
	int e;

	if (c->n_owners == 0)
		return 0;
	e = file_list_at(c->source->proc_fd, ".", c->a, &names, &n, err);
	if (e < 0)
		return e;
	for (size_t i = 0; i < n; i++) {
		struct suspect s = { 0 };
		struct process process;
		uint64_t pid;

		if (!str_to_u64(names[i], INT32_MAX, &pid) ||
		    !read_process(c, (int)pid, &process) || process.is_kernel)
			continue;
		each_thread(c, (int)pid, check_stranger, &s);
		if (!s.owner)
			continue;
		r->strangers = grow(c, r->strangers, r->n_strangers, &c->cap_strangers,
				    sizeof(*r->strangers));
		r->strangers[r->n_strangers++] = (struct stranger){ (int)pid, process.name,
								    cpuset_format(&s.cpus, c->a),
								    s.owner->label };
	}
	return 0;
}

int verify(const struct verify_source *source, yyjson_val *status, struct arena *a,
	   struct verify_result *ret, struct err *err)
{
	yyjson_val *containers = doc_get(status, STR("containers")),
		   *pods = doc_get(status, STR("pods")), *item;
	const struct str reserved = doc_str(doc_find(status, "/pools/reserved/cpus"));
	struct verify_result result = { 0 };
	struct check c = { .source = source, .a = a, .result = &result };
	int r;

	c.owners = arena_array(a, struct owner, yyjson_arr_size(containers) + 1);
	check_workload(&c, status, reserved);
	DOC_EACH_ITEM (containers, item) {
		c.item = item;
		r = check_container(&c, reserved, err);
		if (r < 0)
			return r;
	}
	DOC_EACH_ITEM (pods, item) {
		c.item = item;
		r = check_pod(&c, reserved, err);
		if (r < 0)
			return r;
	}
	r = find_strangers(&c, err);
	if (r == 0)
		*ret = result;
	return r;
}
