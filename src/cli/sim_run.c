/* One run: nodes first, because admission depends on what they advertise; then pods become classes,
 * which name the resources; then nodes are added with the amounts of these resources; then pods
 * arrive. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admission/defaults.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/quote.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "partition/node_partition.h"
#include "partition/profile_select.h"
#include "sim/sim_machine.h"
#include "sim/sim_workload.h"
#include "sim_input.h"

/* --- machines and nodes --- */

/* One run while it is built. */
struct building {
	struct sim_run *run;
	const struct sim_input *in;
	const struct sim_variant *v;
	struct state_manifests state;
	struct arena *a;
	/* Nodes to add: object, pool, machine, count. */
	struct built_node {
		yyjson_val *object;
		struct str pool;
		struct sim_known_machine *known;
		uint32_t count;
	} * nodes;
	size_t n_nodes, cap_nodes;
	unsigned assumed;
	size_t n_guessed;
	size_t n_running_workloads;
};

static uint64_t hash_partition(const struct node_partition *p)
{
	const struct node_partition_status *s = &p->status;
	uint64_t hash = 1;

	hash = xxh64(s->management, hash);
	hash = xxh64(s->shared, hash);
	hash = xxh64(s->guaranteed, hash);
	for (size_t i = 0; i < s->n_numa; i++)
		hash = xxh64(s->numa[i].cpus, hash + (uint64_t)s->numa[i].id);
	return hash ? hash : 1;
}

static int known_machine(struct building *b, const struct topology *t, yyjson_val *labels,
			 const struct node_partition *partition, struct sim_known_machine **ret,
			 struct err *err)
{
	size_t *selected = arena_array(b->a, size_t, b->v->n_profiles + 1);
	const size_t n = profile_select(b->v->profiles, b->v->n_profiles, labels, selected);
	struct sim_known_machine key = {
		.topology = t,
		.profile = n == 1 ? b->v->profiles[selected[0]] : NULL,
		.partition = n == 0 && partition ? hash_partition(partition) : 0,
	};
	const struct sim_pools_source from = { b->v->profiles, b->v->n_profiles, partition,
					       b->v->has_policy, b->v->policy };
	struct sim_known_machine *m;

	for (size_t i = 0; n < 2 && i < b->run->n_machines; i++) {
		m = b->run->machines[i];
		if (m->topology == t && m->profile == key.profile &&
		    m->partition == key.partition) {
			*ret = m;
			return 0;
		}
	}
	m = arena_new(b->a, struct sim_known_machine);
	*m = key;
	b->run->machines = arena_one_more(b->a, b->run->machines, b->run->n_machines,
					  sizeof(struct sim_known_machine *));
	b->run->machines[b->run->n_machines++] = m;
	*ret = m;
	return sim_machine_of(&from, t, labels, b->a, &m->machine, &m->note, err);
}

static void add_node(struct building *b, yyjson_val *object, struct str pool,
		     struct sim_known_machine *known, uint32_t count)
{
	b->nodes = arena_reserve(b->a, b->nodes, b->n_nodes, &b->cap_nodes, sizeof(*b->nodes));
	b->nodes[b->n_nodes++] = (struct built_node){ object, pool, known, count };
	if (known)
		known->n_nodes += count;
	(void)state_manifests_add(&b->state, object, NULL);
}

static int memory_of(const struct sim_options *o, const struct topology *t, int64_t *ret,
		     struct err *err)
{
	struct quantity q;

	*ret = (int64_t)t->n_cpus * (INT64_C(4) << 30);
	if (!o->memory)
		return 0;
	if (quantity_parse(str_from(o->memory), &q, err) < 0)
		return err_wrap(err, "--memory");
	*ret = quantity_value(&q);
	return 0;
}

