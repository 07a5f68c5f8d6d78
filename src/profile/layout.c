/* Each step needs the one before: the mode says whether pools get bootstrap files, pools are what
 * profiles are matched with, and a profile's sets are checked against the machines of its pool. All
 * arrays get their final size first, because partitions point to pools and profiles in them. */

#include "layout.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "check.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "resolve.h"
#include "selector.h"

/* Everything layout_resolve works with. */
struct resolving {
	const struct manifests *ms;
	const struct layout_options *options;
	struct arena *a;
	struct layout *out;
	struct problem_list *p;
};

/* OpenShift silently takes an unknown value as None, so a typing error would turn partitioning
 * off; here it is an error. */
static bool infrastructure_mode(struct resolving *r, struct manifest infra)
{
	yyjson_val *v = doc_find(infra.object, "/status/" NAME_PARTITIONING_KEY);
	struct str mode = doc_str(v);

	if (v && !str_eq(mode, STR(NAME_PARTITIONING_ALL)) &&
	    !str_eq(mode, STR(NAME_PARTITIONING_NONE)) && mode.n)
		problem_error(r->p, PROBLEM_AT(infra.doc, v, "status." NAME_PARTITIONING_KEY),
			      "unsupported value %s: valid values are " NAME_PARTITIONING_NONE
			      ", " NAME_PARTITIONING_ALL,
			      quote(mode).text);
	return str_eq(mode, STR(NAME_PARTITIONING_ALL));
}

/* Users of OpenShift 4.8 to 4.12 partitioned a single node with a MachineConfig written by hand
 * (docs/reference/openshift-render.md#effective-mode). */
static bool has_legacy_signal(struct resolving *r)
{
	const struct manifest_list *list = &r->ms->machine_configs;

	if (!str_eq(r->out->control_plane_topology, STR(NAME_TOPOLOGY_SINGLE)))
		return false;
	for (size_t i = 0; i < list->n; i++) {
		if (!machine_config_has_marker(list->items[i].object))
			continue;
		problem_note(r->p, PROBLEM_AT(list->items[i].doc, list->items[i].object, NULL),
			     "MachineConfig %s writes " NAME_KUBELET_MARKER
			     ": the single node counts as partitioned",
			     quote(object_name(list->items[i].object)).text);
		return true;
	}
	return false;
}

static void resolve_mode(struct resolving *r)
{
	const struct install_config *install = &r->out->install;
	struct manifest infra = r->ms->infrastructure;
	struct layout *out = r->out;

	if (infra.doc) {
		out->control_plane_topology =
			doc_str(doc_find(infra.object, "/status/" NAME_TOPOLOGY_KEY));
		out->infrastructure_topology =
			doc_str(doc_find(infra.object, "/status/" NAME_TOPOLOGY_INFRA_KEY));
		out->pinned = infrastructure_mode(r, infra);
		/* An install-config that does not set the mode contradicts nothing. */
		if (install->at.doc && install->mode != PARTITIONING_UNSET &&
		    out->pinned != install_config_wants_partitioning(install))
			problem_error(r->p, PROBLEM_AT(infra.doc, infra.object, NULL),
				      "Infrastructure and " PRI_STR " disagree on partitioning",
				      FMT_STR(install->at.doc->file));
	} else if (install->at.doc) {
		out->control_plane_topology = str_from(install->control_plane_topology);
		out->infrastructure_topology = str_from(install->infrastructure_topology);
		out->makes_infrastructure = true;
	}
	out->pinned = out->pinned || install_config_wants_partitioning(install);
	/* Last: the signal counts only where the flag is not set, and it needs the topology. */
	out->is_legacy = !out->pinned && has_legacy_signal(r);
	out->pinned = out->pinned || out->is_legacy;
}

static struct machine_pool implied_pool(struct resolving *r, struct str role)
{
	struct str text = str_printf(
		r->a,
		"{\"labels\":{\"" NAME_POOL_LABEL_PREFIX PRI_STR "\":\"\"},"
		"\"nodeSelector\":{\"matchLabels\":{\"" NAME_NODE_ROLE_PREFIX PRI_STR "\":\"\"}}}",
		FMT_STR(role), FMT_STR(role));
	struct doc doc = { 0 };

