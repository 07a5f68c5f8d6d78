/* Both sources can be absent: no webhook writes stamps, or the runtime does not pass the sandbox's
 * resources on. */

#include "pod_demand.h"

#include "base/arena.h"
#include "classify.h"
#include "kube/names.h"
#include "kube/stamp.h"
#include "nri/nri.h"

/* The kubelet's sum of all requests, in millicores; 0: unknown. */
static int64_t sum_of(const struct nri_pod *pod)
{
	const struct nri_resources *r = pod->on_linux ? pod->on_linux->pod_resources : NULL;
	const struct nri_cpu *cpu = r ? r->cpu : NULL;

	if (!cpu || !cpu->has_shares)
		return 0;
	return classify_milli(cpu->shares, cpu->has_quota ? cpu->quota_us : 0, cpu->period_us);
}

static size_t read_members(const struct nri_pod *pod, struct arena *a, struct ledger_member **ret)
{
	const char *text = nri_find(pod->annotations, pod->n_annotations, NAME_STAMP);
	const bool is_guaranteed = classify_is_guaranteed(pod);
	struct cpu_stamp *stamps;
	size_t n;

	if (!text || stamps_parse(str_from(text), a, &stamps, &n, NULL) < 0)
		return 0;
	*ret = arena_array(a, struct ledger_member, n + 1);
	for (size_t i = 0; *ret && i < n; i++)
		(*ret)[i] = (struct ledger_member){
			.container = stamps[i].name,
			.demand = { stamps[i].kind, is_guaranteed, stamps[i].milli },
		};
	return *ret ? n : 0;
}

void pod_demand_read(const struct nri_pod *pod, const struct nri_container *c, struct arena *a,
		     struct ledger_pod *ret)
{
	const int64_t sum = sum_of(pod);
	struct ledger_member *members = NULL;
	const size_t n = read_members(pod, a, &members);
	struct demand *demands = arena_array(a, struct demand, n + 1);
	bool is_member = false;

	*ret = (struct ledger_pod){ .n_cpus = (unsigned)(sum / 1000) };
	for (size_t i = 0; demands && i < n; i++) {
		demands[i] = members[i].demand;
		is_member = is_member || str_eq(members[i].container, str_from(c->name));
	}
	if (!is_member)
		return;
	*ret = (struct ledger_pod){
		.members = members,
		.n = n,
		.reserves = sum && (int64_t)demand_pod_cpus(demands, n) * 1000 <= sum,
	};
}
