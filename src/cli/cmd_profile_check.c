/* The checks of render without its output. A profile with faults is a finding (status 1), input
 * that cannot be read is an error (status 2): D20. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "command.h"
#include "layout_input.h"
#include "manifest_paths.h"
#include "output.h"
#include "render/rendered_check.h"

struct profile_check_options {
	struct option_list files;
	struct option_list topologies;
	bool allow_split_cores;
	const char *output;
};

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct profile_check_options, files),
	TOPOLOGY_OPTION(struct profile_check_options, topologies),
	SPLIT_CORES_OPTION(struct profile_check_options, allow_split_cores),
	OUTPUT_OPTION(struct profile_check_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold profile check profile.yaml", "whether the sets are sound in themselves" },
	{ "pinfold profile check --topology host profile.yaml", "and on this machine" },
	{ "pinfold profile check --topology worker=du.xml --topology 'core:32 pu:2' manifests/",
	  "a directory; one kind of machine for the workers, another for the rest" },
	{ 0 },
};

static const enum profile_set_id columns[] = { PROFILE_RESERVED, PROFILE_SHARED, PROFILE_ISOLATED,
					       PROFILE_OFFLINED };

static struct str format_partitions(const struct layout *layout, struct arena *a)
{
	const struct str heading[] = { STR("PROFILE"),	  STR("MACHINE CONFIG POOL"),
				       STR("MANAGEMENT"), STR("SHARED"),
				       STR("GUARANTEED"), STR("OFFLINED") };
	struct table t;

	table_init(&t, 6, a);
	table_add(&t, heading);
	for (size_t i = 0; i < layout->n_partitions; i++) {
		const struct partition *part = &layout->partitions[i];
		struct str cells[6] = { part->profile->name, part->pool->name };

		for (size_t j = 0; j < ARRAY_LEN(columns); j++)
			cells[j + 2] = table_or_dash(cpuset_format(&part->cpus[columns[j]], a));
		table_add(&t, cells);
	}
	return table_format(&t);
}

static yyjson_mut_val *partitions_to_doc(const struct layout *layout, yyjson_mut_doc *m,
					 struct arena *a)
{
	yyjson_mut_val *list = yyjson_mut_arr(m);

	for (size_t i = 0; i < layout->n_partitions; i++) {
		const struct partition *part = &layout->partitions[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("profile"), part->profile->name);
		doc_put_str(m, v, STR("machineConfigPool"), part->pool->name);
		for (size_t j = 0; j < ARRAY_LEN(columns); j++)
			doc_put_str(m, v, str_from(profile_set_pool(columns[j])),
				    cpuset_format(&part->cpus[columns[j]], a));
	}
	return list;
}

static int print(struct layout_input *in, enum output_format format, struct err *err)
{
	struct arena *a = in->manifests.a;
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct strbuf b;

	problem_list_sort(&in->problems);
	if (format != OUTPUT_TABLE) {
		doc_put(m, root, STR("partitions"), partitions_to_doc(&in->layout, m, a));
		doc_put(m, root, STR("problems"), problem_list_to_doc(&in->problems, m));
		return output_doc(root, format, a, err);
	}
	strbuf_init(&b, a);
	strbuf_add(&b, problem_list_format(&in->problems, a));
	if (in->layout.n_partitions)
		strbuf_add(&b, format_partitions(&in->layout, a));
	return output_readable(strbuf_str(&b), err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct profile_check_options *o = inv->options;
	struct option_list paths = manifest_paths(inv, &o->files);
	struct layout_input in;
	int r;

	if (!paths.n)
		return err_set(err, EINVAL,
			       "no file or directory given (see pinfold profile check --help)");
	layout_input_init(&in, inv->arena);
	/* The looser rule: a profile is checked without a MachineConfigPool for its role, too. */
	in.layout_options.plain_hosts = true;
	in.layout_options.allow_split_cores = o->allow_split_cores;
	r = layout_input_topologies(&in, &o->topologies, err);
	if (r == 0)
		r = manifests_read(&in.manifests, &paths, &in.problems, err);
	if (r < 0)
		return r;
	if (in.problems.n_errors) { /* not YAML, or no manifest: bad input, not a bad profile */
		layout_input_print_problems(&in);
		return layout_input_check(&in, "nothing was checked", err);
	}
	if (!in.manifests.profiles.n)
		return err_set(err, EINVAL, "there is no PerformanceProfile in the input");
	layout_input_resolve(&in);
	for (size_t i = 0; i < in.layout.n_partitions; i++)
		rendered_check(&in.layout.partitions[i], inv->arena, &in.problems);
	r = print(&in, output_format_of(o->output), err);
	return r < 0 ? r : in.problems.n_errors ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_profile_check = {
	.name = "profile check",
	.group = COMMAND_TOOL,
	.summary = "report all problems of a profile",
	.operands = "[PATH...]",
	.about =
		"Reads profiles, machine config pools and Nodes from files and directories. "
		"Reports\n"
		"CPU sets that overlap or are empty, CPUs that the machine does not have, cores "
		"split\n"
		"between sets, NUMA nodes without reserved or shared CPUs, CPUs that can never be\n"
		"assigned, and kernel arguments that are too long. Then prints the resolved sets. "
		"The\n"
		"exit status is 1 when there is an error; warnings do not count.",
	.options = options,
	.options_size = sizeof(struct profile_check_options),
	.examples = examples,
	.run = run,
};
