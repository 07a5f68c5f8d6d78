/* Dispatch: `pinfold WORD...` to a row of the command table. The first word of a command with two
 * words is its family; alone it prints the family's help. */

#include "command.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/did_you_mean.h"
#include "base/err.h"
#include "config_file.h"
#include "help.h"
#include "output.h"

bool command_is_of_family(const struct command *c, const char *word)
{
	size_t n = strlen(word);

	return strncmp(c->name, word, n) == 0 && c->name[n] == ' ';
}

bool command_is_family(const char *word)
{
	for (size_t i = 0; commands[i]; i++)
		if (command_is_of_family(commands[i], word))
			return true;
	return false;
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
	for (size_t i = 0; argc > 1 && commands[i]; i++) {
		const struct command *c = commands[i];

		if (strcmp(c->name, argv[1]) == 0) {
			*ret_words = 1;
			return c;
		}
		if (argc > 2 && command_is_of_family(c, argv[1]) &&
		    strcmp(c->name + strlen(argv[1]) + 1, argv[2]) == 0) {
			*ret_words = 2;
			return c;
		}
	}
	return NULL;
}

/* Before parsing, so that help is printed although another option is wrong. */
static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* Removes -q and --quiet from the arguments. */
static bool take_quiet(const struct command *c, int *argc, char **argv)
{
	bool is_quiet = false;
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			c = NULL; /* operands follow */
		if (c && c->reports_success &&
		    (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--quiet") == 0))
			is_quiet = true;
		else
			argv[n++] = argv[i];
	}
	*argc = n;
	return is_quiet;
}

void command_success(const struct invocation *inv, const char *fmt, ...)
{
	va_list ap;

	if (inv->is_quiet)
		return;
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

static int run(const struct command *c, int argc, char **argv, struct arena *a, struct err *err)
{
	struct invocation inv = { .command = c,
				  .arena = a,
				  .is_quiet = take_quiet(c, &argc, argv) };
	struct options o = { .table = c->options, .arena = a };
	int r;

	/* 16: the alignment of any member that an options struct may have. */
	inv.options = arena_zalloc(a, c->options_size ? c->options_size : 1, 16);
	if (c->defaults)
		memcpy(inv.options, c->defaults, c->options_size);
	o.target = inv.options;
	/* From the lowest precedence to the highest: defaults, file, environment and flags. */
	r = config_file_apply(&o, argc, argv, err);
	if (r < 0)
		return r;
	r = options_parse(&o, argc, argv, &inv.args, err);
	if (r < 0) {
		size_t n = strlen(err->msg);

		(void)snprintf(err->msg + n, sizeof(err->msg) - n, " (see pinfold %s --help)",
			       c->name);
		return r;
	}
	r = c->run(&inv, err);
	assert(r <= EXIT_FINDING);
	return r;
}

/* Of a family, or with NULL of all commands and families. */
static int unknown_command(const char *family, const char *word, struct err *err)
{
	struct did_you_mean s = did_you_mean_of(str_from(word));
	const char *blank = family ? " " : "";

	for (size_t i = 0; commands[i]; i++) {
		const char *name = commands[i]->name;

		if (commands[i]->hidden || (family && !command_is_of_family(commands[i], family)))
			continue;
		did_you_mean_offer(&s, family ? str_from(name + strlen(family) + 1) :
						(struct str){ name, strcspn(name, " ") });
	}
	family = family ? family : "";
	if (!s.best.n)
		return err_set(err, EINVAL, "unknown command \"%s%s%s\" (see pinfold%s%s --help)",
			       family, blank, word, *family ? " " : "", family);
	return err_set(err, EINVAL,
		       "unknown command \"%s%s%s\", did you mean \"%s%s" PRI_STR
		       "\"? (see pinfold%s%s --help)",
		       family, blank, word, family, blank, FMT_STR(s.best), *family ? " " : "",
		       family);
}

static int dispatch(int argc, char **argv, struct arena *a, struct err *err)
{
	int words = 0;
	const struct command *c = command_find(argc, argv, &words);

	if (argc < 2)
		return err_set(err, EINVAL, "no command given (see pinfold --help)");
	if (!c && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0))
		return output_text(STR("pinfold " PINFOLD_VERSION "\n"), err);
	if (!c && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return output_text(help_overview(a), err);
	if (!c && strcmp(argv[1], "help") == 0) {
		c = command_find(argc - 1, argv + 1, &words);
		if (!c && argc > 2 && !command_is_family(argv[2]))
			return unknown_command(NULL, argv[2], err);
		return output_text(c	    ? help_command(c, a) :
				   argc > 2 ? help_family(argv[2], a) :
					      help_overview(a),
				   err);
	}
	if (!c && command_is_family(argv[1])) {
		if (argc == 2 || asks_for_help(argc, argv))
			return output_text(help_family(argv[1], a), err);
		return unknown_command(argv[1], argv[2], err);
	}
	if (!c)
		return unknown_command(NULL, argv[1], err);
	if (asks_for_help(argc - words, argv + words))
		return output_text(help_command(c, a), err);
	return run(c, argc - words, argv + words, a, err);
}

int command_no_operands(const struct invocation *inv, struct err *err)
{
	if (!inv->args.n)
		return 0;
	return err_set(err, EINVAL, "unexpected operand \"%s\" (see pinfold %s --help)",
		       inv->args.items[0], inv->command->name);
}

int command_main(int argc, char **argv)
{
	struct err err = { 0 };
	struct arena a;
	int r;

	arena_init(&a, 0);
	r = dispatch(argc, argv, &a, &err);
	if (r < 0) {
		const struct str why = output_printable(str_from(err.msg), &a);

		(void)fprintf(stderr, PRI_STR "\n", FMT_STR(why));
		r = EXIT_BAD;
	}
	arena_done(&a);
	return r;
}
