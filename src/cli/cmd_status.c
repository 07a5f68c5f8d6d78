/* The agent's status document as text. Missing members are shown as "-", because the
 * agent that runs may be older than this command. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle_input.h"
#include "cluster_report.h"
#include "command.h"
#include "node_map.h"
#include "output.h"

struct status_options {
	const char *run_dir, *output;
	struct bundle_options bundle;
	bool containers;
	struct cluster_report_options all;
};

#define AT(field) offsetof(struct status_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " AGENT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	BUNDLE_OPTIONS(struct status_options, bundle),
	{ OPT_FLAG, 'c', "containers", NULL, "also list the containers", NULL, AT(containers) },
	OUTPUT_OPTION(struct status_options, output),
	CLUSTER_REPORT_OPTIONS(struct status_options, all),
	{ 0 },
};

static const struct status_options defaults = { .run_dir = AGENT_RUN_DIR };

static const struct command_example examples[] = {
	{ "pinfold status", "pools, number of containers, and warnings" },
	{ "pinfold status -c", "the same, with every container" },
	{ "pinfold status --cluster", "one line for each node of the cluster" },
	{ "pinfold status --cluster --bundle saved.tar",
	  "the same, from the objects of a support bundle" },
	{ 0 },
};

static void add_pools(struct strbuf *b, yyjson_val *root)
{
	static const char *const names[] = { "management", "shared", "guaranteed" };
	struct table t;

	table_init(&t, 5, b->a);
	table_add(&t, (struct str[]){ STR("POOL"), STR("CPUS"), STR("MILLICORES"),
				      STR("CONTAINERS"), STR("FREE") });
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		yyjson_val *p = doc_get(doc_get(root, STR("pools")), str_from(names[i]));

		table_add(&t, (struct str[]){ str_from(names[i]),
					      table_or_dash(doc_str(doc_get(p, STR("cpus")))),
					      doc_text(doc_get(p, STR("millicores"))),
					      doc_text(doc_get(p, STR("containers"))),
					      table_or_dash(doc_str(doc_get(p, STR("free")))) });
	}
	strbuf_add(b, table_format(&t));
}

/* Only where a type has CPUs of its own: otherwise the line of the pool says it all. */
static void add_types(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *types = doc_get(root, STR("workloadTypes")), *key, *value;
	struct table t;

	if (yyjson_obj_size(types) < 2)
		return;
	table_init(&t, 3, b->a);
	table_add(&t, (struct str[]){ STR("WORKLOAD TYPE"), STR("CPUS"), STR("CONTAINERS") });
	DOC_EACH_PAIR (types, key, value)
		table_add(&t, (struct str[]){ doc_str(key),
					      table_or_dash(doc_str(doc_get(value, STR("cpus")))),
					      doc_text(doc_get(value, STR("containers"))) });
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
}

/* "management", or "management/ran" for another type. */
static struct str pool_of(yyjson_val *c, struct arena *a)
{
	const struct str pool = doc_str(doc_get(c, STR("pool")));
	const struct str type = doc_str(doc_get(c, STR("type")));

	if (type.n == 0 || str_eq(type, pool))
		return pool;
	return str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(pool), FMT_STR(type));
}

static void add_containers(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *c;
	struct table t;

	table_init(&t, 7, b->a);
	table_add(&t, (struct str[]){ STR("NAMESPACE"), STR("POD"), STR("CONTAINER"), STR("POOL"),
				      STR("CPUS"), STR("SHARES"), STR("QUOTA") });
	DOC_EACH_ITEM (doc_get(root, STR("containers")), c) {
		const struct str quota = doc_text(doc_get(c, STR("quotaUs")));

		table_add(&t,
			  (struct str[]){ doc_str(doc_get(c, STR("namespace"))),
					  doc_str(doc_get(c, STR("pod"))),
					  doc_str(doc_get(c, STR("container"))), pool_of(c, b->a),
					  table_or_dash(doc_str(doc_get(c, STR("cpus")))),
					  table_or_dash(doc_text(doc_get(c, STR("shares")))),
					  str_eq(quota, STR("-1")) ? STR("none") :
								     table_or_dash(quota) });
	}
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
}

