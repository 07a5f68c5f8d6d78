/* What `pinfold check` reads of a machine and a cluster. The first byte selects the reader; for the
 * cluster the rest is a JSON array of the objects, in their order. No crash, and every finding that
 * is a warning or worse has a remedy. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "distro/os_release.h"
#include "preflight/preflight_cluster.h"
#include "preflight/runtime_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cluster(struct str text, struct arena *a)
{
	struct cluster_facts facts = { .version = STR("1.0") };
	struct preflight_report report;
	struct doc doc;
	size_t i = 0;

	if (doc_parse(text, STR("objects"), NULL, a, &doc, NULL) < 0)
		return;
	for (; i < PREFLIGHT_OBJECT__COUNT; i++)
		facts.objects[i].object = yyjson_arr_get(doc.root, i);
	facts.pod.is_made = true;
	facts.pod.is_answered = preflight_pod_was_seen(doc.root);
	preflight_report_init(&report, a);
	preflight_cluster(&facts, &report);
	for (i = 0; i < report.n; i++)
		if (report.items[i].level >= PREFLIGHT_WARNING && !report.items[i].remedy.n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = str_skip((struct str){ (const char *)data, size }, 1);
	CLEANUP(arena_done) struct arena a;
	struct nri_setting setting = { 0 };
	struct kubelet_fact kubelet = { 0 };
	struct cpuset cpus;

	arena_init(&a, 0);
	if (!size)
		return 0;
	switch (data[0]) {
	case 'o':
		if (os_release_get(text, STR("ID")).n > text.n)
			abort();
		break;
	case 'k':
		if (cmdline_cpus(text, STR("isolcpus"), &cpus) && cpuset_is_empty(&cpus))
			abort();
		break;
	case 'd':
		(void)runtime_config_read(DISTRO_CONTAINERD, text, STR("f"), &a, &setting, NULL);
		break;
	case 'r':
		(void)runtime_config_read(DISTRO_CRIO, text, STR("f"), &a, &setting, NULL);
		break;
	case 'y':
		(void)kubelet_config_apply(text, STR("f"), &a, &kubelet, NULL);
		break;
	case 'c':
		check_cluster(text, &a);
		break;
	}
	return 0;
}
