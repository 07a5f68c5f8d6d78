/* Texts are put together by printf and not by an encoder, because they are compared byte for byte
 * with OpenShift's. Workload types and CPU lists were checked when they were read, so nothing needs
 * to be escaped. */

#include "pinning.h"

#include "base/arena.h"
#include "kube/names.h"
#include "pool/config.h"
#include "profile/layout.h"

/* The CRI-O workload's prefix has no "/" at its end, the annotation's name has. */
#define RESOURCES_PREFIX "resources.workload.openshift.io"

struct str pinning_marker(const struct workload_cpus *workloads, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("\n{\n"));
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b,
			      "  \"" PRI_STR "\": {\n    \"" NAME_MARKER_CPUSET_KEY "\": \"" PRI_STR
			      "\"\n  }%s\n",
			      FMT_STR(workloads[i].type), FMT_STR(workloads[i].cpus),
			      i + 1 < n ? "," : "");
	strbuf_add(&b, STR("}\n"));
	return strbuf_str(&b);
}

struct str pinning_crio(const struct workload_cpus *workloads, size_t n, bool quota_keys,
			struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	/* 0 means not set: the shares of a container come from its annotation
	 * (docs/reference/crio-workloads.md#resolving-a-container). */
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b,
			      "\n[crio.runtime.workloads." PRI_STR "]\n"
			      "activation_annotation = \"" NAME_TARGET_PREFIX PRI_STR "\"\n"
			      "annotation_prefix = \"" RESOURCES_PREFIX "\"\n"
			      "resources = { \"cpushares\" = 0, %s\"cpuset\" = \"" PRI_STR "\" }\n",
			      FMT_STR(workloads[i].type), FMT_STR(workloads[i].type),
			      quota_keys ? "\"cpuquota\" = 0, \"cpuperiod\" = 0, " : "",
			      FMT_STR(workloads[i].cpus));
	return strbuf_str(&b);
}

struct str pinning_runtimes(const struct partition *part, struct arena *a)
{
	bool mixed = profile_has_mixed_cpus(part->profile);
	struct strbuf b;

	strbuf_init(&b, a);
	/* Workloads do not move pause processes; only this option does
	 * (docs/reference/crio-workloads.md#processes-left-on-all-cpus). */
	strbuf_printf(&b, "\n[crio.runtime]\ninfra_ctr_cpuset = \"" PRI_STR "\"\n",
		      FMT_STR(part->text[PROFILE_RESERVED]));
	if (mixed)
		strbuf_printf(&b, "shared_cpuset = \"" PRI_STR "\"\n",
			      FMT_STR(part->text[PROFILE_SHARED]));
	strbuf_add(&b, STR("min_injected_gomaxprocs = 4\n"
			   "\n[crio.runtime.runtimes.high-performance]\n"
			   "inherit_default_runtime = true\n"));
	if (part->profile->exec_affinity)
		strbuf_add(&b, STR("exec_cpu_affinity = \"first\"\n"));
	strbuf_add(&b, STR("default_annotations = {\"run.oci.systemd.subgroup\" = \"\"}\n"
			   "allowed_annotations = [\"cpu-load-balancing.crio.io\", "
			   "\"cpu-quota.crio.io\", \"irq-load-balancing.crio.io\", "
			   "\"cpu-c-states.crio.io\", \"cpu-freq-governor.crio.io\""));
	strbuf_add(&b, mixed ? STR(", \"cpu-shared.crio.io\"]\n") : STR("]\n"));
	return strbuf_str(&b);
}

/* What the agent does when a container owns CPUs that leave its pool. */
static const char *resize_member(const struct profile *profile)
{
	yyjson_val *annotations = doc_find(profile->at.object, "/metadata/annotations");

	return str_eq(doc_str(doc_get(annotations, STR(NAME_RESIZE))),
		      STR(NAME_POOLS_RESIZE_DEFER)) ?
		       ",\"" NAME_POOLS_RESIZE_KEY "\":\"" NAME_POOLS_RESIZE_DEFER "\"" :
		       "";
}