static void add_counter_warnings(struct strbuf *b, yyjson_val *root)
{
	static const struct {
		const char *key, *one, *many;
	} rows[] = {
		{ "containers_refused", "container was refused because no CPUs fit it",
		  "containers were refused because no CPUs fit them" },
		{ "containers_adopted_late", "container had started without its CPU settings",
		  "containers had started without their CPU settings" },
		{ "drift_corrected", "cgroup was changed externally and restored",
		  "cgroups were changed externally and restored" },
		{ "annotations_rejected", "annotation was not accepted",
		  "annotations were not accepted" },
		{ "cgroup_write_failures", "cgroup could not be written",
		  "cgroups could not be written" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct str n =
			doc_text(doc_get(doc_get(root, STR("counters")), str_from(rows[i].key)));

		/* Since the agent started: a restart clears these warnings. */
		if (n.n > 0 && !str_eq(n, STR("0")))
			strbuf_printf(b, "warning: " PRI_STR " %s\n", FMT_STR(n),
				      str_eq(n, STR("1")) ? rows[i].one : rows[i].many);
	}
}

/* Containers that the agent refused lately, and why. */
static void add_refusals(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *v;

	DOC_EACH_ITEM (doc_get(root, STR("refused")), v) {
		strbuf_printf(b,
			      "refused: " PRI_STR "/" PRI_STR "/" PRI_STR ": " PRI_STR ": " PRI_STR
			      "\n",
			      FMT_STR(doc_str(doc_get(v, STR("namespace")))),
			      FMT_STR(doc_str(doc_get(v, STR("pod")))),
			      FMT_STR(doc_str(doc_get(v, STR("container")))),
			      FMT_STR(doc_str(doc_get(v, STR("reason")))),
			      FMT_STR(doc_str(doc_get(v, STR("message")))));
	}
}

static void add_cluster(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *cluster = doc_get(root, STR("cluster"));
	const struct str node = doc_str(doc_get(cluster, STR("node")));
	const struct str allowed = doc_text(doc_get(cluster, STR("allowedNamespaces")));

	if (!cluster) /* --no-cluster, or no API server configured */
		return;
	if (!doc_bool(doc_get(cluster, STR("connected")), false))
		strbuf_printf(b,
			      "Node " PRI_STR
			      ": the API server is unreachable, pinning continues\n",
			      FMT_STR(node));
	else if (!doc_bool(doc_get(cluster, STR("registered")), false))
		strbuf_printf(b, "Node " PRI_STR ": not registered\n", FMT_STR(node));
	else
		strbuf_printf(b, "Node " PRI_STR ", " PRI_STR " %s may use the management pool\n",
			      FMT_STR(node), FMT_STR(allowed),
			      str_eq(allowed, STR("1")) ? "namespace" : "namespaces");
}

static void add_cpu_manager(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *manager = doc_get(root, STR("cpuManager"));
	const struct str taken = doc_str(doc_get(manager, STR("sharedCpusAssigned")));

	if (!manager) /* an older agent */
		return;
	strbuf_printf(b, "exclusive CPUs are assigned by the %s\n",
		      str_eq(doc_str(doc_get(manager, STR("assigns"))), STR("kubelet")) ?
			      "kubelet (CPU manager policy static)" :
			      "agent");
	if (taken.n)
		strbuf_printf(
			b,
			"warning: the kubelet assigns CPUs " PRI_STR
			" of the shared pool: add the shared CPUs to its reservedSystemCPUs, or "
			"set its CPU manager policy to none\n",
			FMT_STR(taken));
}

static void add_source(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *source = doc_get(root, STR("source"));
	const struct str profile = doc_str(doc_get(source, STR("profile")));

	if (profile.n)
		strbuf_printf(b, "pools from profile " PRI_STR ", generation " PRI_STR "\n",
			      FMT_STR(profile),
			      FMT_STR(doc_text(doc_get(source, STR("generation")))));
	else if (str_eq(doc_str(doc_get(source, STR("kind"))), STR("None")))
		strbuf_add(b, STR("no profile and no pools: containers may use all CPUs\n"));
	else if (source)
		strbuf_printf(b, "pools from " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(source, STR("from")))));
}

