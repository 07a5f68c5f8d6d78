/* The allocator for one request, with any machine and any free CPUs: to compare with a kubelet, or
 * to see why a request does not fit. No ledger is read or written. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "cpu/pick.h"
#include "cpu/topology_read.h"
#include "output.h"

struct allocate_options {
	const char *topology;
	const char *available;
	const char *cpus;
	const char *policy;
	struct option_list policy_options;
	unsigned group;
	const char *output;
};

static const struct allocate_options defaults = { .topology = "host" };

static const struct option_desc options[] = {
	{ OPT_STR, 0, "topology", "SOURCE",
	  "the machine: host (default), or a source as in pinfold topology --from", NULL,
	  offsetof(struct allocate_options, topology) },
	{ OPT_STR, 0, "available", "LIST", "the free CPUs (default: all)", NULL,
	  offsetof(struct allocate_options, available) },
	{ OPT_STR, 0, "cpus", "N", "number of CPUs to select", NULL,
	  offsetof(struct allocate_options, cpus) },
	{ OPT_ENUM, 0, "policy", "POLICY",
	  "packed: as close together as possible (default); distributed: evenly over NUMA nodes",
	  "packed|distributed", offsetof(struct allocate_options, policy) },
	{ OPT_STRS, 0, "option", "NAME=BOOL",
	  "an option of the kubelet's static CPU manager policy: full-pcpus-only=true", NULL,
	  offsetof(struct allocate_options, policy_options) },
	{ OPT_UINT, 0, "group", "N",
	  "distributed: assign CPUs in groups of N (default: a core with full-pcpus-only, else 1)",
	  NULL, offsetof(struct allocate_options, group) },
	OUTPUT_OPTION(struct allocate_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold allocate --cpus 2", "two CPUs of this machine" },
	{ "pinfold allocate --topology node.json --available 4-63 --cpus 8 --policy distributed",
	  "eight CPUs, evenly over the NUMA nodes of another" },
	{ "pinfold allocate --topology 'pack:1 l3:4 core:4 pu:2' --cpus 6 "
	  "--option prefer-align-cpus-by-uncorecache=true",
	  "six CPUs that share an L3 cache" },
	{ 0 },
};

/* What the allocator is called with. */
struct pick_input {
	struct topology t;
	struct cpuset available;
	struct pick_options options;
	struct pick_request request;
};

static int parse_policy(const struct allocate_options *o, struct pick_options *ret, struct err *err)
{
	for (size_t i = 0; i < o->policy_options.n; i++) {
		const struct str item = str_from(o->policy_options.items[i]);
		struct str_split split = str_split(item);
		struct str name = { 0 };
		int r;

		(void)str_next(&split, '=', &name);
		if (name.n == item.n)
			return err_set(err, EINVAL, "--option %s: want NAME=true or NAME=false",
				       o->policy_options.items[i]);
		r = pick_options_set(ret, name, split.rest, err);
		if (r < 0)
			return r;
	}
	/* After the options, so that --policy wins over --option of the same meaning. */
	if (o->policy)
		ret->distribute_cpus_across_numa = strcmp(o->policy, "distributed") == 0;
	return 0;
}

static int parse_count(const char *text, unsigned *ret, struct err *err)
{
	uint64_t n;

	if (!text)
		return err_set(err, EINVAL, "--cpus is missing (see pinfold allocate --help)");
	if (!str_to_u64(str_from(text), INT32_MAX, &n))
		return err_set(err, EINVAL, "--cpus %s: not a number of CPUs", text);
	*ret = (unsigned)n;
	return 0;
}

static int parse_request(const struct allocate_options *o, struct arena *a, struct pick_input *in,
			 struct err *err)
{
	unsigned n_cpus = 0;
	int r = parse_count(o->cpus, &n_cpus, err);

