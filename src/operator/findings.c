#include "findings.h"

#include "base/arena.h"
#include "base/macro.h"

const struct cluster_check_info cluster_checks[] = {
	[CLUSTER_NODE_RESOURCE] = { "NodeWithoutResource", "Run the agent on the node, or remove "
							   "the node: it is no part of "
							   "a cluster that partitions all nodes." },
	[CLUSTER_PROFILE_NODES] = { "ProfileSelectsNoNode",
				    "Correct spec.nodeSelector, label a node, or delete the "
				    "profile." },
	[CLUSTER_PROFILE_OVERLAP] = { "ProfilesOverlap",
				      "Change the node selectors so that one profile selects a "
				      "node; until then the node keeps what it has." },
	[CLUSTER_PROFILE_OBJECTS] = { "ProfileCannotBeRendered",
				      "Correct the profile; `pinfold profile check` prints all of "
				      "its "
				      "problems. Its objects stay as they are." },
	[CLUSTER_POD_UNCONVERTED] = { "PodNotConverted",
				      "Create the pod again while the webhook is available; a "
				      "static "
				      "pod is converted by an agent with --static-pods." },
	[CLUSTER_AUTOSCALER] = { "AutoscalerWithoutRequest",
				 "Scale on an absolute value (AverageValue) or on another "
				 "metric." },
	[CLUSTER_LIMIT_RANGE] = { "LimitRangeRefusesPods",
				  "Remove the cpu limits from the LimitRange: converted containers "
				  "have no cpu request and no cpu limit." },
	[CLUSTER_QUOTA] = { "QuotaRefusesPods",
			    "Remove cpu from the ResourceQuota, or limit "
			    "requests.<type>.workload.openshift.io/cores instead." },
};
_Static_assert(ARRAY_LEN(cluster_checks) == CLUSTER_CHECK__COUNT, "every check has a row");

static void keep(struct cluster_findings *f, const struct cluster_finding *finding)
{
	f->items = arena_one_more(f->arena, f->items, f->n, sizeof(*f->items));
	f->items[f->n++] = *finding;
}

void cluster_findings_add(struct cluster_findings *f, const struct cluster_finding *finding)
{
	struct cluster_finding copy = *finding;

	if (f->counts[finding->check]++ >= CLUSTER_FINDINGS_KEPT)
		return;
	copy.namespace = str_dup(f->arena, finding->namespace);
	copy.name = str_dup(f->arena, finding->name);
	copy.uid = str_dup(f->arena, finding->uid);
	copy.problem = str_dup(f->arena, finding->problem);
	keep(f, &copy);
}

void cluster_findings_append(struct cluster_findings *f, const struct cluster_findings *from)
{
	for (size_t i = 0; i < from->n; i++)
		keep(f, &from->items[i]);
	for (size_t i = 0; i < CLUSTER_CHECK__COUNT; i++)
		f->counts[i] += from->counts[i];
}

static void format_check(const struct cluster_findings *f, enum cluster_check check,
			 struct strbuf *b)
{
	size_t n_shown = 0;

	strbuf_printf(b, "%s: %s\n", cluster_checks[check].reason, cluster_checks[check].remedy);
	for (size_t i = 0; i < f->n; i++) {
		const struct cluster_finding *finding = &f->items[i];

		if (finding->check != check)
			continue;
		strbuf_printf(b, "  " PRI_STR " " PRI_STR "%s" PRI_STR ": " PRI_STR "\n",
			      FMT_STR(finding->kind), FMT_STR(finding->namespace),
			      finding->namespace.n ? "/" : "", FMT_STR(finding->name),
			      FMT_STR(finding->problem));
		n_shown++;
	}
	if (f->counts[check] > n_shown)
		strbuf_printf(b, "  and %zu more\n", f->counts[check] - n_shown);
}

struct str cluster_findings_format(const struct cluster_findings *f, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (enum cluster_check check = 0; check < CLUSTER_CHECK__COUNT; check++)
		if (f->counts[check])
			format_check(f, check, &b);
	return b.n ? strbuf_str(&b) : STR("no findings\n");
}
