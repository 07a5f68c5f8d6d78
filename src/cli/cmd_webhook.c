/* Options of the webhook, and the choice of its state: files, or the watch of a cluster. The server
 * itself is src/webhook. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "cluster_options.h"
#include "command.h"
#include "config_file.h"
#include "log_options.h"
#include "output.h"
#include "webhook/print_config.h"
#include "webhook/state_cluster.h"
#include "webhook/state_files.h"
#include "webhook/webhook.h"

struct webhook_options {
	struct cluster_options cluster;
	struct webhook_config config;
	const char *config_file;
	const char *kubeconfig;
	const char *context;
	struct log_options log;
	bool print_config;
	struct print_config print;
	const char *ca_path;
	const char *output;
};

#define AT(field) offsetof(struct webhook_options, field)

static const struct option_desc options[] = {
	CONFIG_OPTION(struct webhook_options, config_file),
	{ OPT_STR, 0, "listen", "HOST:PORT", "the address to serve on (default: :8443)", NULL,
	  AT(config.listen) },
	{ OPT_STR, 0, "tls-cert", "FILE",
	  "certificate with its chain, PEM (default in a cluster: its own, in a Secret)", NULL,
	  AT(config.cert_path) },
	{ OPT_STR, 0, "tls-key", "FILE", "private key of the certificate, PEM", NULL,
	  AT(config.key_path) },
	{ OPT_STR, 0, "client-ca", "FILE",
	  "accept reviews only with a client certificate of these CAs, PEM", NULL,
	  AT(config.client_ca_path) },
	{ OPT_STR, 0, "client-name", "NAME",
	  "the common name that the client certificate must have (default: any)", NULL,
	  AT(config.client_name) },
	{ OPT_UINT, 0, "threads", "N",
	  "number of threads (default: the CPUs that affinity and quota allow, at most 8)", NULL,
	  AT(config.threads) },
	{ OPT_UINT, 0, "memory-limit", "MIB",
	  "memory that the process may use (default: the limit of its cgroup)", NULL,
	  AT(config.memory_mib) },
	{ OPT_UINT, 0, "shutdown-delay", "SECONDS",
	  "time between SIGTERM and closing the port; /readyz fails meanwhile (default: 5)", NULL,
	  AT(config.shutdown_delay_s) },
	{ OPT_FLAG, 0, "no-seccomp", NULL, "do not restrict system calls after start-up", NULL,
	  AT(config.no_sandbox) },
	{ OPT_GROUP, 0, NULL, NULL, "Cluster", NULL, 0 },
	{ OPT_STR, 0, "kubeconfig", "FILE",
	  "watch this API server (default without --state: the one of the webhook's pod)", NULL,
	  AT(kubeconfig) },
	{ OPT_STR, 0, "context", "NAME",
	  "the context of the kubeconfig (default: its current context)", NULL, AT(context) },
	CLUSTER_OPTIONS(struct webhook_options, cluster),
	LOG_OPTIONS(struct webhook_options, log),
	{ OPT_GROUP, 0, NULL, NULL, "Configuration of the API server", NULL, 0 },
	{ OPT_FLAG, 0, "print-config", NULL,
	  "print the webhook configurations for an API server and exit", NULL, AT(print_config) },
	{ OPT_STR, 0, "url", "URL", "URL of this webhook, where it has no Service", NULL,
	  AT(print.url) },
	{ OPT_STR, 0, "service", "NAMESPACE/NAME[:PORT]",
	  "the Service of this webhook (default: pinfold/pinfold-webhook)", NULL,
	  AT(print.service) },
	{ OPT_STR, 0, "ca", "FILE", "with --print-config: the CA of its certificate, PEM", NULL,
	  AT(ca_path) },
	{ OPT_ENUM, 0, "failure-policy", "POLICY",
	  "with --print-config: failurePolicy of the webhooks (default: Ignore)", "Ignore|Fail",
	  AT(print.failure_policy) },
	{ OPT_ENUM, 'o', "output", "FORMAT", "with --print-config: yaml (default) or json",
	  "yaml|json", AT(output) },
	{ 0 },
};

static const struct webhook_options defaults = {
	.config = { .listen = ":8443", .shutdown_delay_s = 5, .version = PINFOLD_VERSION },
};

static const struct command_example examples[] = {
	{ "pinfold webhook --tls-cert tls.crt --tls-key tls.key --state cluster.yaml",
	  "serve from manifests, without a cluster" },
	{ "pinfold webhook --tls-cert tls.crt --tls-key tls.key --kubeconfig admin.kubeconfig",
	  "serve a cluster without running in it" },
	{ "pinfold webhook --print-config --url https://127.0.0.1:8443 --ca ca.crt",
	  "what to apply to an API server on this machine" },
	{ 0 },
};

static yyjson_mut_val *as_list(yyjson_mut_val *items, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *list = yyjson_mut_obj(m);

	doc_put_str(m, list, STR("apiVersion"), STR("v1"));
	doc_put_str(m, list, STR("kind"), STR("List"));
	doc_put(m, list, STR("items"), items);
	return list;
}

static int serve_files(const struct webhook_options *o, struct err *err)
{
	struct admission_settings settings;
	struct state_files files;
	int r = cluster_settings(&o->cluster, &settings, err);

	if (r < 0)
		return r;
	r = state_files_init(&files, &o->cluster.state, &settings, err);
	if (r >= 0)
		r = webhook_run(&o->config, &files.source, err);
	state_files_done(&files);
	return r;
}

static int serve_cluster(const struct webhook_options *o, struct err *err)
{
	struct state_cluster_config config = { .kubeconfig = o->kubeconfig,
					       .context = o->context,
					       .version = PINFOLD_VERSION,
					       .service = o->print.service,
					       .url = o->print.url };
	struct state_cluster cluster;
	int r = cluster_settings(&o->cluster, &config.settings, err);

	if (r < 0)
		return r;
	r = state_cluster_init(&cluster, &config, err);
	if (r >= 0)
		r = webhook_run(&o->config, &cluster.source, err);
	state_cluster_done(&cluster);
	return r;
}

static int print(const struct webhook_options *o, struct arena *a, struct err *err)
{
	struct print_config config = o->print;
	struct admission_settings settings;
	yyjson_mut_val *list, *item;
	yyjson_mut_arr_iter it;
	int r = cluster_settings(&o->cluster, &settings, err);

	if (r >= 0 && o->ca_path)
		r = file_read_at(AT_FDCWD, o->ca_path, 1 << 20, a, &config.ca_pem, err);
	if (r < 0)
		return r;
	/* With pools every pod is counted, not only those that opted in. */
	config.all_pods = settings.pools;
	config.taint_nodes = settings.nodes == NODE_MODE_TAINT;
	r = print_config_make(&config, a, &list, err);
	if (r < 0)
		return r;
	if (o->output && strcmp(o->output, "json") == 0)
		return output_doc(as_list(list, a), OUTPUT_JSON, a, err);
	it = yyjson_mut_arr_iter_with(list);
	while (r >= 0 && (item = yyjson_mut_arr_iter_next(&it))) {
		r = output_text(STR("---\n"), err);
		if (r >= 0)
			r = output_doc(item, OUTPUT_YAML, a, err);
	}
	return r;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct webhook_options *o = inv->options;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (o->print_config)
		return print(o, inv->arena, err);
	if (!o->config.cert_path != !o->config.key_path)
		return err_set(err, EINVAL, "--tls-cert and --tls-key belong together");
	if (o->config.client_name && !o->config.client_ca_path)
		return err_set(err, EINVAL, "--client-name needs --client-ca");
	/* Only a cluster has a Secret for a certificate of the webhook's own. */
	if (!o->config.cert_path && o->cluster.state.n)
		return err_set(err, EINVAL, "--tls-cert and --tls-key must be given with --state");
	if (o->cluster.state.n && o->kubeconfig)
		return err_set(err, EINVAL, "--state and --kubeconfig exclude each other");
	for (size_t i = 0; i < o->cluster.state.n; i++)
		if (strcmp(o->cluster.state.items[i], "-") == 0)
			return err_set(err, EINVAL,
				       "--state - is not possible: SIGHUP reads the files again");
	if (o->context && !o->kubeconfig)
		return err_set(err, EINVAL, "--context needs --kubeconfig");
	if (o->config.threads > 1024)
		return err_set(err, EINVAL, "--threads %u is too many (1024 at most)",
			       o->config.threads);
	log_options_apply(&o->log);
	return o->cluster.state.n ? serve_files(o, err) : serve_cluster(o, err);
}

const struct command cmd_webhook = {
	.name = "webhook",
	.group = COMMAND_DAEMON,
	.summary = "serve admission to an API server",
	.operands = "",
	.about = "Serves AdmissionReviews over HTTPS at /mutate/pods, /mutate/nodes, "
		 "/validate/pods,\n"
		 "/validate/nodes, /validate/infrastructures and /validate/performanceprofiles,\n"
		 "probes at /livez and /readyz?verbose, and metrics at /metrics.\n"
		 "The certificate is read again when its files change.\n"
		 "On SIGTERM /readyz fails first, then requests in flight are finished.\n"
		 "On SIGHUP the state files are read again.",
	.options = options,
	.options_size = sizeof(struct webhook_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
