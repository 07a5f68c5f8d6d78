#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/options.h"
#include "test.h"

struct target {
	bool dry_run, verbose;
	const char *file, *output;
	unsigned port;
	struct option_list nodes;
};

#define ROW(kind, letter, name, field, ...)                                                        \
	{                                                                                          \
		kind, letter, name, "VALUE", "help", __VA_ARGS__, offsetof(struct target, field)   \
	}

static const struct option_desc table[] = {
	{ .kind = OPT_GROUP, .name = "Heading" },
	ROW(OPT_FLAG, 'n', "dry-run", dry_run, NULL),
	ROW(OPT_FLAG, 'v', "verbose", verbose, NULL),
	{ .kind = OPT_GROUP, .help = "Heading without a name" },
	ROW(OPT_STR, 'f', "file", file, NULL),
	ROW(OPT_ENUM, 'o', "output", output, "json|yaml|table"),
	ROW(OPT_UINT, 'p', "metrics-port", port, NULL),
	ROW(OPT_STRS, 'N', "node", nodes, NULL),
	{ 0 },
};

static const char *const variables[] = {
	"PINFOLD_DRY_RUN", "PINFOLD_VERBOSE",	   "PINFOLD_FILE",
	"PINFOLD_OUTPUT",  "PINFOLD_METRICS_PORT", "PINFOLD_NODE",
};

static void clear_environment(void)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		(void)unsetenv(variables[i]);
}

#define MAX_WORDS 8

struct run {
	struct arena a;
	struct target target;
	struct options options;
	struct option_list rest;
};

static void run_init(struct run *r)
{
	*r = (struct run){ .target = { .file = "default", .port = 1 } };
	arena_init(&r->a, 0);
	r->options = (struct options){ table, &r->target, &r->a, 0 };
}

static void run_done(struct run *r)
{
	arena_done(&r->a);
	clear_environment();
}

/* The words of a NULL-terminated command line, without the program's name. */
static int parse(struct run *r, const char *const *words, struct err *err)
{
	char *argv[MAX_WORDS + 2] = { (char *)"pinfold" };
	int argc = 1;

	for (; argc <= MAX_WORDS && words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	return options_parse(&r->options, argc, argv, &r->rest, err);
}

static struct str joined(struct arena *a, const struct option_list *list)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++)
		strbuf_printf(&b, "%s%s", i ? " " : "", list->items[i]);
	return strbuf_str(&b);
}

/* All values in one line. */
static struct str shown(struct run *r)
{
	struct target *t = &r->target;

	return str_printf(&r->a,
			  "%s%sfile=%s output=%s port=%u nodes=[" PRI_STR "] rest=[" PRI_STR "]",
			  t->dry_run ? "dry " : "", t->verbose ? "verbose " : "", t->file,
			  t->output ? t->output : "-", t->port, FMT_STR(joined(&r->a, &t->nodes)),
			  FMT_STR(joined(&r->a, &r->rest)));
}

