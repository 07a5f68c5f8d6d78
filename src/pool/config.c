/* The CPU lists of the pools: what each pool consists of in the two modes, whether a configuration
 * is valid on a machine, and its JSON form in the ledger's file. */

#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/doc.h"
#include "cpu/pick.h"
#include "cpu/topology.h"
#include "kube/names.h"

/* Keys of the pools file; "reserved" is OpenShift's name of the management pool. */
static const char *const pool_keys[] = {
	[POOL_MANAGEMENT] = "reserved",
	[POOL_SHARED] = "shared",
	[POOL_GUARANTEED] = "guaranteed",
};
_Static_assert(ARRAY_LEN(pool_keys) == POOL__COUNT, "every pool has a key");

#define MODE_CLASSIC "classic"
#define MODE_POOLS "pools"
#define TYPES_KEY "types"
#define FOLD_KEY "fold-rest" /* Pinfold's own; the other options have the kubelet's names */

void pool_config_init(struct pool_config *c)
{
	*c = (struct pool_config){
		.options = { .strict_cpu_reservation = true },
		.topology = { .policy = HINT_POLICY_BEST_EFFORT },
	};
}

static const struct pool_type *find_type(const struct pool_config *c, struct str name)
{
	for (size_t i = 0; i < c->n_types; i++)
		if (str_eq(str_from(c->types[i].name), name))
			return &c->types[i];
	return NULL;
}

int pool_config_set_type(struct pool_config *c, struct str name, const struct cpuset *cpus,
			 struct err *err)
{
	struct pool_type *t = (struct pool_type *)find_type(c, name);
	size_t i = 0;

	if (!workload_type_is_valid(name))
		return err_set(err, EINVAL, "%s is not a workload type: want a DNS label",
			       quote(name).text);
	if (str_eq(name, str_from(pool_name(POOL_SHARED))) ||
	    str_eq(name, str_from(pool_name(POOL_GUARANTEED))))
		return err_set(err, EINVAL, "a workload type cannot have the name of a pool, %s",
			       quote(name).text);
	if (t) {
		t->cpus = *cpus;
		return 0;
	}
	if (c->n_types == POOL_TYPES_MAX)
		return err_set(err, E2BIG, "more than %d workload types", POOL_TYPES_MAX);
	while (i < c->n_types && str_cmp(str_from(c->types[i].name), name) < 0)
		i++;
	memmove(&c->types[i + 1], &c->types[i], (c->n_types - i) * sizeof(c->types[0]));
	c->types[i] = (struct pool_type){ .cpus = *cpus };
	memcpy(c->types[i].name, name.p, name.n);
	c->n_types++;
	return 0;
}

bool pool_config_has_type(const struct pool_config *c, struct str name)
{
	return str_eq(name, STR(NAME_TYPE_MANAGEMENT)) || find_type(c, name);
}

void pool_config_type_cpus(const struct pool_config *c, struct str name,
			   const struct cpuset *management, struct cpuset *ret)
{
	const struct pool_type *t = find_type(c, name);
	struct cpuset cpus = *management;

	if (t)
		cpuset_intersect(&cpus, &t->cpus);
	*ret = cpuset_is_empty(&cpus) ? *management : cpus;
}

static const struct cpuset *list_of(const struct pool_config *c, enum pool pool)
{
	const struct cpuset *lists[] = {
		[POOL_MANAGEMENT] = &c->reserved,
		[POOL_SHARED] = &c->shared,
		[POOL_GUARANTEED] = &c->guaranteed,
	};

	return lists[pool];
}

/* Offline CPUs belong to the machine: a configuration stays valid when one of its CPUs goes
 * offline. */
static void machine_cpus(const struct topology *t, struct cpuset *ret)
{
	*ret = t->online;
	cpuset_union(ret, &t->offline);
}

/* Online CPUs that are in no list. Not for classic mode, where every CPU belongs to a pool. */
static void rest_of(const struct pool_config *c, const struct topology *t, struct cpuset *ret)
{
	*ret = t->online;
	for (int p = 0; p < POOL__COUNT; p++)
		cpuset_minus(ret, list_of(c, (enum pool)p));
}