/* A label selector of a profile sees the role, as on a real node. */
static int add_shape(struct building *b, const struct sim_node_option *shape, struct err *err)
{
	struct sim_node_amounts amounts = { .max_pods = b->in->o->max_pods };
	const struct sim_machine bare = { .topology = shape->topology };
	struct sim_known_machine *known;
	yyjson_val *labels;
	int r = memory_of(b->in->o, shape->topology, &amounts.memory_bytes, err);

	if (r < 0)
		return r;
	labels = doc_find(sim_node_make(shape->pool, &bare, &amounts, b->a), "/metadata/labels");
	r = known_machine(b, shape->topology, labels, NULL, &known, err);
	if (r < 0)
		return err_wrap(err, "nodes %s", quote(shape->pool).text);
	add_node(b, sim_node_make(shape->pool, &known->machine, &amounts, b->a), shape->pool, known,
		 shape->count);
	return 0;
}

static size_t cpus_of(yyjson_val *node)
{
	struct quantity q;

	if (resource_get(doc_find(node, "/status/capacity"), STR(NAME_CPU), &q, NULL) != 1 &&
	    resource_get(doc_find(node, "/status/allocatable"), STR(NAME_CPU), &q, NULL) != 1)
		return 0;
	return quantity_value(&q) > 0 ? (size_t)quantity_value(&q) : 0;
}

/* That of its bundle, the first of --topology with as many CPUs, or a guess, which nodes with as
 * many CPUs share. */
static int topology_of(struct building *b, yyjson_val *node, const struct node_partition *partition,
		       const struct topology **ret, struct err *err)
{
	const struct sim_name *known =
		sim_names_find(b->in->machines, b->in->n_machines, object_name(node));
	const size_t n_cpus = cpus_of(node);
	struct topology *t;

	if (known) {
		*ret = known->topology;
		return 0;
	}
	for (size_t i = 0; i < b->in->n_topologies; i++)
		if (b->in->topologies[i]->n_cpus == n_cpus) {
			*ret = b->in->topologies[i];
			return 0;
		}
	b->n_guessed++;
	for (size_t i = 0; !partition && i < b->run->n_machines; i++)
		if (!b->run->machines[i]->partition &&
		    b->run->machines[i]->topology->n_cpus == n_cpus) {
			*ret = b->run->machines[i]->topology;
			return 0;
		}
	t = arena_new(b->a, struct topology);
	*ret = t;
	return sim_topology_guess(partition, n_cpus, b->a, t, err);
}

static int64_t cpu_milli(yyjson_val *node, const char *list)
{
	struct quantity q;
	int64_t milli;

	if (resource_get(doc_find(node, list), STR(NAME_CPU), &q, NULL) != 1 ||
	    quantity_milli(&q, &milli, NULL) < 0)
		return 0;
	return milli;
}

/* How many management CPUs the Node has now: those of its pools, or the whole CPUs that its kubelet
 * reserves. */
static int reserved_now(yyjson_val *node, const struct node_partition *partition)
{
	const int64_t milli =
		cpu_milli(node, "/status/capacity") - cpu_milli(node, "/status/allocatable");
	struct cpuset management;

	if (partition && cpuset_parse(partition->status.management, &management, NULL) == 0)
		return (int)cpuset_count(&management);
	return milli > 0 ? (int)(milli / 1000) : 0;
}

static int add_given_node(struct building *b, yyjson_val *node, struct err *err)
{
	const struct sim_name *found =
		sim_names_find(b->in->partitions, b->in->n_partitions, object_name(node));
	struct node_partition p = { 0 }, *partition = found ? &p : NULL;
	struct sim_known_machine *known = NULL;
	const struct topology *t;
	int r = 0;

	if (found)
		r = node_partition_decode(found->object, b->a, &p, err);
	if (r == 0 && !cpus_of(node)) {
		add_node(b, node, sim_node_roles(node, b->a), NULL, 1);
		return 0;
	}
	if (r == 0)
		r = topology_of(b, node, partition, &t, err);
	if (r == 0)
		r = known_machine(b, t, doc_find(node, "/metadata/labels"), partition, &known, err);
	if (r < 0 || !known)
		return err_wrap(err, "node %s", quote(object_name(node)).text);
	if (known->machine.has_pools)
		node = sim_node_adjust(node, &known->machine, reserved_now(node, partition), b->a);
	add_node(b, node, sim_node_roles(node, b->a), known, 1);
	return 0;
}

