/* Options of the operator; the operator itself is src/operator. */

#include <errno.h>
#include <stddef.h>

#include "admission/admission_state.h"
#include "base/err.h"
#include "command.h"
#include "config_file.h"
#include "kube/names.h"
#include "log_options.h"
#include "operator/operator.h"
#include "output.h"

struct operator_options {
	struct operator_config config;
	const char *config_file;
	const char *feature_gates;
	struct log_options log;
};

#define AT(field) offsetof(struct operator_options, field)

static const struct option_desc options[] = {
	CONFIG_OPTION(struct operator_options, config_file),
	{ OPT_STR, 0, "listen", "HOST:PORT",
	  "serve /metrics, /healthz and /readyz at this address (default: none)", NULL,
	  AT(config.listen) },
	{ OPT_FLAG, 0, "openshift", NULL,
	  "apply the MachineConfigs, KubeletConfigs, Tuneds and RuntimeClasses of the profiles, in "
	  "place of the Node Tuning Operator's controller",
	  NULL, AT(config.is_openshift) },
	{ OPT_FLAG, 0, "dry-run", NULL, "print what would be written to the API server, and exit",
	  NULL, AT(config.is_dry_run) },
	{ OPT_FLAG, 0, "no-confinement", NULL,
	  "do not restrict system calls and write access to files after start-up", NULL,
	  AT(config.is_unconfined) },
	{ OPT_GROUP, 0, NULL, NULL, "Cluster", NULL, 0 },
	{ OPT_STR, 0, "kubeconfig", "FILE",
	  "how to reach the API server (default: as the service account of the operator's pod)",
	  NULL, AT(config.kubeconfig) },
	{ OPT_STR, 0, "context", "NAME",
	  "the context of the kubeconfig (default: its current context)", NULL,
	  AT(config.context) },
	{ OPT_STR, 0, "namespace", "NAME",
	  "namespace of the Lease that elects the leader (default: " NAME_NAMESPACE_WEBHOOK ")",
	  NULL, AT(config.namespace) },
	{ OPT_STR, 0, "feature-gates", "NAME=BOOL,...",
	  "GuaranteedCPUPool=true: admission policies count every pod in the shared or the "
	  "guaranteed pool",
	  NULL, AT(feature_gates) },
	LOG_OPTIONS(struct operator_options, log),
	{ 0 },
};

static void print(struct str text)
{
	(void)output_text(text, NULL);
}

static const struct operator_options defaults = {
	.config = { .namespace = NAME_NAMESPACE_WEBHOOK,
		    .version = PINFOLD_VERSION,
		    .print = print },
};

static const struct command_example examples[] = {
	{ "pinfold operator --kubeconfig admin.kubeconfig --dry-run",
	  "what the operator would change in this cluster now" },
	{ 0 },
};

static int run(struct invocation *inv, struct err *err)
{
	const struct operator_options *o = inv->options;
	struct operator_config config = o->config;
	struct admission_settings settings = { 0 };

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (o->config.context && !o->config.kubeconfig)
		return err_set(err, EINVAL, "--context needs --kubeconfig");
	if (o->feature_gates &&
	    settings_parse_gates(str_from(o->feature_gates), &settings, err) < 0)
		return -EINVAL;
	config.counts_pools = settings.pools;
	log_options_apply(&o->log);
	return operator_run(&config, err);
}

const struct command cmd_operator = {
	.name = "operator",
	.group = COMMAND_DAEMON,
	.summary = "coordinate the nodes of a cluster",
	.operands = "",
	.about =
		"Writes the status of PerformanceProfiles from the NodePartitions that the agents\n"
		"report, and rolls out changes that disturb a node: a few nodes at a time, "
		"drained\n"
		"where the change needs it. Several replicas may run; one of them acts.",
	.options = options,
	.options_size = sizeof(struct operator_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