	(void)doc_parse(text, STR(""), NULL, r->a, &doc, NULL); /* it is our own text */
	return (struct machine_pool){
		.name = role,
		.labels = doc_get(doc.root, STR("labels")),
		.node_selector = doc_get(doc.root, STR("nodeSelector")),
	};
}

/* Without case, as the Node Tuning Operator compares: a given "Worker" counts as worker. */
static bool has_pool(const struct manifest_list *pools, const char *name)
{
	for (size_t i = 0; i < pools->n; i++) {
		struct str given = object_name(pools->items[i].object);

		if (given.n == strlen(name) && strncasecmp(given.p, name, given.n) == 0)
			return true;
	}
	return false;
}

static void resolve_pools(struct resolving *r)
{
	static const char *const implied[] = { "master", "worker" };
	const struct manifest_list *pools = &r->ms->pools;
	struct layout *out = r->out;

	/* Room for one pool per profile, too: see pool_of_profile(). */
	out->pools = arena_array(r->a, struct machine_pool,
				 pools->n + ARRAY_LEN(implied) + r->ms->profiles.n);
	for (size_t i = 0; i < ARRAY_LEN(implied); i++)
		if (!has_pool(pools, implied[i]))
			out->pools[out->n_pools++] = implied_pool(r, str_from(implied[i]));
	for (size_t i = 0; i < pools->n; i++) {
		struct manifest m = pools->items[i];

		if (!profile_is_name(object_name(m.object)))
			problem_error(r->p, PROBLEM_AT(m.doc, m.object, "metadata.name"),
				      "required: a name");
		out->pools[out->n_pools++] = (struct machine_pool){
			.at = m,
			.name = object_name(m.object),
			.labels = doc_find(m.object, "/metadata/labels"),
			.node_selector = doc_find(m.object, "/spec/nodeSelector"),
		};
	}
}

static void add_bootstrap(struct layout *out, struct str name)
{
	for (size_t i = 0; i < out->n_bootstrap; i++)
		if (str_eq(out->bootstrap[i], name))
			return;
	out->bootstrap[out->n_bootstrap++] = name;
}

/* Every pool that will exist, not only those given: the kubelet advertises the workload
 * resource only where it finds the marker, and a node without it cannot join (D7). */
static void resolve_bootstrap(struct resolving *r)
{
	struct layout *out = r->out;

	out->bootstrap = arena_array(r->a, struct str, r->ms->pools.n + 3); /* the three below */
	if (!out->pinned)
		return;
	add_bootstrap(out, STR("master"));
	add_bootstrap(out, STR("worker"));
	if (str_eq(out->control_plane_topology, STR(NAME_TOPOLOGY_ARBITER)))
		add_bootstrap(out, STR("arbiter"));
	for (size_t i = 0; i < r->ms->pools.n; i++)
		add_bootstrap(out, object_name(r->ms->pools.items[i].object));
}

/* Without OpenShift a profile needs no pool of its cluster. Its own one is named after the role in
 * its selector; a selector without one has machineConfigLabel (profile_read() requires it), and the
 * pool the name of the profile. */
static const struct machine_pool *own_pool(struct resolving *r, const struct profile *profile)
{
	const struct str role = profile_role(profile);
	const struct str name = role.n || !profile->machine_label ? role : profile->name;
	struct layout *out = r->out;

	if (!r->options->plain_hosts || !profile_is_name(name))
		return NULL;
	/* Two pools of one name would be rendered to the same place. */
	for (size_t i = 0; i < out->n_pools && !role.n; i++)
		if (str_eq(out->pools[i].name, name))
			return &out->pools[i];
	out->pools[out->n_pools] = implied_pool(r, name);
	out->pools[out->n_pools].node_selector = NULL; /* this profile's alone */
	return &out->pools[out->n_pools++];
}

/* The pool's selector is evaluated against the profile's labels, not the reverse
 * (docs/reference/openshift-render.md#pools-and-profiles). */
