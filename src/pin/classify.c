/* An annotation can be written by every user that may create pods. A claim of a workload type needs
 * the permission of the namespace and is checked against nothing of the pod itself: shares and
 * quota in the runtime's request come from the same author (D15). The CPU stamp gains nothing that
 * the pod's request does not have, so it is compared with what the kubelet made of that request. */

#include "classify.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "kube/stamp.h"
#include "legacy_pod.h"
#include "nri/nri.h"
#include "pool/config.h"
#include "registry.h"
#include "workload.h"

const char *distrust_text(enum distrust_reason distrust)
{
	static const char *const texts[] = {
		[DISTRUST_NONE] = "",
		[DISTRUST_NAMESPACE] = "its namespace does not allow the workload type",
		[DISTRUST_UNKNOWN] = ("it is not known whether its namespace allows the workload "
				      "type"),
		[DISTRUST_TYPE] = "its workload type is not configured on this node",
		[DISTRUST_STAMP] = "its CPU stamp contradicts what the kubelet requested",
		[DISTRUST_UNREADABLE] = "its CPU stamp is unreadable or lacks the container",
		[DISTRUST_SIZE] = "they are too large, or contain a NUL",
	};

	return texts[distrust];
}

bool classify_reads(const struct classify_rules *rules, const char *key)
{
	const struct str text = str_from(key);

	if (rules->is_legacy && legacy_reads(text))
		return true;
	return str_starts(text, STR(NAME_TARGET_PREFIX)) ||
	       str_starts(text, STR(NAME_RESOURCES_PREFIX)) || str_eq(text, STR(NAME_STAMP)) ||
	       str_eq(text, STR(NAME_CONFIG_SOURCE));
}

bool classify_reads_label(const struct classify_rules *rules, const char *key)
{
	return rules->is_legacy && legacy_reads_label(str_from(key));
}

static bool is_configured(const struct classify_rules *rules, struct str type)
{
	return rules->pools ? pool_config_has_type(rules->pools, type) :
			      str_eq(type, STR(NAME_TYPE_MANAGEMENT));
}

/* The value does not matter (docs/reference/crio-workloads.md#selecting-a-workload). */
struct str classify_claimed_type(const struct classify_rules *rules, const struct nri_pod *pod)
{
	struct str found = STR("");
	bool found_is_configured = false;

	for (size_t i = 0; i < pod->n_annotations; i++) {
		const struct str key = str_from(pod->annotations[i].key);
		const struct str type = str_skip(key, sizeof(NAME_TARGET_PREFIX) - 1);
		bool configured;

		if (!str_starts(key, STR(NAME_TARGET_PREFIX)) || type.n == 0)
			continue;
		configured = is_configured(rules, type);
		if (found.n == 0 || configured > found_is_configured ||
		    (configured == found_is_configured && str_cmp(type, found) < 0)) {
			found = type;
			found_is_configured = configured;
		}
	}
	return found.n == 0 && rules->is_legacy ? legacy_type(pod) : found;
}

/* The kubelet sets the annotation on every pod it runs, and overwrites what the pod has there. */
static bool is_static(const struct nri_pod *pod)
{
	const char *source = nri_find(pod->annotations, pod->n_annotations, NAME_CONFIG_SOURCE);

	return source && strcmp(source, NAME_CONFIG_SOURCE_API) != 0;
}

/* The UID is assigned by oci/oci_record.c where the runtime reports no pod. A kubelet's container
 * is never standalone, whatever its annotations lack. */
static bool is_standalone(const struct nri_pod *pod)
{
	return registry_is_standalone(str_from(pod->uid)) &&
	       !strstr(nri_pod_cgroup_parent(pod), "kubepods");
}

bool classify_is_local(const struct nri_pod *pod)
{
	return is_static(pod) || is_standalone(pod);
}

enum permission classify_permission(const struct classify_rules *rules, bool is_local,
				    struct str namespace, struct str type)
{
	if (is_local)
		return PERMISSION_GRANTED;
	return rules->permission ? rules->permission(rules->permission_data, namespace, type) :
				   PERMISSION_UNKNOWN;
}

bool classify_is_management(const struct classify_rules *rules, const struct nri_pod *pod,
			    enum distrust_reason *ret_distrust)
{
	const struct str type = classify_claimed_type(rules, pod);

	*ret_distrust = DISTRUST_NONE;
	if (pod->annotation_bytes > NRI_KEEP_MAX) {
		*ret_distrust = DISTRUST_SIZE;
		return false;
	}
	if (type.n == 0)
		return false;
	if (!is_configured(rules, type)) {
		*ret_distrust = DISTRUST_TYPE;
		return false;
	}
	switch (classify_permission(rules, classify_is_local(pod), str_from(pod->pod_namespace),
				    type)) {
	case PERMISSION_GRANTED:
		return true;
	case PERMISSION_DENIED:
		*ret_distrust = DISTRUST_NAMESPACE;
		return false;
	case PERMISSION_UNKNOWN:
		*ret_distrust = DISTRUST_UNKNOWN;
		return false;
	}
	return false;
}

