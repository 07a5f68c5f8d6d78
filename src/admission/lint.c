/* Findings about manifests. What admission decides is not repeated here: the pod is admitted to a
 * permissive cluster, and the rule that stopped it becomes the finding, so that lint and the
 * webhook agree. */

#include "lint.h"

#include <string.h>

#include "admission.h"
#include "base/arena.h"
#include "base/macro.h"
#include "defaults.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "legacy.h"

static const struct {
	const char *name, *text;
	enum lint_level level;
} rules[] = {
	[LINT_TARGET] = { "target", "A platform workload opts in to its workload type",
			  LINT_ERROR },
	[LINT_PERMISSION] = { "permission", "A namespace allows the workload type of its pods",
			      LINT_ERROR },
	[LINT_NAMESPACE] = { "namespace", "The namespace of a workload is among the manifests",
			     LINT_NOTE },
	[LINT_BAD_TARGET] = { "bad-target", "The opt-in is valid", LINT_ERROR },
	[LINT_GUARANTEED] = { "guaranteed", "A pod that opted in is not Guaranteed", LINT_ERROR },
	[LINT_QOS_CHANGE] = { "qos-change", "A pod keeps its QoS class without its CPU",
			      LINT_ERROR },
	[LINT_POD_LEVEL] = { "pod-level-resources", "CPU is stated for containers, not for the pod",
			     LINT_ERROR },
	[LINT_QUANTITY] = { "quantity", "Quantities are readable and in range", LINT_ERROR },
	[LINT_HAND_WRITTEN] = { "hand-written",
				"Only admission writes resource annotations and cores",
				LINT_WARNING },
	[LINT_EXEC_PROBE] = { "exec-probe", "No exec probes where a container owns its CPUs",
			      LINT_WARNING },
	[LINT_LEGACY] = { "legacy", "Names of the 2021 design are not used", LINT_WARNING },
	[LINT_CUSTOM] = { "custom-resource", "Pods of custom resources are checked in the cluster",
			  LINT_NOTE },
};
_Static_assert(ARRAY_LEN(rules) == LINT__COUNT, "every lint rule has its texts");

static const char *const levels[] = {
	[LINT_NOTE] = "note",
	[LINT_WARNING] = "warning",
	[LINT_ERROR] = "error",
};
_Static_assert(ARRAY_LEN(levels) == LINT_LEVEL__COUNT, "every level has a name");

const char *lint_rule_name(enum lint_rule rule)
{
	return rules[rule].name;
}

const char *lint_rule_text(enum lint_rule rule)
{
	return rules[rule].text;
}

enum lint_level lint_rule_level(enum lint_rule rule)
{
	return rules[rule].level;
}

const char *lint_level_name(enum lint_level level)
{
	return levels[level];
}

void lint_findings_init(struct lint_findings *f, struct arena *a)
{
	*f = (struct lint_findings){ .a = a };
}

static void add_finding(struct lint_findings *f, struct lint_finding finding)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 16;

		f->items = arena_realloc(f->a, f->items, f->cap * sizeof(*f->items),
					 cap * sizeof(*f->items));
		f->cap = cap;
	}
	f->items[f->n++] = finding;
}

/* A cluster where everything is allowed, so that a decision depends only on the pod. */
static bool allows_all(const void *owner, struct str name, struct namespace_permission *ret)
{
	(void)name;
	*ret = (struct namespace_permission){ .has_allowed = true,
					      .allowed = *(const struct str *)owner };
	return true;
}

/* Every node has cores: a manifest is checked for all clusters. */
static struct cores_count cores_everywhere(const void *owner, struct str type)
{
	(void)owner;
	(void)type;
	return (struct cores_count){ 1, 1 };
}

static struct admission_state permissive_cluster(const struct str *type)
{
	return (struct admission_state){
		.infrastructure = { .is_present = true,
				    .has_status = true,
				    .is_partitioned = true,
				    .partitioning = STR(NAME_PARTITIONING_ALL) },
		.nodes = { .n = 1, .n_available = 1 },
		.is_synced = true,
		.owner = type,
		.find_namespace = allows_all,
		.count_cores = cores_everywhere,
	};
}

