/* Removes Pinfold from a cluster, in the order of removal.h. Every step can be repeated: a command
 * that was interrupted, or stopped because a pod waits, goes on where it was. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cluster/object_path.h"
#include "cluster_client.h"
#include "command.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "nodesync/node_uninstall.h"
#include "removal.h"
#include "removal_nodes.h"

struct uninstall_options {
	struct cluster_client_options client;
	unsigned timeout_s;
	bool yes, dry_run, crds, force;
};

#define AT(field) offsetof(struct uninstall_options, field)

static const struct option_desc options[] = {
	CLUSTER_CLIENT_OPTIONS(struct uninstall_options, client),
	{ OPT_FLAG, 0, "dry-run", NULL, "print what would be done, change nothing", NULL,
	  AT(dry_run) },
	{ OPT_FLAG, 0, "crds", NULL,
	  "also delete the CRDs of profiles and the cluster flag, and with them all profiles", NULL,
	  AT(crds) },
	{ OPT_UINT, 0, "timeout", "SECONDS",
	  "how long to wait for pods, agents and namespaces, each (default: 300)", NULL,
	  AT(timeout_s) },
	{ OPT_FLAG, 0, "force", NULL, "go on although converted pods wait for a node", NULL,
	  AT(force) },
	YES_OPTION(struct uninstall_options, yes),
	{ 0 },
};

static const struct uninstall_options defaults = { .timeout_s = 300 };

static const struct command_example examples[] = {
	{ "pinfold uninstall --dry-run", "what would be removed, in this order" },
	{ "pinfold uninstall", "ask, then remove everything but CRDs with profiles" },
	{ "pinfold uninstall --crds --yes", "remove everything, without a question" },
	{ 0 },
};

struct removal_item {
	const struct removal_kind *kind;
	struct str name;
};

struct uninstall {
	const struct uninstall_options *o;
	struct api_sync s;
	struct arena *a;
	struct removal_item *items;
	size_t n, cap;
	const struct removal_kind *listed; /* whose objects are listed now */
	struct cluster_agents agents;
	size_t n_findings;
	bool is_stopped; /* before the nodes lose what converted pods request */
};

static struct str path_of(const struct removal_kind *kind, struct str name, struct arena *a)
{
	return object_path(&(struct object_ref){ .api = str_from(kind->api),
						 .resource = str_from(kind->resource),
						 .namespace = str_from(kind->namespace),
						 .name = name },
			   a);
}

static int collect_object(void *context, yyjson_val *object, struct err *err)
{
	struct uninstall *u = context;
	struct str name = object_name(object);

	(void)err;
	if (!removal_takes(u->listed, name))
		return 0;
	u->items = arena_reserve(u->a, u->items, u->n, &u->cap, sizeof(*u->items));
	u->items[u->n++] = (struct removal_item){ u->listed, str_dup(u->a, name) };
	return 0;
}

/* OpenShift's own CRDs are never ours. */
static int check_crds(struct uninstall *u, struct err *err)
{
	yyjson_val *found;
	int r;

	if (!u->o->crds)
		return 0;
	r = cluster_client_find(&u->s,
				STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
				    "clusterversions.config.openshift.io"),
				u->a, &found, err);
	if (r < 0 || !found)
		return r;
	return err_set(err, EINVAL,
		       "--crds: this is an OpenShift cluster, its CRDs do not belong to Pinfold");
}

static int collect(struct uninstall *u, struct err *err)
{
	int r = check_crds(u, err);

	for (const struct removal_kind *kind = removal_kinds; r >= 0 && kind->api; kind++) {
		if (kind->step == REMOVE_CRDS_WITH_DATA && !u->o->crds)
			continue;
		u->listed = kind;
		r = api_sync_list(&u->s,
				  &(struct api_sync_list){ .path = path_of(kind, STR(""), u->a),
							   .on_object = collect_object,
							   .context = u },
				  err);
		if (r == -ENOENT) /* this API server does not have the kind */
			r = 0;
	}
	return r < 0 ? r : cluster_agents_read(&u->s, u->a, &u->agents, err);
}

static void print_item(const char *verb, const struct removal_item *item)
{
	const char *namespace = item->kind->namespace;

	(void)printf("%s %s%s%s/" PRI_STR "\n", verb, namespace, *namespace ? " " : "",
		     item->kind->resource, FMT_STR(item->name));
}

static void print_plan(const struct uninstall *u)
{
	for (enum removal_step step = 0; step < REMOVAL_STEP__COUNT; step++) {
		if (step == REMOVE_AGENTS)
			for (size_t i = 0; i < u->agents.n; i++)
				cluster_agent_print_plan(&u->agents.items[i]);
		for (size_t i = 0; i < u->n; i++)
			if (u->items[i].kind->step == step)
				print_item("delete", &u->items[i]);
	}
}

static int delete_item(struct uninstall *u, const struct removal_item *item, struct err *err)
{
	yyjson_val *ignored;
	int r = api_sync_call(
		&u->s,
		&(struct api_request){ .method = "DELETE",
				       .path = path_of(item->kind, item->name, u->a) },
		u->a, &ignored, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_wrap(err, "delete %s/" PRI_STR, item->kind->resource,
				FMT_STR(item->name));
	print_item("deleted", item);
	return 0;
}

static int delete_step(struct uninstall *u, enum removal_step step, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < u->n; i++)
		if (u->items[i].kind->step == step)
			r = delete_item(u, &u->items[i], err);
	return r;
}

