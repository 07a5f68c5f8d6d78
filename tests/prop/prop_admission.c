/* Admission of random pods and clusters: a second pass changes nothing, the QoS class stays,
 * every millicore is moved, only workload annotations and resources change, and the validating
 * hook accepts the result. */

#include <string.h>

#include "admission/admission.h"
#include "admission/defaults.h"
#include "admission_rows.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "kube/stamp.h"
#include "prop.h"

static const char *const cpus[] = { "0", "1m",	  "20m", "100m", "250m", "0.5",	  "1",
				    "2", "1500m", "4",	 "100u", "1e0",	 "2000m", "64" };
static const char *const memories[] = { "0", "1Mi", "50Mi", "64Mi", "1Gi", "1e3" };
static const char *const types[] = { "management", "management", "test", "other" };

static void draw_list(struct prop *r, struct strbuf *b, const char *name, uint64_t sparse)
{
	bool has = false;

	strbuf_printf(b, "\"%s\":{", name);
	if (!prop_one_in(r, sparse)) {
		strbuf_printf(b, "\"cpu\":\"%s\"", prop_pick(r, cpus));
		has = true;
	}
	if (!prop_one_in(r, sparse)) {
		strbuf_printf(b, "%s\"memory\":\"%s\"", has ? "," : "", prop_pick(r, memories));
		has = true;
	}
	if (prop_one_in(r, 5)) {
		strbuf_printf(b, "%s\"example.com/gpu\":\"1\"", has ? "," : "");
		has = true;
	}
	if (prop_one_in(r, 12))
		strbuf_printf(b, "%s\"management.workload.openshift.io/cores\":\"%u\"",
			      has ? "," : "", (unsigned)prop_below(r, 3000));
	strbuf_addc(b, '}');
}

static void draw_resources(struct prop *r, struct strbuf *b)
{
	uint64_t sparse = prop_between(r, 2, 4);

	if (prop_one_in(r, 6))
		return;
	strbuf_printf(b, ",\"resources\":{");
	if (prop_one_in(r, 4)) { /* Guaranteed */
		const char *cpu = prop_pick(r, cpus);

		strbuf_printf(b,
			      "\"requests\":{\"cpu\":\"%s\",\"memory\":\"1Gi\"},"
			      "\"limits\":{\"cpu\":\"%s\",\"memory\":\"1Gi\"}}",
			      cpu, cpu);
		return;
	}
	draw_list(r, b, "requests", sparse);
	if (!prop_one_in(r, 3)) {
		strbuf_addc(b, ',');
		draw_list(r, b, "limits", sparse);
	}
	strbuf_addc(b, '}');
}

static void draw_containers(struct prop *r, struct strbuf *b, const char *list, uint64_t n)
{
	strbuf_printf(b, "\"%s\":[", list);
	for (uint64_t i = 0; i < n; i++) {
		strbuf_printf(b, "%s{\"name\":\"%c%u\",\"image\":\"x\"", i ? "," : "", list[0],
			      (unsigned)i);
		if (list[0] == 'i' && prop_one_in(r, 2))
			strbuf_printf(b, ",\"restartPolicy\":\"Always\"");
		draw_resources(r, b);
		strbuf_addc(b, '}');
	}
	strbuf_addc(b, ']');
}

static void draw_annotations(struct prop *r, struct strbuf *b)
{
	strbuf_printf(b, ",\"annotations\":{\"a~b/c\":\"kept\"");
	if (!prop_one_in(r, 4))
		strbuf_printf(b, ",\"" NAME_TARGET_PREFIX "%s\":%s", prop_pick(r, types),
			      prop_one_in(r, 10) ? "\"{}\"" :
						   "\"{\\\"effect\\\":\\\"PreferredDuringScheduling"
						   "\\\"}\"");
	if (prop_one_in(r, 4))
		strbuf_printf(b, ",\"" NAME_RESOURCES_PREFIX "c0\":\"{\\\"cpushares\\\":%u}\"",
			      (unsigned)prop_below(r, 2000));
	if (prop_one_in(r, 8))
		strbuf_printf(b, ",\"" NAME_RESOURCES_PREFIX "ghost\":\"x\"");
	if (prop_one_in(r, 8))
		strbuf_printf(b, ",\"" NAME_STAMP "\":\"forged\"");
	if (prop_one_in(r, 8))
		strbuf_printf(b, ",\"" NAME_WARNING "\":\"old\"");
	strbuf_addc(b, '}');
}

