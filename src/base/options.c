/* Values are not copied: strings from argv and the environment live as long as the process, and the
 * caller of options_set() provides for its own. */

#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "did_you_mean.h"
#include "err.h"
#include "macro.h"

bool option_is_end(const struct option_desc *d)
{
	return !d->name && d->kind != OPT_GROUP;
}

bool option_is_listed(const struct option_desc *d)
{
	return d->kind != OPT_GROUP && d->help;
}

void option_env_name(const struct option_desc *d, char ret[OPTION_ENV_MAX])
{
	(void)snprintf(ret, OPTION_ENV_MAX, "PINFOLD_%s", d->name);
	for (char *p = ret; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

static const struct option_desc *find_long(const struct option_desc *table, struct str name)
{
	for (const struct option_desc *d = table; !option_is_end(d); d++)
		if (d->kind != OPT_GROUP && str_eq(str_from(d->name), name))
			return d;
	return NULL;
}

static int list_add(struct arena *a, struct option_list *list, const char *item, struct err *err)
{
	const char **items = arena_one_more(a, list->items, list->n, sizeof(*items));

	if (!items)
		return err_set(err, ENOMEM, "too many values");
	items[list->n++] = item;
	list->items = items;
	return 0;
}

static bool is_choice(const char *choices, const char *value)
{
	struct str_split split = str_split(str_from(choices));
	struct str item;

	while (str_next(&split, '|', &item))
		if (str_eq(item, str_from(value)))
			return true;
	return false;
}

/* An empty environment variable means false, like one that is not set. */
static int parse_flag(const char *value, bool *ret)
{
	static const char *const yes[] = { "1", "true", "yes" };
	static const char *const no[] = { "0", "false", "no", "" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (strcmp(value, yes[i]) == 0) {
			*ret = true;
			return 0;
		}
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (strcmp(value, no[i]) == 0) {
			*ret = false;
			return 0;
		}
	return -EINVAL;
}

/* A list from a source of higher precedence replaces the whole list of a lower one. */
static void begin_list(struct options *o, const struct option_desc *d)
{
	uint64_t bit = 1ULL << (d - o->table);

	if (o->lists_seen & bit)
		return;
	o->lists_seen |= bit;
	*(struct option_list *)((char *)o->target + d->offset) = (struct option_list){ 0 };
}

static int store(struct options *o, const struct option_desc *d, const char *value,
		 const char *source, struct err *err)
{
	void *field = (char *)o->target + d->offset;
	uint64_t number;

	switch (d->kind) {
	case OPT_FLAG:
		if (parse_flag(value, field) < 0)
			return err_set(err, EINVAL,
				       "%s: \"%s\" is not a boolean: use true or false", source,
				       value);
		return 0;
	case OPT_UINT:
		if (!str_to_u64(str_from(value), UINT32_MAX, &number))
			return err_set(err, EINVAL,
				       "%s: \"%s\" is not an integer from 0 to 4294967295", source,
				       value);
		*(unsigned *)field = (unsigned)number;
		return 0;
	case OPT_ENUM:
		if (!is_choice(d->choices, value))
			return err_set(err, EINVAL, "%s: \"%s\" is not one of %s", source, value,
				       d->choices);
		*(const char **)field = value;
		return 0;
	case OPT_STR:
		*(const char **)field = value;
		return 0;
	case OPT_STRS:
		begin_list(o, d);
		return list_add(o->arena, field, value, err);
	case OPT_GROUP:
		break;
	}
	return err_set(err, EINVAL, "%s: not an option", source);
}

static int read_environment(struct options *o, struct err *err)
{
	for (const struct option_desc *d = o->table; !option_is_end(d); d++) {
		char name[OPTION_ENV_MAX];
		const char *value;
		int r;

		if (d->kind == OPT_GROUP)
			continue;
		option_env_name(d, name);
		value = getenv(name);
		if (!value)
			continue;
		r = store(o, d, value, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

struct arg_cursor {
	int argc;
	char **argv;
	int i;
};

static int next_value(struct arg_cursor *c, const char *option, const char **ret, struct err *err)
{
	if (c->i + 1 >= c->argc)
		return err_set(err, EINVAL, "%s needs a value", option);
	*ret = c->argv[++c->i];
	return 0;
}

static int unknown_option(const struct options *o, struct str name, struct err *err)
{
	struct did_you_mean s = did_you_mean_of(name);

	for (const struct option_desc *d = o->table; !option_is_end(d); d++)
		if (option_is_listed(d))
			did_you_mean_offer(&s, str_from(d->name));
	if (!s.best.n)
		return err_set(err, EINVAL, "unknown option --" PRI_STR, FMT_STR(name));
	return err_set(err, EINVAL, "unknown option --" PRI_STR ", did you mean --" PRI_STR "?",
		       FMT_STR(name), FMT_STR(s.best));
}

static int parse_long(struct options *o, struct arg_cursor *c, struct err *err)
{
	const char *arg = c->argv[c->i];
	const char *equals = strchr(arg, '=');
	struct str name = equals ? (struct str){ arg + 2, (size_t)(equals - arg - 2) } :
				   str_from(arg + 2);
	const struct option_desc *d = find_long(o->table, name);
	const char *value = equals ? equals + 1 : "true";
	char shown[OPTION_ENV_MAX];
	int r;

	(void)snprintf(shown, sizeof(shown), "--" PRI_STR, FMT_STR(name));
	if (!d)
		return unknown_option(o, name, err);
	if (!equals && d->kind != OPT_FLAG) {
		r = next_value(c, shown, &value, err);
		if (r < 0)
			return r;
	}
	return store(o, d, value, shown, err);
}

static int parse_letters(struct options *o, struct arg_cursor *c, struct err *err)
{
	const char *arg = c->argv[c->i];

	for (const char *p = arg + 1; *p; p++) {
		const struct option_desc *d = o->table;
		char shown[3] = { '-', *p, '\0' };
		const char *value = p + 1;
		int r;

		/* Rows without a short form have letter 0 and never match, because *p is not 0
		 * here. */
		while (!option_is_end(d) && d->letter != *p)
			d++;
		if (option_is_end(d))
			return err_set(err, EINVAL, "unknown option %s", shown);
		if (d->kind == OPT_FLAG) {
			r = store(o, d, "true", shown, err);
			if (r < 0)
				return r;
			continue;
		}
		if (!*value) {
			r = next_value(c, shown, &value, err);
			if (r < 0)
				return r;
		}
		return store(o, d, value, shown, err);
	}
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, struct option_list *ret_rest,
		  struct err *err)
{
	struct arg_cursor c = { argc, argv, 1 };
	struct option_list rest = { 0 };
	bool only_operands = false;
	int r;

	/* Each source starts with no list seen, so its first value replaces the list of the source
	 * before. */
	o->lists_seen = 0;
	r = read_environment(o, err);
	if (r < 0)
		return r;
	o->lists_seen = 0;
	for (; c.i < argc; c.i++) {
		const char *arg = argv[c.i];

		if (!only_operands && strcmp(arg, "--") == 0)
			only_operands = true;
		else if (!only_operands && strncmp(arg, "--", 2) == 0)
			r = parse_long(o, &c, err);
		else if (!only_operands && arg[0] == '-' && arg[1])
			r = parse_letters(o, &c, err);
		else
			r = list_add(o->arena, &rest, arg, err);
		if (r < 0)
			return r;
	}
	*ret_rest = rest;
	return 0;
}

int options_set(struct options *o, const char *name, const char *value, const char *source,
		struct err *err)
{
	const struct option_desc *d = find_long(o->table, str_from(name));

	if (!d)
		return err_set(err, EINVAL, "%s: unknown setting %s", source, name);
	return store(o, d, value, source, err);
}
