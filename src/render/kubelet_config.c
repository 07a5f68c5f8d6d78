/* The annotation's fragment is the base. What partitioning depends on replaces it; everything else
 * only fills in what the fragment lacks (docs/reference/openshift-render.md#kubeletconfig). */

#include "kubelet_config.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "object_build.h"
#include "profile/layout.h"

/* The kubelet's memory manager compares the sum of the three with reservedMemory, so none may be
 * missing. */
#define DEFAULT_RESERVATIONS                                                                       \
	"{\"evictionHard\":{\"imagefs.available\":\"15%\",\"memory.available\":\"100Mi\","         \
	"\"nodefs.available\":\"10%\",\"nodefs.inodesFree\":\"5%\"},"                              \
	"\"kubeReserved\":{\"memory\":\"500Mi\"},\"systemReserved\":{\"memory\":\"500Mi\"}}"

/* Members that Go's encoder writes although they are unset. The Machine Config Operator merges only
 * values other than zero. */
#define ZERO_VALUES                                                                                \
	"{\"authentication\":{\"anonymous\":{},\"webhook\":{\"cacheTTL\":\"0s\"},\"x509\":{}},"    \
	"\"authorization\":{\"webhook\":{\"cacheAuthorizedTTL\":\"0s\","                           \
	"\"cacheUnauthorizedTTL\":\"0s\"}},"                                                       \
	"\"containerRuntimeEndpoint\":\"\",\"crashLoopBackOff\":{},\"memorySwap\":{},"             \
	"\"logging\":{\"flushFrequency\":0,\"options\":{\"json\":{\"infoBufferSize\":\"0\"},"      \
	"\"text\":{\"infoBufferSize\":\"0\"}},\"verbosity\":0},"                                   \
	"\"evictionPressureTransitionPeriod\":\"0s\",\"fileCheckFrequency\":\"0s\","               \
	"\"httpCheckFrequency\":\"0s\",\"imageMaximumGCAge\":\"0s\","                              \
	"\"imageMinimumGCAge\":\"0s\",\"nodeStatusReportFrequency\":\"0s\","                       \
	"\"nodeStatusUpdateFrequency\":\"0s\",\"runtimeRequestTimeout\":\"0s\","                   \
	"\"shutdownGracePeriod\":\"0s\",\"shutdownGracePeriodCriticalPods\":\"0s\","               \
	"\"streamingConnectionIdleTimeout\":\"0s\",\"syncFrequency\":\"0s\","                      \
	"\"volumeStatsAggPeriod\":\"0s\"}"

/* Constants of this file, which always parse. */
static yyjson_val *constant(struct str json, struct arena *a)
{
	struct doc doc = { 0 };

	(void)doc_parse(json, STR(""), NULL, a, &doc, NULL);
	return doc.root;
}

void kubelet_add_zero_values(yyjson_mut_doc *m, yyjson_mut_val *configuration, struct arena *a)
{
	object_fill(m, configuration, constant(STR(ZERO_VALUES), a));
}

static void set_str(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, struct str value)
{
	object_set(m, object, key, doc_new_str(m, value));
}

/* A user's value stays, also "false". */
static void fill_option(yyjson_mut_doc *m, yyjson_mut_val *object, struct str name)
{
	yyjson_mut_val *options = yyjson_mut_obj_get(object, "cpuManagerPolicyOptions");

	if (!yyjson_mut_is_obj(options))
		options = doc_put_obj(m, object, STR("cpuManagerPolicyOptions"));
	if (!yyjson_mut_obj_getn(options, name.p, name.n))
		doc_put_str(m, options, name, STR("true"));
}

static bool kubelet_assigns(const struct partition *part, const struct kubelet_options *options)
{
	return options->cpu_manager == CPU_MANAGER_STATIC ||
	       (options->cpu_manager == CPU_MANAGER_DEFAULT && !profile_has_pools(part->profile));
}

/* The kubelet must not assign the CPUs of OVS either, nor the shared ones. Where the agent assigns,
 * they stay out of the reservation, so that the scheduler counts them. */
static struct str reserved_cpus(const struct partition *part, const struct kubelet_options *options,
				struct arena *a)
{
	struct cpuset set = part->cpus[PROFILE_RESERVED];

	cpuset_union(&set, &part->cpus[PROFILE_OVS_DPDK]);
	if (profile_has_mixed_cpus(part->profile) || kubelet_assigns(part, options))
		cpuset_union(&set, &part->cpus[PROFILE_SHARED]);
	return cpuset_format(&set, a);
}

static int add_memory(struct quantity *sum, yyjson_mut_val *object, const char *pointer,
		      struct err *err)
{
	struct str text = doc_mut_str(yyjson_mut_ptr_get(object, pointer));
	struct quantity q;

	if (quantity_parse(text, &q, err) < 0 || quantity_add(sum, &q, err) < 0)
		return err_wrap(err, "%s %s", pointer + 1, quote(text).text);
	return 0;
}

/* The kubelet's memory manager requires that all reserved memory is attributed to NUMA nodes;
 * OpenShift uses node 0. */
