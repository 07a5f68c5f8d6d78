/* Only the fields that decide about partitioning are checked; the installer checks its own. The
 * topologies are needed because an install-config is read before there is an Infrastructure object
 * that has them. */

#include "install_config.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/workload_type.h"
#include "profile.h"

#define DEFAULT_REPLICAS 3 /* what the installer fills in */

const char *control_plane_topology(int64_t replicas, int64_t arbiters)
{
	if (replicas >= 2 && arbiters > 0)
		return NAME_TOPOLOGY_ARBITER;
	return replicas == 1 ? NAME_TOPOLOGY_SINGLE :
	       replicas == 2 ? NAME_TOPOLOGY_DUAL :
			       NAME_TOPOLOGY_HA;
}

const char *infrastructure_topology(int64_t workers, const char *control_plane)
{
	/* Without workers, workloads run on the control plane; any kind of several nodes is highly
	 * available for them. */
	if (workers == 1 || (workers == 0 && strcmp(control_plane, NAME_TOPOLOGY_SINGLE) == 0))
		return NAME_TOPOLOGY_SINGLE;
	return NAME_TOPOLOGY_HA;
}

static int64_t replicas_of(struct manifest m, yyjson_val *pool, const char *field,
			   struct problem_list *p)
{
	yyjson_val *v = doc_get(pool, STR("replicas"));
	int64_t n = DEFAULT_REPLICAS;

	if (v && !yyjson_is_null(v) && (!doc_int(v, &n) || n < 0)) {
		problem_error(p, PROBLEM_AT(m.doc, v, field), "must be a whole number, 0 or more");
		return DEFAULT_REPLICAS;
	}
	return n;
}

static void read_topologies(struct install_config *c, struct problem_list *p)
{
	yyjson_val *root = c->at.object, *compute = doc_get(root, STR("compute"));
	yyjson_val *arbiter = doc_get(root, STR("arbiter")), *pool;
	/* `compute: []` has no workers; a missing `compute` gets the installer's default pool. */
	int64_t masters, arbiters = 0, workers = compute ? 0 : DEFAULT_REPLICAS;

	masters =
		replicas_of(c->at, doc_get(root, STR("controlPlane")), "controlPlane.replicas", p);
	if (yyjson_is_obj(arbiter))
		arbiters = replicas_of(c->at, arbiter, "arbiter.replicas", p);
	DOC_EACH_ITEM (compute, pool) {
		workers += replicas_of(c->at, pool, "compute.replicas", p);
	}
	c->n_workers = workers;
	c->control_plane_topology = control_plane_topology(masters, arbiters);
	c->infrastructure_topology = infrastructure_topology(workers, c->control_plane_topology);
}

/* The installer silently takes an unknown value as None; here it is an error. */
static void read_mode(struct install_config *c, struct problem_list *p)
{
	const char *field = NAME_INSTALL_PARTITIONING_KEY;
	yyjson_val *v = doc_get(c->at.object, STR(NAME_INSTALL_PARTITIONING_KEY));
	struct str text = doc_str(v);

	if (!v)
		return;
	if (str_eq(text, STR(NAME_PARTITIONING_NONE)))
		c->mode = PARTITIONING_NONE;
	else if (str_eq(text, STR(NAME_PARTITIONING_ALL)))
		c->mode = PARTITIONING_ALL_NODES;
	else if (yyjson_is_str(v))
		problem_error(p, PROBLEM_AT(c->at.doc, v, field),
			      "unsupported value %s: valid values are " NAME_PARTITIONING_NONE
			      ", " NAME_PARTITIONING_ALL,
			      quote(text).text);
	else
		problem_error(p, PROBLEM_AT(c->at.doc, v, field),
			      "must be a string, not %s: valid values are " NAME_PARTITIONING_NONE
			      ", " NAME_PARTITIONING_ALL,
			      doc_type(v));
}

/* A workload type becomes part of a resource name, a TOML table and an annotation, none of which
 * escapes it; 63 is the length of a DNS label. */
static void read_setting_nodes(struct install_config *c, struct workload_setting *s,
			       struct arena *a, struct problem_list *p)
{
	yyjson_val *nodes = doc_get(s->value, STR(NAME_LEGACY_SETTINGS_NODES_KEY)), *node;

	if (!nodes)
		return;
	if (!yyjson_is_arr(nodes) || !yyjson_arr_size(nodes)) {
		problem_error(p, PROBLEM_AT(c->at.doc, nodes, "workloadSettings.nodes"),
			      "must be a list of node names");
		return;
	}
	s->nodes = arena_array(a, struct str, yyjson_arr_size(nodes));
	DOC_EACH_ITEM (nodes, node) {
		if (profile_is_name(doc_str(node)))
			s->nodes[s->n_nodes++] = doc_str(node);
		else
			problem_error(p, PROBLEM_AT(c->at.doc, node, "workloadSettings.nodes"),
				      "must be a node name");
	}
}

static void read_setting_cpus(struct install_config *c, struct workload_setting *s,
			      struct problem_list *p)
{
	yyjson_val *v = doc_get(s->value, STR(NAME_LEGACY_SETTINGS_CPUS_KEY));
	struct problem_at at = PROBLEM_AT(c->at.doc, v ? v : s->value, "workloadSettings.cpuIDs");
	struct err err = { 0 };

