/* Turns the cluster flag on, after a preflight: nothing can turn it off again (D8). */

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cluster_client.h"
#include "command.h"
#include "kube/names.h"
#include "output.h"
#include "partition/cluster_nodes.h"

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
#define PROFILES_PATH "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE
#define PARTITIONS_PATH "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE
#define HOOKS_PATH "/apis/admissionregistration.k8s.io/v1/"
#define CORES NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX

/* The preflight: each check prints one line. */
struct preflight {
	struct api_sync *s;
	struct arena *a;
	size_t n_problems;
};

enum check_level { CHECK_OK, CHECK_WARNING, CHECK_PROBLEM };

static void say(struct preflight *p, enum check_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct preflight *p, enum check_level level, const char *fmt, ...)
{
	static const char *const names[] = { "ok", "warning", "problem" };
	struct strbuf b;
	va_list ap;

	strbuf_init(&b, p->a);
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	p->n_problems += level == CHECK_PROBLEM;
	(void)printf("%-7s  " PRI_STR "\n", names[level], FMT_STR(strbuf_str(&b)));
}

static int check_server(struct preflight *p, struct err *err)
{
	yyjson_val *version;
	int r = api_sync_get(p->s, STR("/version"), p->a, &version, err);

	if (r < 0)
		return r;
	say(p, CHECK_OK, "the API server has version " PRI_STR,
	    FMT_STR(doc_str(doc_get(version, STR("gitVersion")))));
	return 0;
}

static int check_crds(struct preflight *p, struct err *err)
{
	static const struct {
		const char *path, *name;
	} crds[] = {
		{ CONFIG_PATH "?limit=1", "infrastructures.config.openshift.io" },
		{ PROFILES_PATH "?limit=1", NAME_PROFILE_RESOURCE "." NAME_PROFILE_GROUP },
		{ PARTITIONS_PATH "?limit=1", NAME_PARTITION_RESOURCE ".pinfold.io" },
	};

	for (size_t i = 0; i < ARRAY_LEN(crds); i++) {
		yyjson_val *list;

		if (cluster_client_find(p->s, str_from(crds[i].path), p->a, &list, err) < 0)
			return -err->code;
		if (list)
			say(p, CHECK_OK, "CRD %s", crds[i].name);
		else
			say(p, CHECK_PROBLEM, "there is no CRD %s: kubectl apply -k deploy/",
			    crds[i].name);
	}
	return 0;
}

static bool trusts(yyjson_val *configuration)
{
	yyjson_val *hook;

	DOC_EACH_ITEM (doc_get(configuration, STR("webhooks")), hook)
		if (!doc_str(doc_find(hook, "/clientConfig/caBundle")).n)
			return false;
	return true;
}

static int check_configurations(struct preflight *p, struct err *err)
{
	static const char *const kinds[] = { "mutatingwebhookconfigurations",
					     "validatingwebhookconfigurations" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct str path = str_printf(p->a, HOOKS_PATH "%s/pinfold", kinds[i]);
		yyjson_val *found;

		if (cluster_client_find(p->s, path, p->a, &found, err) < 0)
			return -err->code;
		if (!found)
			say(p, CHECK_PROBLEM, "%s: there is none named pinfold", kinds[i]);
		else if (!trusts(found))
			say(p, CHECK_PROBLEM,
			    "%s: pinfold has no CA bundle yet, so the webhook is not trusted",
			    kinds[i]);
		else
			say(p, CHECK_OK, "%s: pinfold", kinds[i]);
	}
	return 0;
}

/* Nothing is stored: the API server calls the webhooks, and this profile is one to refuse. So a
 * refusal shows that the API server reaches the webhook, trusts it, and gets decisions. */
static void check_webhook(struct preflight *p)
{
	static const char profile[] =
		"{\"apiVersion\":\"" NAME_PROFILE_API "\",\"kind\":\"" NAME_PROFILE_KIND "\","
		"\"metadata\":{\"name\":\"pinfold-preflight\"},\"spec\":{\"cpu\":{"
		"\"reserved\":\"0-1\",\"isolated\":\"1-2\"},\"nodeSelector\":{"
		"\"node-role.kubernetes.io/pinfold-preflight\":\"\"}}}";
	struct api_request request = { .method = "POST",
				       .path = STR(PROFILES_PATH "?dryRun=All"),
				       .content_type = API_JSON,
				       .body = str_from(profile) };
	struct err err = { 0 };
	yyjson_val *stored;

	if (api_sync_call(p->s, &request, p->a, &stored, &err) == 0)
		say(p, CHECK_PROBLEM,
		    "the webhook does not answer: kubectl -n " NAME_NAMESPACE_WEBHOOK " get pods");
	else if (str_has(str_from(err.msg), STR("performanceprofiles.validate.pinfold.io")))
		say(p, CHECK_OK, "the webhook answers the API server");
	else
		say(p, CHECK_PROBLEM, "the webhook cannot be tried: %s", err.msg);
}

struct node_count {
	size_t n_ready, n_cores;
};

static int count_node(void *context, yyjson_val *node, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct node_count *count = context;
	struct cluster_nodes one;

	(void)err;
	arena_init(&a, 0);
	cluster_nodes_init(&one, &a);
	cluster_nodes_add_node(&one, node);
	count->n_ready += one.items[0].is_ready;
	count->n_cores += one.items[0].is_ready && one.items[0].has_cores;
	return 0;
}

static int check_nodes(struct preflight *p, struct err *err)
{
	struct node_count count = { 0 };
	int r = api_sync_list(p->s,
			      &(struct api_sync_list){ .path = STR("/api/v1/nodes"),
						       .on_object = count_node,
						       .context = &count },
			      err);

	if (r < 0)
		return r;
	if (!count.n_cores)
		say(p, CHECK_PROBLEM,
		    "none of %zu ready nodes advertises " CORES ": run the agent on the nodes",
		    count.n_ready);
	else
		say(p, count.n_cores < count.n_ready ? CHECK_WARNING : CHECK_OK,
		    "%zu of %zu ready nodes advertise " CORES, count.n_cores, count.n_ready);
	return 0;
}

static int preflight(struct preflight *p, struct err *err)
{
	int r = check_server(p, err);

	if (r >= 0)
		r = check_crds(p, err);
	if (r >= 0)
		r = check_configurations(p, err);
	if (r >= 0) {
		check_webhook(p);
		r = check_nodes(p, err);
	}
	return r;
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
	struct preflight p = { .s = s, .a = inv->arena };
	int r = preflight(&p, err);

	if (r < 0)
		return r;
	(void)fflush(stdout);
	if (p.n_problems && !(o->force && !o->dry_run)) {
		(void)fprintf(stderr,
			      "the cluster is not ready: %zu problem%s, nothing was changed\n",
			      p.n_problems, p.n_problems == 1 ? "" : "s");
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
	.about = "Checks that the API server has the CRDs, calls the webhook and trusts it, and "
		 "that "
		 "nodes\n"
		 "advertise the resource of management pods. Then sets status.cpuPartitioning of\n"
		 "Infrastructure \"cluster\" to AllNodes, and creates the object where there is "
		 "none. "
		 "This cannot\n"
		 "be undone, so it asks first. Exit status 1 when the cluster is not ready or the "
		 "answer is not\n"
		 "yes; then nothing was changed.",
	.options = options,
	.options_size = sizeof(struct enable_options),
	.examples = examples,
	.reports_success = true,
	.run = run,
};
