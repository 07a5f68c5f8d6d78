/* The API server and the objects that every cluster with Pinfold has. */

#include "preflight_cluster.h"

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"

#define OBJECT_PATH(name, path) path,
static const char *const paths[] = { PREFLIGHT_OBJECTS(OBJECT_PATH) };

const char *preflight_object_path(enum preflight_object object)
{
	return paths[object];
}

/* Kubernetes 1.30 has ValidatingAdmissionPolicies and matchConditions as stable features. */
static bool check_api_server(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct object_fact *version = &f->objects[PREFLIGHT_VERSION_OBJECT];
	struct str text = doc_str(doc_get(version->object, STR("gitVersion")));
	unsigned v[2];

	if (!version->object) {
		preflight_add(r, PREFLIGHT_API_SERVER_CHECK, PREFLIGHT_FAILURE,
			      str_dup(r->a, str_from(version->err.msg)),
			      STR("check the address and the credentials of the kubeconfig"));
		return false;
	}
	if (preflight_version(text, v) && preflight_is_older(v, 1, 30))
		preflight_add(r, PREFLIGHT_API_SERVER_CHECK, PREFLIGHT_FAILURE,
			      str_printf(r->a, "Kubernetes " PRI_STR " is too old", FMT_STR(text)),
			      STR("upgrade to Kubernetes 1.30 or later"));
	else
		preflight_add(r, PREFLIGHT_API_SERVER_CHECK, PREFLIGHT_OK,
			      str_printf(r->a, "Kubernetes " PRI_STR, FMT_STR(text)), STR(""));
	return true;
}

static yyjson_val *find_named(yyjson_val *list, struct str name)
{
	yyjson_val *item;

	DOC_EACH_ITEM (doc_get(list, STR("items")), item)
		if (str_eq(doc_str(doc_find(item, "/metadata/name")), name))
			return item;
	return NULL;
}

static bool is_established(yyjson_val *crd)
{
	yyjson_val *c;

	DOC_EACH_ITEM (doc_find(crd, "/status/conditions"), c)
		if (str_eq(doc_str(doc_get(c, STR("type"))), STR("Established")))
			return str_eq(doc_str(doc_get(c, STR("status"))), STR("True"));
	return false;
}

/* False when the list could not be read, which is reported. */
static bool is_listed(const struct object_fact *list, enum preflight_check check,
		      struct preflight_report *r)
{
	if (list->object)
		return true;
	preflight_add(r, check, PREFLIGHT_NOTE, str_printf(r->a, "not checked: %s", list->err.msg),
		      STR("use credentials that may list these objects"));
	return false;
}

static void check_crds(const struct cluster_facts *f, struct preflight_report *r)
{
	static const struct str wanted[] = {
		STR_INIT("infrastructures.config.openshift.io"),
		STR_INIT("performanceprofiles.performance.openshift.io"),
		STR_INIT("nodepartitions.pinfold.io"),
	};
	const struct object_fact *list = &f->objects[PREFLIGHT_CRDS_OBJECT];
	bool is_complete = true;

	if (!is_listed(list, PREFLIGHT_CRDS_CHECK, r))
		return;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		yyjson_val *crd = find_named(list->object, wanted[i]);

		if (is_established(crd))
			continue;
		is_complete = false;
		preflight_add(r, PREFLIGHT_CRDS_CHECK, PREFLIGHT_FAILURE,
			      str_printf(r->a, "the CRD " PRI_STR " %s", FMT_STR(wanted[i]),
					 crd ? "is not established" : "does not exist"),
			      STR("kubectl apply -k deploy/base, or install the chart"));
	}
	if (is_complete)
		preflight_add(r, PREFLIGHT_CRDS_CHECK, PREFLIGHT_OK, STR("all CRDs exist"),
			      STR(""));
}

/* Parts of an installation that come with policies of their own. */
enum part { PART_ANY, PART_WEBHOOK, PART_AGENT, PART_OPERATOR };

static bool is_installed(const struct cluster_facts *f, enum part part)
{
	const bool has_webhook = f->objects[PREFLIGHT_MUTATING_OBJECT].object,
		   has_agent = f->objects[PREFLIGHT_DAEMONSET_OBJECT].object,
		   has_operator = f->objects[PREFLIGHT_OPERATOR_OBJECT].object;

	switch (part) {
	case PART_ANY:
		return has_webhook || has_agent || has_operator;
	case PART_WEBHOOK:
		return has_webhook;
	case PART_AGENT:
		return has_agent;
	case PART_OPERATOR:
		return has_operator;
	}
	return false;
}

