/* Pools are resolved by the same functions as on a node: partition/node_profile.h, and the capacity
 * that nodesync/node_plan.h publishes. */

#include "sim_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "nodesync/node_plan.h"
#include "partition/node_partition.h"
#include "partition/node_profile.h"

/* --- pools --- */

static int parse_list(struct str list, const char *what, struct cpuset *ret, struct err *err)
{
	return cpuset_parse(list, ret, err) < 0 ? err_wrap(err, "%s", what) : 0;
}

static int pools_of_partition(const struct node_partition *p, struct pool_config *ret,
			      struct err *err)
{
	const struct node_partition_status *s = &p->status;
	int r;

	pool_config_init(ret);
	ret->is_classic = !s->shared.n || !s->guaranteed.n;
	ret->fold_rest = true;
	r = parse_list(s->management, "status.cpus.management", &ret->reserved, err);
	if (r == 0 && !ret->is_classic)
		r = parse_list(s->shared, "status.cpus.shared", &ret->shared, err);
	if (r == 0)
		r = parse_list(s->guaranteed, "status.cpus.guaranteed", &ret->guaranteed, err);
	return r;
}

static int machine_with(struct sim_machine *ret, const struct topology *t,
			struct pool_config *pools, const struct sim_pools_source *from,
			struct str profile, struct err *err)
{
	if (from->has_policy)
		pools->topology.policy = from->policy;
	return sim_machine_init(ret, t, pools, profile, err);
}

int sim_machine_of(const struct sim_pools_source *from, const struct topology *t,
		   yyjson_val *labels, struct arena *a, struct sim_machine *ret,
		   struct str *ret_note, struct err *err)
{
	struct node_profile *p = arena_new(a, struct node_profile);
	int r;

	*ret_note = STR("");
	node_profile_decide(from->profiles, from->n_profiles, labels, t, a, p);
	switch (p->state) {
	case PROFILE_SELECTED:
		return machine_with(ret, t, &p->pools, from, p->name, err);
	case PROFILE_CONFLICT:
	case PROFILE_INVALID:
		return err_set(err, EINVAL, PRI_STR, FMT_STR(p->message));
	case PROFILE_UNKNOWN:
	case PROFILE_NONE:
	case PROFILE_STATE__COUNT:
		break;
	}
	if (from->partition && from->partition->has_status &&
	    from->partition->status.management.n) {
		r = pools_of_partition(from->partition, &p->pools, err);
		if (r < 0)
			return r;
		return machine_with(ret, t, &p->pools, from, from->partition->status.profile, err);
	}
	*ret_note = STR("not partitioned: no profile selects them");
	return sim_machine_init(ret, t, NULL, STR(""), err);
}

/* --- machines that are not described --- */

static void add_cpus(struct topology_cpu *cpus, size_t *n, const struct cpuset *set, uint32_t numa)
{
	CPUSET_FOREACH (cpu, set)
		cpus[(*n)++] = (struct topology_cpu){
			.cpu = (uint16_t)cpu,
			.id = { [TOPOLOGY_CORE] = TOPOLOGY_NO_ID,
				[TOPOLOGY_DIE] = TOPOLOGY_NO_ID,
				[TOPOLOGY_SOCKET] = TOPOLOGY_NO_ID,
				[TOPOLOGY_NUMA] = numa,
				[TOPOLOGY_UNCORE] = TOPOLOGY_NO_ID },
		};
}

int sim_topology_guess(const struct node_partition *partition, size_t n_cpus, struct arena *a,
		       struct topology *ret, struct err *err)
{
	const struct node_partition_status *s = partition ? &partition->status : NULL;
	struct topology_cpu *cpus = arena_array(a, struct topology_cpu, CPUSET_MAX);
	struct topology_input in = { .cpus = cpus };
	struct cpuset set, seen = { 0 };

	for (size_t i = 0; s && i < s->n_numa; i++) {
		if (parse_list(s->numa[i].cpus, "status.numaNodes.cpus", &set, err) < 0)
			return -EINVAL;
		cpuset_minus(&set, &seen);
		cpuset_union(&seen, &set);
		add_cpus(cpus, &in.n_cpus, &set, (uint32_t)s->numa[i].id);
	}
	if (in.n_cpus == 0) {
		if (n_cpus == 0 || n_cpus > CPUSET_MAX)
			return err_set(err, EINVAL, "%zu CPUs", n_cpus);
		set = (struct cpuset){ 0 };
		cpuset_add_range(&set, 0, (unsigned)n_cpus - 1);
		add_cpus(cpus, &in.n_cpus, &set, 0);
	}
	return topology_build(&in, a, ret, err);
}

/* --- Node objects --- */

static void set_amount(yyjson_mut_doc *m, yyjson_mut_val *status, const char *list, struct str name,
		       struct str value)
{
	yyjson_mut_val *amounts = yyjson_mut_obj_get(status, list);

	if (!amounts)
		amounts = doc_put_obj(m, status, str_from(list));
	(void)yyjson_mut_obj_remove_keyn(amounts, name.p, name.n);
	if (value.n)
		doc_put_str(m, amounts, name, value);
}

