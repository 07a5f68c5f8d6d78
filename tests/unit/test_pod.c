#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "kube/pod.h"
#include "test.h"

static yyjson_val *parse(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc_list list = { 0 };

	CHECK_OK(yaml_parse(str_from(text), STR("test.yaml"), NULL, a, &list, &err));
	CHECK_UINT(list.n, 1);
	return list.items[0].root;
}

TEST(every_workload_kind_gives_the_pod_of_its_template)
{
	static const struct {
		const char *text, *prefix;
	} cases[] = {
		{ "{kind: Pod, spec: {nodeName: here}}", "" },
		{ "{kind: Deployment, spec: {template: {spec: {nodeName: here}}}}",
		  "/spec/template" },
		{ "{kind: DaemonSet, spec: {template: {spec: {nodeName: here}}}}",
		  "/spec/template" },
		{ "{kind: StatefulSet, spec: {template: {spec: {nodeName: here}}}}",
		  "/spec/template" },
		{ "{kind: ReplicaSet, spec: {template: {spec: {nodeName: here}}}}",
		  "/spec/template" },
		{ "{kind: Job, spec: {template: {spec: {nodeName: here}}}}", "/spec/template" },
		{ "{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {nodeName: "
		  "here}}}}}}",
		  "/spec/jobTemplate/spec/template" },
		{ "{kind: PodTemplate, template: {spec: {nodeName: here}}}", "/template" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod pod = { 0 };

		TEST_ROW("%s", cases[i].text);
		CHECK(pod_from_object(parse(cases[i].text, &a), &pod));
		CHECK_STR(doc_str(doc_get(pod.spec, STR("nodeName"))), "here");
		CHECK_STR(str_from(pod.prefix), cases[i].prefix);
	}
	arena_done(&a);
}

TEST(a_kind_that_creates_no_pods_is_not_a_pod)
{
	static const char *const cases[] = {
		"{kind: Service}", "{kind: PodDisruptionBudget}", "{}", "[]", "text", "{kind: 7}"
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod pod;

		TEST_ROW("%s", cases[i]);
		CHECK(!pod_from_object(parse(cases[i], &a), &pod));
	}
	arena_done(&a);
}

TEST(containers_come_in_the_order_init_app_ephemeral)
{
	static const char text[] =
		"kind: Pod\n"
		"spec:\n"
		"  containers: [{name: app0}, 5, {name: app2}]\n"
		"  ephemeralContainers: [{name: debug}]\n"
		"  initContainers: [{name: setup}, {name: proxy, restartPolicy: Always}]\n";
	static const struct {
		const char *name;
		enum container_kind kind;
		size_t index;
	} want[] = {
		{ "setup", CONTAINER_INIT, 0 },	     { "proxy", CONTAINER_SIDECAR, 1 },
		{ "app0", CONTAINER_APP, 0 },	     { "app2", CONTAINER_APP, 2 },
		{ "debug", CONTAINER_EPHEMERAL, 0 },
	};
	struct container_iter it;
	struct container c;
	struct pod pod;
	struct arena a;
	size_t n = 0;

	arena_init(&a, 0);
	CHECK(pod_from_object(parse(text, &a), &pod));
	for (it = container_iter(&pod, true); container_next(&it, &c); n++) {
		TEST_ROW("container %zu", n);
		CHECK(n < ARRAY_LEN(want));
		CHECK_STR(c.name, want[n].name);
		CHECK_INT(c.kind, want[n].kind);
		CHECK_UINT(c.index, want[n].index);
	}
	CHECK_UINT(n, ARRAY_LEN(want));
	CHECK(!container_next(&it, &c));
	n = 0;
	for (it = container_iter(&pod, false); container_next(&it, &c);)
		n++;
	CHECK_UINT(n, ARRAY_LEN(want) - 1);
	arena_done(&a);
}

TEST(a_list_gives_its_items_and_an_object_itself)
{
	static const struct {
		const char *text;
		size_t n;
	} cases[] = {
		{ "{kind: List, items: [{kind: Pod}, {kind: Node}]}", 2 },
		{ "{kind: PodList, items: []}", 0 },
		{ "{kind: Pod}", 1 },
		{ "{kind: List}", 1 },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct object_iter it = object_iter(parse(cases[i].text, &a));
		size_t n = 0;

		TEST_ROW("%s", cases[i].text);
		while (object_next(&it))
			n++;
		CHECK_UINT(n, cases[i].n);
	}
	arena_done(&a);
}

TEST(a_quantity_may_be_a_string_or_a_number_and_nothing_else)
{
	static const struct {
		const char *text;
		int want;
		int64_t milli;
	} cases[] = {
		{ "{cpu: 2}", 1, 2000 },	   { "{cpu: '100m'}", 1, 100 },
		{ "{cpu: ' 1 '}", 1, 1000 },	   { "{cpu: 0.5}", 1, 500 },
		{ "{memory: 1Gi}", 0, 0 },	   { "{cpu: null}", 0, 0 },
		{ "{cpu: true}", -EINVAL, 0 },	   { "{cpu: [1]}", -EINVAL, 0 },
		{ "{cpu: '1 core'}", -EINVAL, 0 },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct quantity q;
		int64_t milli = 0;

		TEST_ROW("%s", cases[i].text);
		CHECK_INT(resource_get(parse(cases[i].text, &a), STR("cpu"), &q, &err),
			  cases[i].want);
		if (cases[i].want == 1)
			CHECK_OK(quantity_milli(&q, &milli, &err));
		CHECK_INT(milli, cases[i].milli);
	}
	arena_done(&a);
}

TEST(a_pod_without_a_namespace_is_in_default)
{
	struct arena a;
	struct pod pod;

	arena_init(&a, 0);
	CHECK(pod_from_object(parse("{kind: Pod, metadata: {generateName: web-}}", &a), &pod));
	CHECK_STR(pod_namespace(&pod), "default");
	CHECK_STR(pod_name(&pod), "web-");
	CHECK_STR(pod_annotation(&pod, STR("any")), "");
	arena_done(&a);
}
