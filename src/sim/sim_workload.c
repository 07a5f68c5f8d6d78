/* The shares are of pods, not of CPUs: a site has many small platform pods and a few large units.
 */

#include "sim_workload.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "kube/names.h"

static const char *const names[] = {
	[SIM_RAN_SITE] = "ran-site", [SIM_CORE] = "core", [SIM_MIXED] = "mixed"
};
_Static_assert(ARRAY_LEN(names) == SIM_WORKLOAD__COUNT, "every workload has a name");

int sim_workload_parse(struct str name, enum sim_workload *ret, struct err *err)
{
	for (size_t i = 0; i < SIM_WORKLOAD__COUNT; i++)
		if (str_eq(name, str_from(names[i]))) {
			*ret = (enum sim_workload)i;
			return 0;
		}
	return err_set(err, EINVAL, "unknown workload %s (known: " SIM_WORKLOADS ")",
		       quote(name).text);
}

const char *sim_workload_name(enum sim_workload workload)
{
	return names[workload];
}

enum treatment { MANAGEMENT, BURSTABLE, GUARANTEED, BEST_EFFORT };

struct kind {
	const char *name, *namespace, *cpu, *memory;
	const char *helper_cpu; /* of a second container; NULL: there is none */
	enum treatment treatment;
	unsigned shares[SIM_WORKLOAD__COUNT];
};

static const struct kind kinds[] = {
	/* the platform: small, on every node, opted in */
	{ "network-agent", "platform-network", "100m", "200Mi", "10m", MANAGEMENT, { 4, 3, 3 } },
	{ "ptp", "platform-ptp", "20m", "100Mi", NULL, MANAGEMENT, { 3, 0, 1 } },
	{ "device-plugin", "platform-devices", "10m", "50Mi", NULL, MANAGEMENT, { 3, 1, 2 } },
	{ "node-exporter", "platform-monitoring", "10m", "50Mi", "1m", MANAGEMENT, { 4, 3, 3 } },
	{ "log-collector", "platform-logging", "100m", "500Mi", NULL, MANAGEMENT, { 3, 3, 3 } },
	{ "operator", "platform-operators", "50m", "300Mi", NULL, MANAGEMENT, { 3, 2, 2 } },
	/* units with exclusive CPUs */
	{ "du-phy", "ran", "8", "8Gi", "500m", GUARANTEED, { 2, 0, 1 } },
	{ "du-mac", "ran", "4", "4Gi", NULL, GUARANTEED, { 2, 0, 1 } },
	{ "cu-up", "ran", "2", "4Gi", NULL, GUARANTEED, { 1, 0, 1 } },
	{ "upf", "core", "16", "16Gi", NULL, GUARANTEED, { 0, 1, 1 } },
	{ "udr", "core", "4", "8Gi", NULL, GUARANTEED, { 0, 2, 1 } },
	/* ordinary pods */
	{ "cu-cp", "ran", "500m", "1Gi", NULL, BURSTABLE, { 3, 0, 1 } },
	{ "telemetry", "ran", "250m", "512Mi", "50m", BURSTABLE, { 2, 0, 1 } },
	{ "amf", "core", "1500m", "2Gi", NULL, BURSTABLE, { 0, 4, 2 } },
	{ "smf", "core", "750m", "2Gi", NULL, BURSTABLE, { 0, 4, 2 } },
	{ "nrf", "core", "250m", "512Mi", "50m", BURSTABLE, { 0, 6, 2 } },
	{ "batch", "batch", "300m", "256Mi", NULL, BURSTABLE, { 0, 1, 2 } },
	{ "debug", "batch", NULL, NULL, NULL, BEST_EFFORT, { 0, 0, 1 } },
};
_Static_assert(ARRAY_LEN(kinds) <= SIM_WORKLOAD_PODS_MAX, "a mix has room for all kinds");

static void add_container(yyjson_mut_doc *m, yyjson_mut_val *list, const struct kind *k,
			  const char *name, const char *cpu, const char *memory)
{
	yyjson_mut_val *c = yyjson_mut_arr_add_obj(m, list);
	yyjson_mut_val *resources = doc_put_obj(m, c, STR("resources"));
	const size_t n_amounts = k->treatment == GUARANTEED ? 2 : 1;

	doc_put_str(m, c, STR("name"), str_from(name));
	doc_put_str(m, c, STR("image"), STR("registry.example.com/sim:1"));
	for (size_t i = 0; cpu && i < n_amounts; i++) {
		yyjson_mut_val *amounts =
			doc_put_obj(m, resources, i ? STR("limits") : STR("requests"));

		doc_put_str(m, amounts, STR(NAME_CPU), str_from(cpu));
		doc_put_str(m, amounts, STR(NAME_MEMORY), str_from(memory));
	}
}

static yyjson_val *make_pod(const struct kind *k, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *pod = yyjson_mut_obj(m), *meta, *list;

	doc_put_str(m, pod, STR("apiVersion"), STR("v1"));
	doc_put_str(m, pod, STR("kind"), STR("Pod"));
	meta = doc_put_obj(m, pod, STR("metadata"));
	doc_put_str(m, meta, STR("name"), str_from(k->name));
	doc_put_str(m, meta, STR("namespace"), str_from(k->namespace));
	if (k->treatment == MANAGEMENT)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")),
			    STR(NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT), STR(NAME_TARGET_VALUE));
	list = doc_put_arr(m, doc_put_obj(m, pod, STR("spec")), STR("containers"));
	add_container(m, list, k, "main", k->cpu, k->memory);
	if (k->helper_cpu)
		add_container(m, list, k, "helper", k->helper_cpu, "64Mi");
	return doc_freeze(pod, a);
}

void sim_mix_make(enum sim_workload workload, struct arena *a, struct sim_mix *ret)
{
	*ret = (struct sim_mix){ 0 };
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const unsigned weight = kinds[i].shares[workload];

		if (!weight)
			continue;
		ret->pods[ret->n] = make_pod(&kinds[i], a);
		ret->weights[ret->n++] = weight;
		ret->total += weight;
	}
}

size_t sim_mix_pick(const struct sim_mix *mix, uint64_t number)
{
	size_t i = 0;

	while (i + 1 < mix->n && number >= mix->weights[i])
		number -= mix->weights[i++];
	return i;
}
