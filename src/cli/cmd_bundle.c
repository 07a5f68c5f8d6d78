/* Collects what others need to judge a node or a cluster from afar. Nothing is changed. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "bundle_collect.h"
#include "command.h"
#include "output.h"

struct make_bundle_options {
	struct collect_options collect;
};

static const struct option_desc options[] = {
	COLLECT_OPTIONS(struct make_bundle_options, collect),
	{ OPT_FLAG, 0, "no-logs", NULL, "leave out the logs of Pinfold's pods", NULL,
	  offsetof(struct make_bundle_options, collect.no_logs) },
	{ 0 },
};

static const struct make_bundle_options defaults = { .collect = COLLECT_DEFAULTS };

static const struct command_example examples[] = {
	{ "pinfold bundle", "this node and its cluster, in an archive in this directory" },
	{ "pinfold bundle --scope cluster case-17.tar", "only the cluster" },
	{ "ssh worker-0 sudo pinfold bundle - >worker-0.tar", "a node from afar" },
	{ "pinfold map --bundle worker-0.tar", "look at it" },
	{ "pinfold explain -f case-17.tar", "what admission did to every pod of the cluster" },
	{ 0 },
};

/* "pinfold-bundle-worker-0-20261117T120000Z" */
static struct str bundle_name(struct str node, int64_t now_s, struct arena *a)
{
	const time_t now = (time_t)now_s;
	char text[32] = "";
	struct tm tm;

	(void)strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	return str_printf(a, "pinfold-bundle-" PRI_STR "-%s",
			  FMT_STR(node.n ? node : STR("cluster")), text);
}

static int write_bundle(const struct bundle_build *b, const char *path, struct str name,
			int64_t now_s, struct err *err)
{
	if (strcmp(path, "-") == 0)
		return output_text(bundle_build_tar(b, name, now_s, b->a), err);
	if (str_ends(str_from(path), STR(".tar")))
		return file_create_at(AT_FDCWD, path, bundle_build_tar(b, name, now_s, b->a), 0600,
				      err);
	return bundle_build_write(b, path, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct make_bundle_options *o = inv->options;
	const int64_t now_s = (int64_t)time(NULL);
	struct bundle_build b;
	struct str node, name;
	const char *path;
	int r;

	if (inv->args.n > 1)
		return err_set(err, EINVAL, "one FILE at most");
	r = bundle_collect(&b, &o->collect, now_s, inv->arena, &node, err);
	if (r < 0)
		return r;
	name = bundle_name(node, now_s, inv->arena);
	path = inv->args.n ? inv->args.items[0] :
			     str_printf(inv->arena, PRI_STR ".tar", FMT_STR(name)).p;
	r = write_bundle(&b, path, name, now_s, err);
	if (r < 0)
		return r;
	command_success(inv, "%s: %zu files, %zu KiB; %zu parts left out, see index.json", path,
			b.n, (b.used_bytes + 1023) >> 10, b.n_omissions);
	return EXIT_YES;
}

const struct command cmd_bundle = {
	.name = "bundle",
	.group = COMMAND_TOOL,
	.summary = "collect a support bundle of a node and its cluster",
	.operands = "[FILE]",
	.about =
		"Writes what is needed to judge a node or a cluster from afar: objects and "
		"statuses, the\n"
		"agent's status, ledger, pools and profile, the machine's topology, the results of "
		"verify\n"
		"and check, versions, and the logs of Pinfold's pods. Secrets, ConfigMaps, "
		"environment\n"
		"variables, commands and volumes of pods are left out. index.json lists the files "
		"and what\n"
		"was left out, and why.\n"
		"FILE is an archive if it ends in .tar, standard output if it is -, else a new "
		"directory.\n"
		"map, status, verify, explain, plan and report read it with --bundle; -f FILE "
		"reads its\n"
		"objects. Nothing is changed.",
	.options = options,
	.options_size = sizeof(struct make_bundle_options),
	.defaults = &defaults,
	.examples = examples,
	.reports_success = true,
	.run = run,
};