/* The finding for an admission rule. False for rules that a manifest cannot violate. */
static bool lint_rule_of(enum admission_rule rule, enum lint_rule *ret)
{
	static const struct {
		enum admission_rule from;
		enum lint_rule to;
	} map[] = {
		{ RULE_TARGET, LINT_BAD_TARGET },	{ RULE_EFFECT, LINT_BAD_TARGET },
		{ RULE_TYPE_ALLOWED, LINT_BAD_TARGET }, { RULE_GUARANTEED, LINT_GUARANTEED },
		{ RULE_QOS_CHANGE, LINT_QOS_CHANGE },	{ RULE_POD_LEVEL, LINT_POD_LEVEL },
		{ RULE_QUANTITY, LINT_QUANTITY },
	};

	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		if (map[i].from == rule) {
			*ret = map[i].to;
			return true;
		}
	return false;
}

static void check_decision(yyjson_val *object, yyjson_val *at, struct str type,
			   struct lint_findings *f)
{
	struct admission_state state = permissive_cluster(&type);
	struct admission_result result;
	enum lint_rule rule;
	yyjson_val *pod;

	/* Its own type is allowed in this cluster: whether the namespace allows it is
	 * lint_namespace(). */
	if (pod_from_workload(object, f->a, &pod, NULL) < 0 ||
	    pod_default_resources(pod, f->a, &pod, NULL) < 0 ||
	    admit_pod(&state, pod, f->a, &result) < 0 || !lint_rule_of(result.rule, &rule))
		return;
	/* Every rule in the map that lets a pod pass adds a warning (D11). */
	add_finding(f, (struct lint_finding){
			       .rule = rule,
			       .at = at,
			       .text = result.allowed ? result.warnings[0] : result.message,
			       .advice = rule_advice(result.rule),
		       });
}

static void check_target(yyjson_val *object, const struct pod *pod, struct str type,
			 struct lint_findings *f)
{
	yyjson_val *annotations = pod_annotations(pod), *key, *value, *at = NULL;
	struct str own = STR("");

	DOC_EACH_PAIR (annotations, key, value)
		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX))) {
			at = key;
			own = str_skip(doc_str(key), strlen(NAME_TARGET_PREFIX));
		}
	(void)value;
	if (at) {
		check_decision(object, at, own, f);
		return;
	}
	add_finding(f, (struct lint_finding){
			       .rule = LINT_TARGET,
			       .at = object,
			       .text = str_printf(
				       f->a,
				       PRI_STR " " PRI_STR
					       " has no annotation " NAME_TARGET_PREFIX PRI_STR,
				       FMT_STR(pod->kind), FMT_STR(pod_name(pod)), FMT_STR(type)),
			       .advice = "pinfold lint --fix adds it",
		       });
}

static void check_hand_written(const struct pod *pod, struct lint_findings *f)
{
	struct container_iter it = container_iter(pod, false);
	yyjson_val *key, *value;
	struct container c;

	DOC_EACH_PAIR (pod_annotations(pod), key, value)
		if (str_starts(doc_str(key), STR(NAME_RESOURCES_PREFIX)) ||
		    str_eq(doc_str(key), STR(NAME_STAMP)))
			add_finding(f, (struct lint_finding){
					       .rule = LINT_HAND_WRITTEN,
					       .at = key,
					       .text = str_printf(f->a,
								  "annotation " PRI_STR
								  " is written by admission",
								  FMT_STR(doc_str(key))),
					       .advice = "remove it",
				       });
	while (container_next(&it, &c))
		DOC_EACH_PAIR (c.requests, key, value)
			if (str_ends(doc_str(key), STR(NAME_CORES)))
				add_finding(
					f, (struct lint_finding){
						   .rule = LINT_HAND_WRITTEN,
						   .at = key,
						   .text = str_printf(
							   f->a,
							   "container " PRI_STR " requests " PRI_STR
							   ", which only admission writes",
							   FMT_STR(c.name), FMT_STR(doc_str(key))),
						   .advice = "request cpu instead",
					   });
	(void)value;
}

