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

/* One case per command: "$cmd:$prev" for values, then its options. */
static void add_bash_cases(struct strbuf *b, const struct command *c)
{
	for (const struct option_desc *d = c->options; !option_is_end(d); d++) {
		if (d->kind != OPT_ENUM || !option_is_listed(d))
			continue;
		strbuf_printf(b, "    \"%s:--%s\"", c->name, d->name);
		if (d->letter)
			strbuf_printf(b, "|\"%s:-%c\"", c->name, d->letter);
		strbuf_add(b, STR(") words='"));
		add_choices(b, d->choices);
		strbuf_add(b, STR("' ;;\n"));
	}
	strbuf_printf(b, "    \"%s:\"*) words='", c->name);
	add_option_words(b, c);
	strbuf_add(b, STR("' ;;\n"));
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
	strbuf_add(&b,
		   STR("# bash completion for pinfold\n"
		       "_pinfold_reply() {\n"
		       "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		       "  case $cur in -*) return ;; esac\n"
		       "  [ -n \"$only\" ] || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY "
		       "< <(compgen -f -- \"$cur\")\n"
		       "}\n"
		       "_pinfold() {\n"
		       "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		       "  local cmd=${COMP_WORDS[1]} words='' only=''\n"
		       "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		       "    only=1 words='"));
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

static struct str zsh_script(struct arena *a)
{
	struct strbuf b;

	/* zsh runs bash completions, so there is one script to maintain. It lacks the builtin
	 * mapfile. */
	strbuf_init(&b, a);
	strbuf_add(&b,
		   STR("#compdef pinfold\n"
		       "autoload -U +X bashcompinit && bashcompinit\n"
		       "(( $+functions[mapfile] )) || mapfile() {\n"
		       "  local -i from=0\n"
		       "  local line name\n"
		       "  while [[ $1 == -* ]]; do [[ $1 == -O ]] && { from=$2; shift; }; shift; "
		       "done\n"
		       "  name=$1\n"
		       "  (( from )) || eval \"$name=()\"\n"
		       "  while IFS= read -r line; do eval \"$name+=(\\\"\\$line\\\")\"; done\n"
		       "}\n"));
	strbuf_add(&b, bash_script(a));
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
			strbuf_add(b, STR(" -r"));
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