TEST(valid_command_lines_are_parsed)
{
	static const struct {
		const char *words[MAX_WORDS + 1], *want;
	} cases[] = {
		{ { NULL }, "file=default output=- port=1 nodes=[] rest=[]" },
		{ { "--dry-run" }, "dry file=default output=- port=1 nodes=[] rest=[]" },
		{ { "-n", "-v" }, "dry verbose file=default output=- port=1 nodes=[] rest=[]" },
		{ { "-nv" }, "dry verbose file=default output=- port=1 nodes=[] rest=[]" },
		{ { "-nvf", "x" }, "dry verbose file=x output=- port=1 nodes=[] rest=[]" },
		{ { "-nfv" }, "dry file=v output=- port=1 nodes=[] rest=[]" },
		{ { "-fx" }, "file=x output=- port=1 nodes=[] rest=[]" },
		{ { "-f", "-" }, "file=- output=- port=1 nodes=[] rest=[]" },
		{ { "-f", "" }, "file= output=- port=1 nodes=[] rest=[]" },
		{ { "--file", "x" }, "file=x output=- port=1 nodes=[] rest=[]" },
		{ { "--file=x=y" }, "file=x=y output=- port=1 nodes=[] rest=[]" },
		{ { "--file=" }, "file= output=- port=1 nodes=[] rest=[]" },
		{ { "--file", "--dry-run" }, "file=--dry-run output=- port=1 nodes=[] rest=[]" },
		{ { "--dry-run=false" }, "file=default output=- port=1 nodes=[] rest=[]" },
		{ { "--dry-run=1" }, "dry file=default output=- port=1 nodes=[] rest=[]" },
		{ { "-n", "--dry-run=no" }, "file=default output=- port=1 nodes=[] rest=[]" },
		{ { "-oyaml" }, "file=default output=yaml port=1 nodes=[] rest=[]" },
		{ { "-p", "4294967295" },
		  "file=default output=- port=4294967295 nodes=[] rest=[]" },
		{ { "-Na", "--node", "b", "--node=c" },
		  "file=default output=- port=1 nodes=[a b c] rest=[]" },
		{ { "a", "-n", "b" }, "dry file=default output=- port=1 nodes=[] rest=[a b]" },
		{ { "-", "a" }, "file=default output=- port=1 nodes=[] rest=[- a]" },
		{ { "-n", "--", "-v", "--", "--file" },
		  "dry file=default output=- port=1 nodes=[] rest=[-v -- --file]" },
		{ { "-f1", "-f2" }, "file=2 output=- port=1 nodes=[] rest=[]" },
	};

	clear_environment();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(run_done) struct run r;
		struct err err = { 0 };

		run_init(&r);
		TEST_ROW("row %zu", i);
		CHECK_OK(parse(&r, cases[i].words, &err));
		CHECK_STR(shown(&r), cases[i].want);
	}
}

TEST(errors_name_the_option)
{
	static const struct {
		const char *words[MAX_WORDS + 1], *want;
	} cases[] = {
		{ { "--nope" }, "unknown option --nope, did you mean --node?" },
		{ { "--nope=1" }, "unknown option --nope, did you mean --node?" },
		{ { "--zzzzzz" }, "unknown option --zzzzzz" },
		{ { "--dry" }, "unknown option --dry, did you mean --dry-run?" },
		{ { "--Heading" }, "unknown option --Heading" },
		{ { "--=1" }, "unknown option --" },
		{ { "-x" }, "unknown option -x" },
		{ { "-nx" }, "unknown option -x" },
		{ { "--file" }, "--file needs a value" },
		{ { "-f" }, "-f needs a value" },
		{ { "-nf" }, "-f needs a value" },
		{ { "--metrics-port", "x" },
		  "--metrics-port: \"x\" is not an integer from 0 to 4294967295" },
		{ { "--metrics-port=-1" },
		  "--metrics-port: \"-1\" is not an integer from 0 to 4294967295" },
		{ { "-p4294967296" }, "-p: \"4294967296\" is not an integer from 0 to 4294967295" },
		{ { "-p", "" }, "-p: \"\" is not an integer from 0 to 4294967295" },
		{ { "-o", "xml" }, "-o: \"xml\" is not one of json|yaml|table" },
		{ { "--output=" }, "--output: \"\" is not one of json|yaml|table" },
		{ { "--output=json|yaml" },
		  "--output: \"json|yaml\" is not one of json|yaml|table" },
		{ { "--dry-run=maybe" },
		  "--dry-run: \"maybe\" is not a boolean: use true or false" },
	};

	clear_environment();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(run_done) struct run r;
		struct err err = { 0 };

		run_init(&r);
		TEST_ROW("row %zu", i);
		CHECK_ERR(parse(&r, cases[i].words, &err), EINVAL, cases[i].want);
	}
}

