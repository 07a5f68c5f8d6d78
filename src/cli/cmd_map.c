/* Pools and containers come from the agent's status document, so that the map of another node can
 * be drawn from copies of its status and topology files. */

#include <errno.h>

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle_input.h"
#include "command.h"
#include "cpu/topology_read.h"
#include "map_draw.h"
#include "node_map.h"
#include "output.h"
#include "picture/html_page.h"

struct map_options {
	const char *run_dir, *topology, *output;
	struct bundle_options bundle;
	bool watch;
	struct option_list pods; /* the operands */
};

#define AT(field) offsetof(struct map_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "topology", "FROM", "host (default), a file or a synthetic description", NULL,
	  AT(topology) },
	BUNDLE_OPTIONS(struct map_options, bundle),
	MAP_WATCH_OPTION(struct map_options),
	PICTURE_OUTPUT_OPTION(struct map_options, output),
	{ 0 },
};

static const struct map_options defaults = { .run_dir = AGENT_RUN_DIR };

static const struct command_example examples[] = {
	{ "pinfold map", "which pod is on which CPU of this node" },
	{ "pinfold map --watch", "the same, refreshed every second" },
	{ "pinfold map 'ran/vdu-*'", "only the CPUs of these pods" },
	{ "pinfold map -o json | jq '.cpus[] | select(.owner)'", "the exclusive CPUs" },
	{ "pinfold map -o svg >map.svg", "a picture; -o html is a page with it" },
	{ "pinfold map --bundle saved.tar", "the node of a support bundle" },
	{ "pinfold map --run-dir saved --topology node.json", "another node, from saved files" },
	{ 0 },
};

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

static int print_picture(const struct agent_status *status, const struct map *map,
			 enum output_format format, struct arena *a, struct err *err)
{
	const struct str node = doc_str(doc_get(status->doc.root, STR("node")));
	const struct str title =
		str_printf(a, "CPU map%s" PRI_STR, node.n ? " of node " : "", FMT_STR(node));
	struct machine_picture picture;
	struct strbuf b;

	if (format == OUTPUT_SVG) {
		picture = map_picture(map, title, a);
		return output_text(picture_svg(title, &picture, 1, a), err);
	}
	picture = map_picture(map, STR(""), a);
	strbuf_init(&b, a);
	page_begin(&b, title);
	page_note(&b, node_map_title(status, a));
	picture_figure(&b, &picture, 1);
	map_page_table(map, &b);
	page_end(&b);
	return output_text(strbuf_str(&b), err);
}

/* Read again at each refresh: CPUs may go offline, and the agent may restart. */
static int read_input(const struct map_options *o, struct arena *a, struct agent_status *ret_status,
		      struct topology *ret_topology, struct err *err)
{
	int r = o->bundle.path ? bundle_input_status(&o->bundle, a, ret_status, err) :
				 status_client_read(o->run_dir, a, ret_status, err);

	if (r < 0)
		return r;
	if (o->bundle.path && !o->topology)
		return bundle_input_topology(&o->bundle, a, ret_topology, err);
	return topology_read(o->topology ? o->topology : "host", a, ret_topology, err);
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

	r = read_input(o, a, &status, &topology, err);
	if (r == 0)
		r = node_map_read(&status.doc, a, &map, err);
	if (r == 0)
		r = node_map_check(&map, o->topology ? o->topology : "host", err);
	if (r == 0)
		r = map_filter(&map, &o->pods, a, err);
	if (r < 0)
		return r;
	if (format == OUTPUT_SVG || format == OUTPUT_HTML)
		return print_picture(&status, &map, format, a, err);
	if (format != OUTPUT_TABLE)
		return print_doc(&status, &map, o, a, err);
	text = str_printf(a, PRI_STR PRI_STR, FMT_STR(node_map_title(&status, a)),
			  FMT_STR(map_draw(&map, a)));
	return o->watch ? output_text(map_redraw(text, a), err) : output_readable(text, err);
}

static int run(struct invocation *inv, struct err *err)
{
	struct map_options *o = inv->options;

	if (bundle_options_check(&o->bundle, err) < 0)
		return -EINVAL;
	if (o->watch && output_format_of(o->output) > OUTPUT_YAML)
		return err_set(err, EINVAL, "--watch draws text only");
	if (o->bundle.path && o->watch)
		return err_set(err, EINVAL, "a bundle does not change: --watch needs an agent");
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