void pool_config_shared(const struct pool_config *c, const struct topology *t, struct cpuset *ret)
{
	struct cpuset rest;

	if (c->is_classic) {
		machine_cpus(t, ret);
		/* Set by default (D23); without it the shared containers may also use the
		 * management CPUs, as in a kubelet without the option. */
		if (c->options.strict_cpu_reservation)
			cpuset_minus(ret, &c->reserved);
		return;
	}
	*ret = c->shared;
	if (c->fold_rest) {
		rest_of(c, t, &rest);
		cpuset_union(ret, &rest);
	}
}

void pool_config_guaranteed(const struct pool_config *c, const struct topology *t,
			    struct cpuset *ret)
{
	if (!c->is_classic || !cpuset_is_empty(&c->guaranteed)) {
		*ret = c->guaranteed;
		return;
	}
	machine_cpus(t, ret);
	cpuset_minus(ret, &c->reserved);
}

static int refuse_cpus(struct err *err, const struct cpuset *cpus, const char *problem)
{
	CLEANUP(arena_done) struct arena a;
	bool one = cpuset_count(cpus) == 1;

	arena_init(&a, 0);
	return err_set(err, EINVAL, "%s %s %s %s", one ? "CPU" : "CPUs",
		       quote(cpuset_format(cpus, &a)).text, one ? "is" : "are", problem);
}

static int check_lists(const struct pool_config *c, const struct topology *t, struct err *err)
{
	struct cpuset machine, wrong;
	char problem[64];

	machine_cpus(t, &machine);
	for (enum pool p = 0; p < POOL__COUNT; p++) {
		const struct cpuset *list = list_of(c, p);

		wrong = *list;
		cpuset_minus(&wrong, &machine);
		if (!cpuset_is_empty(&wrong)) {
			(void)snprintf(problem, sizeof(problem), "%s, but not on this machine",
				       pool_name(p));
			return refuse_cpus(err, &wrong, problem);
		}
		for (enum pool q = 0; q < p; q++) {
			wrong = *list;
			cpuset_intersect(&wrong, list_of(c, q));
			if (cpuset_is_empty(&wrong))
				continue;
			(void)snprintf(problem, sizeof(problem), "both %s and %s", pool_name(q),
				       pool_name(p));
			return refuse_cpus(err, &wrong, problem);
		}
	}
	return 0;
}

/* The management pool contains the CPUs of every type: that keeps all other containers off them. */
static int check_types(const struct pool_config *c, struct err *err)
{
	for (size_t i = 0; i < c->n_types; i++) {
		const struct pool_type *t = &c->types[i];
		struct cpuset wrong = t->cpus;
		char problem[128];

		/* Without management CPUs the partition has no size yet, and nothing has own ones.
		 */
		if (cpuset_is_empty(&t->cpus) && !cpuset_is_empty(&c->reserved))
			return err_set(err, EINVAL, "workload type %s has no CPUs", t->name);
		cpuset_minus(&wrong, &c->reserved);
		if (cpuset_is_empty(&wrong))
			continue;
		(void)snprintf(problem, sizeof(problem),
			       "of workload type %s, but not in the management pool", t->name);
		return refuse_cpus(err, &wrong, problem);
	}
	return 0;
}

/* full-pcpus-only needs cores of one width: docs/reference/pools.md#mixed-core-widths. */
static int check_core_widths(const struct pool_config *c, const struct topology *t, struct err *err)
{
	unsigned seen = 0;

	/* With offline siblings a core looks narrower than it is: refusing then would make a valid
	 * configuration invalid after a hotplug event. */
	if (c->is_classic || !c->options.full_pcpus_only || !cpuset_is_empty(&t->offline))
		return 0;
	CPUSET_FOREACH (cpu, &c->guaranteed) {
		unsigned core = topology_index(t, TOPOLOGY_CORE, cpu);
		unsigned width = topology_size(t, TOPOLOGY_CORE, core);

		if (seen && width != seen)
			return err_set(
				err, EINVAL,
				"full-pcpus-only: the guaranteed pool mixes cores of %u and %u "
				"threads",
				seen, width);
		seen = width;
	}
	return 0;
}

/* Best-effort goes without hints there; a policy that refuses must not admit everything instead
 * (docs/reference/pools.md#many-numa-nodes). */