/* Namespaces and CRDs are gone only when everything in them is. */
static int wait_gone(struct uninstall *u, enum removal_step step, struct err *err)
{
	const time_t end_s = time(NULL) + (time_t)u->o->timeout_s;

	for (size_t i = 0; i < u->n; i++) {
		const struct removal_item *item = &u->items[i];
		yyjson_val *found;
		int r;

		if (item->kind->step != step)
			continue;
		for (;;) {
			r = cluster_client_find(&u->s, path_of(item->kind, item->name, u->a), u->a,
						&found, err);
			if (r < 0)
				return r;
			if (!found)
				break;
			if (time(NULL) >= end_s)
				return err_set(err, ETIMEDOUT,
					       "%s/" PRI_STR " is still being deleted after %u s: "
					       "something in it has a finalizer",
					       item->kind->resource, FMT_STR(item->name),
					       u->o->timeout_s);
			api_sync_pause(&u->s, 500);
		}
	}
	return 0;
}

/* Without the webhook, a pod that is created again keeps its CPU requests. */
static int settle_pods(struct uninstall *u, struct err *err)
{
	struct waiting_pods pods;
	int r = waiting_pods_settle(&u->s, u->o->timeout_s, u->a, &pods, err);

	if (r < 0 || !pods.n)
		return r;
	for (size_t i = 0; i < pods.n; i++)
		(void)fprintf(stderr, "pod " PRI_STR " was converted and waits for a node\n",
			      FMT_STR(pods.names[i]));
	u->n_findings += pods.n;
	if (u->o->force)
		return 0;
	(void)fprintf(stderr,
		      "they would never be scheduled: delete them and run this command again, or "
		      "use --force\n");
	u->is_stopped = true;
	return 0;
}

static int release_nodes(struct uninstall *u, struct err *err)
{
	int r = cluster_agents_release(&u->s, u->o->timeout_s, &u->agents, err);

	if (r >= 0)
		r = delete_step(u, REMOVE_AGENTS, err);
	if (r >= 0)
		r = cluster_agents_clean(&u->s, &u->agents, err);
	for (size_t i = 0; r >= 0 && i < u->agents.n; i++)
		u->n_findings += cluster_agent_report(&u->agents.items[i]);
	return r;
}

static int remove_all(struct uninstall *u, struct err *err)
{
	int r = delete_step(u, REMOVE_CONVERSION, err);

	if (r >= 0)
		r = settle_pods(u, err);
	if (r < 0 || u->is_stopped)
		return r;
	r = delete_step(u, REMOVE_CONTROLLERS, err);
	if (r >= 0)
		r = release_nodes(u, err);
	for (enum removal_step step = REMOVE_PERMISSIONS; r >= 0 && step < REMOVAL_STEP__COUNT;
	     step++)
		r = delete_step(u, step, err);
	if (r >= 0)
		r = wait_gone(u, REMOVE_NAMESPACES, err);
	if (r >= 0)
		r = wait_gone(u, REMOVE_CRDS, err);
	if (r >= 0)
		r = wait_gone(u, REMOVE_CRDS_WITH_DATA, err);
	return r;
}

static int uninstall(struct invocation *inv, struct uninstall *u, struct err *err)
{
	int r = collect(u, err);

	if (r < 0)
		return r;
	if (!u->n && !cluster_agents_has_work(&u->agents)) {
		command_success(inv, "nothing of Pinfold is left in the cluster");
		return EXIT_YES;
	}
	print_plan(u);
	(void)fflush(stdout);
	if (u->o->dry_run)
		return EXIT_YES;
	r = confirm(u->o->crds ? "This removes Pinfold and ALL PROFILES from the cluster." :
				 "This removes Pinfold from the cluster. Running pods stay.",
		    u->o->yes, err);
	if (r < 0)
		return r;
	if (r == 0) {
		(void)fprintf(stderr, "nothing was changed\n");
		return EXIT_FINDING;
	}
	r = remove_all(u, err);
	if (r < 0)
		return r;
	if (u->n_findings)
		return EXIT_FINDING;
	command_success(inv,
			"Pinfold is removed; pods that were converted keep running without CPU "
			"requests until they are created again");
	return EXIT_YES;
}

static int run(struct invocation *inv, struct err *err)
{
	struct uninstall u = { .o = inv->options, .a = inv->arena };
	int r;

	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	r = cluster_client_open(&u.s, &u.o->client, inv->arena, err);
	if (r == 0)
		r = uninstall(inv, &u, err);
	api_sync_close(&u.s);
	return r;
}

const struct command cmd_uninstall = {
	.name = "uninstall",
	.group = COMMAND_TOOL,
	.summary = "remove Pinfold from a cluster",
	.operands = "",
	.about =
		"Removes everything of Pinfold, in an order that strands no pod: first webhooks "
		"and\n"
		"policies, so that no new pod is converted; converted pods that wait for a node "
		"are\n"
		"deleted, and their controllers create them again; then webhook and operator. The "
		"agents of\n"
		"the DaemonSet undo what they did on their nodes; resources, conditions and taints "
		"are\n"
		"removed from the Nodes; permissions, namespaces and NodePartitions are deleted. "
		"Running\n"
		"pods keep running. Profiles and the cluster flag stay, unless --crds is given.\n"
		"Agents that are systemd units are reported: stop and uninstall them on their "
		"nodes.\n"
		"Exit status 1 when something is left.",
	.options = options,
	.options_size = sizeof(struct uninstall_options),
	.defaults = &defaults,
	.examples = examples,
	.reports_success = true,
	.run = run,
};
