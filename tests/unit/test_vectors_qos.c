/* tests/vectors/qos.json: the class of each pod for Kubernetes and for the admission plugin. */

#include "base/macro.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "vectors.h"

TEST(every_row_gives_the_expected_class_of_kubernetes_and_of_the_plugin)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = vectors_load("vectors/qos.json", &a);
	DOC_EACH_ITEM (rows, row) {
		struct pod pod = { .spec = doc_find(row, "/pod/spec") };
		struct err err = { 0 };
		enum qos_class class;

		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("name")))));
		n++;
		CHECK(pod.spec);
		CHECK_OK(qos_kubernetes(&pod, &class, &err));
		CHECK_STR(qos_name(class), doc_str(doc_get(row, STR("kubernetesQoS"))));
		CHECK_OK(qos_hook(&pod, &class, &err));
		CHECK_STR(qos_name(class), doc_str(doc_get(row, STR("hookQoS"))));
	}
	vectors_count("qos", n, 23);
}