static int check_topology(const struct pool_config *c, const struct topology *t, struct err *err)
{
	if (c->topology.policy <= HINT_POLICY_BEST_EFFORT || hints_are_supported(t))
		return 0;
	return err_set(err, E2BIG,
		       "topology policy %s: unsupported on machines with more than %d NUMA nodes "
		       "that have CPUs",
		       hint_policy_name(c->topology.policy), HINTS_DEFAULT_MAX_NODES);
}

int pool_config_check(const struct pool_config *c, const struct topology *t, struct err *err)
{
	struct cpuset shared, rest;
	int r;

	if (c->is_classic && !cpuset_is_empty(&c->shared))
		return refuse_cpus(err, &c->shared, "shared, but classic mode has no such list");
	r = check_lists(c, t, err);
	if (r == 0)
		r = check_types(c, err);
	if (r < 0)
		return r;
	r = pick_options_check(&c->options, t, err);
	if (r < 0)
		return r;
	pool_config_shared(c, t, &shared);
	if (cpuset_is_empty(&shared))
		return err_set(err, EINVAL, "no CPU is left for the shared pool");
	rest_of(c, t, &rest);
	if (!c->is_classic && !c->fold_rest && !cpuset_is_empty(&rest))
		return refuse_cpus(err, &rest, "in no pool");
	r = check_core_widths(c, t, err);
	return r < 0 ? r : check_topology(c, t, err);
}

bool pool_config_eq(const struct pool_config *a, const struct pool_config *b)
{
	for (size_t i = 0; i < PICK_OPTIONS_COUNT; i++)
		if (*pick_option_value(&a->options, i) != *pick_option_value(&b->options, i))
			return false;
	for (size_t i = 0; i < a->n_types && a->n_types == b->n_types; i++)
		if (strcmp(a->types[i].name, b->types[i].name) != 0 ||
		    !cpuset_eq(&a->types[i].cpus, &b->types[i].cpus))
			return false;
	return a->n_types == b->n_types && a->is_classic == b->is_classic &&
	       a->fold_rest == b->fold_rest && a->topology.policy == b->topology.policy &&
	       a->topology.scope == b->topology.scope && cpuset_eq(&a->reserved, &b->reserved) &&
	       cpuset_eq(&a->shared, &b->shared) && cpuset_eq(&a->guaranteed, &b->guaranteed);
}

uint64_t pool_config_hash(const struct pool_config *c)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	/* Over the written form and not over the struct: padding and the size of a set would be in
	 * the hash. */
	if (doc_write(pool_config_to_doc(c, doc_build(&a), &a), false, &a, &text, NULL) < 0)
		return 0; /* only an arena with a limit can fail here, and this one has none */
	return xxh64(text, 0);
}

yyjson_mut_val *pool_config_to_doc(const struct pool_config *c, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *v = yyjson_mut_obj(m), *options;

	doc_put_str(m, v, STR("mode"), c->is_classic ? STR(MODE_CLASSIC) : STR(MODE_POOLS));
	for (int p = 0; p < POOL__COUNT; p++)
		doc_put_str(m, v, str_from(pool_keys[p]),
			    cpuset_format(list_of(c, (enum pool)p), a));
	if (c->n_types) { /* none: as files of versions without types are */
		yyjson_mut_val *types = doc_put_obj(m, v, STR(TYPES_KEY));

		for (size_t i = 0; i < c->n_types; i++)
			doc_put_str(m, types, str_from(c->types[i].name),
				    cpuset_format(&c->types[i].cpus, a));
	}
	options = doc_put_obj(m, v, STR("options"));
	for (size_t i = 0; i < PICK_OPTIONS_COUNT; i++)
		doc_put_bool(m, options, str_from(pick_option_name(i)),
			     *pick_option_value(&c->options, i));
	doc_put_bool(m, options, STR(FOLD_KEY), c->fold_rest);
	/* Not the defaults: the hash of a configuration stays the same over an upgrade. */
	if (c->topology.policy != HINT_POLICY_BEST_EFFORT)
		doc_put_str(m, v, STR(NAME_POOLS_POLICY_KEY),
			    str_from(hint_policy_name(c->topology.policy)));
	if (c->topology.scope != HINT_SCOPE_CONTAINER)
		doc_put_str(m, v, STR(NAME_POOLS_SCOPE_KEY),
			    str_from(hint_scope_name(c->topology.scope)));
	return v;
}

