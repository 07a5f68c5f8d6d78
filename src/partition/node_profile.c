#include "node_profile.h"

#include "base/arena.h"
#include "base/err.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "profile/layout.h"

static struct str annotation_of(const struct profile *profile, struct str name)
{
	return doc_str(doc_get(doc_find(profile->at.object, "/metadata/annotations"), name));
}

/* The workload types of the profile's annotation. */
static int read_types(const struct profile *profile, struct arena *a, struct pool_config *c,
		      struct err *err)
{
	const struct str text = annotation_of(profile, STR(NAME_TYPES));
	struct doc doc;
	int r;

	if (text.n == 0)
		return 0;
	r = doc_parse(text, STR("annotation " NAME_TYPES), NULL, a, &doc, err);
	return r < 0 ? r : pool_config_read_types(&doc, doc.root, c, err);
}

/* The poll threads of Open vSwitch are no container, so no pool has their CPUs. */
static void warn_of_ovs(const struct partition *part, struct problem_list *p)
{
	if (!cpuset_is_empty(&part->cpus[PROFILE_OVS_DPDK]))
		problem_warn(p, profile_set_at(part->profile, PROFILE_OVS_DPDK),
			     "containers of the shared pool may run on these CPUs, too");
}

bool partition_pools(const struct partition *part, struct arena *a, struct pool_config *ret,
		     struct problem_list *p)
{
	const struct profile *profile = part->profile;
	struct err err = { 0 };
	struct pool_config c;

	pool_config_init(&c);
	c.is_classic = !profile_has_pools(profile);
	if (!profile_pins_nothing(profile)) /* otherwise management pods may use all CPUs */
		c.reserved = part->cpus[PROFILE_RESERVED];
	if (!c.is_classic)
		c.shared = part->cpus[PROFILE_SHARED];
	c.guaranteed = part->cpus[PROFILE_ISOLATED];
	profile_alignment(profile, &c.topology, &c.options);
	c.fold_rest = true;
	c.defers_resize =
		str_eq(annotation_of(profile, STR(NAME_RESIZE)), STR(NAME_POOLS_RESIZE_DEFER));
	if (read_types(profile, a, &c, &err) < 0 ||
	    pool_config_check(&c, part->topology, &err) < 0) {
		problem_error(p, PROBLEM_AT(profile->at.doc, profile->at.object, NULL), "%s",
			      err.msg);
		return false;
	}
	warn_of_ovs(part, p);
	*ret = c;
	return true;
}

bool node_profile_pools(yyjson_val *profile, const struct topology *t, struct arena *a,
			struct pool_config *ret, struct problem_list *p)
{
	const struct pool_topology machine = { .topology = t };
	const struct layout_options options = { .topologies = &machine,
						.n_topologies = 1,
						.plain_hosts = true,
						.allow_split_cores = true };
	struct layout layout;
	struct manifests ms;

	manifests_init(&ms, a);
	manifest_list_add(&ms.profiles, a, (struct manifest){ .object = profile });
	layout_resolve(&ms, &options, a, &layout, p);
	return p->n_errors == 0 && partition_pools(&layout.partitions[0], a, ret, p);
}

struct str node_profile_errors(const struct problem_list *p, struct arena *a)
{
	const char *before = "";
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < p->n; i++) {
		const struct problem *each = &p->items[i];

		if (each->level != PROBLEM_ERROR)
			continue;
		strbuf_printf(&b, "%s" PRI_STR "%s" PRI_STR, before, FMT_STR(each->field),
			      each->field.n ? ": " : "", FMT_STR(each->text));
		before = "; ";
	}
	return strbuf_str(&b);
}
