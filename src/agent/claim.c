#include "claim.h"

#include <string.h>

#include "admission/stamp.h"
#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "nri/nri.h"

const char *doubt_text(enum doubt doubt)
{
	static const char *const texts[] = {
		[DOUBT_NONE] = "",
		[DOUBT_NAMESPACE] = "its namespace does not allow the workload type",
		[DOUBT_UNCONVERTED] = "it still requests CPU, so admission has not converted it",
		[DOUBT_STAMP] = "its CPU stamp contradicts what the kubelet requested",
		[DOUBT_UNREADABLE] = "its CPU stamp is unreadable or lacks the container",
	};

	return texts[doubt];
}

static bool has_annotation(const struct nri_pod *pod, struct str key)
{
	for (size_t i = 0; i < pod->n_annotations; i++)
		if (str_eq(str_from(pod->annotations[i].key), key))
			return true;
	return false;
}

/* The kubelet sets this on every pod it runs, over whatever the pod says (spec/landscape.md). */
static bool is_static(const struct nri_pod *pod)
{
	const char *source = nri_find(pod->annotations, pod->n_annotations, NAME_CONFIG_SOURCE);

	return source && strcmp(source, NAME_CONFIG_SOURCE_API) != 0;
}

bool claim_is_management(const struct claim_rules *rules, const struct nri_pod *pod,
			 enum doubt *ret_doubt)
{
	enum permission permission;

	*ret_doubt = DOUBT_NONE;
	if (!has_annotation(pod, rules->management.activation))
		return false;
	permission = is_static(pod)    ? PERMISSION_GRANTED :
		     rules->permission ? rules->permission(rules->permission_data,
							   str_from(pod->pod_namespace)) :
					 PERMISSION_UNKNOWN;
	if (permission == PERMISSION_DENIED) {
		*ret_doubt = DOUBT_NAMESPACE;
		return false;
	}
	return true;
}

bool claim_is_guaranteed(const struct nri_pod *pod)
{
	const char *parent = nri_pod_cgroup_parent(pod);

	return *parent && !strstr(parent, "burstable") && !strstr(parent, "besteffort");
}

int64_t claim_milli(uint64_t shares, int64_t quota_us, uint64_t period_us)
{
	if (quota_us > 0 && period_us > 0) {
		const int64_t milli = (int64_t)((__int128)quota_us * 1000 / period_us);

		/* Guaranteed means that the request is the limit: both must tell the same. */
		if (shares == cpu_shares_from_milli(milli))
			return milli;
	}
	if (shares <= CPU_SHARES_MIN)
		return 0;
	return (int64_t)((shares * 1000 + CPU_SHARES_PER_CPU - 1) / CPU_SHARES_PER_CPU);
}

static uint64_t shares_of(const struct nri_cpu *cpu)
{
	return cpu->has_shares ? cpu->shares : 0;
}

static int64_t quota_of(const struct nri_cpu *cpu)
{
	return cpu->has_quota ? cpu->quota_us : 0;
}

/* Where nobody can say whether the namespace allows it, a pod must at least look converted: no CPU
 * request, which shows as the least shares and no quota, or as what we made of it earlier. */
static bool looks_converted(const struct nri_cpu *seen, const struct workload_cpu *ours)
{
	const uint64_t shares = shares_of(seen);
	const int64_t quota = quota_of(seen);

	return (shares <= CPU_SHARES_MIN || shares == ours->shares) &&
	       (quota <= 0 || quota == ours->quota_us);
}

static bool is_known_permitted(const struct claim_rules *rules, const struct nri_pod *pod)
{
	return is_static(pod) ||
	       (rules->permission &&
		rules->permission(rules->permission_data, str_from(pod->pod_namespace)) ==
			PERMISSION_GRANTED);
}

/* From the stamp of our webhook, where it agrees with the runtime; else from the runtime alone. */
static void read_demand(const struct nri_pod *pod, const struct nri_container *c, struct arena *a,
			struct claim *ret)
{
	const char *text = nri_find(pod->annotations, pod->n_annotations, NAME_STAMP);
	const struct nri_cpu *cpu = nri_container_cpu(c);
	const struct cpu_seen seen = { shares_of(cpu), quota_of(cpu), cpu->period_us,
				       claim_is_guaranteed(pod) };
	const struct cpu_stamp *stamp = NULL;
	struct cpu_stamp *stamps;
	size_t n;

	if (text && stamps_parse(str_from(text), a, &stamps, &n, NULL) == 0)
		stamp = stamps_find(stamps, n, str_from(c->name));
	if (text && !stamp)
		ret->doubt = DOUBT_UNREADABLE;
	if (stamp && !stamp_matches(stamp, &seen)) {
		ret->doubt = DOUBT_STAMP;
		stamp = NULL;
	}
	ret->demand = (struct demand){ .kind = stamp ? stamp->kind : CONTAINER_APP,
				       .is_guaranteed = seen.is_guaranteed };
	if (stamp)
		ret->demand.cpu_milli = stamp->milli;
	else
		ret->demand.cpu_milli = claim_milli(seen.shares, seen.quota_us, seen.period_us);
}

int claim_read(const struct claim_rules *rules, const struct nri_pod *pod,
	       const struct nri_container *c, struct arena *a, struct claim *ret, struct err *err)
{
	struct claim claim = { 0 };
	enum doubt doubt;
	int r;

	if (claim_is_management(rules, pod, &doubt)) {
		r = workload_resolve(&rules->management, c->name, pod->annotations,
				     pod->n_annotations, a, &claim.cpu, err);
		if (r < 0)
			return r;
		if (is_known_permitted(rules, pod) ||
		    looks_converted(nri_container_cpu(c), &claim.cpu)) {
			claim.is_management = true;
			*ret = claim;
			return 0;
		}
		doubt = DOUBT_UNCONVERTED;
		claim.cpu = (struct workload_cpu){ 0 };
	}
	read_demand(pod, c, a, &claim);
	if (doubt != DOUBT_NONE)
		claim.doubt = doubt;
	*ret = claim;
	return 0;
}
