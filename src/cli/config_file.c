/* The file is applied before environment and command line, which may then replace its values. So
 * --config must be found before the options are parsed, by find_path(). */

#include "config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/options.h"
#include "codec/yaml.h"

#define OPTION "config"
#define MAX_CONFIG_BYTES ((size_t)1 << 20) /* a bound, so that a wrong path is an error */

static bool takes_config(const struct option_desc *table)
{
	for (; !option_is_end(table); table++)
		if (table->kind != OPT_GROUP && strcmp(table->name, OPTION) == 0)
			return true;
	return false;
}

/* The last one counts, as for every option; the command line wins over the environment. */
static const char *find_path(int argc, char **argv)
{
	const char *path = getenv("PINFOLD_CONFIG");

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--" OPTION) == 0 && i + 1 < argc)
			path = argv[i + 1];
		else if (strncmp(argv[i], "--" OPTION "=", strlen(OPTION) + 3) == 0)
			path = argv[i] + strlen(OPTION) + 3;
	}
	return path;
}

/* A flag is written true or false, a number as a number: all of them are text to an option. */
static const char *text_of(yyjson_val *v, struct arena *a)
{
	if (yyjson_is_bool(v))
		return yyjson_get_bool(v) ? "true" : "false";
	return yyjson_is_str(v) || doc_is_number(v) ? str_cstr(a, doc_text(v)) : NULL;
}

static int set_one(struct options *o, const struct doc *doc, yyjson_val *key, yyjson_val *v,
		   struct err *err)
{
	const char *name = str_cstr(o->arena, doc_str(key));
	const char *text = text_of(v, o->arena);
	struct doc_pos pos = doc_position(doc, key);
	const char *place =
		str_cstr(o->arena, str_printf(o->arena, PRI_STR ":%u:%u", FMT_STR(doc->file),
					      pos.line, pos.column));

	if (!text)
		return doc_err(err, doc, v, "%s must be a string, a number, true or false, not %s",
			       name, doc_type(v));
	/* It was found and read before, so a second path would be ignored silently. */
	if (strcmp(name, OPTION) == 0)
		return doc_err(err, doc, key, "a configuration file cannot name another");
	return options_set(o, name, text, place, err);
}

static int apply(struct options *o, const struct doc *doc, struct err *err)
{
	yyjson_val *key, *value, *item;
	int r = 0;

	if (!yyjson_is_obj(doc->root))
		return doc_err(err, doc, doc->root, "not a mapping of options but %s",
			       doc_type(doc->root));
	DOC_EACH_PAIR (doc->root, key, value) {
		if (!yyjson_is_arr(value))
			r = set_one(o, doc, key, value, err);
		else
			DOC_EACH_ITEM (value, item)
				if (r >= 0)
					r = set_one(o, doc, key, item, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_file_apply(struct options *o, int argc, char **argv, struct err *err)
{
	const char *path = takes_config(o->table) ? find_path(argc, argv) : NULL;
	struct doc_list docs;
	struct str text;
	int r;

	if (!path)
		return 0;
	r = file_read_at(AT_FDCWD, path, MAX_CONFIG_BYTES, o->arena, &text, err);
	if (r >= 0)
		r = yaml_parse(text, str_from(path), NULL, o->arena, &docs, err);
	if (r < 0)
		return r;
	if (docs.n > 1)
		return err_set(err, EINVAL, "%s: more than one document", path);
	return docs.n ? apply(o, &docs.items[0], err) : 0;
}
