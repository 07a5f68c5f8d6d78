/* Builds the NodeResourceTopology object in the caller's arena: attributes of the node, then one
 * zone per NUMA node with distances and resources. Zones and resources come in the order of the
 * topology, so that equal input gives equal bytes and nrt_sync.c can compare documents by their
 * hash. */

#include "nrt.h"

#include <inttypes.h>

#include "base/arena.h"
#include "codec/doc.h"
#include "cpu/topology.h"
#include "fingerprint.h"
#include "kube/names.h"
#include "pool/ledger.h"
#include "response.h"

/* An object under construction. */
struct build {
	const struct nrt_input *in;
	yyjson_mut_doc *m;
	struct arena *a;
};

static struct str zone_name(struct build *b, uint32_t node)
{
	return str_printf(b->a, "node-%u", node);
}

static void put_attribute(struct build *b, yyjson_mut_val *list, const char *name, struct str value)
{
	yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->m, list);

	doc_put_str(b->m, o, STR("name"), str_from(name));
	doc_put_str(b->m, o, STR("value"), value);
}

/* A zone's amounts of one resource, as the API names them. */
struct amounts {
	uint64_t capacity, allocatable, available;
};

static void put_resource(struct build *b, yyjson_mut_val *list, struct str name,
			 const struct amounts *x)
{
	yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->m, list);

	doc_put_str(b->m, o, STR("name"), name);
	doc_put_str(b->m, o, STR("capacity"), str_printf(b->a, "%" PRIu64, x->capacity));
	doc_put_str(b->m, o, STR("allocatable"), str_printf(b->a, "%" PRIu64, x->allocatable));
	doc_put_str(b->m, o, STR("available"), str_printf(b->a, "%" PRIu64, x->available));
}

/* The online CPUs of a NUMA node; it may have none. */
static struct cpuset cpus_of(const struct ledger *l, uint32_t node)
{
	const struct topology *t = l->now.topology;
	struct cpuset cpus = { 0 };
	unsigned element;

	if (topology_find(t, TOPOLOGY_NUMA, node, &element))
		topology_add_element(t, TOPOLOGY_NUMA, element, &cpus);
	return cpus;
}

/* All CPUs but the management ones, as the kubelet's static policy counts them. */
static struct amounts every_cpu(const struct ledger *l, uint32_t node)
{
	struct cpuset cpus = cpus_of(l, node);
	struct amounts x = { .capacity = cpuset_count(&cpus) };

	cpuset_minus(&cpus, &l->now.config.reserved);
	x.allocatable = cpuset_count(&cpus);
	/* Only exclusive CPUs are subtracted: shared containers run on all others, on every NUMA
	 * node. */
	cpuset_minus(&cpus, &l->now.sets.held);
	x.available = cpuset_count(&cpus);
	return x;
}

/* The snapshot's allocatable CPUs: the pool without CPUs of standalone containers. */
static struct amounts guaranteed_cpus(const struct nrt_input *in, uint32_t node)
{
	struct cpuset cpus = cpus_of(in->ledger, node), free_cpus;
	struct amounts x = { .capacity = cpuset_count(&cpus) };

	ledger_free(in->ledger, &free_cpus);
	cpuset_intersect(&cpus, &in->pods->allocatable);
	x.allocatable = cpuset_count(&cpus);
	cpuset_intersect(&cpus, &free_cpus);
	x.available = cpuset_count(&cpus);
	return x;
}

/* `cpu` and `memory` are in every zone, also as 0: the scheduler plugin rejects every pod in a zone
 * without them. Memory is not pinned, so all of it is available. */
static void put_resources(struct build *b, yyjson_mut_val *zone, uint32_t node)
{
	const struct nrt_memories *memories = b->in->memories;
	const struct amounts own = guaranteed_cpus(b->in, node);
	const struct amounts all = every_cpu(b->in->ledger, node);
	yyjson_mut_val *list = doc_put_arr(b->m, zone, STR("resources"));

	put_resource(b, list, STR("cpu"), b->in->settings->cpu_is_every_cpu ? &all : &own);
	/* Pools are counted in millicores (D12), `cpu` in whole CPUs. */
	put_resource(b, list, STR(NAME_GUARANTEED_CPUS),
		     &(struct amounts){ own.capacity * 1000, own.allocatable * 1000,
					own.available * 1000 });
	for (size_t i = 0; i < memories->n; i++) {
		const uint64_t bytes = memories->items[i].bytes;

		if (memories->items[i].node == node)
			put_resource(b, list, memories->items[i].name,
				     &(struct amounts){ bytes, bytes, bytes });
	}
}

