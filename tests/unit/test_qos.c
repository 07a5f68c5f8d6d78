#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "test.h"

#define RESOURCES(requests, limits) "{\"requests\":{" requests "},\"limits\":{" limits "}}"
#define CONTAINER(requests, limits) "{\"name\":\"c\",\"resources\":" RESOURCES(requests, limits) "}"
#define HALF "\"cpu\":\"500m\",\"memory\":\"1Gi\""
#define WHOLE "\"cpu\":\"1\",\"memory\":\"1Gi\""

static struct pod pod_of(const char *spec, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(spec), STR("pod"), NULL, a, &doc, &err));
	return (struct pod){ .spec = doc.root };
}

TEST(the_classes_of_kubernetes_and_of_the_plugin_differ_as_documented)
{
	static const struct {
		const char *spec;
		enum qos_class kubernetes, hook;
	} cases[] = {
		{ "{}", QOS_BEST_EFFORT, QOS_GUARANTEED },
		{ "{\"containers\":[" CONTAINER(WHOLE, WHOLE) "]}", QOS_GUARANTEED,
		  QOS_GUARANTEED },
		{ "{\"containers\":[" CONTAINER("", "") "]}", QOS_BEST_EFFORT, QOS_BEST_EFFORT },
		{ "{\"containers\":[" CONTAINER(HALF, WHOLE) "]}", QOS_BURSTABLE, QOS_BURSTABLE },
		{ "{\"containers\":[" CONTAINER(WHOLE, WHOLE) "],"
							      "\"initContainers\":[" CONTAINER(
								      WHOLE, WHOLE) "]}",
		  QOS_GUARANTEED, QOS_GUARANTEED },
		/* limits only: Kubernetes relies on defaulting */
		{ "{\"containers\":[" CONTAINER("", WHOLE) "]}", QOS_BURSTABLE, QOS_GUARANTEED },
		/* an empty pod-level object replaces the containers' resources */
		{ "{\"resources\":{},\"containers\":[" CONTAINER(WHOLE, WHOLE) "]}",
		  QOS_BEST_EFFORT, QOS_GUARANTEED },
		{ "{\"resources\":null,\"containers\":[" CONTAINER(WHOLE, WHOLE) "]}",
		  QOS_GUARANTEED, QOS_GUARANTEED },
		{ "{\"resources\":" RESOURCES(WHOLE, WHOLE) ",\"containers\":[" CONTAINER(
			  HALF, WHOLE) "]}",
		  QOS_GUARANTEED, QOS_BURSTABLE },
		{ "{\"resources\":" RESOURCES(WHOLE, "") ",\"containers\":[]}", QOS_BURSTABLE,
		  QOS_GUARANTEED },
		/* ephemeral containers never count */
		{ "{\"containers\":[" CONTAINER(
			  WHOLE, WHOLE) "],"
					"\"ephemeralContainers\":[{\"name\":\"e\"}]}",
		  QOS_GUARANTEED, QOS_GUARANTEED },
		/* JSON numbers are accepted */
		{ "{\"containers\":[" CONTAINER("\"cpu\":1,\"memory\":1e3",
						"\"cpu\":1.0,\"memory\":\" 1k \"") "]}",
		  QOS_GUARANTEED, QOS_GUARANTEED },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod pod = pod_of(cases[i].spec, &a);
		struct err err = { 0 };
		enum qos_class class;

		TEST_ROW("%s", cases[i].spec);
		CHECK_OK(qos_kubernetes(&pod, &class, &err));
		CHECK_STR(qos_name(class), qos_name(cases[i].kubernetes));
		CHECK_OK(qos_hook(&pod, &class, &err));
		CHECK_STR(qos_name(class), qos_name(cases[i].hook));
	}
}

TEST(an_unreadable_quantity_names_its_container)
{
	static const struct {
		const char *spec, *sentence;
		int code;
		bool only_kubernetes;
	} cases[] = {
		{ "{\"containers\":[" CONTAINER("\"cpu\":\"1x\"", "") "]}",
		  "container \"c\": requests: cpu \"1x\": quantities must match the regular "
		  "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		  EINVAL, false },
		{ "{\"containers\":[" CONTAINER("", "\"memory\":\"1mi\"") "]}",
		  "container \"c\": limits: memory \"1mi\": unable to parse quantity's suffix",
		  EINVAL, false },
		{ "{\"containers\":[" CONTAINER("\"memory\":\"9Ei\"", "") "]}",
		  "container \"c\": requests: memory \"9Ei\": quantity \"9Ei\" is out of range",
		  ERANGE, false },
		{ "{\"resources\":" RESOURCES("\"cpu\":\"m\"", "") "}",
		  "pod resources: requests: cpu \"m\": unable to parse numeric part of quantity",
		  EINVAL, true },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pod pod = pod_of(cases[i].spec, &a);
		enum qos_class class = QOS__COUNT;
		struct err err = { 0 };

		TEST_ROW("%s", cases[i].spec);
		CHECK_ERR(qos_kubernetes(&pod, &class, &err), cases[i].code, cases[i].sentence);
		if (!cases[i].only_kubernetes)
			CHECK_ERR(qos_hook(&pod, &class, &err), cases[i].code, cases[i].sentence);
		CHECK_INT(class, QOS__COUNT);
	}
}
