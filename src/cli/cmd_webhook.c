#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "command.h"
#include "manifests.h"
#include "output.h"
#include "webhook/state_files.h"
#include "webhook/webhook.h"

struct webhook_options {
	struct cluster_options cluster;
	struct webhook_config config;
	const char *log_level;
	const char *log_format;
};

#define AT(field) offsetof(struct webhook_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "listen", "HOST:PORT", "where to serve (default: :8443)", NULL,
	  AT(config.listen) },
	{ OPT_STR, 0, "tls-cert", "FILE", "certificate and what chains it (PEM)", NULL,
	  AT(config.cert_path) },
	{ OPT_STR, 0, "tls-key", "FILE", "its private key (PEM)", NULL, AT(config.key_path) },
	{ OPT_UINT, 0, "threads", "N", "event loops (default: one per CPU it may use)", NULL,
	  AT(config.threads) },
	{ OPT_UINT, 0, "shutdown-delay", "SECONDS",
	  "after SIGTERM, time between failing /readyz and closing the port (default: 5)", NULL,
	  AT(config.shutdown_delay_s) },
	{ OPT_FLAG, 0, "no-seccomp", NULL, "do not give up system calls after start-up", NULL,
	  AT(config.no_sandbox) },
	{ OPT_GROUP, 0, "Cluster", NULL, NULL, NULL, 0 },
	CLUSTER_OPTIONS(struct webhook_options, cluster),
	{ OPT_GROUP, 0, "Log", NULL, NULL, NULL, 0 },
	{ OPT_ENUM, 0, "log-level", "LEVEL", "what is logged (default: info)",
	  "error|warning|info|debug", AT(log_level) },
	{ OPT_ENUM, 0, "log-format", "FORMAT", "text (default) or json lines", "text|json",
	  AT(log_format) },
	{ 0 },
};

static const struct webhook_options defaults = {
	.config = { .listen = ":8443", .shutdown_delay_s = 5, .version = PINFOLD_VERSION },
};

static const struct command_example examples[] = {
	{ "pinfold webhook --tls-cert tls.crt --tls-key tls.key --state cluster.yaml",
	  "serve from manifests, without a cluster" },
	{ 0 },
};

static void set_up_log(const struct webhook_options *o)
{
	enum log_level level = LOG_LEVEL_INFO;

	if (o->log_level)
		(void)log_level_parse(str_from(o->log_level), &level);
	log_setup(level, o->log_format && strcmp(o->log_format, "json") == 0 ? LOG_FORMAT_JSON :
									       LOG_FORMAT_TEXT);
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

static int run(struct invocation *inv, struct err *err)
{
	const struct webhook_options *o = inv->options;

	if (inv->args.n)
		return err_set(err, EINVAL, "unexpected operand \"%s\"", inv->args.items[0]);
	if (!o->config.cert_path || !o->config.key_path)
		return err_set(err, EINVAL, "--tls-cert and --tls-key must be given");
	if (!o->cluster.state.n)
		return err_set(err, EINVAL, "--state must be given");
	if (o->config.threads > 1024)
		return err_set(err, EINVAL, "--threads %u is too many (1024 at most)",
			       o->config.threads);
	set_up_log(o);
	return serve_files(o, err);
}

const struct command cmd_webhook = {
	.name = "webhook",
	.group = COMMAND_DAEMON,
	.summary = "serve admission to an API server",
	.operands = "",
	.about = "Answers AdmissionReviews over HTTPS: /mutate/pods, /validate/pods,\n"
		 "/validate/nodes and /validate/infrastructures; and /livez, /readyz?verbose and\n"
		 "/metrics. The certificate is read again when its files change. SIGTERM drains:\n"
		 "/readyz fails first, then requests under way are finished. SIGHUP reads the\n"
		 "state files again.",
	.options = options,
	.options_size = sizeof(struct webhook_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