static const struct machine_pool *pool_of_profile(struct resolving *r,
						  const struct profile *profile)
{
	struct problem_at at =
		PROBLEM_AT(profile->at.doc, profile->node_selector, "spec.nodeSelector");
	const struct machine_pool *found = NULL;

	for (size_t i = 0; i < r->out->n_pools; i++) {
		const struct machine_pool *pool = &r->out->pools[i];
		struct err err = { 0 };
		int matches = selector_matches(pool->node_selector, profile->node_selector, &err);

		if (matches < 0) {
			problem_error(r->p,
				      PROBLEM_AT(pool->at.doc, pool->node_selector,
						 "spec.nodeSelector"),
				      "%s", err.msg);
			return NULL;
		}
		if (!matches)
			continue;
		if (found) {
			problem_error(r->p, at, "two pools select these nodes: %s and %s",
				      quote(found->name).text, quote(pool->name).text);
			return NULL;
		}
		found = pool;
	}
	if (!found)
		found = own_pool(r, profile);
	if (!found)
		problem_error(r->p, at, "no MachineConfigPool selects nodes with %s",
			      quote(labels_format(profile->node_selector, r->a)).text);
	return found;
}

/* A pool's own topology wins over the one for all pools, in whatever order they were given. */
static const struct topology *topology_of_pool(const struct layout_options *o, struct str pool)
{
	const struct topology *any = NULL;

	for (size_t i = 0; i < o->n_topologies; i++) {
		if (str_eq(o->topologies[i].pool, pool))
			return o->topologies[i].topology;
		if (!o->topologies[i].pool.n)
			any = o->topologies[i].topology;
	}
	return any;
}

/* A topology for a pool that does not exist checks nothing, and is a typing error. */
static void check_topologies(struct resolving *r)
{
	for (size_t i = 0; i < r->options->n_topologies; i++) {
		struct str pool = r->options->topologies[i].pool;
		struct strbuf names;
		bool found = !pool.n;

		strbuf_init(&names, r->a);
		for (size_t j = 0; j < r->out->n_pools; j++) {
			found |= str_eq(r->out->pools[j].name, pool);
			strbuf_printf(&names, "%s" PRI_STR, j ? ", " : "",
				      FMT_STR(r->out->pools[j].name));
		}
		if (!found)
			problem_error(r->p, PROBLEM_AT(NULL, NULL, "--topology"),
				      "there is no machine config pool %s, only " PRI_STR,
				      quote(pool).text, FMT_STR(strbuf_str(&names)));
	}
}

static void check_same(struct resolving *r, const struct partition *part)
{
	for (size_t i = 0; i < r->out->n_partitions; i++) {
		const struct partition *other = &r->out->partitions[i];

		if (str_eq(other->profile->name, part->profile->name))
			problem_error(r->p,
				      PROBLEM_AT(part->profile->at.doc, part->profile->at.object,
						 "metadata.name"),
				      "a second profile %s; the first is in " PRI_STR,
				      quote(part->profile->name).text,
				      FMT_STR(other->profile->at.doc->file));
		else if (other->pool == part->pool)
			problem_error(r->p,
				      PROBLEM_AT(part->profile->at.doc,
						 part->profile->node_selector, "spec.nodeSelector"),
				      "pool %s already has profile %s",
				      quote(part->pool->name).text,
				      quote(other->profile->name).text);
	}
}

/* CPUs of a node; 0 when it is not one of the partition's. */
static unsigned node_cpus(const struct resolving *r, const struct partition *part,
			  struct manifest node)
{
	struct quantity cpus;

	if (layout_pool_of_node(r->out, doc_find(node.object, "/metadata/labels")) != part->pool ||
	    resource_get(doc_find(node.object, "/status/capacity"), STR(NAME_CPU), &cpus, NULL) <=
		    0)
		return 0;
	return quantity_value(&cpus) > CPUSET_MAX ? CPUSET_MAX : (unsigned)quantity_value(&cpus);
}

/* Nodes of one pool must be alike, because they get the same CPU sets
 * (docs/reference/openshift-render.md#profile-validation). */
