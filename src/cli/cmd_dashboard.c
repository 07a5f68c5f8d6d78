/* Options of the dashboard, and the choice of its source; the dashboard itself is src/dashboard. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "agentclient/run_dir.h"
#include "base/arena.h"
#include "base/err.h"
#include "bundle_input.h"
#include "cluster_client.h"
#include "cluster_options.h"
#include "command.h"
#include "config_file.h"
#include "dashboard/dashboard.h"
#include "local_common.h"
#include "log_options.h"
#include "manifest_paths.h"
#include "output.h"

struct dashboard_options {
	struct dashboard_config config;
	const char *config_file;
	struct cluster_client_options client;
	const char *bundle, *run_dir, *local, *topology;
	struct option_list files;
	struct log_options log;
};

#define AT(field) offsetof(struct dashboard_options, field)

static const struct option_desc options[] = {
	CONFIG_OPTION(struct dashboard_options, config_file),
	{ OPT_STR, 0, "listen", "HOST:PORT",
	  "serve the page at this address; port 0 picks one (default: 127.0.0.1:8088)", NULL,
	  AT(config.listen) },
	{ OPT_STR, 0, "token-file", "FILE",
	  "clients need the token in this file; required for an address that is not loopback", NULL,
	  AT(config.token_file) },
	{ OPT_FLAG, 0, "user-tokens", NULL,
	  "clients need a token of a user of the cluster who may list what is shown", NULL,
	  AT(config.user_tokens) },
	{ OPT_STRS, 0, "host", "NAME",
	  "a further name by which browsers may reach the page; may be repeated", NULL,
	  AT(config.hosts) },
	{ OPT_FLAG, 0, "no-confinement", NULL,
	  "do not restrict system calls and write access to files after start-up", NULL,
	  AT(config.is_unconfined) },
	{ OPT_GROUP, 0, NULL, NULL, "A cluster", NULL, 0 },
	CLUSTER_CLIENT_OPTIONS(struct dashboard_options, client),
	{ OPT_GROUP, 0, NULL, NULL, "A support bundle", NULL, 0 },
	BUNDLE_OPTION(struct dashboard_options, bundle),
	{ OPT_GROUP, 0, NULL, NULL, "One machine", NULL, 0 },
	{ OPT_STR, 0, "run-dir", "DIR",
	  "show the node of the agent with this directory, such as " AGENT_RUN_DIR, NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "local", "NAME",
	  "show the machine of 'pinfold local' with this name, or with this run directory if it "
	  "has a slash",
	  NULL, AT(local) },
	{ OPT_STR, 0, "topology", "FROM",
	  "CPUs of the agent's node: host (default), a file or a synthetic description", NULL,
	  AT(topology) },
	MANIFESTS_OPTION(struct dashboard_options, files),
	LOG_OPTIONS(struct dashboard_options, log),
	{ 0 },
};

static void print(struct str text)
{
	(void)output_text(text, NULL);
}

static const struct dashboard_options defaults = {
	.config = { .listen = "127.0.0.1:8088", .version = PINFOLD_VERSION, .print = print },
};

static const struct command_example examples[] = {
	{ "pinfold dashboard --kubeconfig admin.kubeconfig", "the nodes of a cluster" },
	{ "pinfold dashboard --bundle saved.tar", "what was saved with pinfold bundle" },
	{ "pinfold dashboard --run-dir " AGENT_RUN_DIR, "this node, from its agent" },
	{ "pinfold dashboard --local local -f examples/local", "what 'pinfold local up' runs" },
	{ 0 },
};

static const char *local_dir(const char *local, struct arena *a)
{
	struct local_options o = { .name = local };

	if (strchr(local, '/'))
		return local;
	local_options_fill(&o, a);
	return o.run_dir;
}

static int check(const struct dashboard_options *o, struct err *err)
{
	const bool is_cluster = o->client.kubeconfig || o->client.context;

	if (is_cluster + (o->bundle != NULL) + (o->run_dir != NULL) + (o->local != NULL) > 1)
		return err_set(
			err, EINVAL,
			"only one of --kubeconfig, --bundle, --run-dir and --local can be shown");
	if (o->config.user_tokens && (o->bundle || o->run_dir || o->local))
		return err_set(err, EINVAL, "--user-tokens needs a cluster, which reviews them");
	if (o->config.user_tokens && o->config.token_file)
		return err_set(err, EINVAL, "only one of --token-file and --user-tokens is used");
	if (o->topology && !o->run_dir)
		return err_set(err, EINVAL, "--topology needs --run-dir");
	if (o->files.n && !o->run_dir && !o->local)
		return err_set(err, EINVAL,
			       "--file needs --run-dir or --local: the API server of "
			       "a cluster has the manifests");
	return 0;
}

static int run_machine(struct dashboard_options *o, struct arena *a, struct err *err)
{
	const struct cluster_options none = { 0 };
	struct cluster_input in = { 0 };

	if (o->files.n) {
		int r = cluster_and_manifests(&none, &o->files, a, &in, err);

		if (r < 0)
			return r;
		o->config.manifests = &in.list;
		o->config.admission = &in.state.state;
	}
	o->config.machine = (struct source_machine_config){
		.agent_dir = o->run_dir,
		.local_dir = o->local ? local_dir(o->local, a) : NULL,
		.topology = o->topology ? o->topology : "host",
	};
	return dashboard_run(&o->config, err);
}

static int run_bundle(struct dashboard_options *o, struct arena *a, struct err *err)
{
	const struct option_list files = { .items = &o->bundle, .n = 1 };
	const struct cluster_options none = { 0 };
	struct cluster_input in = { 0 };
	struct saved_bundle bundle;
	int r = bundle_load(o->bundle, a, &bundle, err);

	if (r >= 0)
		r = cluster_and_manifests(&none, &files, a, &in, err);
	if (r < 0)
		return r;
	o->config.bundle = &bundle;
	o->config.manifests = &in.list;
	o->config.admission = &in.state.state;
	return dashboard_run(&o->config, err);
}

static int run(struct invocation *inv, struct err *err)
{
	struct dashboard_options *o = inv->options;
	struct kubeconfig kubeconfig;
	int r = command_no_operands(inv, err);

	if (r >= 0)
		r = check(o, err);
	if (r < 0)
		return r;
	log_options_apply(&o->log);
	if (o->bundle)
		return run_bundle(o, inv->arena, err);
	if (o->run_dir || o->local)
		return run_machine(o, inv->arena, err);
	r = api_sync_find_kubeconfig(o->client.kubeconfig, o->client.context, inv->arena,
				     &kubeconfig, err);
	if (r < 0)
		return r;
	o->config.kubeconfig = &kubeconfig;
	return dashboard_run(&o->config, err);
}

const struct command cmd_dashboard = {
	.name = "dashboard",
	.group = COMMAND_DAEMON,
	.summary = "show a cluster or a machine in a browser",
	.operands = "",
	.about = "Serves a page with the nodes of a cluster, the CPUs of each node, the pods on "
		 "them, why\n"
		 "they are there, and what another profile would change. Prints its address. It "
		 "only reads.\n"
		 "The page is part of the program and loads nothing from elsewhere. Without "
		 "options it\n"
		 "shows the cluster of the kubeconfig.",
	.options = options,
	.options_size = sizeof(struct dashboard_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
