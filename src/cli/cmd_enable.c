/* Turns the cluster flag on, after a preflight: nothing can turn it off again (D8). */

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "check_print.h"
#include "cluster_client.h"
#include "command.h"
#include "kube/names.h"
#include "partition/cluster_nodes.h"
#include "preflight/cluster_read.h"

struct enable_options {
	struct cluster_client_options client;
	bool yes, force, dry_run;
};

#define AT(field) offsetof(struct enable_options, field)

static const struct option_desc options[] = {
	CLUSTER_CLIENT_OPTIONS(struct enable_options, client),
	{ OPT_FLAG, 0, "dry-run", NULL, "only the preflight", NULL, AT(dry_run) },
	{ OPT_FLAG, 0, "force", NULL, "continue although the preflight found problems", NULL,
	  AT(force) },
	YES_OPTION(struct enable_options, yes),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold enable --dry-run", "whether the cluster is ready" },
	{ "pinfold enable", "check, ask, and turn workload partitioning on" },
	{ 0 },
};

#define CONFIG_PATH "/apis/" NAME_CONFIG_API "/infrastructures"
#define CORES NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX

/* A warning that this command is about to remedy. */
static void drop_flag(struct preflight_report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->items[i].check == PREFLIGHT_CLUSTER_FLAG_CHECK)
			r->count[r->items[i].level]--;
		else
			r->items[n++] = r->items[i];
	}
	r->n = n;
}

/* With AllNodes and no such node, pods stay where they are; with some, management pods are
 * scheduled to these only (D19). */
static void check_cores(yyjson_val *list, struct preflight_report *r)
{
	size_t n_ready = 0, n_cores = 0;
	struct cluster_nodes nodes;
	yyjson_val *node;

	cluster_nodes_init(&nodes, r->a);
	DOC_EACH_ITEM (doc_get(list, STR("items")), node)
		cluster_nodes_add_node(&nodes, node);
	for (size_t i = 0; i < nodes.n; i++) {
		n_ready += nodes.items[i].is_ready;
		n_cores += nodes.items[i].is_ready && nodes.items[i].has_cores;
	}
	preflight_add(r, PREFLIGHT_NODES_PARTITIONED_CHECK,
		      !n_cores		? PREFLIGHT_FAILURE :
		      n_cores < n_ready ? PREFLIGHT_WARNING :
					  PREFLIGHT_OK,
		      str_printf(r->a, "%zu of %zu ready nodes advertise " CORES, n_cores, n_ready),
		      n_cores < n_ready || !n_cores ? STR("run the agent on every node") : STR(""));
}

static int preflight(const struct kubeconfig *kubeconfig, struct preflight_report *r,
		     struct err *err)
{
	struct cluster_facts *facts = arena_new(r->a, struct cluster_facts);
	int result = cluster_facts_read(kubeconfig, STR(PINFOLD_VERSION), r->a, facts, err);

	if (result < 0)
		return result;
	preflight_cluster(facts, r);
	drop_flag(r);
	check_cores(facts->objects[PREFLIGHT_NODES_OBJECT].object, r);
	return check_print(r, OUTPUT_TABLE, r->a, err);
}

/* Status is a subresource: it is not set by the creation. */
static int turn_on(struct api_sync *s, bool exists, struct arena *a, struct err *err)
{
	const struct api_request create = {
		.method = "POST",
		.path = STR(CONFIG_PATH),
		.content_type = API_JSON,
		.body = STR("{\"apiVersion\":\"" NAME_CONFIG_API
			    "\",\"kind\":\"" NAME_INFRASTRUCTURE_KIND
			    "\",\"metadata\":{\"name\":\"" NAME_INFRASTRUCTURE "\"},\"spec\":{}}"),
	};
	const struct api_request patch = {
		.method = "PATCH",
		.path = STR(CONFIG_PATH "/" NAME_INFRASTRUCTURE "/status"),
		.content_type = API_PATCH_MERGE,
		.body = STR("{\"status\":{\"" NAME_PARTITIONING_KEY "\":\"" NAME_PARTITIONING_ALL
			    "\"}}"),
	};
	yyjson_val *object;
	int r = 0;

	if (!exists)
		r = api_sync_call(s, &create, a, &object, err);
	if (r >= 0 || r == -EEXIST)
		r = api_sync_call(s, &patch, a, &object, err);
	return r;
}

static int enable(struct invocation *inv, struct api_sync *s, bool exists, struct err *err)
{
	const struct enable_options *o = inv->options;
	struct preflight_report report;

	int r;

	preflight_report_init(&report, inv->arena);
	r = preflight(&s->kubeconfig, &report, err);
	if (r < 0)
		return r;

	if (report.count[PREFLIGHT_FAILURE] && (o->dry_run || !o->force)) {
		(void)fprintf(stderr, "the cluster is not ready, nothing was changed\n");
		return EXIT_FINDING;
	}
	if (o->dry_run)
		return EXIT_YES;
	r = confirm(
		"Workload partitioning cannot be turned off again: only the CPU sets of profiles "
		"can change.",
		o->yes, err);
	if (r <= 0) {
		if (r == 0)
			(void)fprintf(stderr, "nothing was changed\n");
		return r < 0 ? r : EXIT_FINDING;
	}
	r = turn_on(s, exists, inv->arena, err);
	if (r < 0)
		return r;
	command_success(inv,
			"workload partitioning is on: pods that opt in are converted when they "
			"are created");
	return EXIT_YES;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct enable_options *o = inv->options;
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	yyjson_val *infrastructure = NULL;
	struct str flag;
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	r = cluster_client_open(&s, &o->client, inv->arena, err);
	if (r == 0)
		r = cluster_client_find(&s, STR(CONFIG_PATH "/" NAME_INFRASTRUCTURE), inv->arena,
					&infrastructure, err);
	if (r < 0)
		return r;
	flag = doc_str(doc_find(infrastructure, "/status/" NAME_PARTITIONING_KEY));
	if (str_eq(flag, STR(NAME_PARTITIONING_ALL))) {
		command_success(inv, "workload partitioning is already on");
		return EXIT_YES;
	}
	return enable(inv, &s, infrastructure != NULL, err);
}

const struct command cmd_enable = {
	.name = "enable",
	.group = COMMAND_TOOL,
	.summary = "turn workload partitioning of a cluster on",
	.operands = "",
	.about = "Makes the checks of `pinfold check --scope cluster` and counts the nodes that "
		 "advertise\n"
		 "management.workload.openshift.io/cores. Then sets status.cpuPartitioning of "
		 "Infrastructure\n"
		 "\"cluster\" to AllNodes, and creates the object where there is none. This cannot "
		 "be\n"
		 "undone, so it asks first. Exit status 1 when the cluster is not ready or the "
		 "answer "
		 "is\n"
		 "not yes; then nothing was changed.",
	.options = options,
	.options_size = sizeof(struct enable_options),
	.examples = examples,
	.reports_success = true,
	.run = run,
};