	if (r == 0)
		r = parse_policy(o, &in->options, err);
	if (r == 0)
		r = topology_read(o->topology, a, &in->t, err);
	if (r == 0)
		r = pick_options_check(&in->options, &in->t, err);
	if (r < 0)
		return r;
	in->available = in->t.online;
	if (o->available && cpuset_parse(str_from(o->available), &in->available, err) < 0)
		return err_wrap(err, "--available");
	in->request = pick_request_for(&in->options, &in->t, n_cpus);
	if (o->group)
		in->request.group = o->group;
	return 0;
}

/* With full-pcpus-only, CPUs of a core that is not entirely free are not available
 * (docs/reference/cpu-manager.md#full-pcpus-only). */
static int pick_requested(struct pick_input *in, struct cpuset *ret, struct err *err)
{
	if (in->options.full_pcpus_only) {
		struct cpuset split;
		int r;

		topology_split(&in->t, TOPOLOGY_CORE, &in->available, &split);
		cpuset_minus(&in->available, &split);
		r = pick_check_full_pcpus(topology_average(&in->t, TOPOLOGY_CORE),
					  in->request.n_cpus, cpuset_count(&in->available), err);
		if (r < 0)
			return r;
	}
	return pick_cpus(&in->t, &in->available, &in->request, ret, err);
}

static int print_doc(const struct pick_input *in, const struct cpuset *picked,
		     enum output_format format, struct arena *a, struct err *err)
{
	const struct topology_elements *numa = &in->t.level[TOPOLOGY_NUMA];
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *nodes;

	doc_put_str(m, root, STR("cpus"), cpuset_format(picked, a));
	doc_put_int(m, root, STR("count"), cpuset_count(picked));
	doc_put_int(m, root, STR("sockets"), topology_span(&in->t, TOPOLOGY_SOCKET, picked));
	doc_put_int(m, root, STR("uncores"), topology_span(&in->t, TOPOLOGY_UNCORE, picked));
	doc_put_int(m, root, STR("cores"), topology_span(&in->t, TOPOLOGY_CORE, picked));
	nodes = doc_put_arr(m, root, STR("numa"));
	for (unsigned i = 0; i < numa->n; i++) {
		struct cpuset part = { 0 };
		yyjson_mut_val *node;

		topology_add_element(&in->t, TOPOLOGY_NUMA, i, &part);
		cpuset_intersect(&part, picked);
		if (cpuset_is_empty(&part))
			continue;
		node = yyjson_mut_obj(m);
		doc_put_int(m, node, STR("id"), numa->ids[i]);
		doc_put_str(m, node, STR("cpus"), cpuset_format(&part, a));
		yyjson_mut_arr_append(nodes, node);
	}
	return output_doc(root, format, a, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct allocate_options *o = inv->options;
	enum output_format format = output_format_of(o->output);
	/* In the arena: a topology and cpusets are large for a stack. */
	struct pick_input *in = arena_new(inv->arena, struct pick_input);
	struct cpuset picked;
	struct str text;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	r = parse_request(o, inv->arena, in, err);
	if (r < 0)
		return r;
	r = pick_requested(in, &picked, err);
	if (r < 0) { /* a valid request that does not fit: a finding, not an error */
		(void)fprintf(stderr, "%s\n", err->msg);
		return EXIT_FINDING;
	}
	if (format != OUTPUT_TABLE)
		return print_doc(in, &picked, format, inv->arena, err);
	text = cpuset_format(&picked, inv->arena);
	return output_text(str_printf(inv->arena, PRI_STR "\n", FMT_STR(text)), err);
}

const struct command cmd_allocate = {
	.name = "allocate",
	.group = COMMAND_TOOL,
	.summary = "show which CPUs a request would get",
	.operands = "",
	.about = "Selects CPUs as the agent does for a container that requests whole CPUs, by the\n"
		 "kubelet's rules, and prints the list. Nothing is assigned. The exit status is 1, "
		 "with\n"
		 "the kubelet's message, when the request cannot be satisfied.",
	.options = options,
	.options_size = sizeof(struct allocate_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