/* Members that differ from the agent's defaults. */
static struct str alignment_members(const struct profile *profile, struct arena *a)
{
	struct pool_config defaults, c;
	const char *before = ",\"" NAME_POOLS_OPTIONS_KEY "\":{";
	struct strbuf b;

	pool_config_init(&defaults);
	pool_config_init(&c);
	profile_alignment(profile, &c.topology, &c.options);
	strbuf_init(&b, a);
	if (c.topology.policy != defaults.topology.policy)
		strbuf_printf(&b, ",\"" NAME_POOLS_POLICY_KEY "\":\"%s\"",
			      hint_policy_name(c.topology.policy));
	if (c.topology.scope != defaults.topology.scope)
		strbuf_printf(&b, ",\"" NAME_POOLS_SCOPE_KEY "\":\"%s\"",
			      hint_scope_name(c.topology.scope));
	for (size_t i = 0; i < PICK_OPTIONS_COUNT; i++) {
		const bool value = *pick_option_value(&c.options, i);

		if (value == *pick_option_value(&defaults.options, i))
			continue;
		strbuf_printf(&b, "%s\"%s\":\"%s\"", before, pick_option_name(i),
			      value ? "true" : "false");
		before = ",";
	}
	if (before[1] == '\0')
		strbuf_addc(&b, '}');
	return strbuf_str(&b);
}

static struct str types_member(const struct profile *profile, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < profile->n_types; i++)
		strbuf_printf(&b, "%s\"%s\":\"" PRI_STR "\"",
			      i ? "," : ",\"" NAME_POOLS_TYPES_KEY "\":{", profile->types[i].name,
			      FMT_STR(cpuset_format(&profile->types[i].cpus, a)));
	if (profile->n_types)
		strbuf_addc(&b, '}');
	return strbuf_str(&b);
}

struct str pinning_pools(const struct partition *part, struct arena *a)
{
	const struct profile *profile = part->profile;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "{\"" NAME_POOLS_RESERVED_KEY "\":\"" PRI_STR "\"",
		      FMT_STR(cpuset_format(&part->cpus[PROFILE_RESERVED], a)));
	if (profile_has_pools(profile)) /* otherwise classic mode, which has no such list */
		strbuf_printf(&b, ",\"" NAME_POOLS_SHARED_KEY "\":\"" PRI_STR "\"",
			      FMT_STR(cpuset_format(&part->cpus[PROFILE_SHARED], a)));
	strbuf_printf(&b,
		      ",\"" NAME_POOLS_GUARANTEED_KEY "\":\"" PRI_STR "\"" PRI_STR PRI_STR "%s}\n",
		      FMT_STR(cpuset_format(&part->cpus[PROFILE_ISOLATED], a)),
		      FMT_STR(types_member(profile, a)), FMT_STR(alignment_members(profile, a)),
		      resize_member(profile));
	return strbuf_str(&b);
}

size_t pinning_workloads(const struct partition *part, struct arena *a, struct workload_cpus **ret)
{
	const struct profile *profile = part->profile;
	struct workload_cpus *w = arena_array(a, struct workload_cpus, profile->n_types + 1);
	size_t n = 1;

	w[0] = (struct workload_cpus){ STR(NAME_TYPE_MANAGEMENT), part->text[PROFILE_RESERVED] };
	for (size_t i = 0; i < profile->n_types; i++) {
		const struct str type = str_from(profile->types[i].name);
		const size_t at = str_eq(type, w[0].type) ? 0 : n++;

		w[at] = (struct workload_cpus){ type, cpuset_format(&profile->types[i].cpus, a) };
	}
	*ret = w;
	return n;
}

/* 256 containers is upstream's constant; the file ends without a newline there, too. */
struct str pinning_mixed_cpus(void)
{
	return STR("\n{\n  \"shared_cpus\": {\n     \"containers_limit\": 256\n  }\n}");
}
