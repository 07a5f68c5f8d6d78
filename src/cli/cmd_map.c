/* Pools and containers come from the agent's status document, so that the map of another node can
 * be drawn from copies of its status and topology files. */

#include <errno.h>
#include <stdlib.h>

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "command.h"
#include "cpu/topology_read.h"
#include "map_draw.h"
#include "output.h"

struct map_options {
	const char *run_dir, *topology, *output;
	bool watch;
	struct option_list pods; /* the operands */
};

#define AT(field) offsetof(struct map_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(topology) },
	MAP_WATCH_OPTION(struct map_options),
	OUTPUT_OPTION(struct map_options, output),
	{ 0 },
};

static const struct map_options defaults = { .run_dir = AGENT_RUN_DIR, .topology = "host" };

static const struct command_example examples[] = {
	{ "pinfold map", "which pod is on which CPU of this node" },
	{ "pinfold map --watch", "the same, refreshed every second" },
	{ "pinfold map 'ran/vdu-*'", "only the CPUs of these pods" },
	{ "pinfold map -o json | jq '.cpus[] | select(.owner)'", "the exclusive CPUs" },
	{ "pinfold map --run-dir saved --topology node.json", "another node, from saved files" },
	{ 0 },
};

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

/* `doc` is the agent's status document (agent/status.h). */
static int read_map(const struct doc *doc, struct arena *a, struct map *ret, struct err *err)
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
static int check_machine(const struct map *map, const char *topology, struct err *err)
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

static struct str title(const struct agent_status *status, struct arena *a)
{
	yyjson_val *root = status->doc.root;
	struct str node = doc_str(doc_get(root, STR("node")));
	struct strbuf b;

	strbuf_init(&b, a);
	if (!status->is_running)
		strbuf_printf(&b, "the agent is not running; last status from %s\n", status->from);
	if (node.n)
		strbuf_printf(&b, "node " PRI_STR ", ", FMT_STR(node));
	strbuf_printf(&b, "mode " PRI_STR "\n", FMT_STR(doc_str(doc_get(root, STR("mode")))));
	return strbuf_str(&b);
}

static yyjson_mut_val *wanted_containers(yyjson_val *root, const struct option_list *pods,
					 yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);
	yyjson_val *item;

	DOC_EACH_ITEM (doc_get(root, STR("containers")), item) {
		const struct map_container c = {
			.namespace = doc_str(doc_get(item, STR("namespace"))),
			.pod = doc_str(doc_get(item, STR("pod"))),
		};

		if (map_is_wanted(&c, pods, a))
			yyjson_mut_arr_append(list, yyjson_val_mut_copy(m, item));
	}
	return list;
}

static int print_doc(const struct agent_status *status, const struct map *map,
		     const struct map_options *o, struct arena *a, struct err *err)
{
	static const char *const kept[] = { "node", "mode", "pools", "workloadTypes" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		yyjson_val *v = doc_get(status->doc.root, str_from(kept[i]));

		if (v)
			doc_put(m, root, str_from(kept[i]), yyjson_val_mut_copy(m, v));
	}
	doc_put(m, root, STR("containers"), wanted_containers(status->doc.root, &o->pods, m, a));
	doc_put(m, root, STR("cpus"), map_cpus_to_doc(map, m));
	return output_doc(root, output_format_of(o->output), a, err);
}

static int print_map(void *data, struct arena *a, struct err *err)
{
	const struct map_options *o = data;
	const enum output_format format = output_format_of(o->output);
	struct topology topology;
	struct map map = { .topology = &topology,
			   .colour = output_wants_colour(),
			   .width = output_width() };
	struct agent_status status;
	struct str text;
	int r;

	/* Read again at each refresh: CPUs may go offline, and the agent may restart. */
	r = status_client_read(o->run_dir, a, &status, err);
	if (r == 0)
		r = topology_read(o->topology, a, &topology, err);
	if (r == 0)
		r = read_map(&status.doc, a, &map, err);
	if (r == 0)
		r = check_machine(&map, o->topology, err);
	if (r == 0)
		r = map_filter(&map, &o->pods, a, err);
	if (r < 0)
		return r;
	if (format != OUTPUT_TABLE)
		return print_doc(&status, &map, o, a, err);
	text = str_printf(a, PRI_STR PRI_STR, FMT_STR(title(&status, a)),
			  FMT_STR(map_draw(&map, a)));
	return output_text(o->watch ? map_redraw(text, a) : text, err);
}

static int run(struct invocation *inv, struct err *err)
{
	struct map_options *o = inv->options;

	o->pods = inv->args;
	return map_show(print_map, o, o->watch, inv->arena, err);
}

const struct command cmd_map = {
	.name = "map",
	.group = COMMAND_TOOL,
	.summary = "draw which pod is on which CPU of this node",
	.operands = "[POD...]",
	.about = "Draws the NUMA nodes, caches, cores and threads of the node with its pools, and "
		 "lists\n"
		 "the containers of each pool: from the running agent, or while none runs from its "
		 "last\n"
		 "status file. Colours show the pools; without colours each CPU has a letter: m "
		 "for\n"
		 "management, s for shared, G for guaranteed and assigned to a container, g for\n"
		 "guaranteed and free.\n"
		 "POD is a pod, namespace/pod, or a pattern such as 'vdu-*': only these pods are "
		 "shown.",
	.options = options,
	.options_size = sizeof(struct map_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
