/* Reads and writes Pinfold's JSON form of a machine. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "topology_read.h"

static const struct str level_keys[TOPOLOGY__LEVELS] = {
	[TOPOLOGY_CORE] = STR_INIT("core"),	[TOPOLOGY_DIE] = STR_INIT("die"),
	[TOPOLOGY_SOCKET] = STR_INIT("socket"), [TOPOLOGY_NUMA] = STR_INIT("numa"),
	[TOPOLOGY_UNCORE] = STR_INIT("uncore"),
};

#define MAX_ID 1000000 /* far above any kernel's ids; sums cannot overflow */

static int read_id(const struct doc *doc, yyjson_val *object, struct str key, uint32_t *ret,
		   struct err *err)
{
	yyjson_val *v = doc_get(object, key);
	int64_t n;

	*ret = TOPOLOGY_NO_ID;
	if (!v)
		return 0;
	if (!doc_int(v, &n) || n < 0 || n > MAX_ID)
		return doc_err(err, doc, v, PRI_STR ": not a whole number from 0 to %d",
			       FMT_STR(key), MAX_ID);
	*ret = (uint32_t)n;
	return 0;
}

static int read_type(const struct doc *doc, yyjson_val *row, uint8_t *ret, struct err *err)
{
	yyjson_val *v = doc_get(row, STR("type"));

	*ret = CORE_TYPE_UNKNOWN;
	if (!v)
		return 0;
	for (int i = CORE_TYPE_PERFORMANCE; i <= CORE_TYPE_EFFICIENCY; i++) {
		const enum topology_core_type type = (enum topology_core_type)i;

		if (!str_eq(doc_str(v), str_from(topology_core_type_name(type))))
			continue;
		*ret = (uint8_t)type;
		return 0;
	}
	return doc_err(err, doc, v, "type: not \"performance\" or \"efficiency\"");
}

static int read_cpu(const struct doc *doc, yyjson_val *row, struct topology_cpu *ret,
		    struct err *err)
{
	uint32_t number;
	int r;

	if (!yyjson_is_obj(row))
		return doc_err(err, doc, row, "a CPU is %s, not an object", doc_type(row));
	r = read_id(doc, row, STR("cpu"), &number, err);
	if (r < 0)
		return r;
	if (number == TOPOLOGY_NO_ID)
		return doc_err(err, doc, row, "a CPU without \"cpu\", its number");
	if (number >= CPUSET_MAX)
		return doc_err(err, doc, doc_get(row, STR("cpu")),
			       "CPU %u is too large, the limit is %d", number, CPUSET_MAX - 1);
	ret->cpu = (uint16_t)number;
	for (int level = 0; level < TOPOLOGY__LEVELS; level++) {
		r = read_id(doc, row, level_keys[level], &ret->id[level], err);
		if (r < 0)
			return r;
	}
	return read_type(doc, row, &ret->core_type, err);
}

static int read_cpus(const struct doc *doc, struct arena *a, struct topology_input *in,
		     struct err *err)
{
	yyjson_val *rows = doc_get(doc->root, STR("cpus")), *row;
	struct topology_cpu *cpus;

	if (!yyjson_is_arr(rows))
		return doc_err(err, doc, rows ? rows : doc->root,
			       "a topology needs \"cpus\", an array of CPUs");
	if (yyjson_arr_size(rows) > CPUSET_MAX)
		return doc_err(err, doc, rows, "more than %d CPUs", CPUSET_MAX);
	cpus = arena_array(a, struct topology_cpu, yyjson_arr_size(rows) + 1);
	if (!cpus)
		return err_set(err, ENOMEM, "topology: out of memory");
	DOC_EACH_ITEM (rows, row) {
		int r = read_cpu(doc, row, &cpus[in->n_cpus++], err);

		if (r < 0)
			return r;
	}
	in->cpus = cpus;
	return 0;
}

static int read_list(const struct doc *doc, struct str key, struct cpuset *ret, struct err *err)
{
	yyjson_val *v = doc_get(doc->root, key);
	struct err why = { 0 };

	if (!v)
		return 0;
	if (!yyjson_is_str(v) || cpuset_parse(doc_str(v), ret, &why) < 0)
		return doc_err(err, doc, v, PRI_STR ": %s", FMT_STR(key),
			       yyjson_is_str(v) ? why.msg : "not a CPU list in a string");
	return 0;
}

static int read_distances(const struct doc *doc, yyjson_val *node, size_t n, uint32_t *ret,
			  struct err *err)
{
	yyjson_val *row = doc_get(node, STR("distances")), *v;

	if (yyjson_arr_size(row) != n)
		return doc_err(err, doc, row ? row : node,
			       "distances: need one for each of the %zu nodes", n);
	DOC_EACH_ITEM (row, v) {
		int64_t distance;

		/* The ACPI table (SLIT) stores a distance in one byte. */
		if (!doc_int(v, &distance) || distance < 0 || distance > 255)
			return doc_err(err, doc, v, "distances: not a number from 0 to 255");
		*ret++ = (uint32_t)distance;
	}
	return 0;
}

