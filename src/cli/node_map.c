#include "node_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "cpu/topology.h"

static bool pool_from_name(struct str name, enum pool *ret)
{
	for (enum pool p = 0; p < POOL__COUNT; p++)
		if (str_eq(name, str_from(pool_name(p)))) {
			*ret = p;
			return true;
		}
	return false;
}

static int read_cpus(const struct doc *doc, yyjson_val *v, struct cpuset *ret, struct err *err)
{
	struct err why = { 0 };

	if (cpuset_parse(doc_str(v), ret, &why) < 0)
		return doc_err(err, doc, v, "%s", why.msg);
	return 0;
}

static int read_container(const struct doc *doc, yyjson_val *v, struct map_container *ret,
			  struct err *err)
{
	yyjson_val *pool = doc_get(v, STR("pool"));

	ret->namespace = doc_str(doc_get(v, STR("namespace")));
	ret->pod = doc_str(doc_get(v, STR("pod")));
	ret->container = doc_str(doc_get(v, STR("container")));
	ret->type = doc_str(doc_get(v, STR("type")));
	ret->is_exclusive = doc_bool(doc_get(v, STR("exclusive")), false);
	if (!pool_from_name(doc_str(pool), &ret->pool))
		return doc_err(err, doc, v, "unknown pool %s", quote(doc_str(pool)).text);
	return read_cpus(doc, doc_get(v, STR("cpus")), &ret->cpus, err);
}

static int compare_containers(const void *x, const void *y)
{
	const struct map_container *a = x, *b = y;
	int r = str_cmp(a->namespace, b->namespace);

	if (r == 0)
		r = str_cmp(a->pod, b->pod);
	return r ? r : str_cmp(a->container, b->container);
}

int node_map_read(const struct doc *doc, struct arena *a, struct map *ret, struct err *err)
{
	yyjson_val *list = doc_get(doc->root, STR("containers")), *v;
	struct map_container *containers =
		arena_array(a, struct map_container, yyjson_arr_size(list));
	size_t n = 0;
	int r = 0;

	for (enum pool p = 0; r == 0 && p < POOL__COUNT; p++) {
		v = doc_get(doc_get(doc->root, STR("pools")), str_from(pool_name(p)));
		r = read_cpus(doc, doc_get(v, STR("cpus")), &ret->pools[p], err);
	}
	DOC_EACH_ITEM (list, v) {
		if (r == 0)
			r = read_container(doc, v, &containers[n++], err);
	}
	if (r < 0)
		return r;
	/* map_draw() needs the containers of a pod to be adjacent. */
	if (n)
		qsort(containers, n, sizeof(*containers), compare_containers);
	ret->containers = containers;
	ret->n = n;
	return 0;
}

/* A status of another machine: map_draw() would leave out CPUs that the topology lacks. */
int node_map_check(const struct map *map, const char *topology, struct err *err)
{
	struct cpuset unknown = { 0 };

	for (enum pool p = 0; p < POOL__COUNT; p++)
		cpuset_union(&unknown, &map->pools[p]);
	cpuset_minus(&unknown, &map->topology->online);
	cpuset_minus(&unknown, &map->topology->offline);
	if (cpuset_is_empty(&unknown))
		return 0;
	return err_set(err, EINVAL,
		       "the agent's pools contain CPU %u, which topology %s lacks (see --topology)",
		       cpuset_first(&unknown), topology);
}

void node_map_put_source(struct strbuf *b, const struct agent_status *status)
{
	if (status->as_of.n)
		strbuf_printf(b, "as of " PRI_STR ", from a support bundle\n",
			      FMT_STR(status->as_of));
	if (!status->is_running)
		strbuf_printf(b, "the agent is not running; last status from %s\n", status->from);
}

struct str node_map_title(const struct agent_status *status, struct arena *a)
{
	yyjson_val *root = status->doc.root;
	struct str node = doc_str(doc_get(root, STR("node")));
	struct strbuf b;

	strbuf_init(&b, a);
	node_map_put_source(&b, status);
	if (node.n)
		strbuf_printf(&b, "node " PRI_STR ", ", FMT_STR(node));
	strbuf_printf(&b, "mode " PRI_STR "\n", FMT_STR(doc_str(doc_get(root, STR("mode")))));
	return strbuf_str(&b);
}