/* Configuration file, environment and command line, each alone and against the others. */
TEST(command_line_overrides_environment_overrides_file)
{
	static const struct {
		const char *config, *environment, *flag, *want;
	} cases[] = {
		{ NULL, NULL, NULL, "default" }, { "c", NULL, NULL, "c" },
		{ NULL, "e", NULL, "e" },	 { NULL, NULL, "f", "f" },
		{ "c", "e", NULL, "e" },	 { "c", NULL, "f", "f" },
		{ NULL, "e", "f", "f" },	 { "c", "e", "f", "f" },
		{ "c", "", NULL, "" },		 { "c", "e", "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *words[] = { cases[i].flag ? "--file" : NULL, cases[i].flag, NULL };
		CLEANUP(run_done) struct run r;
		struct err err = { 0 };

		clear_environment();
		run_init(&r);
		TEST_ROW("row %zu", i);
		if (cases[i].config)
			CHECK_OK(options_set(&r.options, "file", cases[i].config, "conf:3", &err));
		if (cases[i].environment)
			(void)setenv("PINFOLD_FILE", cases[i].environment, 1);
		CHECK_OK(parse(&r, words, &err));
		CHECK_STR(r.target.file, cases[i].want);
	}
}

TEST(a_list_from_a_higher_source_replaces_the_whole_list)
{
	static const struct {
		bool config, environment, flags;
		const char *want;
	} cases[] = {
		{ false, false, false, "d1" },	{ true, false, false, "c1 c2" },
		{ false, true, false, "e1" },	{ true, true, false, "e1" },
		{ true, false, true, "f1 f2" }, { true, true, true, "f1 f2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		static const char *defaults[] = { "d1" };
		const char *words[] = { cases[i].flags ? "-Nf1" : NULL, "--node=f2", NULL };
		CLEANUP(run_done) struct run r;
		struct err err = { 0 };

		clear_environment();
		run_init(&r);
		r.target.nodes = (struct option_list){ defaults, 1 };
		TEST_ROW("row %zu", i);
		if (cases[i].config) {
			CHECK_OK(options_set(&r.options, "node", "c1", "conf:3", &err));
			CHECK_OK(options_set(&r.options, "node", "c2", "conf:4", &err));
		}
		if (cases[i].environment)
			(void)setenv("PINFOLD_NODE", "e1", 1);
		CHECK_OK(parse(&r, words, &err));
		CHECK_STR(joined(&r.a, &r.target.nodes), cases[i].want);
	}
}

TEST(errors_name_the_source)
{
	CLEANUP(run_done) struct run r;
	struct err err = { 0 };

	clear_environment();
	run_init(&r);
	CHECK_ERR(options_set(&r.options, "colour", "red", "conf:3", &err), EINVAL,
		  "conf:3: unknown setting colour");
	CHECK_ERR(options_set(&r.options, "Heading", "red", "conf:3", &err), EINVAL,
		  "conf:3: unknown setting Heading");
	CHECK_ERR(options_set(&r.options, "metrics-port", "x", "conf:4", &err), EINVAL,
		  "conf:4: \"x\" is not an integer from 0 to 4294967295");
	(void)setenv("PINFOLD_METRICS_PORT", "http", 1);
	CHECK_ERR(parse(&r, (const char *const[]){ NULL }, &err), EINVAL,
		  "PINFOLD_METRICS_PORT: \"http\" is not an integer from 0 to 4294967295");
	clear_environment();
	(void)setenv("PINFOLD_DRY_RUN", "", 1);
	r.target.dry_run = true;
	CHECK_OK(parse(&r, (const char *const[]){ NULL }, &err));
	CHECK(!r.target.dry_run);
}

TEST(option_names_map_to_environment_variables)
{
	char name[OPTION_ENV_MAX];
	size_t n = 0;

	for (const struct option_desc *d = table; !option_is_end(d); d++) {
		if (d->kind == OPT_GROUP)
			continue;
		CHECK(n < ARRAY_LEN(variables));
		option_env_name(d, name);
		CHECK_STR((const char *)name, variables[n++]);
	}
	CHECK_UINT(n, ARRAY_LEN(variables));
}
