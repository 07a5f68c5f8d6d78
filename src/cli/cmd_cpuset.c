/* Arithmetic for scripts, which otherwise parse CPU lists by hand. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "cpu/cpuset.h"
#include "cpu/cpuset_expr.h"
#include "output.h"

struct cpuset_options {
	const char *format;
	const char *output;
	bool hex;
	bool count;
};

static const struct option_desc options[] = {
	{ OPT_ENUM, 0, "format", "FORM",
	  "range: 0-3,8 (default); list: 0,1,2,3,8; mask: the kernel's 32-bit words",
	  "list|range|mask", offsetof(struct cpuset_options, format) },
	{ OPT_FLAG, 0, "hex", NULL, "print one hexadecimal number, as for taskset", NULL,
	  offsetof(struct cpuset_options, hex) },
	{ OPT_FLAG, 0, "count", NULL, "print the number of CPUs", NULL,
	  offsetof(struct cpuset_options, count) },
	OUTPUT_OPTION(struct cpuset_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold cpuset '0-7,16-23 - 2,3'", "all but two CPUs: prints 0-1,4-7,16-23" },
	{ "pinfold cpuset --hex 0-1", "prints 3" },
	{ "pinfold cpuset --count '0-63 & 32-95'", "how many CPUs two sets share: prints 32" },
	{ 0 },
};

/* An expression in several words is the same expression. */
static struct str joined(const struct option_list *args, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < args->n; i++) {
		if (i)
			strbuf_addc(&b, ' ');
		strbuf_add(&b, str_from(args->items[i]));
	}
	return strbuf_str(&b);
}

static int print_doc(const struct cpuset *set, enum output_format format, struct arena *a,
		     struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	yyjson_mut_val *cpus;

	doc_put_str(m, root, STR("range"), cpuset_format(set, a));
	doc_put_int(m, root, STR("count"), cpuset_count(set));
	doc_put_str(m, root, STR("hex"), cpuset_format_hex(set, a));
	doc_put_str(m, root, STR("mask"), cpuset_format_words(set, a));
	cpus = doc_put_arr(m, root, STR("cpus"));
	CPUSET_FOREACH (cpu, set)
		yyjson_mut_arr_append(cpus, doc_new_int(m, cpu));
	return output_doc(root, format, a, err);
}

static struct str chosen_text(const struct cpuset_options *o, const struct cpuset *set,
			      struct arena *a)
{
	/* The flags win over --format. */
	if (o->count)
		return str_printf(a, "%u", cpuset_count(set));
	if (o->hex)
		return cpuset_format_hex(set, a);
	if (o->format && strcmp(o->format, "mask") == 0)
		return cpuset_format_words(set, a);
	if (o->format && strcmp(o->format, "list") == 0)
		return cpuset_format_expanded(set, a);
	return cpuset_format(set, a);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct cpuset_options *o = inv->options;
	enum output_format format = output_format_of(o->output);
	struct cpuset set;
	struct str text;
	int r;

	if (!inv->args.n)
		return err_set(err, EINVAL, "no CPU list given (see pinfold cpuset --help)");
	r = cpuset_expr_eval(joined(&inv->args, inv->arena), &set, err);
	if (r < 0)
		return r;
	if (format != OUTPUT_TABLE)
		return print_doc(&set, format, inv->arena, err);
	text = chosen_text(o, &set, inv->arena);
	return output_text(str_printf(inv->arena, PRI_STR "\n", FMT_STR(text)), err);
}

const struct command cmd_cpuset = {
	.name = "cpuset",
	.group = COMMAND_TOOL,
	.summary = "calculate with CPU lists",
	.operands = "[--] EXPR",
	.about =
		"EXPR is one CPU list (0-3,8), or several joined from left to right by + (union),\n"
		"- (difference), & (intersection) or ^ (symmetric difference). Operators need "
		"blanks on\n"
		"both sides: 2-3 is a range and '2 - 3' a difference.",
	.options = options,
	.options_size = sizeof(struct cpuset_options),
	.examples = examples,
	.run = run,
};