static void put_costs(struct build *b, yyjson_mut_val *zone, unsigned row)
{
	const struct topology *t = b->in->ledger->now.topology;
	yyjson_mut_val *list;

	/* Without distances of the kernel, `costs` is left out rather than invented. */
	if (!t->distances)
		return;
	list = doc_put_arr(b->m, zone, STR("costs"));
	for (unsigned i = 0; i < t->n_nodes; i++) {
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(b->m, list);

		doc_put_str(b->m, o, STR("name"), zone_name(b, t->nodes[i]));
		doc_put_int(b->m, o, STR("value"), t->distances[(size_t)row * t->n_nodes + i]);
	}
}

static void put_zones(struct build *b, yyjson_mut_val *root)
{
	const struct topology *t = b->in->ledger->now.topology;
	yyjson_mut_val *list = doc_put_arr(b->m, root, STR("zones"));

	for (unsigned i = 0; i < t->n_nodes; i++) {
		yyjson_mut_val *zone = yyjson_mut_arr_add_obj(b->m, list);

		doc_put_str(b->m, zone, STR("name"), zone_name(b, t->nodes[i]));
		doc_put_str(b->m, zone, STR("type"), STR("Node"));
		put_costs(b, zone, i);
		put_resources(b, zone, t->nodes[i]);
	}
}

/* Every pod of the node is in the fingerprint, with or without exclusive CPUs: this is the method
 * "all" below. */
static struct str sign_pods(struct build *b)
{
	struct fingerprint f;
	char text[FINGERPRINT_MAX];

	fingerprint_init(&f);
	for (size_t i = 0; i < b->in->pods->n_pods; i++)
		fingerprint_add(&f, str_from(b->in->pods->pods[i].namespace),
				str_from(b->in->pods->pods[i].name));
	fingerprint_sign(&f, text);
	fingerprint_done(&f);
	return str_dup(b->a, str_from(text));
}

static void put_metadata(struct build *b, yyjson_mut_val *root, struct str fingerprint)
{
	const struct nrt_settings *s = b->in->settings;
	yyjson_mut_val *metadata = doc_put_obj(b->m, root, STR("metadata")), *owner;

	doc_put_str(b->m, metadata, STR("name"), s->node);
	owner = doc_put_obj(b->m, metadata, STR("annotations"));
	/* Readers take it from this annotation or from the attribute in nrt_write(). */
	doc_put_str(b->m, owner, STR("topology.node.k8s.io/fingerprint"), fingerprint);
	if (s->node_uid.n == 0)
		return;
	/* The garbage collector deletes the object together with the Node of this UID, not with
	 * another Node of the same name. */
	owner = yyjson_mut_arr_add_obj(b->m, doc_put_arr(b->m, metadata, STR("ownerReferences")));
	doc_put_str(b->m, owner, STR("apiVersion"), STR("v1"));
	doc_put_str(b->m, owner, STR("kind"), STR("Node"));
	doc_put_str(b->m, owner, STR("name"), s->node);
	doc_put_str(b->m, owner, STR("uid"), s->node_uid);
}

int nrt_write(const struct nrt_input *in, struct arena *a, struct str *ret, struct err *err)
{
	struct build b = { in, doc_build(a), a };
	yyjson_mut_val *root = yyjson_mut_obj(b.m), *list;
	const struct str fingerprint = sign_pods(&b);

	doc_put_str(b.m, root, STR("apiVersion"), STR(NRT_API));
	doc_put_str(b.m, root, STR("kind"), STR(NRT_KIND));
	put_metadata(&b, root, fingerprint);
	list = doc_put_arr(b.m, root, STR("attributes"));
	put_attribute(&b, list, "topologyManagerPolicy", str_from(in->settings->policy));
	put_attribute(&b, list, "topologyManagerScope", str_from(in->settings->scope));
	put_attribute(&b, list, "nodeTopologyPodsFingerprint", fingerprint);
	put_attribute(&b, list, "nodeTopologyPodsFingerprintMethod", STR("all"));
	put_zones(&b, root);
	return doc_write(root, false, a, ret, err);
}
