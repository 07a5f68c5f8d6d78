/* All texts come from the tables that the parser uses, so help cannot list an option that does not
 * exist. */

#include "help.h"

#include "base/macro.h"
#include "command.h"

#define HELP_INDENT 30 /* column of descriptions; longer options have a line of their own */

static const char *const group_titles[] = {
	[COMMAND_TOOL] = "Tools",
	[COMMAND_DAEMON] = "Daemons",
	[COMMAND_OTHER] = "Other",
};
_Static_assert(ARRAY_LEN(group_titles) == COMMAND__COUNT, "every group has a title");

/* A left column of fixed width; what is longer gets a line of its own. */
static void add_row(struct strbuf *b, struct str left, const char *right)
{
	strbuf_printf(b, "  " PRI_STR, FMT_STR(left));
	if (left.n + 4 > HELP_INDENT)
		strbuf_printf(b, "\n%*s", HELP_INDENT, "");
	else
		strbuf_printf(b, "%*s", (int)(HELP_INDENT - 2 - left.n), "");
	strbuf_printf(b, "%s\n", right);
}

static void add_commands(struct strbuf *b, enum command_group group, const char *family)
{
	bool titled = false;

	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];

		if (c->hidden || (family ? !command_is_of_family(c, family) : c->group != group))
			continue;
		if (!titled && !family)
			strbuf_printf(b, "\n%s:\n", group_titles[group]);
		titled = true;
		add_row(b, str_from(c->name), c->summary);
	}
}

struct str help_overview(struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("Usage: pinfold COMMAND [OPTION...] [OPERAND...]\n\n"
			   "Workload partitioning for every Kubernetes: keeps platform pods, "
			   "ordinary pods and\nlatency-critical pods on separate CPUs.\n"));
	for (unsigned g = 0; g < COMMAND__COUNT; g++)
		add_commands(&b, (enum command_group)g, NULL);
	strbuf_add(
		&b,
		STR("\n'pinfold COMMAND --help' prints the help of a command; 'pinfold --version' "
		    "prints the version.\n"
		    "Exit status: 0 success or yes, 1 a negative finding, 2 bad usage or bad "
		    "input.\n"));
	return strbuf_str(&b);
}

struct str help_family(const char *family, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "Usage: pinfold %s COMMAND [OPTION...] [OPERAND...]\n\n", family);
	add_commands(&b, COMMAND_TOOL, family);
	return strbuf_str(&b);
}

struct str help_option_form(const struct option_desc *d, struct arena *a)
{
	const char *value = d->choices ? d->choices : d->value;
	struct strbuf b;

	strbuf_init(&b, a);
	if (d->letter)
		strbuf_printf(&b, "-%c, ", d->letter);
	strbuf_printf(&b, "--%s", d->name);
	if (d->kind != OPT_FLAG)
		strbuf_printf(&b, " %s", value);
	if (d->kind == OPT_STRS)
		strbuf_add(&b, STR(" (repeatable)"));
	return strbuf_str(&b);
}

static void add_options(struct strbuf *b, const struct command *c, struct arena *a)
{
	strbuf_add(b, STR("\nOptions:\n"));
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (d->kind == OPT_GROUP)
			strbuf_printf(b, "\n%s:\n", d->help);
		else if (option_is_listed(d))
			add_row(b, help_option_form(d, a), d->help);
	}
	if (c->reports_success)
		add_row(b, STR("-q, --quiet"), "print nothing on success");
	add_row(b, STR("-h, --help"), "print this help");
}

struct str help_command(const struct command *c, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "Usage: pinfold %s [OPTION...] %s\n\n%s\n", c->name, c->operands,
		      c->about);
	add_options(&b, c, a);
	if (c->examples && c->examples->line)
		strbuf_add(&b, STR("\nExamples:\n"));
	for (const struct command_example *e = c->examples; e && e->line; e++)
		strbuf_printf(&b, "  # %s\n  %s\n", e->what, e->line);
	return strbuf_str(&b);
}