/* A policy without its binding has no effect. The guard is there in every admission mode. */
static void check_policies(const struct cluster_facts *f, struct preflight_report *r)
{
	static const struct {
		struct str name;
		enum part with;
	} wanted[] = {
		{ STR_INIT("pinfold-guard"), PART_ANY },
		{ STR_INIT("pinfold-pods"), PART_ANY },
		{ STR_INIT("pinfold-converted"), PART_ANY },
		{ STR_INIT("pinfold-nodepartitions"), PART_ANY },
		{ STR_INIT("pinfold-webhook"), PART_WEBHOOK },
		{ STR_INIT("pinfold-agent"), PART_AGENT },
		{ STR_INIT("pinfold-operator"), PART_OPERATOR },
		{ STR_INIT(NAME_PERMISSIONS), PART_OPERATOR },
	};
	const struct object_fact *list = &f->objects[PREFLIGHT_POLICIES_OBJECT];
	const struct object_fact *bindings = &f->objects[PREFLIGHT_BINDINGS_OBJECT];
	bool is_complete = true;

	if (!is_listed(list, PREFLIGHT_POLICIES_CHECK, r) ||
	    !is_listed(bindings, PREFLIGHT_POLICIES_CHECK, r))
		return;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		const bool exists = find_named(list->object, wanted[i].name) != NULL;

		if (!is_installed(f, wanted[i].with) ||
		    (exists && find_named(bindings->object, wanted[i].name)))
			continue;
		is_complete = false;
		preflight_add(r, PREFLIGHT_POLICIES_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a, "the ValidatingAdmissionPolicy " PRI_STR " %s",
					 FMT_STR(wanted[i].name),
					 exists ? "has no binding" : "does not exist"),
			      STR("kubectl apply -k deploy, or install the chart"));
	}
	if (is_complete)
		preflight_add(r, PREFLIGHT_POLICIES_CHECK, PREFLIGHT_OK,
			      STR("all admission policies exist and are bound"), STR(""));
}

static void check_flag(const struct cluster_facts *f, struct preflight_report *r)
{
	yyjson_val *object = f->objects[PREFLIGHT_INFRASTRUCTURE_OBJECT].object;
	struct str flag = doc_str(doc_find(object, "/status/" NAME_PARTITIONING_KEY));

	if (str_eq(flag, STR(NAME_PARTITIONING_ALL)))
		preflight_add(r, PREFLIGHT_CLUSTER_FLAG_CHECK, PREFLIGHT_OK,
			      STR("the cluster is partitioned (" NAME_PARTITIONING_ALL ")"),
			      STR(""));
	else
		preflight_add(r, PREFLIGHT_CLUSTER_FLAG_CHECK, PREFLIGHT_WARNING,
			      str_printf(r->a,
					 "the cluster is not partitioned: Infrastructure cluster "
					 "%s",
					 !object ? "does not exist" :
						   "has no cpuPartitioning " NAME_PARTITIONING_ALL),
			      STR("when nodes advertise the resource, set status.cpuPartitioning "
				  "to " NAME_PARTITIONING_ALL " (docs/cluster.md)"));
}

static void check_operator(const struct cluster_facts *f, struct preflight_report *r)
{
	const struct object_fact *o = &f->objects[PREFLIGHT_OPERATOR_OBJECT];

	if (o->object)
		preflight_pods(o->object, PREFLIGHT_OPERATOR_CHECK, "operator", r);
	else
		preflight_add(r, PREFLIGHT_OPERATOR_CHECK, PREFLIGHT_NOTE,
			      o->err.code == ENOENT ?
				      STR("no operator is installed: profiles have no status, and "
					  "changes that disturb are not rolled out") :
				      str_printf(r->a, "not checked: %s", o->err.msg),
			      STR("kubectl apply -k deploy, or install the chart"));
}

/* Whether there is no webhook because policies do what it does (D49). */
static bool policies_convert(const struct cluster_facts *f, struct preflight_report *r)
{
	yyjson_val *list = f->objects[PREFLIGHT_POLICIES_OBJECT].object;

	if (f->objects[PREFLIGHT_MUTATING_OBJECT].object ||
	    !find_named(list, STR(NAME_POLICY_WARNINGS)))
		return false;
	preflight_add(r, PREFLIGHT_WEBHOOK_CONFIGURATION_CHECK, PREFLIGHT_OK,
		      STR("no webhook is configured: admission policies convert pods"), STR(""));
	return true;
}

void preflight_cluster(const struct cluster_facts *f, struct preflight_report *r)
{
	if (!check_api_server(f, r))
		return;
	check_crds(f, r);
	check_policies(f, r);
	check_flag(f, r);
	check_operator(f, r);
	if (!policies_convert(f, r))
		preflight_webhook(f, r);
	preflight_nodes(f, r);
}