static void check_nodes(struct resolving *r, const struct partition *part)
{
	unsigned needs = 0, largest = 0;

	/* A running node does not count CPUs that are offline in its capacity. */
	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		if (id != PROFILE_OFFLINED)
			needs += cpuset_count(&part->cpus[id]);
	for (size_t i = 0; i < r->ms->nodes.n; i++) {
		struct manifest m = r->ms->nodes.items[i];
		unsigned cpus = node_cpus(r, part, m);

		if (cpus && cpus < needs)
			problem_error(r->p, PROBLEM_AT(m.doc, m.object, "status.capacity.cpu"),
				      "node %s has %u CPUs, but profile %s needs %u",
				      quote(object_name(m.object)).text, cpus,
				      quote(part->profile->name).text, needs);
		largest = cpus > largest ? cpus : largest;
	}
	if (!r->options->without_kubelet)
		check_size(part, part->topology ? part->topology->n_cpus : largest, r->p);
}

static void resolve_profile(struct resolving *r, struct manifest m, struct profile *profile)
{
	struct partition *part = &r->out->partitions[r->out->n_partitions];
	bool is_usable = profile_read(m, r->a, profile, r->p);

	*part = (struct partition){ .profile = profile };
	if (profile->node_selector)
		part->pool = pool_of_profile(r, profile);
	part->topology = topology_of_pool(r->options, part->pool ? part->pool->name : STR(""));
	if (part->pool)
		check_same(r, part);
	/* Checked in any case, so that one run reports all problems. */
	if (!profile->has_sound_sets || !partition_resolve(part, r->a, r->p))
		return;
	check_sets(part, r->p);
	if (part->topology)
		check_hardware(part, r->options->allow_split_cores, r->p);
	check_intent(part, r->out->pinned, r->p);
	check_types(part, r->p);
	if (!part->pool)
		return;
	check_nodes(r, part);
	/* The slot of a profile with faults is used again by the next one. */
	r->out->n_partitions += is_usable;
}

void layout_resolve(const struct manifests *ms, const struct layout_options *options,
		    struct arena *a, struct layout *ret, struct problem_list *p)
{
	struct resolving r = { .ms = ms, .options = options, .a = a, .p = p };

	*ret = (struct layout){
		.profiles = arena_array(a, struct profile, ms->profiles.n + 1),
		.partitions = arena_array(a, struct partition, ms->profiles.n + 1),
	};
	r.out = ret;
	install_config_read(ms->install_config, a, &ret->install, p);
	user_configs_find(&ms->machine_configs, a, &ret->user_configs);
	resolve_mode(&r);
	resolve_pools(&r);
	resolve_bootstrap(&r);
	/* After the bootstrap pools: a profile alone partitions the machines of its own pool and no
	 * others. */
	if (options->plain_hosts && !ms->infrastructure.doc && !ms->install_config.doc)
		ret->pinned = true;
	for (size_t i = 0; i < ms->profiles.n; i++)
		resolve_profile(&r, ms->profiles.items[i], &ret->profiles[i]);
	user_configs_report(&ret->user_configs, ret, p);
	check_topologies(&r); /* after the profiles, which may imply pools */
}

const struct partition *layout_find(const struct layout *layout, struct str pool)
{
	for (size_t i = 0; i < layout->n_partitions; i++)
		if (str_eq(layout->partitions[i].pool->name, pool))
			return &layout->partitions[i];
	return NULL;
}

/* A custom pool wins over worker, master over everything. A missing or empty selector selects no
 * node here, although an empty one matches every profile. */
const struct machine_pool *layout_pool_of_node(const struct layout *layout, yyjson_val *labels)
{
	const struct machine_pool *found = NULL;

	for (size_t i = 0; i < layout->n_pools; i++) {
		const struct machine_pool *pool = &layout->pools[i];

		if (!yyjson_obj_size(pool->node_selector) || !labels ||
		    selector_matches(pool->node_selector, labels, NULL) <= 0)
			continue;
		if (str_eq(pool->name, STR("master")))
			return pool;
		if (!found || str_eq(found->name, STR("worker")))
			found = pool;
	}
	return found;
}