static int add_all_nodes(struct building *b, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->in->n_shapes; i++)
		r = add_shape(b, &b->in->shapes[i], err);
	for (size_t i = 0; r == 0 && i < b->in->list.n; i++)
		if (sim_has_kind(b->in->list.items[i].object, "Node"))
			r = add_given_node(b, b->in->list.items[i].object, err);
	if (r == 0 && !b->n_nodes)
		return err_set(err, EINVAL, "no nodes: give --nodes, or Node objects with -f");
	return r;
}

/* --- the state of the cluster --- */

static int prepare_state(struct building *b, const struct manifest_list *pods, struct err *err)
{
	int r = cluster_load(&b->in->o->cluster, b->a, &b->state, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < b->in->list.n; i++) {
		yyjson_val *object = b->in->list.items[i].object;

		if (sim_has_kind(object, "Node") || sim_has_kind(object, NAME_PROFILE_KIND))
			continue;
		if (state_manifests_add(&b->state, object, err) < 0)
			return err_wrap(err, PRI_STR,
					FMT_STR(manifest_position(&b->in->list.items[i], b->a)));
	}
	r = add_all_nodes(b, err);
	if (r < 0)
		return r;
	b->assumed = cluster_assume_missing(&b->state, pods);
	state_manifests_seal(&b->state);
	return 0;
}

/* Without the gate the scheduler counts only CPUs, and the guaranteed pool may be too small for
 * what it sends to a node. */
static bool has_uncounted_pools(const struct building *b)
{
	for (size_t i = 0; i < b->run->n_machines; i++) {
		const struct sim_machine *m = &b->run->machines[i]->machine;

		if (m->has_pools && !m->empty.now.config.is_classic)
			return !b->state.state.settings.pools;
	}
	return false;
}

static void print_notes(const struct building *b)
{
	assumptions_print(b->assumed);
	if (has_uncounted_pools(b))
		(void)fprintf(stderr,
			      "note: pods are not counted in the shared and guaranteed pool "
			      "(--feature-gates " NAME_GATE_POOLS "=true counts them)\n");
	for (size_t i = 0; i < b->run->n_machines; i++)
		if (b->run->machines[i]->note.n)
			(void)fprintf(stderr, "note: %zu nodes with %u CPUs: " PRI_STR "\n",
				      b->run->machines[i]->n_nodes,
				      b->run->machines[i]->topology->n_cpus,
				      FMT_STR(b->run->machines[i]->note));
	if (b->n_guessed)
		(void)fprintf(
			stderr,
			"note: assumed: %zu nodes without SMT and with the NUMA nodes of their "
			"NodePartition, or one (no --topology with their number of CPUs)\n",
			b->n_guessed);
}

/* --- pods --- */

/* A manifest that stands for pods. */
struct pods_of {
	uint32_t class;
	size_t count;
	bool on_every_node;
	struct str node; /* already bound to */
};

static bool has_ended(yyjson_val *pod)
{
	const struct str phase = doc_str(doc_find(pod, "/status/phase"));

	return str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
}

static size_t replicas_of(yyjson_val *object)
{
	const char *field = sim_has_kind(object, "Job") ? "/spec/parallelism" : "/spec/replicas";
	int64_t n;

	if (sim_has_kind(object, "Pod") || !doc_int(doc_find(object, field), &n))
		return 1;
	return n < 0 ? 0 : n > SIM_COUNT_MAX ? SIM_COUNT_MAX : (size_t)n;
}

/* What the controller of DaemonSets adds to its pods: they also run on nodes that take no others.
 */