static int read_options(const struct doc *doc, yyjson_val *v, struct pool_config *c,
			struct err *err)
{
	yyjson_val *k, *value;

	DOC_EACH_PAIR (v, k, value) {
		bool *target = str_eq(doc_str(k), STR(FOLD_KEY)) ? &c->fold_rest : NULL;

		for (size_t i = 0; i < PICK_OPTIONS_COUNT; i++)
			if (str_eq(doc_str(k), str_from(pick_option_name(i))))
				target = pick_option_value(&c->options, i);
		if (!target)
			return doc_err(err, doc, k, "unknown option %s", quote(doc_str(k)).text);
		if (!yyjson_is_bool(value))
			return doc_err(err, doc, value,
				       "option %s: expected true or false, found %s",
				       quote(doc_str(k)).text, doc_type(value));
		*target = yyjson_get_bool(value);
	}
	return 0;
}

static int read_topology(const struct doc *doc, yyjson_val *v, struct hint_config *ret,
			 struct err *err)
{
	yyjson_val *policy = doc_get(v, STR(NAME_POOLS_POLICY_KEY)),
		   *scope = doc_get(v, STR(NAME_POOLS_SCOPE_KEY));
	struct err why = { 0 };

	if (policy && hint_policy_parse(doc_str(policy), &ret->policy, &why) < 0)
		return doc_err(err, doc, policy, NAME_POOLS_POLICY_KEY ": %s", why.msg);
	if (scope && hint_scope_parse(doc_str(scope), &ret->scope, &why) < 0)
		return doc_err(err, doc, scope, NAME_POOLS_SCOPE_KEY ": %s", why.msg);
	return 0;
}

int pool_config_read_types(const struct doc *doc, yyjson_val *v, struct pool_config *c,
			   struct err *err)
{
	yyjson_val *key, *value;

	if (v && !yyjson_is_obj(v))
		return doc_err(err, doc, v, TYPES_KEY ": expected an object, found %s",
			       doc_type(v));
	DOC_EACH_PAIR (v, key, value) {
		struct err why = { 0 };
		struct cpuset cpus;

		if (!yyjson_is_str(value))
			return doc_err(err, doc, value, TYPES_KEY ": expected a CPU list, found %s",
				       doc_type(value));
		if (cpuset_parse(doc_str(value), &cpus, &why) < 0 ||
		    pool_config_set_type(c, doc_str(key), &cpus, &why) < 0)
			return doc_err(err, doc, value, "%s", why.msg);
	}
	return 0;
}

int pool_config_from_doc(const struct doc *doc, yyjson_val *v, struct pool_config *ret,
			 struct err *err)
{
	struct str mode = doc_str(doc_get(v, STR("mode")));
	struct pool_config c;
	int r;

	if (!yyjson_is_obj(v))
		return doc_err(err, doc, v ? v : doc->root, "config: expected an object, found %s",
			       doc_type(v));
	pool_config_init(&c);
	c.is_classic = str_eq(mode, STR(MODE_CLASSIC));
	if (!c.is_classic && !str_eq(mode, STR(MODE_POOLS)))
		return doc_err(err, doc, doc_get(v, STR("mode")), "unknown mode %s",
			       quote(mode).text);
	for (int p = 0; p < POOL__COUNT; p++) {
		yyjson_val *list = doc_get(v, str_from(pool_keys[p]));
		struct err why = { 0 };

		if (!yyjson_is_str(list))
			return doc_err(err, doc, list ? list : v,
				       "%s: expected a CPU list, found %s", pool_keys[p],
				       doc_type(list));
		if (cpuset_parse(doc_str(list), (struct cpuset *)list_of(&c, (enum pool)p), &why) <
		    0)
			return doc_err(err, doc, list, "%s: %s", pool_keys[p], why.msg);
	}
	r = pool_config_read_types(doc, doc_get(v, STR(TYPES_KEY)), &c, err);
	if (r == 0)
		r = read_options(doc, doc_get(v, STR("options")), &c, err);
	if (r == 0)
		r = read_topology(doc, v, &c.topology, err);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}