static bool owns_cpus(const struct container *c)
{
	struct quantity q;
	int64_t milli;

	/* The limit counts as well: it becomes the request by default. */
	return (resource_get(c->requests, STR(NAME_CPU), &q, NULL) == 1 ||
		resource_get(c->limits, STR(NAME_CPU), &q, NULL) == 1) &&
	       quantity_milli(&q, &milli, NULL) == 0 && milli > 0 && milli % 1000 == 0;
}

/* docs/reference/pools.md#exec-probes */
static void check_probes(const struct pod *pod, struct lint_findings *f)
{
	static const struct str probes[] = { STR_INIT("livenessProbe"), STR_INIT("readinessProbe"),
					     STR_INIT("startupProbe") };
	struct container_iter it = container_iter(pod, false);
	enum qos_class class;
	struct container c;

	/* qos_kubernetes() expects default resources; a manifest does not have them yet. */
	if (qos_hook(pod, &class, NULL) < 0 || class != QOS_GUARANTEED)
		return;
	while (container_next(&it, &c))
		for (size_t i = 0; owns_cpus(&c) && i < ARRAY_LEN(probes); i++) {
			yyjson_val *exec = doc_get(doc_get(c.v, probes[i]), STR("exec"));

			if (!exec)
				continue;
			add_finding(f, (struct lint_finding){
					       .rule = LINT_EXEC_PROBE,
					       .at = exec,
					       .text = str_printf(
						       f->a,
						       PRI_STR " of container " PRI_STR
							       " executes on the CPUs it owns",
						       FMT_STR(probes[i]), FMT_STR(c.name)),
					       .advice = "use an HTTP, TCP or gRPC probe",
				       });
		}
}

void lint_pod(yyjson_val *object, struct str type, struct lint_findings *f)
{
	struct pod pod;

	if (!pod_from_object(object, &pod))
		return;
	if (legacy_is_used(object, f->a))
		add_finding(f, (struct lint_finding){
				       .rule = LINT_LEGACY,
				       .at = object,
				       .text = str_printf(
					       f->a,
					       PRI_STR " " PRI_STR " uses names of the 2021 design",
					       FMT_STR(pod.kind), FMT_STR(pod_name(&pod))),
				       .advice = "run pinfold migrate",
			       });
	check_target(object, &pod, type, f);
	check_hand_written(&pod, f);
	check_probes(&pod, f);
}

/* --- custom resources --- */

#define TEMPLATE_MAX_DEPTH 16

/* Kinds whose controllers create pods from something else than a pod template. */
static const struct {
	struct str group, kind;
} creators[] = {
	{ STR_INIT("monitoring.coreos.com"), STR_INIT("Prometheus") },
	{ STR_INIT("monitoring.coreos.com"), STR_INIT("PrometheusAgent") },
	{ STR_INIT("monitoring.coreos.com"), STR_INIT("Alertmanager") },
	{ STR_INIT("monitoring.coreos.com"), STR_INIT("ThanosRuler") },
	{ STR_INIT("operator.openshift.io"), STR_INIT("IngressController") },
	{ STR_INIT("kafka.strimzi.io"), STR_INIT("Kafka") },
	{ STR_INIT("kafka.strimzi.io"), STR_INIT("KafkaConnect") },
	{ STR_INIT("postgresql.cnpg.io"), STR_INIT("Cluster") },
	{ STR_INIT("elasticsearch.k8s.elastic.co"), STR_INIT("Elasticsearch") },
	{ STR_INIT("kibana.k8s.elastic.co"), STR_INIT("Kibana") },
	{ STR_INIT("kubevirt.io"), STR_INIT("VirtualMachine") },
	{ STR_INIT("kubevirt.io"), STR_INIT("VirtualMachineInstance") },
	{ STR_INIT("tekton.dev"), STR_INIT("TaskRun") },
	{ STR_INIT("tekton.dev"), STR_INIT("PipelineRun") },
	{ STR_INIT("argoproj.io"), STR_INIT("Workflow") },
	{ STR_INIT("argoproj.io"), STR_INIT("CronWorkflow") },
	{ STR_INIT("ceph.rook.io"), STR_INIT("CephCluster") },
	{ STR_INIT("sparkoperator.k8s.io"), STR_INIT("SparkApplication") },
};