static yyjson_val *with_daemon_tolerations(yyjson_val *pod, struct arena *a)
{
	static const char *const keys[] = { "not-ready",       "unreachable",  "disk-pressure",
					    "memory-pressure", "pid-pressure", "unschedulable" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, pod);
	yyjson_mut_val *spec = yyjson_mut_obj_get(copy, "spec");
	yyjson_mut_val *list = yyjson_mut_obj_get(spec, "tolerations");

	if (!yyjson_mut_is_arr(list)) {
		(void)yyjson_mut_obj_remove_key(spec, "tolerations");
		list = doc_put_arr(m, spec, STR("tolerations"));
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, item, STR("key"), str_printf(a, "node.kubernetes.io/%s", keys[i]));
		doc_put_str(m, item, STR("operator"), STR("Exists"));
	}
	return doc_freeze(copy, a);
}

static int classify(struct building *b, const struct manifest *m, struct pods_of *ret,
		    struct err *err)
{
	yyjson_val *object = m->object;
	int r = 0;

	*ret = (struct pods_of){
		.count = replicas_of(m->object),
		.on_every_node = sim_has_kind(m->object, "DaemonSet"),
	};
	if (sim_has_kind(m->object, "Pod"))
		ret->node = doc_str(doc_find(m->object, "/spec/nodeName"));
	if (ret->on_every_node) {
		r = pod_from_workload(object, b->a, &object, err);
		if (r == 0)
			object = with_daemon_tolerations(object, b->a);
	}
	if (r == 0)
		r = sim_add_class(&b->run->sim, &b->state.state, object, &ret->class, err);
	return r < 0 ? err_wrap(err, PRI_STR, FMT_STR(manifest_position(m, b->a))) : 0;
}

static void arrive_bound(struct building *b, const struct pods_of *pods, size_t n)
{
	struct sim *s = &b->run->sim;
	struct sim_name *nodes = arena_array(b->a, struct sim_name, s->n_nodes + 1);

	for (uint32_t i = 0; i < s->n_nodes; i++)
		nodes[i] = (struct sim_name){ sim_node_name(s, i, b->a), NULL, i, NULL };
	sim_names_sort(nodes, s->n_nodes);
	for (size_t i = 0; i < n; i++) {
		const struct sim_name *node = sim_names_find(nodes, s->n_nodes, pods[i].node);

		if (pods[i].node.n && node)
			(void)sim_arrive_on(s, pods[i].class, node->number, true);
	}
}

static void arrive_everywhere(struct building *b, const struct pods_of *p)
{
	struct sim *s = &b->run->sim;
	struct sim_class *c = &s->classes[p->class];

	if (c->admission == SIM_DENIED) {
		(void)sim_arrive(s, p->class);
		return;
	}
	sim_class_match(s, c);
	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (c->obstacles[s->nodes[i].shape] == SIM_NO_OBSTACLE)
			(void)sim_arrive_on(s, p->class, i, false);
}

/* What runs already, then what every node runs, then the rest in the order of the manifests. */
static void arrive_all(struct building *b, const struct pods_of *pods, size_t n)
{
	if (n)
		arrive_bound(b, pods, n);
	for (size_t i = 0; i < n; i++)
		if (pods[i].on_every_node)
			arrive_everywhere(b, &pods[i]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; !pods[i].node.n && !pods[i].on_every_node && j < pods[i].count;
		     j++)
			(void)sim_arrive(&b->run->sim, pods[i].class);
}

/* A workload of a cluster whose pods are among the manifests: they must not count twice. */
static bool is_running_workload(const struct building *b, yyjson_val *object)
{
	return b->in->has_stored_pods && !sim_has_kind(object, "Pod") &&
	       doc_get(object, STR("status"));
}