static int reserve_memory(yyjson_mut_doc *m, yyjson_mut_val *c, struct arena *a, struct err *err)
{
	struct quantity sum = quantity_from_int(0, QUANTITY_BINARY_SI);
	yyjson_mut_val *entry;

	if (add_memory(&sum, c, "/kubeReserved/memory", err) < 0 ||
	    add_memory(&sum, c, "/systemReserved/memory", err) < 0 ||
	    add_memory(&sum, c, "/evictionHard/memory.available", err) < 0)
		return -err->code;
	entry = yyjson_mut_arr_add_obj(m, doc_put_arr(m, c, STR("reservedMemory")));
	doc_put_int(m, entry, STR("numaNode"), 0);
	doc_put_str(m, doc_put_obj(m, entry, STR("limits")), STR("memory"),
		    quantity_format(&sum, a));
	return 0;
}

/* With this option the kubelet keeps shared containers off reservedSystemCPUs, which in pools mode
 * hold the shared CPUs. */
static void check_strict(yyjson_mut_val *c, const struct partition *part, struct problem_list *p)
{
	struct str value = doc_mut_str(
		yyjson_mut_ptr_get(c, "/cpuManagerPolicyOptions/strict-cpu-reservation"));

	if (profile_has_pools(part->profile) && str_eq(value, STR("true")))
		problem_error(
			p,
			PROBLEM_AT(part->profile->at.doc, part->profile->at.object,
				   "metadata.annotations." NAME_KUBELET_EXPERIMENTAL),
			"strict-cpu-reservation keeps containers off the shared CPUs when the "
			"kubelet assigns CPUs");
}

static void set_cpu_manager(yyjson_mut_doc *m, yyjson_mut_val *c, const struct partition *part,
			    const struct kubelet_options *options, struct problem_list *p)
{
	if (!kubelet_assigns(part, options)) {
		/* The kubelet refuses to start when policy none is given options. */
		set_str(m, c, STR("cpuManagerPolicy"), STR("none"));
		yyjson_mut_obj_remove_key(c, "cpuManagerPolicyOptions");
		return;
	}
	set_str(m, c, STR("cpuManagerPolicy"), STR("static"));
	set_str(m, c, STR("cpuManagerReconcilePeriod"), STR("5s"));
	if (str_eq(part->profile->topology_policy, STR("single-numa-node")))
		fill_option(m, c, STR("full-pcpus-only"));
	if (options->strict_reservation && !profile_has_pools(part->profile))
		fill_option(m, c, STR("strict-cpu-reservation"));
	check_strict(c, part, p);
}

static bool needs_memory_manager(const struct profile *profile)
{
	return str_eq(profile->topology_policy, STR("restricted")) ||
	       str_eq(profile->topology_policy, STR("single-numa-node"));
}

static void set_memory_manager(yyjson_mut_doc *m, yyjson_mut_val *c, const struct partition *part,
			       struct arena *a, struct problem_list *p)
{
	struct err err = { 0 };

	if (!needs_memory_manager(part->profile))
		return;
	set_str(m, c, STR("memoryManagerPolicy"), STR("Static"));
	if (!yyjson_mut_obj_get(c, "reservedMemory") && reserve_memory(m, c, a, &err) < 0)
		problem_error(p,
			      PROBLEM_AT(part->profile->at.doc, part->profile->at.object,
					 "metadata.annotations." NAME_KUBELET_EXPERIMENTAL),
			      "%s", err.msg);
}

void kubelet_note_pools(const struct partition *part, const struct kubelet_options *options,
			struct problem_list *p)
{
	struct problem_at at = profile_set_at(part->profile, PROFILE_SHARED);

	if (!profile_has_pools(part->profile))
		return;
	if (kubelet_assigns(part, options))
		problem_note(p, at,
			     "the kubelet assigns exclusive CPUs: its reservedSystemCPUs hold the "
			     "shared CPUs, which the scheduler therefore does not count as cpu");
	else
		problem_note(p, at,
			     "the agent assigns exclusive CPUs, and the kubelet's CPU manager has "
			     "policy none: these nodes need the agent (--cpu-manager static: the "
			     "kubelet assigns)");
}

yyjson_mut_val *kubelet_configuration(yyjson_mut_doc *m, const struct partition *part,
				      const struct kubelet_options *options, struct arena *a,
				      struct problem_list *p)
{
	struct str policy = part->profile->topology_policy;
	yyjson_mut_val *c = yyjson_mut_obj(m);

	object_copy_pairs(m, c, part->profile->kubelet_base);
	set_str(m, c, STR("apiVersion"), STR("kubelet.config.k8s.io/v1beta1"));
	set_str(m, c, STR("kind"), STR("KubeletConfiguration"));
	if (options->fill_reservations || needs_memory_manager(part->profile))
		object_fill(m, c, constant(STR(DEFAULT_RESERVATIONS), a));
	set_cpu_manager(m, c, part, options, p);
	set_str(m, c, STR("topologyManagerPolicy"), policy.n ? policy : STR("best-effort"));
	set_str(m, c, STR("reservedSystemCPUs"), reserved_cpus(part, options, a));
	set_memory_manager(m, c, part, a, p); /* after the reservations, which it adds up */
	return c;
}