	s->text = doc_text(v); /* `cpuIDs: 0` is a number in YAML */
	if (!v)
		problem_error(p, at, "required: the CPUs of this workload type");
	else if (cpuset_parse(s->text, &s->cpus, &err) < 0)
		problem_error(p, at, "%s", err.msg);
	else if (cpuset_is_empty(&s->cpus))
		problem_error(p, at, "must not be empty");
}

/* True when both entries apply to one node in the same way. An entry with nodes and one without do
 * not conflict: the node's own entry replaces the general one. */
static bool settings_meet(const struct workload_setting *x, const struct workload_setting *y,
			  struct str *ret_node)
{
	*ret_node = STR("every node");
	if (!x->n_nodes || !y->n_nodes)
		return !x->n_nodes && !y->n_nodes;
	for (size_t i = 0; i < x->n_nodes; i++)
		for (size_t j = 0; j < y->n_nodes; j++)
			if (str_eq(x->nodes[i], y->nodes[j])) {
				*ret_node = x->nodes[i];
				return true;
			}
	return false;
}

static void check_setting_pair(const struct install_config *c, const struct workload_setting *x,
			       const struct workload_setting *y, struct problem_list *p)
{
	struct problem_at at = PROBLEM_AT(c->at.doc, y->value, NAME_LEGACY_SETTINGS_KEY);
	struct cpuset both = x->cpus;
	struct str node;

	if (!settings_meet(x, y, &node))
		return;
	cpuset_intersect(&both, &y->cpus);
	if (str_eq(x->type, y->type))
		problem_error(p, at, "workload type %s has two entries for " PRI_STR,
			      quote(x->type).text, FMT_STR(node));
	else if (!cpuset_is_empty(&both))
		problem_error(p, at, "%s and %s overlap: CPUs " PRI_STR, quote(x->type).text,
			      quote(y->type).text, FMT_STR(cpuset_format(&both, p->a)));
}

static void read_setting(struct install_config *c, yyjson_val *value, struct arena *a,
			 struct problem_list *p)
{
	struct workload_setting *s = &c->settings[c->n_settings];

	*s = (struct workload_setting){
		.value = value,
		.type = doc_str(doc_get(value, STR(NAME_LEGACY_SETTINGS_NAME_KEY))),
	};
	if (!workload_type_is_valid(s->type)) {
		problem_error(p, PROBLEM_AT(c->at.doc, value, "workloadSettings.name"),
			      "must be a workload type: lower-case letters, digits and \"-\"");
		return;
	}
	read_setting_cpus(c, s, p);
	read_setting_nodes(c, s, a, p);
	/* Against the earlier entries only, so that each pair is reported once. */
	for (size_t i = 0; i < c->n_settings; i++)
		check_setting_pair(c, &c->settings[i], s, p);
	c->n_settings++;
}

static void read_settings(struct install_config *c, struct str key, struct arena *a,
			  struct problem_list *p)
{
	yyjson_val *list = doc_get(c->at.object, key), *item;
	const char *field = str_cstr(a, key);

	if (!list)
		return;
	if (!yyjson_is_arr(list)) {
		problem_error(p, PROBLEM_AT(c->at.doc, list, field), "must be a list, not %s",
			      doc_type(list));
		return;
	}
	DOC_EACH_ITEM (list, item) {
		read_setting(c, item, a, p);
	}
	if (c->n_settings && c->mode == PARTITIONING_NONE)
		problem_error(p, PROBLEM_AT(c->at.doc, list, field),
			      "turns partitioning on, but " NAME_INSTALL_PARTITIONING_KEY
			      " is " NAME_PARTITIONING_NONE);
	else if (c->n_settings)
		problem_note(p, PROBLEM_AT(c->at.doc, list, field),
			     "a field of the 2021 design, read as " NAME_INSTALL_PARTITIONING_KEY
			     ": " NAME_PARTITIONING_ALL " and one reserved set per workload type");
}

void install_config_read(struct manifest m, struct arena *a, struct install_config *ret,
			 struct problem_list *p)
{
	/* Both keys fill one array: workloadCPUPools is an alternative in the 2021 enhancement. */
	size_t most = yyjson_arr_size(doc_get(m.object, STR(NAME_LEGACY_SETTINGS_KEY))) +
		      yyjson_arr_size(doc_get(m.object, STR(NAME_LEGACY_POOLS_KEY)));

	*ret = (struct install_config){
		.at = m,
		.cluster_name = doc_str(doc_find(m.object, "/metadata/name")),
		.base_domain = doc_str(doc_get(m.object, STR("baseDomain"))),
		.settings = arena_array(a, struct workload_setting, most + 1),
	};
	if (!m.doc)
		return;
	read_mode(ret, p);
	read_topologies(ret, p);
	read_settings(ret, STR(NAME_LEGACY_SETTINGS_KEY), a, p);
	read_settings(ret, STR(NAME_LEGACY_POOLS_KEY), a, p);
}

bool install_config_wants_partitioning(const struct install_config *c)
{
	return c->mode == PARTITIONING_ALL_NODES || c->n_settings > 0;
}