/* A pod as the API server sends it to a webhook, with default resources. */
static yyjson_val *draw_pod(struct prop *r, struct arena *a)
{
	struct err err = { 0 };
	yyjson_val *pod;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
			  "\"namespace\":\"ns\"");
	if (!prop_one_in(r, 8))
		draw_annotations(r, &b);
	strbuf_printf(&b, "},\"spec\":{");
	if (prop_one_in(r, 2)) {
		draw_containers(r, &b, "initContainers", prop_between(r, 1, 3));
		strbuf_addc(&b, ',');
	}
	draw_containers(r, &b, "containers", prop_between(r, 1, 4));
	if (prop_one_in(r, 12))
		strbuf_printf(&b, ",\"resources\":{\"requests\":{\"%s\":\"1\"}}",
			      prop_one_in(r, 2) ? "cpu" : "memory");
	strbuf_printf(&b, "}}");
	CHECK_OK(pod_default_resources(row_doc(strbuf_str(&b), a), a, &pod, &err));
	return pod;
}

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	(void)name;
	*ret = *(const struct namespace_permission *)owner;
	return true;
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const size_t n = str_eq(type, STR("management"));

	(void)owner;
	return (struct cores_count){ n, n };
}

static const struct node_group without_pool = { STR_INIT(""), STR_INIT("n") };

static struct admission_state draw_state(struct prop *r, struct namespace_permission *ns)
{
	*ns = (struct namespace_permission){ .allowed = STR("management,test"),
					     .has_allowed = !prop_one_in(r, 6) };
	return (struct admission_state){
		.settings = { .pools = prop_one_in(r, 2) },
		.infrastructure = { .is_present = true,
				    .has_status = true,
				    .is_single = prop_one_in(r, 2),
				    .is_partitioned = !prop_one_in(r, 5) },
		.nodes = { .n = 1,
			   .n_reporting = 1,
			   .n_available = 1,
			   .n_shared = prop_one_in(r, 6) ? 0 : 1,
			   .missing_shared = &without_pool,
			   .n_missing_shared = prop_one_in(r, 6) },
		.is_synced = true,
		.owner = ns,
		.find_namespace = find_namespace,
		.count_cores = count_cores,
	};
}

/* Millicores of one resource over all containers. */
static int64_t sum_of(yyjson_val *object, struct str resource, bool is_milli)
{
	struct pod pod = { .spec = doc_get(object, STR("spec")) };
	struct container_iter it = container_iter(&pod, false);
	struct container c;
	int64_t sum = 0;

	while (container_next(&it, &c)) {
		struct quantity q;
		int64_t milli = 0;

		if (resource_get(c.requests, resource, &q, NULL) != 1)
			continue;
		if (is_milli)
			milli = quantity_value(&q);
		else
			CHECK_INT(quantity_milli(&q, &milli, NULL), 0);
		sum += milli;
	}
	return sum;
}

static enum qos_class class_of(yyjson_val *object)
{
	struct pod pod = { .spec = doc_get(object, STR("spec")) };
	enum qos_class class;

	CHECK_INT(qos_kubernetes(&pod, &class, NULL), 0);
	return class;
}

static bool is_our_path(struct str path)
{
	static const char *const steps[] = { "~1cores",
					     "resources/requests",
					     "resources/limits",
					     "/resources",
					     "requests/cpu",
					     "limits/cpu",
					     "/metadata/annotations",
					     "openshift.io~1shared-cpus",
					     "openshift.io~1guaranteed-cpus",
					     "workload.openshift.io~1warning",
					     "pinfold.io~1cpus" };

	if (str_has(path, STR("target.workload.openshift.io~1")) ||
	    str_has(path, STR("resources.workload.openshift.io~1")))
		return true;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (str_ends(path, str_from(steps[i])))
			return true;
	return false;
}

/* A map or list may only be added where there is none. */
static void check_operations(const struct patch *p, yyjson_val *before, struct arena *a)
{
	yyjson_mut_val *op;

	DOC_EACH_BUILT_ITEM (p->ops, op) {
		struct str path = doc_mut_str(yyjson_mut_obj_get(op, "path"));
		yyjson_val *old = doc_find(before, str_cstr(a, path));

		CHECK(is_our_path(path));
		CHECK(!yyjson_is_ctn(old));
	}
}

static struct admission_result admitted(const struct admission_state *state, yyjson_val *pod,
					struct arena *a, yyjson_val **ret)
{
	struct admission_result result;
	struct err err = { 0 };

	CHECK_INT(admit_pod(state, pod, a, &result), 0);
	CHECK_OK(patch_apply(&result.patch, pod, a, ret, &err));
	return result;
}

static void check_accepted(const struct admission_state *state, yyjson_val *before,
			   yyjson_val *after, struct arena *a)
{
	struct admission_request rq = { .operation = OPERATION_CREATE,
					.resource = STR("pods"),
					.object = after };
	struct admission_result result;

	CHECK_INT(admit_validate(state, &rq, a, &result), 0);
	/* Validation refuses only cores that the user requested without opting in. */
	if (!result.allowed)
		CHECK(sum_of(before, STR(NAME_MANAGEMENT_CORES), true) ||
		      str_has(row_text(before, a), STR(NAME_CORES)));
}