/* Distances are given for every node or for none. */
static int read_nodes(const struct doc *doc, struct arena *a, struct topology_input *in,
		      struct err *err)
{
	yyjson_val *nodes = doc_get(doc->root, STR("nodes")), *node;
	const size_t n = yyjson_arr_size(nodes);
	/* The first node decides; each of the others must then have as many. */
	const bool has_distances = doc_get(yyjson_arr_get_first(nodes), STR("distances"));
	uint32_t *ids, *distances;
	int r = 0;

	if (nodes && !yyjson_is_arr(nodes))
		return doc_err(err, doc, nodes, "nodes: not an array");
	if (n > 1024)
		return doc_err(err, doc, nodes, "more than 1024 NUMA nodes");
	ids = arena_array(a, uint32_t, n + 1);
	distances = arena_array(a, uint32_t, has_distances ? n * n : 1);
	if (!ids || !distances)
		return err_set(err, ENOMEM, "topology: out of memory");
	DOC_EACH_ITEM (nodes, node) {
		r = read_id(doc, node, STR("id"), &ids[in->n_nodes], err);
		if (r == 0 && ids[in->n_nodes] == TOPOLOGY_NO_ID)
			r = doc_err(err, doc, node, "a NUMA node without \"id\"");
		if (r == 0 && has_distances)
			r = read_distances(doc, node, n, &distances[in->n_nodes * n], err);
		if (r < 0)
			return r;
		in->n_nodes++;
	}
	in->nodes = ids;
	in->distances = has_distances ? distances : NULL;
	return 0;
}

int topology_from_doc(const struct doc *doc, struct arena *a, struct topology *ret, struct err *err)
{
	struct topology_input in = { 0 };
	int r;

	if (!yyjson_is_obj(doc->root))
		return doc_err(err, doc, doc->root, "a topology is an object, not %s",
			       doc_type(doc->root));
	r = read_cpus(doc, a, &in, err);
	if (r == 0)
		r = read_list(doc, STR("offline"), &in.offline, err);
	if (r == 0)
		r = read_list(doc, STR("isolated"), &in.isolated, err);
	if (r == 0)
		r = read_nodes(doc, a, &in, err);
	if (r < 0)
		return r;
	r = topology_build(&in, a, ret, err);
	if (r < 0 && doc->file.n)
		return err_wrap(err, PRI_STR, FMT_STR(doc->file));
	return r;
}

int topology_parse_json(struct str text, struct str file, struct arena *a, struct topology *ret,
			struct err *err)
{
	struct doc doc;
	int r = doc_parse(text, file, NULL, a, &doc, err);

	if (r == 0)
		r = doc_check_keys(&doc, a, err);
	return r < 0 ? r : topology_from_doc(&doc, a, ret, err);
}

static void put_cpus(const struct topology *t, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	yyjson_mut_val *rows = doc_put_arr(m, root, STR("cpus"));

	for (unsigned i = 0; i < t->n_cpus; i++) {
		const struct topology_cpu *cpu = &t->cpus[i];
		yyjson_mut_val *row = yyjson_mut_obj(m);

		doc_put_int(m, row, STR("cpu"), cpu->cpu);
		for (int level = 0; level < TOPOLOGY__LEVELS; level++)
			doc_put_int(m, row, level_keys[level], cpu->id[level]);
		if (cpu->core_type != CORE_TYPE_UNKNOWN)
			doc_put_str(m, row, STR("type"),
				    str_from(topology_core_type_name(cpu->core_type)));
		yyjson_mut_arr_append(rows, row);
	}
}

static void put_nodes(const struct topology *t, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	yyjson_mut_val *nodes = doc_put_arr(m, root, STR("nodes"));

	for (unsigned i = 0; i < t->n_nodes; i++) {
		yyjson_mut_val *node = yyjson_mut_obj(m), *row;

		doc_put_int(m, node, STR("id"), t->nodes[i]);
		yyjson_mut_arr_append(nodes, node);
		if (!t->distances)
			continue;
		row = doc_put_arr(m, node, STR("distances"));
		for (unsigned j = 0; j < t->n_nodes; j++)
			yyjson_mut_arr_append(
				row, doc_new_int(m, t->distances[(size_t)i * t->n_nodes + j]));
	}
}

yyjson_mut_val *topology_to_doc(const struct topology *t, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m);

	put_cpus(t, m, root);
	doc_put_str(m, root, STR("offline"), cpuset_format(&t->offline, a));
	doc_put_str(m, root, STR("isolated"), cpuset_format(&t->isolated, a));
	put_nodes(t, m, root);
	return root;
}