/* "argoproj.io" of "argoproj.io/v1"; "" for the core group. */
static struct str group_of(yyjson_val *object)
{
	const struct str api = object_api(object);
	const char *slash = api.n ? memchr(api.p, '/', api.n) : NULL;

	return slash ? (struct str){ api.p, (size_t)(slash - api.p) } : STR("");
}

static bool is_known_creator(struct str group, struct str kind)
{
	for (size_t i = 0; i < ARRAY_LEN(creators); i++)
		if (str_eq(creators[i].group, group) && str_eq(creators[i].kind, kind))
			return true;
	return false;
}

/* Groups of Kubernetes itself have no dot, or end in k8s.io. */
static bool is_builtin(struct str group)
{
	return !str_has(group, STR(".")) || str_ends(group, STR(".k8s.io"));
}

/* A list of containers somewhere below: "containers" with items that have an image. */
static bool has_containers(yyjson_val *v, unsigned depth)
{
	yyjson_val *key, *value;

	if (depth > TEMPLATE_MAX_DEPTH)
		return false;
	if (yyjson_is_arr(v)) {
		DOC_EACH_ITEM (v, value)
			if (has_containers(value, depth + 1))
				return true;
		return false;
	}
	DOC_EACH_PAIR (v, key, value)
		if ((str_eq(doc_str(key), STR("containers")) &&
		     doc_str(doc_get(yyjson_arr_get_first(value), STR("image"))).n) ||
		    has_containers(value, depth + 1))
			return true;
	return false;
}

void lint_custom(yyjson_val *object, struct lint_findings *f)
{
	const struct str kind = object_kind(object), group = group_of(object);

	if (!is_known_creator(group, kind) &&
	    (is_builtin(group) || !has_containers(doc_get(object, STR("spec")), 0)))
		return;
	add_finding(f, (struct lint_finding){
			       .rule = LINT_CUSTOM,
			       .at = object,
			       .text = str_printf(f->a,
						  PRI_STR " " PRI_STR " (" PRI_STR
							  ") creates pods that are not checked",
						  FMT_STR(kind), FMT_STR(object_name(object)),
						  FMT_STR(object_api(object))),
			       .advice = "check them in the cluster: kubectl get pods -A -o yaml | "
					 "pinfold lint -",
		       });
}

void lint_namespace(yyjson_val *object, yyjson_val *workload, struct str name, struct str type,
		    struct lint_findings *f)
{
	struct namespace_permission permission = namespace_permission_of(object);

	if (!object) {
		add_finding(f, (struct lint_finding){
				       .rule = LINT_NAMESPACE,
				       .at = workload,
				       .text = str_printf(
					       f->a,
					       "namespace " PRI_STR
					       " is not among the manifests: unknown whether it "
					       "allows " PRI_STR,
					       FMT_STR(name), FMT_STR(type)),
				       .advice = "add its manifest, or pass it with --state",
			       });
		return;
	}
	if (permission.has_allowed && type_is_allowed(permission.allowed, type))
		return;
	add_finding(f,
		    (struct lint_finding){
			    .rule = LINT_PERMISSION,
			    .at = object,
			    .text = permission.has_allowed ?
					    str_printf(f->a,
						       "namespace " PRI_STR " allows \"" PRI_STR
						       "\", but not " PRI_STR,
						       FMT_STR(name), FMT_STR(permission.allowed),
						       FMT_STR(type)) :
					    str_printf(f->a,
						       "namespace " PRI_STR
						       " has no annotation " NAME_ALLOWED
						       ": " PRI_STR,
						       FMT_STR(name), FMT_STR(type)),
			    .advice = "pinfold lint --fix adds it",
		    });
}
