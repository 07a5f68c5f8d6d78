/* Isolation is an addition to the cpuset, never a condition: kernels before Linux 6.7 refuse it,
 * and the container has its exclusive CPUs without it. */

#include "isolate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/partition.h"
#include "cpu/topology.h"
#include "manager_state.h"

/* The CPUs of all isolated partitions, except those of `but`. */
static void isolated_cpus(const struct manager *m, const struct container_entry *but,
			  struct cpuset *ret)
{
	*ret = (struct cpuset){ 0 };
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];

		if (c != but && c->is_isolated)
			cpuset_union(ret, &c->settings->cpus);
	}
}

static void clear_error(struct container_entry *c)
{
	free(c->isolation_error);
	c->isolation_error = NULL;
}

/* Logged once per reason, not at every reconciliation. */
static void set_error(struct manager *m, struct container_entry *c, const struct err *err)
{
	c->is_isolated = false;
	if (c->isolation_error && strcmp(c->isolation_error, err->msg) == 0)
		return;
	clear_error(c);
	c->isolation_error = strdup(err->msg);
	if (!c->isolation_error)
		abort();
	m->is_changed = true;
	log_warning("cannot isolate CPUs, the container keeps its cpuset", LOG_ENTRY(c),
		    LOG_STR("cpus", cpuset_format(&c->settings->cpus, &m->scratch)), LOG_ERR(err));
}

void isolate_container(struct manager *m, struct container_entry *c)
{
	struct err err = { 0 };
	int r;

	if (!m->isolates || !m->cgroups || !c->is_exclusive || !*c->cgroup)
		return;
	r = partition_enter(m->cgroups, c->cgroup, &c->settings->cpus, &err);
	if (r == -ENOENT && !cgroup_exists(m->cgroups, c->cgroup))
		return; /* finished */
	if (r < 0) {
		set_error(m, c, &err);
		return;
	}
	clear_error(c);
	if (r == 0 && c->is_isolated)
		return;
	/* r == 0 and not marked: the partition is from before the synchronization. */
	if (c->is_isolated) { /* it was one, and the kernel or another process ended it */
		m->counters.drift_corrected++;
		c->n_drift_corrected++;
	}
	c->is_isolated = true;
	m->is_changed = true;
	log_info("isolated the CPUs of a container", LOG_ENTRY(c),
		 LOG_STR("cpus", cpuset_format(&c->settings->cpus, &m->scratch)));
}

void isolate_release(struct manager *m, struct container_entry *c)
{
	struct err err = { 0 };
	struct cpuset cpus, others;

	if (!c || !c->is_isolated)
		return;
	c->is_isolated = false;
	cpus = c->settings->cpus;
	isolated_cpus(m, c, &others);
	/* The CPUs of a finished init container may belong to another container of its pod. */
	cpuset_minus(&cpus, &others);
	if (partition_leave(m->cgroups, c->cgroup, &cpus, &err) < 0)
		log_warning("cannot remove an isolated partition", LOG_ENTRY(c), LOG_ERR(&err));
}

void isolate_release_pod(struct manager *m, const struct pod_entry *pod)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod)
			isolate_release(m, m->registry.containers[i]);
}

void isolate_remove_stale(struct manager *m)
{
	struct cpuset taken, stale;

	if (!m->isolates || !m->cgroups)
		return;
	isolated_cpus(m, NULL, &taken);
	stale = m->ledger->now.topology->online;
	cpuset_minus(&stale, &taken);
	for (size_t i = 0; i < m->registry.n_pods; i++) {
		const char *path = str_cstr(&m->scratch, str_printf(&m->scratch, "%s/-",
								    m->registry.pods[i]->cgroup));

		/* partition_leave() changes a cgroup and its ancestors. No cgroup has this name, so
		 * only the ancestors change: the pod's cgroup and those above. */
		if (*m->registry.pods[i]->cgroup)
			(void)partition_leave(m->cgroups, path, &stale, NULL);
	}
}

void isolate_describe(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
		      struct arena *a)
{
	size_t n_isolated = 0, n_refused = 0;
	const char *why = NULL;
	struct cpuset cpus;
	yyjson_mut_val *v;

	if (!m->isolates)
		return;
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];

		n_isolated += c->is_isolated;
		n_refused += c->isolation_error != NULL;
		why = why ? why : c->isolation_error;
	}
	isolated_cpus(m, NULL, &cpus);
	v = doc_put_obj(doc, root, STR("isolation"));
	doc_put_str(doc, v, STR("cpus"), cpuset_format(&cpus, a));
	doc_put_int(doc, v, STR("containers"), (int64_t)n_isolated);
	doc_put_int(doc, v, STR("refused"), (int64_t)n_refused);
	if (why)
		doc_put_str(doc, v, STR("reason"), str_from(why));
}

/* From the status file of an earlier agent that isolated: this one has no registry yet. */
size_t isolate_undo(const struct cgroup_fs *fs, yyjson_val *containers, struct arena *a)
{
	yyjson_val *item;
	size_t failed = 0;

	DOC_EACH_ITEM (containers, item) {
		const struct str path = doc_str(doc_get(item, STR("cgroup")));
		struct err err = { 0 };
		struct cpuset cpus;

		if (!doc_bool(doc_get(item, STR("isolated")), false) ||
		    cpuset_parse(doc_str(doc_get(item, STR("cpus"))), &cpus, NULL) < 0)
			continue;
		if (partition_leave(fs, str_cstr(a, path), &cpus, &err) < 0) {
			log_warning("cannot remove an isolated partition", LOG_STR("cgroup", path),
				    LOG_ERR(&err));
			failed++;
		}
	}
	return failed;
}