static void set_both(yyjson_mut_doc *m, yyjson_mut_val *status, struct str name, int64_t amount,
		     struct arena *a)
{
	struct str text = amount < 0 ? STR("") : str_printf(a, "%lld", (long long)amount);

	set_amount(m, status, "capacity", name, text);
	set_amount(m, status, "allocatable", name, text);
}

/* What the agent publishes. A machine without pools publishes nothing. */
static void set_pools(yyjson_mut_doc *m, yyjson_mut_val *status, const struct sim_machine *machine,
		      struct arena *a)
{
	struct node_amounts amounts = { { NODE_ABSENT, NODE_ABSENT, NODE_ABSENT }, { { 0 } }, 0 };

	if (machine->has_pools)
		node_amounts_of(&machine->empty, true, &amounts);
	set_both(m, status, STR(NAME_MANAGEMENT_CORES), amounts.milli[NODE_MANAGEMENT], a);
	set_both(m, status, STR(NAME_SHARED_CPUS), amounts.milli[NODE_SHARED], a);
	set_both(m, status, STR(NAME_GUARANTEED_CPUS), amounts.milli[NODE_GUARANTEED], a);
	for (size_t i = 0; i < amounts.n_types; i++)
		set_both(m, status, str_printf(a, "%s" NAME_CORES_SUFFIX, amounts.types[i]),
			 amounts.milli[NODE_MANAGEMENT], a);
}

static int64_t reserved_of(const struct sim_machine *m)
{
	return m->has_pools ? cpuset_count(&m->empty.now.config.reserved) : 0;
}

yyjson_val *sim_node_make(struct str pool, const struct sim_machine *m,
			  const struct sim_node_amounts *amounts, struct arena *a)
{
	yyjson_mut_doc *doc = doc_build(a);
	yyjson_mut_val *node = yyjson_mut_obj(doc), *meta, *status, *labels;
	const int64_t n_cpus = m->topology->n_cpus;

	doc_put_str(doc, node, STR("apiVersion"), STR("v1"));
	doc_put_str(doc, node, STR("kind"), STR("Node"));
	meta = doc_put_obj(doc, node, STR("metadata"));
	doc_put_str(doc, meta, STR("name"), pool);
	labels = doc_put_obj(doc, meta, STR("labels"));
	doc_put_str(doc, labels, STR("kubernetes.io/os"), STR("linux"));
	doc_put_str(doc, labels, str_printf(a, NAME_NODE_ROLE_PREFIX PRI_STR, FMT_STR(pool)),
		    STR(""));
	status = doc_put_obj(doc, node, STR("status"));
	set_both(doc, status, STR(NAME_MEMORY), amounts->memory_bytes, a);
	set_both(doc, status, STR("pods"), amounts->max_pods, a);
	set_both(doc, status, STR(NAME_CPU), n_cpus, a);
	/* The kubelet keeps its reservedSystemCPUs out of what it offers. */
	set_amount(doc, status, "allocatable", STR(NAME_CPU),
		   str_printf(a, "%lld", (long long)(n_cpus - reserved_of(m))));
	set_pools(doc, status, m, a);
	return doc_freeze(node, a);
}

static int64_t cpu_milli_of(yyjson_val *node)
{
	struct quantity q;
	int64_t milli;

	if (resource_get(doc_find(node, "/status/allocatable"), STR(NAME_CPU), &q, NULL) != 1 ||
	    quantity_milli(&q, &milli, NULL) < 0)
		return -1;
	return milli;
}

yyjson_val *sim_node_adjust(yyjson_val *node, const struct sim_machine *m, int reserved,
			    struct arena *a)
{
	yyjson_mut_doc *doc = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(doc, node);
	yyjson_mut_val *status = yyjson_mut_obj_get(copy, "status");
	int64_t milli = cpu_milli_of(node);

	if (!status)
		return node;
	set_pools(doc, status, m, a);
	if (milli >= 0) {
		milli += 1000 * (reserved - reserved_of(m));
		set_amount(doc, status, "allocatable", STR(NAME_CPU),
			   str_printf(a, "%lldm", (long long)(milli > 0 ? milli : 0)));
	}
	return doc_freeze(copy, a);
}

struct str sim_node_roles(yyjson_val *node, struct arena *a)
{
	yyjson_val *key, *value;
	struct str *roles = NULL;
	struct strbuf b;
	size_t n = 0;

	DOC_EACH_PAIR (doc_find(node, "/metadata/labels"), key, value) {
		if (!str_starts(doc_str(key), STR(NAME_NODE_ROLE_PREFIX)))
			continue;
		roles = arena_one_more(a, roles, n, sizeof(*roles));
		roles[n++] = str_skip(doc_str(key), strlen(NAME_NODE_ROLE_PREFIX));
	}
	(void)value;
	if (!n)
		return STR("worker");
	qsort(roles, n, sizeof(*roles), str_order);
	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? "," : "", FMT_STR(roles[i]));
	return strbuf_str(&b);
}
