#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "command.h"
#include "output.h"

/* Completion scripts, made from the same tables as everything else. They are complete in
 * themselves: completing never runs pinfold. */

static const struct option_desc options[] = { { 0 } };

static const struct command_example examples[] = {
	{ "source <(pinfold completion bash)", "complete in this shell" },
	{ "pinfold completion zsh > ~/.zfunc/_pinfold", "for zsh, in a directory of fpath" },
	{ "pinfold completion fish > ~/.config/fish/completions/pinfold.fish", "for fish" },
	{ 0 },
};

/* First words of commands, each once. */
static bool is_first_of_family(size_t i)
{
	size_t n = strcspn(commands[i]->name, " ");

	for (size_t k = 0; k < i; k++)
		if (strncmp(commands[k]->name, commands[i]->name, n) == 0 &&
		    (commands[k]->name[n] == ' ' || !commands[k]->name[n]))
			return false;
	return true;
}

static void add_first_words(struct strbuf *b)
{
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden && is_first_of_family(i))
			strbuf_printf(b, "%.*s ", (int)strcspn(commands[i]->name, " "),
				      commands[i]->name);
	strbuf_add(b, STR("help --help --version"));
}

static void add_option_words(struct strbuf *b, const struct command *c)
{
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (!option_is_listed(d))
			continue;
		strbuf_printf(b, "--%s ", d->name);
		if (d->letter)
			strbuf_printf(b, "-%c ", d->letter);
	}
	strbuf_add(b, STR("--help"));
}

static void add_choices(struct strbuf *b, const char *choices)
{
	for (const char *p = choices; *p; p++)
		strbuf_addc(b, *p == '|' ? ' ' : *p);
}

/* What the shell completes as a value. */
enum completion_kind { VALUE_NONE, VALUE_CHOICES, VALUE_FILES, VALUE_DIRECTORIES };

static enum completion_kind kind_of_word(const char *word)
{
	static const char *const files[] = { "FILE", "PATH", "FROM", "SOURCE", "[PATH...]" };
	static const char *const directories[] = { "DIR", "[DIR]", "DIR[,DIR]" };

	for (size_t i = 0; word && i < ARRAY_LEN(files); i++)
		if (strcmp(word, files[i]) == 0)
			return VALUE_FILES;
	for (size_t i = 0; word && i < ARRAY_LEN(directories); i++)
		if (strcmp(word, directories[i]) == 0)
			return VALUE_DIRECTORIES;
	return VALUE_NONE;
}

static enum completion_kind kind_of_option(const struct option_desc *d)
{
	if (d->kind == OPT_ENUM)
		return VALUE_CHOICES;
	return d->kind == OPT_STR || d->kind == OPT_STRS ? kind_of_word(d->value) : VALUE_NONE;
}

/* Operands in lower case are the words themselves: "bash|zsh|fish". */
static enum completion_kind kind_of_operands(const struct command *c)
{
	if (c->operands[0] >= 'a' && c->operands[0] <= 'z')
		return VALUE_CHOICES;
	return kind_of_word(c->operands);
}

static void add_bash_value(struct strbuf *b, enum completion_kind kind, const char *choices)
{
	switch (kind) {
	case VALUE_CHOICES:
		strbuf_add(b, STR("words='"));
		add_choices(b, choices);
		strbuf_addc(b, '\'');
		break;
	case VALUE_FILES:
		strbuf_add(b, STR("also=-f"));
		break;
	case VALUE_DIRECTORIES:
		strbuf_add(b, STR("also=-d"));
		break;
	case VALUE_NONE:
		strbuf_addc(b, ':');
		break;
	}
}

/* One case per command: "$cmd:$prev" for values, then its options and operands. */
static void add_bash_cases(struct strbuf *b, const struct command *c)
{
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (d->kind == OPT_FLAG || !option_is_listed(d))
			continue;
		strbuf_printf(b, "    \"%s:--%s\"", c->name, d->name);
		if (d->letter)
			strbuf_printf(b, "|\"%s:-%c\"", c->name, d->letter);
		strbuf_add(b, STR(") "));
		add_bash_value(b, kind_of_option(d), d->choices);
		strbuf_add(b, STR(" ;;\n"));
	}
	strbuf_printf(b, "    \"%s:\"*)\n      case $cur in\n      -*) words='", c->name);
	add_option_words(b, c);
	strbuf_add(b, STR("' ;;\n      *) "));
	add_bash_value(b, kind_of_operands(c), c->operands);
	strbuf_add(b, STR(" ;;\n      esac ;;\n"));
}

/* The second word of a family: completed itself at position 2, and part of $cmd after that. */
static void add_bash_families(struct strbuf *b)
{
	for (size_t i = 0; commands[i]; i++) {
		const char *space = strchr(commands[i]->name, ' ');

		if (!space || !is_first_of_family(i))
			continue;
		strbuf_printf(b, "    %.*s)\n      [ \"$COMP_CWORD\" -gt 2 ] || { words='",
			      (int)(space - commands[i]->name), commands[i]->name);
		for (size_t k = i; commands[k]; k++)
			if (strncmp(commands[k]->name, commands[i]->name,
				    (size_t)(space - commands[i]->name) + 1) == 0)
				strbuf_printf(b, "%s ",
					      commands[k]->name + (space - commands[i]->name) + 1);
		strbuf_add(b, STR("'; _pinfold_reply; return; }\n"
				  "      cmd=\"$cmd ${COMP_WORDS[2]}\" ;;\n"));
	}
}