static int read_pods(struct building *b, struct pods_of **ret, size_t *ret_n, struct err *err)
{
	struct pod pod;

	*ret = arena_array(b->a, struct pods_of, b->in->list.n + 1);
	*ret_n = 0;
	for (size_t i = 0; i < b->in->list.n; i++) {
		int r;

		if (!pod_from_object(b->in->list.items[i].object, &pod) ||
		    has_ended(b->in->list.items[i].object))
			continue;
		if (is_running_workload(b, b->in->list.items[i].object)) {
			b->n_running_workloads++;
			continue;
		}
		r = classify(b, &b->in->list.items[i], &(*ret)[(*ret_n)++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_mix(struct building *b, const struct sim_mix *mix,
		    uint32_t classes[SIM_WORKLOAD_PODS_MAX], struct err *err)
{
	for (size_t i = 0; i < mix->n; i++) {
		int r = sim_add_class(&b->run->sim, &b->state.state, mix->pods[i], &classes[i],
				      err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int fill(struct building *b, const struct sim_mix *mix, struct err *err)
{
	uint32_t classes[SIM_WORKLOAD_PODS_MAX];
	struct sim *s = &b->run->sim;
	struct pods_of *pods;
	size_t n;
	int r = read_pods(b, &pods, &n, err);

	if (r == 0)
		r = read_mix(b, mix, classes, err);
	for (size_t i = 0; r == 0 && i < b->n_nodes; i++)
		r = sim_add_nodes(s, b->nodes[i].object, b->nodes[i].pool,
				  b->nodes[i].known ? &b->nodes[i].known->machine : NULL,
				  b->nodes[i].count, err);
	if (r < 0)
		return r;
	arrive_all(b, pods, n);
	for (size_t i = 0; mix->n && i < b->in->o->pods; i++)
		(void)sim_arrive(s, classes[sim_mix_pick(mix, sim_random(s, mix->total))]);
	if (!s->n_pods)
		return err_set(err, EINVAL,
			       "no pods: give --workload and --pods, or manifests with -f");
	sim_churn(s, b->in->o->churn);
	return 0;
}

/* The manifests and the generated pods, for what is assumed about namespaces. */
static struct manifest_list all_pods(const struct sim_input *in, const struct sim_mix *mix)
{
	struct manifest_list list = { 0 };

	for (size_t i = 0; i < in->list.n; i++)
		manifest_list_add(&list, in->a, in->list.items[i]);
	for (size_t i = 0; i < mix->n; i++)
		manifest_list_add(&list, in->a, (struct manifest){ NULL, mix->pods[i] });
	return list;
}

static int make_mix(const struct sim_input *in, struct sim_mix *ret, struct err *err)
{
	enum sim_workload workload;

	*ret = (struct sim_mix){ 0 };
	if (!in->o->workload)
		return 0;
	if (sim_workload_parse(str_from(in->o->workload), &workload, err) < 0)
		return -EINVAL;
	sim_mix_make(workload, in->a, ret);
	return 0;
}

int sim_run(struct sim_run *run, const struct sim_input *in, const struct sim_variant *v,
	    bool quiet, struct err *err)
{
	struct building *b = arena_new(in->a, struct building);
	struct manifest_list pods;
	struct sim_mix mix;
	int r = make_mix(in, &mix, err);

	*run = (struct sim_run){ .name = v->name };
	sim_init(&run->sim, in->o->seed, in->a);
	if (r < 0)
		return r;
	b->run = run;
	b->in = in;
	b->v = v;
	b->a = in->a;
	pods = all_pods(in, &mix);
	r = prepare_state(b, &pods, err);
	if (r == 0 && !quiet)
		print_notes(b);
	if (r == 0)
		r = fill(b, &mix, err);
	if (b->n_running_workloads && !quiet)
		(void)fprintf(
			stderr,
			"note: %zu workloads are left out: their pods are among the manifests\n",
			b->n_running_workloads);
	if (r < 0)
		return r;
	sim_report_make(&run->sim, in->a, &run->report);
	return 0;
}

void sim_run_done(struct sim_run *run)
{
	sim_done(&run->sim);
	for (size_t i = 0; i < run->n_machines; i++)
		sim_machine_done(&run->machines[i]->machine);
	*run = (struct sim_run){ 0 };
}
