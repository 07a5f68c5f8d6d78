/* A starting point for people: the reasons are comments of the profile, so they stay with it. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/yaml.h"
#include "command.h"
#include "cpu/topology_read.h"
#include "kube/names.h"
#include "output.h"
#include "profile/profile.h"
#include "profile/suggest.h"

struct profile_suggest_options {
	const char *topology;
	unsigned management;
	unsigned shared;
	const char *numa;
	const char *name;
	const char *role;
	const char *output;
};

static const struct profile_suggest_options defaults = {
	.topology = "host",
	.management = SUGGEST_BY_SIZE,
	.numa = "spread",
	.name = "pinfold",
	.role = "worker",
};

static const struct option_desc options[] = {
	{ OPT_STR, 0, "topology", "FROM",
	  "the machine: host (default), a file, or a synthetic string", NULL,
	  offsetof(struct profile_suggest_options, topology) },
	{ OPT_UINT, 0, "management", "N",
	  "number of CPUs of the management pool (default: 4, at most half of the machine)", NULL,
	  offsetof(struct profile_suggest_options, management) },
	{ OPT_UINT, 0, "shared", "N", "number of CPUs of the shared pool (default: no shared set)",
	  NULL, offsetof(struct profile_suggest_options, shared) },
	{ OPT_ENUM, 0, "numa", "HOW",
	  "take CPUs from all NUMA nodes (default: spread) or from few (packed)", "spread|packed",
	  offsetof(struct profile_suggest_options, numa) },
	{ OPT_STR, 0, "name", "NAME", "name of the profile (default: pinfold)", NULL,
	  offsetof(struct profile_suggest_options, name) },
	{ OPT_STR, 0, "role", "ROLE", "role of the nodes (default: worker)", NULL,
	  offsetof(struct profile_suggest_options, role) },
	{ OPT_ENUM, 'o', "output", "FORMAT", "print yaml with the reasons (default), or json",
	  "yaml|json", offsetof(struct profile_suggest_options, output) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold profile suggest --management 4", "a profile for this machine" },
	{ "pinfold profile suggest --topology 'pack:2 numa:1 core:16 pu:2' --shared 8 "
	  ">profile.yaml",
	  "for two sockets of 16 cores, with a pool for ordinary pods" },
	{ 0 },
};

static yyjson_mut_val *build(const struct profile_suggest_options *o, const struct suggestion *s,
			     yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *spec, *cpu;

	doc_put_str(m, root, STR("apiVersion"), STR(NAME_PROFILE_API));
	doc_put_str(m, root, STR("kind"), STR(NAME_PROFILE_KIND));
	doc_put_str(m, doc_put_obj(m, root, STR("metadata")), STR("name"), str_from(o->name));
	spec = doc_put_obj(m, root, STR("spec"));
	cpu = doc_put_obj(m, spec, STR("cpu"));
	doc_put_str(m, cpu, STR(NAME_PROFILE_RESERVED), cpuset_format(&s->reserved, a));
	if (!cpuset_is_empty(&s->shared))
		doc_put_str(m, cpu, STR(NAME_PROFILE_SHARED), cpuset_format(&s->shared, a));
	doc_put_str(m, cpu, STR(NAME_PROFILE_ISOLATED), cpuset_format(&s->isolated, a));
	doc_put_str(m, doc_put_obj(m, spec, STR("nodeSelector")),
		    str_printf(a, NAME_NODE_ROLE_PREFIX "%s", o->role), STR(""));
	return root;
}

static int print_yaml(const struct suggestion *s, yyjson_mut_val *root, struct arena *a,
		      struct err *err)
{
	struct strbuf b;
	struct str text;
	int r = yaml_write(root, a, &text, err);

	if (r < 0)
		return r;
	strbuf_init(&b, a);
	for (size_t i = 0; i < s->n_reasons; i++)
		strbuf_printf(&b, "# " PRI_STR "\n", FMT_STR(s->reasons[i]));
	strbuf_add(&b, text);
	return output_text(strbuf_str(&b), err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct profile_suggest_options *o = inv->options;
	const struct suggest_options options_of_sets = {
		.reserved = o->management,
		.shared = o->shared,
		.packed = strcmp(o->numa, "packed") == 0,
	};
	yyjson_mut_doc *m = doc_build(inv->arena);
	struct suggestion s;
	struct topology t;
	int r;

	/* Both become part of file names when the profile is rendered. */
	if (!profile_is_name(str_from(o->name)) || !profile_is_name(str_from(o->role)))
		return err_set(err, EINVAL,
			       "--name and --role take lower-case letters, digits, "
			       "\"-\" and \".\"");
	r = topology_read(o->topology, inv->arena, &t, err);
	if (r < 0)
		return r;
	r = suggest(&t, &options_of_sets, inv->arena, &s, err);
	if (r < 0)
		return r;
	if (o->output && strcmp(o->output, "json") == 0)
		return output_doc(build(o, &s, m, inv->arena), OUTPUT_JSON, inv->arena, err);
	return print_yaml(&s, build(o, &s, m, inv->arena), inv->arena, err);
}

const struct command cmd_profile_suggest = {
	.name = "profile suggest",
	.group = COMMAND_TOOL,
	.summary = "create a profile for a machine",
	.operands = "",
	.about =
		"Divides the CPUs of a machine into a reserved set (management pool), an optional\n"
		"shared set and an isolated set (guaranteed pool): whole cores only, with the core "
		"of\n"
		"CPU 0 reserved, spread over the NUMA nodes or packed. The profile is printed with "
		"the\n"
		"reasons as comments.",
	.options = options,
	.options_size = sizeof(struct profile_suggest_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