static struct str bash_script(struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	/* bash divides "--name=value" into three words. */
	strbuf_add(&b,
		   STR("# bash completion for pinfold\n"
		       "_pinfold_reply() {\n"
		       "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		       "  [ -z \"$also\" ] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
		       "< <(compgen \"$also\" -- \"$cur\")\n"
		       "}\n"
		       "_pinfold() {\n"
		       "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		       "  local cmd=${COMP_WORDS[1]} words='' also=''\n"
		       "  [ \"$cur\" != = ] || cur=''\n"
		       "  [ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n"
		       "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		       "    words='"));
	add_first_words(&b);
	strbuf_add(&b, STR("'\n    _pinfold_reply\n    return\n  fi\n  case $cmd in\n"));
	add_bash_families(&b);
	strbuf_add(&b, STR("    *) ;;\n  esac\n  case \"$cmd:$prev\" in\n"));
	/* Values before options within a command: the first matching case wins, and the second one
	 * matches any previous word. */
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			add_bash_cases(&b, commands[i]);
	strbuf_add(&b, STR("    *) ;;\n  esac\n  _pinfold_reply\n}\n"
			   "complete -o filenames -F _pinfold pinfold\n"));
	return strbuf_str(&b);
}

/* Single quotes inside single quotes, as every POSIX shell and fish read them. */
static void add_shell_text(struct strbuf *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			strbuf_add(b, STR("'\\''"));
		else
			strbuf_addc(b, *text);
	}
}

/* Text of a specification of _arguments or _describe, inside single quotes. */
static void add_zsh_text(struct strbuf *b, const char *text)
{
	for (; *text; text++) {
		if (strchr("[]:\\", *text))
			strbuf_addc(b, '\\');
		if (*text == '\'')
			strbuf_add(b, STR("'\\''"));
		else
			strbuf_addc(b, *text);
	}
}

static void add_zsh_value(struct strbuf *b, enum completion_kind kind, const char *choices)
{
	switch (kind) {
	case VALUE_CHOICES:
		strbuf_addc(b, '(');
		add_choices(b, choices);
		strbuf_addc(b, ')');
		break;
	case VALUE_FILES:
		strbuf_add(b, STR("_files"));
		break;
	case VALUE_DIRECTORIES:
		strbuf_add(b, STR("_files -/"));
		break;
	case VALUE_NONE:
		strbuf_addc(b, ' '); /* only the message */
		break;
	}
}

/* '(-o --output)--output=[help]:FORMAT:(json yaml)'; a list may be given again. */
static void add_zsh_option(struct strbuf *b, const struct option_desc *d, bool is_letter)
{
	strbuf_add(b, STR(" \\\n      '"));
	if (d->kind == OPT_STRS)
		strbuf_addc(b, '*');
	else if (d->letter)
		strbuf_printf(b, "(-%c --%s)", d->letter, d->name);
	if (is_letter)
		strbuf_printf(b, "-%c%s", d->letter, d->kind == OPT_FLAG ? "" : "+");
	else
		strbuf_printf(b, "--%s%s", d->name, d->kind == OPT_FLAG ? "" : "=");
	strbuf_addc(b, '[');
	add_zsh_text(b, d->help);
	strbuf_addc(b, ']');
	if (d->kind != OPT_FLAG) {
		strbuf_addc(b, ':');
		add_zsh_text(b, d->value ? d->value : "value");
		strbuf_addc(b, ':');
		add_zsh_value(b, kind_of_option(d), d->choices);
	}
	strbuf_addc(b, '\'');
}

static void add_zsh_command(struct strbuf *b, const struct command *c)
{
	const enum completion_kind operands = kind_of_operands(c);

	strbuf_printf(b, "    '%s') _arguments -s '--help[print the help]'", c->name);
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (!option_is_listed(d))
			continue;
		add_zsh_option(b, d, false);
		if (d->letter)
			add_zsh_option(b, d, true);
	}
	if (operands != VALUE_NONE) {
		strbuf_printf(b, " \\\n      '%s:operand:", operands == VALUE_CHOICES ? "1" : "*");
		add_zsh_value(b, operands, c->operands);
		strbuf_addc(b, '\'');
	}
	strbuf_add(b, STR(" ;;\n"));
}

/* The words of a family or, with NULL, the first words of all commands. */
static void add_zsh_words(struct strbuf *b, const char *family, size_t n)
{
	for (size_t i = 0; commands[i]; i++) {
		const struct command *c = commands[i];
		size_t first;
		bool is_family;

		assert(c->name);
		first = strcspn(c->name, " ");
		is_family = c->name[first] == ' ';
		if (c->hidden || (family ? strncmp(c->name, family, n + 1) != 0 || !is_family :
					   !is_first_of_family(i)))
			continue;
		strbuf_add(b, STR(" \\\n      '"));
		if (family)
			strbuf_printf(b, "%s:", c->name + n + 1);
		else
			strbuf_printf(b, "%.*s:", (int)first, c->name);
		if (!family && is_family)
			strbuf_add(b, STR("several commands"));
		else
			add_zsh_text(b, c->summary);
		strbuf_addc(b, '\'');
	}
}

static void add_zsh_families(struct strbuf *b)
{
	for (size_t i = 0; commands[i]; i++) {
		const size_t n = strcspn(commands[i]->name, " ");

		if (!commands[i]->name[n] || !is_first_of_family(i))
			continue;
		strbuf_printf(b, "    %.*s)\n    if (( CURRENT == 2 )); then\n      list=(", (int)n,
			      commands[i]->name);
		add_zsh_words(b, commands[i]->name, n);
		strbuf_add(b, STR(")\n      _describe -t commands command list\n      return\n"
				  "    fi\n    cmd=\"$cmd ${words[2]}\"\n    shift words\n"
				  "    (( CURRENT-- )) ;;\n"));
	}
}

/* Called by name when zsh loads it from fpath, so that the first Tab completes already. */
static struct str zsh_script(struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("#compdef pinfold\n"
			   "_pinfold() {\n"
			   "  local cmd=${words[2]}\n"
			   "  local -a list\n"
			   "  if (( CURRENT == 2 )); then\n"
			   "    list=("));
	add_zsh_words(&b, NULL, 0);
	strbuf_add(&b, STR(")\n    _describe -t commands command list\n    return\n  fi\n"
			   "  shift words\n  (( CURRENT-- ))\n  case $cmd in\n"));
	add_zsh_families(&b);
	strbuf_add(&b, STR("  esac\n  case $cmd in\n"));
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			add_zsh_command(&b, commands[i]);
	strbuf_add(&b, STR("  esac\n}\n"
			   "if [ \"$funcstack[1]\" = _pinfold ]; then\n  _pinfold \"$@\"\n"
			   "else\n  compdef _pinfold pinfold\nfi\n"));
	return strbuf_str(&b);
}

