/* Shows how this program sees a machine, and writes the topology file that the other commands
 * accept in place of the machine. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "command.h"
#include "cpu/topology.h"
#include "cpu/topology_read.h"
#include "output.h"
#include "picture/html_page.h"
#include "picture/machine_picture.h"
#include "topology_draw.h"

struct topology_options {
	const char *from;
	const char *management;
	const char *shared;
	const char *guaranteed;
	const char *output;
};

static const struct topology_options defaults = { .from = "host" };

static const struct option_desc options[] = {
	{ OPT_STR, 0, "from", "SOURCE",
	  "host (default), a file (JSON of -o json, or hwloc XML), a directory with a copy of "
	  "/sys, "
	  "or an hwloc synthetic string",
	  NULL, offsetof(struct topology_options, from) },
	{ OPT_STR, 0, "management", "LIST", "mark the CPUs of the management pool", NULL,
	  offsetof(struct topology_options, management) },
	/* The former spellings of --management and --guaranteed. */
	{ OPT_STR, 0, "reserved", "LIST", NULL, NULL,
	  offsetof(struct topology_options, management) },
	{ OPT_STR, 0, "isolated", "LIST", NULL, NULL,
	  offsetof(struct topology_options, guaranteed) },
	{ OPT_STR, 0, "shared", "LIST", "mark the CPUs of the shared pool", NULL,
	  offsetof(struct topology_options, shared) },
	{ OPT_STR, 0, "guaranteed", "LIST", "mark the CPUs of the guaranteed pool", NULL,
	  offsetof(struct topology_options, guaranteed) },
	PICTURE_OUTPUT_OPTION(struct topology_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold topology", "draw this machine" },
	{ "pinfold topology --from 'pack:2 numa:1 l3:2 core:8 pu:2'",
	  "draw a machine that is described by a string" },
	{ "pinfold topology --management 0-1 --guaranteed 2-15",
	  "draw this machine with its pools" },
	{ "pinfold topology -o svg >machine.svg", "a picture of this machine" },
	{ "pinfold topology -o json >node.json", "write the file for pinfold allocate --topology" },
	{ 0 },
};

static int parse_pool(const char *list, const struct topology *t, struct topology_pool *pool,
		      struct err *err)
{
	int r = list ? cpuset_parse(str_from(list), &pool->cpus, err) : 0;

	if (r < 0)
		return err_wrap(err, "--%s", pool->name);
	/* Offline CPUs are not drawn, so their marks would be missing silently. */
	if (!cpuset_is_subset(&pool->cpus, &t->online)) {
		struct cpuset unknown = pool->cpus;

		cpuset_minus(&unknown, &t->online);
		return err_set(err, EINVAL, "--%s: CPU %u is not an online CPU of this machine",
			       pool->name, cpuset_first(&unknown));
	}
	return 0;
}

static int draw_picture(const struct topology_options *o, const struct topology *t,
			const struct topology_pool *pools, struct arena *a, struct err *err)
{
	static const enum picture_look looks[] = { PICTURE_MANAGEMENT, PICTURE_SHARED,
						   PICTURE_FREE };
	const struct str title = STR("CPU topology");
	struct picture_pool shown[ARRAY_LEN(looks)];
	struct machine_picture picture = { .topology = t,
					   .pools = shown,
					   .n_pools = ARRAY_LEN(looks) };
	struct strbuf b;

	for (size_t i = 0; i < ARRAY_LEN(looks); i++)
		shown[i] = (struct picture_pool){ pools[i].name, looks[i], pools[i].cpus };
	if (output_format_of(o->output) == OUTPUT_SVG)
		return output_text(picture_svg(title, &picture, 1, a), err);
	strbuf_init(&b, a);
	page_begin(&b, title);
	picture_figure(&b, &picture, 1);
	page_end(&b);
	return output_text(strbuf_str(&b), err);
}

static int draw(const struct topology_options *o, const struct topology *t, struct arena *a,
		struct err *err)
{
	struct topology_pool pools[] = {
		{ .name = "management", .letter = 'm', .colour = "33" },
		{ .name = "shared", .letter = 's', .colour = "32" },
		{ .name = "guaranteed", .letter = 'g', .colour = "36" },
	};
	const char *const lists[] = { o->management, o->shared, o->guaranteed };
	struct topology_drawing how = { .pools = pools, .n_pools = ARRAY_LEN(pools) };

	for (size_t i = 0; i < ARRAY_LEN(pools); i++) {
		int r = parse_pool(lists[i], t, &pools[i], err);

		if (r < 0)
			return r;
	}
	if (output_format_of(o->output) != OUTPUT_TABLE)
		return draw_picture(o, t, pools, a, err);
	how.colour = output_wants_colour();
	how.width = output_width();
	return output_text(topology_draw(t, &how, a), err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct topology_options *o = inv->options;
	enum output_format format = output_format_of(o->output);
	struct topology t;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	r = topology_read(o->from, inv->arena, &t, err);
	if (r < 0)
		return r;
	if (format != OUTPUT_JSON && format != OUTPUT_YAML)
		return draw(o, &t, inv->arena, err);
	return output_doc(topology_to_doc(&t, doc_build(inv->arena), inv->arena), format,
			  inv->arena, err);
}

const struct command cmd_topology = {
	.name = "topology",
	.group = COMMAND_TOOL,
	.summary = "show sockets, NUMA nodes, caches, cores and threads",
	.operands = "",
	.about = "Draws a box for each NUMA node with its cores; CPUs in brackets are the threads "
		 "of\n"
		 "one core. With -o json it prints the topology file that other commands read. "
		 "CPUs of\n"
		 "the given pools are coloured, or marked m, s and g.",
	.options = options,
	.options_size = sizeof(struct topology_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