static void add_profile_warning(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *profile = doc_get(root, STR("profile"));
	const struct str name = doc_str(doc_get(profile, STR("name")));
	const struct str message = doc_str(doc_get(profile, STR("message")));
	const struct str in_force = doc_str(doc_find(root, "/source/profile"));

	if (message.n && name.n)
		strbuf_printf(b, "warning: profile " PRI_STR " is not applied: " PRI_STR "\n",
			      FMT_STR(name), FMT_STR(message));
	else if (message.n)
		strbuf_printf(b, "warning: no profile is applied: " PRI_STR "\n", FMT_STR(message));
	else if (name.n && str_eq(doc_str(doc_find(root, "/source/kind")), STR("None")))
		strbuf_printf(b, "warning: profile " PRI_STR " is not applied yet\n",
			      FMT_STR(name));
	else if (name.n && !in_force.n && doc_get(root, STR("source")))
		strbuf_printf(b,
			      "warning: profile " PRI_STR " is not applied: the pools of " PRI_STR
			      " come first\n",
			      FMT_STR(name), FMT_STR(doc_str(doc_find(root, "/source/from"))));
}

/* Where everything else runs, with --host-configuration=live. */
static void add_host(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *host = doc_get(root, STR("host"));
	const struct str refused = doc_text(doc_get(host, STR("interruptsRefused")));

	if (!doc_get(host, STR("services")))
		return;
	strbuf_printf(b, "host services on CPUs " PRI_STR ", interrupts on " PRI_STR "\n",
		      FMT_STR(doc_str(doc_get(host, STR("services")))),
		      FMT_STR(doc_str(doc_get(host, STR("housekeeping")))));
	if (refused.n && !str_eq(refused, STR("0")))
		strbuf_printf(b, "the kernel does not move " PRI_STR " %s\n", FMT_STR(refused),
			      str_eq(refused, STR("1")) ? "interrupt" : "interrupts");
}

/* Settings that are configured and not in effect, one line each. */
static void add_warnings(struct strbuf *b, yyjson_val *root)
{
	yyjson_val *resize = doc_get(root, STR("resize")), *item;
	yyjson_val *isolation = doc_get(root, STR("isolation"));
	const struct str refused = doc_text(doc_get(isolation, STR("refused")));
	const struct str reason = doc_str(doc_get(resize, STR("reason")));

	if (reason.n > 0)
		strbuf_printf(b, "warning: new pools are " PRI_STR ": " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(resize, STR("state")))), FMT_STR(reason));
	DOC_EACH_ITEM (doc_get(resize, STR("containers")), item)
		strbuf_printf(b, "  " PRI_STR " owns CPUs " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(item, STR("name")))),
			      FMT_STR(doc_str(doc_get(item, STR("cpus")))));
	DOC_EACH_ITEM (doc_get(root, STR("reboot")), item)
		strbuf_printf(b,
			      "warning: a reboot is needed: " PRI_STR " has CPUs " PRI_STR
			      " instead of " PRI_STR ": " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(item, STR("what")))),
			      FMT_STR(doc_str(doc_get(item, STR("have")))),
			      FMT_STR(doc_str(doc_get(item, STR("want")))),
			      FMT_STR(doc_str(doc_get(item, STR("reason")))));
	if (doc_bool(doc_find(root, "/pools/shared/empty"), false))
		strbuf_printf(b,
			      "warning: no CPU of the shared pool is left, its containers use "
			      "management CPUs " PRI_STR ": give the profile a shared list\n",
			      FMT_STR(doc_str(doc_find(root, "/pools/shared/cpus"))));
	if (doc_get(isolation, STR("reason")))
		strbuf_printf(b, "warning: CPUs of " PRI_STR " %s are not isolated: " PRI_STR "\n",
			      FMT_STR(refused),
			      str_eq(refused, STR("1")) ? "container" : "containers",
			      FMT_STR(doc_str(doc_get(isolation, STR("reason")))));
	DOC_EACH_ITEM (doc_find(root, "/host/problems"), item)
		strbuf_printf(b, "warning: the host is not configured: " PRI_STR ": " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(item, STR("part")))),
			      FMT_STR(doc_str(doc_get(item, STR("message")))));
	DOC_EACH_ITEM (doc_get(root, STR("staticPods")), item)
		if (doc_get(item, STR("reason")))
			strbuf_printf(b,
				      "warning: static pod of " PRI_STR " is " PRI_STR ": " PRI_STR
				      "\n",
				      FMT_STR(doc_str(doc_get(item, STR("file")))),
				      FMT_STR(doc_str(doc_get(item, STR("state")))),
				      FMT_STR(doc_str(doc_get(item, STR("reason")))));
}