static void add_fish_condition(struct strbuf *b, const char *name)
{
	struct str_split split = str_split(str_from(name));
	struct str word;

	strbuf_add(b, STR("complete -c pinfold -n '"));
	for (bool first = true; str_next(&split, ' ', &word); first = false)
		strbuf_printf(b, "%s__fish_seen_subcommand_from " PRI_STR, first ? "" : "; and ",
			      FMT_STR(word));
	strbuf_addc(b, '\'');
}

static void add_fish_command(struct strbuf *b, const struct command *c)
{
	const char *space = strchr(c->name, ' ');

	if (space)
		strbuf_printf(b,
			      "complete -c pinfold -n '__fish_use_subcommand' -f -a %.*s\n"
			      "complete -c pinfold -n '__fish_seen_subcommand_from %.*s' -f -a %s",
			      (int)(space - c->name), c->name, (int)(space - c->name), c->name,
			      space + 1);
	else
		strbuf_printf(b, "complete -c pinfold -n '__fish_use_subcommand' -f -a %s",
			      c->name);
	strbuf_add(b, STR(" -d '"));
	add_shell_text(b, c->summary);
	strbuf_add(b, STR("'\n"));
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (!option_is_listed(d))
			continue;
		add_fish_condition(b, c->name);
		strbuf_printf(b, " -l %s", d->name);
		if (d->letter)
			strbuf_printf(b, " -s %c", d->letter);
		if (d->kind == OPT_ENUM) {
			strbuf_add(b, STR(" -x -a '"));
			add_choices(b, d->choices);
			strbuf_addc(b, '\'');
		} else if (d->kind != OPT_FLAG) {
			strbuf_add(b, kind_of_option(d) == VALUE_NONE ? STR(" -x") : STR(" -r"));
		}
		strbuf_add(b, STR(" -d '"));
		add_shell_text(b, d->help);
		strbuf_add(b, STR("'\n"));
	}
}

static struct str fish_script(struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("# fish completion for pinfold\n"));
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			add_fish_command(&b, commands[i]);
	return strbuf_str(&b);
}

static int run(struct invocation *inv, struct err *err)
{
	static const struct {
		const char *shell;
		struct str (*script)(struct arena *a);
	} shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
	const char *wanted = inv->args.n == 1 ? inv->args.items[0] : "";

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (strcmp(wanted, shells[i].shell) == 0)
			return output_text(shells[i].script(inv->arena), err);
	return err_set(err, EINVAL, "one shell is required: bash, zsh or fish");
}

const struct command cmd_completion = {
	.name = "completion",
	.group = COMMAND_OTHER,
	.summary = "print a completion script for bash, zsh or fish",
	.operands = "bash|zsh|fish",
	.about = "Prints a script that completes commands, options and their values.",
	.options = options,
	.examples = examples,
	.run = run,
};
