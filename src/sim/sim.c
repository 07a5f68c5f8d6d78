/* Machines, nodes, and the random numbers of a simulation. */

#include "sim.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "kube/pod.h"

int sim_machine_init(struct sim_machine *m, const struct topology *t,
		     const struct pool_config *pools, struct str profile, struct err *err)
{
	m->profile = profile;
	m->topology = t;
	m->has_pools = pools != NULL;
	return pools ? ledger_init(&m->empty, t, pools, err) : 0;
}

void sim_machine_done(struct sim_machine *m)
{
	if (m->has_pools)
		ledger_done(&m->empty);
}

void sim_init(struct sim *s, uint64_t seed, struct arena *a)
{
	*s = (struct sim){ .a = a, .random = seed };
	sim_resources_init(&s->resources);
}

void sim_done(struct sim *s)
{
	for (size_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].ledger) {
			ledger_done(s->nodes[i].ledger);
			free(s->nodes[i].ledger);
		}
	*s = (struct sim){ 0 };
}

/* splitmix64. The remainder favours small numbers by less than 1 in 2^32 here. */
uint64_t sim_random(struct sim *s, uint64_t n)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x % n;
}

/* "key=value:effect\n" each, as taints_are_tolerated() reads them. The node controller taints a
 * node that is not Ready; objects that were saved or written by hand may lack its taint. */
static struct str taints_of(yyjson_val *node, struct arena *a)
{
	yyjson_val *ready = object_condition(node, STR("Ready")), *taint;
	struct strbuf b;

	strbuf_init(&b, a);
	DOC_EACH_ITEM (doc_find(node, "/spec/taints"), taint) {
		const struct str effect = doc_str(doc_get(taint, STR("effect")));

		if (str_eq(effect, STR("NoSchedule")) || str_eq(effect, STR("NoExecute")))
			strbuf_printf(&b, PRI_STR "=" PRI_STR ":" PRI_STR "\n",
				      FMT_STR(doc_str(doc_get(taint, STR("key")))),
				      FMT_STR(doc_str(doc_get(taint, STR("value")))),
				      FMT_STR(effect));
	}
	if (ready && !str_eq(doc_str(doc_get(ready, STR("status"))), STR("True")))
		strbuf_add(&b, STR("node.kubernetes.io/not-ready=:NoSchedule\n"));
	return strbuf_str(&b);
}

int sim_add_nodes(struct sim *s, yyjson_val *node, struct str pool,
		  const struct sim_machine *machine, uint32_t count, struct err *err)
{
	struct sim_shape shape = { .pool = pool, .node = node, .machine = machine };
	int r = sim_allocatable_of(node, &s->resources, &shape.allocatable, err);

	if (r < 0)
		return err_wrap(err, "node %s", quote(object_name(node)).text);
	shape.taints = taints_of(node, s->a);
	shape.is_unschedulable = doc_bool(doc_find(node, "/spec/unschedulable"), false);
	s->shapes = arena_reserve(s->a, s->shapes, s->n_shapes, &s->cap_shapes, sizeof(*s->shapes));
	s->shapes[s->n_shapes] = shape;
	for (uint32_t i = 0; i < count; i++) {
		s->nodes =
			arena_reserve(s->a, s->nodes, s->n_nodes, &s->cap_nodes, sizeof(*s->nodes));
		s->nodes[s->n_nodes++] =
			(struct sim_node){ .shape = (uint32_t)s->n_shapes, .number = i };
	}
	s->n_shapes++;
	return 0;
}

struct str sim_node_name(const struct sim *s, uint32_t node, struct arena *a)
{
	const struct sim_node *n = &s->nodes[node];
	struct str name = object_name(s->shapes[n->shape].node);
	const bool is_alone = n->number == 0 &&
			      (node + 1 == s->n_nodes || s->nodes[node + 1].shape != n->shape);

	return is_alone ? name : str_printf(a, PRI_STR "-%u", FMT_STR(name), n->number);
}