static struct str table_text(const struct agent_status *status, bool with_containers,
			     struct arena *a)
{
	yyjson_val *root = status->doc.root, *runtime = doc_get(root, STR("runtime"));
	struct strbuf b;

	strbuf_init(&b, a);
	node_map_put_source(&b, status);
	if (status->is_running && doc_bool(doc_get(runtime, STR("connected")), false))
		strbuf_printf(&b, "connected to " PRI_STR " " PRI_STR ", mode " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(runtime, STR("name")))),
			      FMT_STR(doc_str(doc_get(runtime, STR("version")))),
			      FMT_STR(doc_str(doc_get(root, STR("mode")))));
	else if (status->is_running)
		strbuf_printf(&b, "not connected to the runtime: " PRI_STR "\n",
			      FMT_STR(doc_str(doc_get(runtime, STR("problem")))));
	/* What a stopped agent knew of its connection is of no use. */
	if (status->is_running)
		add_cluster(&b, root);
	add_source(&b, root);
	add_cpu_manager(&b, root);
	add_host(&b, root);
	add_pools(&b, root);
	add_types(&b, root);
	if (with_containers)
		add_containers(&b, root);
	add_refusals(&b, root);
	add_counter_warnings(&b, root);
	add_profile_warning(&b, root);
	add_warnings(&b, root);
	return strbuf_str(&b);
}

static int run(struct invocation *inv, struct err *err)
{
	const struct status_options *o = inv->options;
	const enum output_format format = output_format_of(o->output);
	struct agent_status status;
	int r;

	if (command_no_operands(inv, err) < 0 || cluster_report_check(&o->all, &o->bundle, err) < 0)
		return -EINVAL;
	if (o->all.cluster)
		return cluster_report_status(&o->all, &o->bundle, format, inv->arena, err);
	r = o->bundle.path ? bundle_input_status(&o->bundle, inv->arena, &status, err) :
			     status_client_read(o->run_dir, inv->arena, &status, err);
	if (r == -ENOENT &&
	    !o->bundle.path) { /* as documented: no agent is a finding, not bad usage */
		(void)fprintf(stderr, "%s\n", err->msg);
		return EXIT_FINDING;
	}
	if (r < 0)
		return r;
	if (format == OUTPUT_TABLE)
		r = output_readable(table_text(&status, o->containers, inv->arena), err);
	else
		r = output_doc(yyjson_val_mut_copy(doc_build(inv->arena), status.doc.root), format,
			       inv->arena, err);
	if (r < 0)
		return r;
	return status.is_running &&
			       doc_bool(doc_find(status.doc.root, "/runtime/connected"), false) ?
		       EXIT_YES :
		       EXIT_FINDING;
}

const struct command cmd_status = {
	.name = "status",
	.group = COMMAND_TOOL,
	.summary = "show the pools of this node, or of all nodes",
	.operands = "",
	.about =
		"Reads the status of the running agent, or while none runs the status file that it "
		"wrote\n"
		"last. Exit status 1 when no agent runs or it is not connected to a runtime.\n"
		"With --cluster, reads the NodePartitions of all nodes from the API server. Exit "
		"status 1\n"
		"when `pinfold verify --cluster` has findings.",
	.options = options,
	.options_size = sizeof(struct status_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
