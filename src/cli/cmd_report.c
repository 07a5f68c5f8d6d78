/* A report is the page of a support bundle. Without one, a bundle is collected in memory, so that
 * both ways show the same. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "bundle_collect.h"
#include "bundle_input.h"
#include "command.h"
#include "output.h"
#include "report_page.h"

struct report_options {
	struct collect_options collect;
	const char *bundle, *title;
};

#define AT(field) offsetof(struct report_options, field)

static const struct option_desc options[] = {
	BUNDLE_OPTION(struct report_options, bundle),
	{ OPT_STR, 0, "title", "TEXT", "the heading, such as the name of an incident", NULL,
	  AT(title) },
	COLLECT_OPTIONS(struct report_options, collect),
	{ 0 },
};

static const struct report_options defaults = { .collect = COLLECT_DEFAULTS };

static const struct command_example examples[] = {
	{ "pinfold report report.html", "this node, and its cluster if there is a kubeconfig" },
	{ "pinfold report --scope cluster - >cluster.html", "the cluster" },
	{ "pinfold report --bundle saved.tar --title 'Case 17' case-17.html",
	  "what a support bundle has" },
	{ 0 },
};

static int read_bundle(const struct report_options *o, struct arena *a, struct saved_bundle *ret,
		       struct err *err)
{
	const int64_t now_s = (int64_t)time(NULL);
	struct bundle_build b;
	struct str node;
	int r;

	if (o->bundle)
		return bundle_load(o->bundle, a, ret, err);
	/* Logs are not shown. */
	r = bundle_collect(&b,
			   &(struct collect_options){ .client = o->collect.client,
						      .node = o->collect.node,
						      .scope = o->collect.scope,
						      .max_mib = o->collect.max_mib,
						      .no_logs = true },
			   now_s, a, &node, err);
	return r < 0 ? r : saved_bundle_open(b.files, b.n, STR("this node"), a, ret, err);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct report_options *o = inv->options;
	struct saved_bundle bundle;
	struct report report = { 0 };
	const char *path;
	int r;

	if (inv->args.n != 1)
		return err_set(err, EINVAL, "one FILE is required, or - for standard output");
	path = inv->args.items[0];
	if (o->bundle && (o->collect.scope || o->collect.client.kubeconfig))
		return err_set(err, EINVAL, "give either --bundle or --%s",
			       o->collect.scope ? "scope" : "kubeconfig");
	r = read_bundle(o, inv->arena, &bundle, err);
	if (r >= 0)
		r = report_make_page(&bundle, str_from(o->title), inv->arena, &report, err);
	if (r >= 0)
		r = strcmp(path, "-") == 0 ?
			    output_text(report.page, err) :
			    file_replace_at(AT_FDCWD, path, report.page, 0600, err);
	if (r < 0)
		return r;
	command_success(inv, "%s: " PRI_STR, path,
			FMT_STR(str_count(inv->arena, report.n_findings, "finding", "findings")));
	return report.n_findings ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_report = {
	.name = "report",
	.group = COMMAND_TOOL,
	.summary = "write a page about a node and its cluster",
	.operands = "FILE",
	.about = "Writes one HTML file for an incident or an acceptance: the map of the node, the "
		 "result of\n"
		 "verify, drift and refusals, the nodes of the cluster with their findings, Events "
		 "and\n"
		 "changes of conditions by time, the results of check, versions, and what is not "
		 "known. It\n"
		 "needs no other file, no script and no network, follows the browser's light or "
		 "dark scheme,\n"
		 "and can be printed.\n"
		 "FILE is replaced; - is standard output. Exit status 1 when there is a finding.",
	.options = options,
	.options_size = sizeof(struct report_options),
	.defaults = &defaults,
	.examples = examples,
	.reports_success = true,
	.run = run,
};