TEST(a_second_admission_changes_nothing)
{
	CLEANUP(arena_done) struct arena a;
	size_t n_converted = 0, n_pooled = 0, n_skipped = 0, n_refused = 0;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct namespace_permission ns;
		struct admission_state cluster = draw_state(&r, &ns);
		struct admission_result result, second;
		yyjson_val *before, *after, *again;

		arena_reset(&a);
		before = draw_pod(&r, &a);
		result = admitted(&cluster, before, &a, &after);
		n_refused += !result.allowed;
		n_converted += result.rule == RULE_CONVERT;
		n_pooled += result.rule == RULE_POOLS;
		if (!result.allowed) {
			CHECK(patch_is_empty(&result.patch));
			continue;
		}
		second = admitted(&cluster, after, &a, &again);
		CHECK(second.allowed);
		if (!patch_is_empty(&second.patch))
			test_fail(TEST_AT("settled"),
				  "before " PRI_STR "\nafter " PRI_STR "\nagain " PRI_STR,
				  FMT_STR(row_text(before, &a)), FMT_STR(row_text(after, &a)),
				  FMT_STR(row_text(again, &a)));
		CHECK_INT(class_of(before), class_of(after));
		check_operations(&result.patch, before, &a);
		check_accepted(&cluster, before, after, &a);
		if (result.rule != RULE_CONVERT) {
			n_skipped += result.steps[result.n_steps - 1].verdict == VERDICT_STRIP;
			CHECK_INT(sum_of(before, STR("cpu"), false),
				  sum_of(after, STR("cpu"), false));
		}
	}
	TEST_NOTE("%zu converted, %zu pooled, %zu skipped, %zu refused", n_converted, n_pooled,
		  n_skipped, n_refused);
}

TEST(every_millicore_removed_from_cpu_is_requested_as_cores)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;
	size_t n = 0;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct namespace_permission ns;
		struct admission_state cluster = draw_state(&r, &ns);
		yyjson_val *before, *after;
		struct str cores;

		arena_reset(&a);
		before = draw_pod(&r, &a);
		if (str_has(row_text(before, &a), STR(NAME_CORES)) ||
		    admitted(&cluster, before, &a, &after).rule != RULE_CONVERT)
			continue;
		n++;
		cores = str_has(row_text(after, &a), STR(NAME_MANAGEMENT_CORES)) ?
				STR(NAME_MANAGEMENT_CORES) :
				STR("test" NAME_CORES_SUFFIX);
		CHECK_INT(sum_of(before, STR("cpu"), false) - sum_of(after, STR("cpu"), false),
			  sum_of(after, cores, true));
	}
	TEST_NOTE("%zu conversions", n);
}

TEST(the_pools_count_exactly_the_cpu_that_was_requested)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;
	size_t n = 0;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct namespace_permission ns;
		struct admission_state cluster = draw_state(&r, &ns);
		struct cpu_stamp *stamps;
		yyjson_val *before, *after;
		int64_t milli = 0;
		struct err err = { 0 };
		size_t n_stamps;
		struct pod pod;

		arena_reset(&a);
		before = draw_pod(&r, &a);
		if (admitted(&cluster, before, &a, &after).rule != RULE_POOLS ||
		    doc_find(before, "/spec/resources"))
			continue;
		n++;
		CHECK_INT(sum_of(before, STR("cpu"), false),
			  sum_of(after, STR(NAME_SHARED_CPUS), true) +
				  sum_of(after, STR(NAME_GUARANTEED_CPUS), true));
		CHECK(pod_from_object(after, &pod));
		CHECK_OK(stamps_parse(pod_annotation(&pod, STR(NAME_STAMP)), &a, &stamps, &n_stamps,
				      &err));
		for (size_t i = 0; i < n_stamps; i++)
			milli += stamps[i].milli;
		CHECK_INT(milli, sum_of(before, STR("cpu"), false));
	}
	TEST_NOTE("%zu pods in pools", n);
}

TEST(a_review_patches_the_pod_as_admit_prints_it)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct namespace_permission ns;
		struct admission_state cluster = draw_state(&r, &ns);
		struct row_request rq = { .operation = "CREATE", .resource = "pods" };
		yyjson_val *after;

		arena_reset(&a);
		rq.object = draw_pod(&r, &a);
		(void)admitted(&cluster, rq.object, &a, &after);
		check_same_pod(
			after,
			row_patched(rq.object, row_ask(&cluster, REVIEW_MUTATE, &rq, &a), &a), &a);
	}
}
