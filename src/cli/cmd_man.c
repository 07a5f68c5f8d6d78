#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "command.h"
#include "help.h"
#include "output.h"

/* Man pages (mdoc) from the command tables, plus prose from a file: what a table cannot say. The
 * build runs this; it is hidden because a user has man(1). */

#define PROSE_MAX ((size_t)256 << 10)

struct man_options {
	const char *prose;
	const char *date;
};

static const struct option_desc options[] = {
	{ OPT_STR, 0, "prose", "FILE", "mdoc sections to put between the options and the examples",
	  NULL, offsetof(struct man_options, prose) },
	{ OPT_STR, 0, "date", "DATE", "date of the page", NULL,
	  offsetof(struct man_options, date) },
	{ 0 },
};

/* Plain text for roff: backslashes escaped, a leading dot or quote disarmed, each sentence on a
 * line of its own, a blank line as a new paragraph. */
static void add_text(struct strbuf *b, const char *text)
{
	bool at_start = true;

	for (; *text; text++) {
		bool ends_sentence = *text == '.' && text[1] == ' ' &&
				     isupper((unsigned char)text[2]);

		if (at_start && *text == '\n') {
			strbuf_add(b, STR(".Pp\n"));
			continue;
		}
		if (at_start && (*text == '.' || *text == '\''))
			strbuf_add(b, STR("\\&"));
		if (*text == '\\')
			strbuf_add(b, STR("\\e"));
		else if (*text == '-') /* roff prints a bare one as a hyphen */
			strbuf_add(b, STR("\\-"));
		else
			strbuf_addc(b, *text);
		if (ends_sentence) {
			strbuf_addc(b, '\n');
			text++;
		}
		at_start = *text == '\n' || ends_sentence;
	}
}

/* "-local-up" for `local up`: the part of a page's name after the program's. */
static void add_page_suffix(struct strbuf *b, const struct command *c, bool in_capitals)
{
	if (!c)
		return;
	strbuf_addc(b, '-');
	for (const char *p = c->name; *p; p++)
		strbuf_addc(b, *p == ' '   ? '-' :
			       in_capitals ? (char)toupper((unsigned char)*p) :
					     *p);
}

static void add_head(struct strbuf *b, const struct command *c, const char *date)
{
	strbuf_printf(b, ".Dd %s\n.Dt PINFOLD", date ? date : "$Mdocdate$");
	add_page_suffix(b, c, true);
	strbuf_add(b, STR(" 1\n.Os\n.Sh NAME\n.Nm pinfold"));
	add_page_suffix(b, c, false);
	strbuf_printf(b, "\n.Nd %s\n",
		      c ? c->summary : "workload partitioning for every Kubernetes");
}

static void add_options(struct strbuf *b, const struct command *c)
{
	if (option_is_end(c->options))
		return;
	strbuf_add(b, STR(".Sh OPTIONS\n"
			  "Each option may also be set by the environment variable named with it;\n"
			  "the command line wins.\n.Bl -tag -width Ds\n"));
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		char env[OPTION_ENV_MAX];

		if (d->kind == OPT_GROUP) {
			strbuf_printf(b, ".El\n.Ss %s\n.Bl -tag -width Ds\n", d->help);
			continue;
		}
		if (!option_is_listed(d))
			continue;
		strbuf_add(b, STR(".It "));
		if (d->letter)
			strbuf_printf(b, "Fl %c , ", d->letter);
		strbuf_printf(b, "Fl -%s", d->name);
		if (d->kind != OPT_FLAG)
			strbuf_printf(b, " Ar %s", d->value ? d->value : "VALUE");
		option_env_name(d, env);
		strbuf_addc(b, '\n');
		add_text(b, d->help);
		if (d->choices) {
			strbuf_add(b, STR(".\nOne of "));
			add_text(b, d->choices);
		}
		strbuf_printf(b, ".\nEnvironment:\n.Ev %s .\n", env);
	}
	strbuf_add(b, STR(".El\n"));
}

static void add_exit_status(struct strbuf *b)
{
	strbuf_add(b, STR(".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
			  ".It 0\nsuccess, or yes\n"
			  ".It 1\na negative finding: drift, violations, a rejected pod\n"
			  ".It 2\nbad usage or bad input; nothing was written\n.El\n"));
}

static void add_examples(struct strbuf *b, const struct command *c)
{
	if (!c->examples || !c->examples->line)
		return;
	strbuf_add(b, STR(".Sh EXAMPLES\n"));
	for (const struct command_example *e = c->examples; e->line; e++) {
		if (e != c->examples)
			strbuf_add(b, STR(".Pp\n"));
		strbuf_addc(b, (char)toupper((unsigned char)e->what[0]));
		add_text(b, e->what + 1);
		strbuf_add(b, STR(":\n.Bd -literal -offset indent\n"));
		add_text(b, e->line);
		strbuf_add(b, STR("\n.Ed\n"));
	}
}

static struct str command_page(const struct command *c, const struct man_options *o,
			       struct str prose, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	add_head(&b, c, o->date);
	strbuf_printf(&b, ".Sh SYNOPSIS\n.Nm pinfold %s\n.Op Ar option ...\n", c->name);
	if (*c->operands) {
		strbuf_add(&b, STR(".Ar "));
		add_text(&b, c->operands);
		strbuf_addc(&b, '\n');
	}
	strbuf_add(&b, STR(".Sh DESCRIPTION\n"));
	add_text(&b, c->about);
	strbuf_addc(&b, '\n');
	add_options(&b, c);
	strbuf_add(&b, prose);
	add_exit_status(&b);
	add_examples(&b, c);
	strbuf_add(&b, STR(".Sh SEE ALSO\n.Xr pinfold 1\n"));
	return strbuf_str(&b);
}

static struct str overview_page(const struct man_options *o, struct str prose, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	add_head(&b, NULL, o->date);
	strbuf_add(&b, STR(".Sh SYNOPSIS\n.Nm pinfold\n.Ar command\n.Op Ar option ...\n"
			   ".Op Ar operand ...\n"));
	strbuf_add(&b, prose);
	strbuf_add(&b, STR(".Sh COMMANDS\n.Bl -tag -width Ds\n"));
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->hidden)
			continue;
		strbuf_printf(&b, ".It Cm %s\n", commands[i]->name);
		add_text(&b, commands[i]->summary);
		strbuf_addc(&b, '\n');
	}
	strbuf_add(&b, STR(".El\n"));
	add_exit_status(&b);
	return strbuf_str(&b);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct man_options *o = inv->options;
	const struct command *c = NULL;
	struct str prose = STR("");
	int r;

	/* A family's command is one operand here: "profile check". */
	for (size_t i = 0; inv->args.n && commands[i]; i++)
		if (strcmp(commands[i]->name, inv->args.items[0]) == 0)
			c = commands[i];
	if (inv->args.n && !c)
		return err_set(err, EINVAL, "unknown command \"%s\"", inv->args.items[0]);
	if (o->prose) {
		r = file_read_at(AT_FDCWD, o->prose, PROSE_MAX, inv->arena, &prose, err);
		if (r < 0)
			return r;
	}
	return output_text(c ? command_page(c, o, prose, inv->arena) :
			       overview_page(o, prose, inv->arena),
			   err);
}

const struct command cmd_man = {
	.name = "man",
	.group = COMMAND_OTHER,
	.summary = "print a man page",
	.operands = "[COMMAND]",
	.about = "Prints the man page of a command, or of pinfold itself, as mdoc.",
	.options = options,
	.options_size = sizeof(struct man_options),
	.hidden = true,
	.run = run,
};