/* With the systemd driver the names are "kubepods-burstable-pod<uid>.slice", with cgroupfs
 * "kubepods/burstable/pod<uid>". */
bool classify_is_guaranteed(const struct nri_pod *pod)
{
	const char *parent = nri_pod_cgroup_parent(pod);

	return *parent && !strstr(parent, "burstable") && !strstr(parent, "besteffort");
}

int64_t classify_milli(uint64_t shares, int64_t quota_us, uint64_t period_us)
{
	if (quota_us > 0 && period_us > 0) {
		const int64_t milli = (int64_t)((__int128)quota_us * 1000 / period_us);

		/* In a Guaranteed pod the request equals the limit, so shares and quota must agree.
		 */
		if (shares == cpu_shares_from_milli(milli))
			return milli;
	}
	if (shares <= CPU_SHARES_MIN)
		return 0;
	/* The kubelet rounds shares down, so this is the smallest request that has them. */
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

/* From the CPU stamp where it agrees with the runtime, else from the runtime alone: shares are
 * rounded, so only the stamp has the exact request. */
static void read_demand(const struct nri_pod *pod, const struct nri_container *c, struct arena *a,
			struct container_class *ret)
{
	const char *text = nri_find(pod->annotations, pod->n_annotations, NAME_STAMP);
	const struct nri_cpu *cpu = nri_container_cpu(c);
	const struct runtime_cpu seen = { shares_of(cpu), quota_of(cpu), cpu->period_us,
					  classify_is_guaranteed(pod) };
	const struct cpu_stamp *stamp = NULL;
	struct cpu_stamp *stamps;
	size_t n;

	if (text && stamps_parse(str_from(text), a, &stamps, &n, NULL) == 0)
		stamp = stamps_find(stamps, n, str_from(c->name));
	if (text && !stamp)
		ret->distrust = DISTRUST_UNREADABLE;
	if (stamp && !stamp_matches(stamp, &seen)) {
		ret->distrust = DISTRUST_STAMP;
		stamp = NULL;
	}
	/* Without a stamp an init container counts as an app container: its CPUs are not reused
	 * (docs/reference/pools.md#cpu-stamp). */
	ret->demand = (struct demand){ .kind = stamp ? stamp->kind : CONTAINER_APP,
				       .is_guaranteed = seen.is_guaranteed };
	if (stamp)
		ret->demand.cpu_milli = stamp->milli;
	else
		ret->demand.cpu_milli = classify_milli(seen.shares, seen.quota_us, seen.period_us);
}

/* The settings of a management container, from its annotation or, in the legacy dialect, from the
 * one of 2021. */
static int read_settings(const struct classify_rules *rules, const struct nri_pod *pod,
			 const struct nri_container *c, struct arena *a, struct cpu_settings *ret,
			 struct err *err)
{
	struct workload_cpu requested;
	int r;

	if (rules->is_legacy && !workload_is_set(c->name, pod->annotations, pod->n_annotations)) {
		*ret = (struct cpu_settings){ 0 };
		return legacy_shares(pod, c->name, &ret->shares, err);
	}
	r = workload_resolve(&workload_defaults, c->name, pod->annotations, pod->n_annotations, a,
			     &requested, err);
	return r < 0 ? r : workload_settings(&requested, ret, err);
}

int classify_container(const struct classify_rules *rules, const struct nri_pod *pod,
		       const struct nri_container *c, struct arena *a, struct container_class *ret,
		       struct err *err)
{
	struct container_class class = { 0 };
	enum distrust_reason distrust;
	int r;

	if (rules->own_pid && c->pid == rules->own_pid) {
		*ret = (struct container_class){ .is_management = true,
						 .type = STR(NAME_TYPE_MANAGEMENT) };
		return 0;
	}
	if (classify_is_management(rules, pod, &distrust)) {
		r = read_settings(rules, pod, c, a, &class.settings, err);
		if (r < 0)
			return r;
		class.is_management = true;
		class.type = classify_claimed_type(rules, pod);
		*ret = class;
		return 0;
	}
	read_demand(pod, c, a, &class);
	if (distrust != DISTRUST_NONE)
		class.distrust = distrust;
	*ret = class;
	return 0;
}

uint64_t classify_pod_shares(const struct classify_rules *rules, const struct nri_pod *pod,
			     struct arena *a)
{
	const uint64_t shares =
		workload_pod_shares(&workload_defaults, pod->annotations, pod->n_annotations, a);

	return shares || !rules->is_legacy ? shares : legacy_pod_shares(pod);
}
