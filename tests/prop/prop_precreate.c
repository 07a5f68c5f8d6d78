/* The OCI stage precreate over random configurations: an adjusted configuration still expresses the
 * same request, and adjusting it again changes nothing. */

#include <string.h>

#include "base/macro.h"
#include "kube/names.h"
#include "oci/oci_record.h"
#include "oci/precreate.h"
#include "pin/placement.h"
#include "prop.h"

static struct doc parse(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(text, STR("config"), NULL, a, &doc, &err));
	return doc;
}

static void add_number(struct strbuf *b, const char *key, int64_t n)
{
	strbuf_printf(b, ",\"%s\":%lld", key, (long long)n);
}

/* Now and then of class Guaranteed, now and then opted in, now and then with CPUs of the user's. */
static struct str random_config(struct prop *r, struct arena *a)
{
	static const int64_t periods[] = { 0, 10000, 100000, 1000000 };
	static const char *const cpus[] = { "0", "0-1", "4-5", "2,7", "0-7" };
	static const char *const paths[] = { "/x/web", "machine.slice:libpod:web", "" };
	const int64_t period = prop_pick(r, periods), n = (int64_t)prop_between(r, 1, 6);
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "{\"process\":{\"rlimits\":[{\"hard\":18446744073709551615}]}");
	if (prop_one_in(r, 4))
		strbuf_printf(&b,
			      ",\"annotations\":{\"" NAME_TARGET_PREFIX "management\":\"{}\","
			      "\"" NAME_RESOURCES_PREFIX "web\":\"{\\\"cpushares\\\":%d}\"}",
			      (int)prop_between(r, 2, 4096));
	strbuf_printf(&b, ",\"linux\":{\"cgroupsPath\":\"%s\",\"resources\":{\"cpu\":{\"idle\":0",
		      prop_pick(r, paths));
	if (prop_one_in(r, 2))
		add_number(&b, "shares",
			   prop_one_in(r, 2) ? n * 1024 : (int64_t)prop_below(r, 5000));
	if (prop_one_in(r, 4))
		add_number(&b, "quota", prop_one_in(r, 2) ? -1 : (int64_t)prop_below(r, 500000));
	else if (period)
		add_number(&b, "quota", n * period);
	if (period)
		add_number(&b, "period", period);
	if (prop_one_in(r, 3))
		strbuf_printf(&b, ",\"cpus\":\"%s\"", prop_pick(r, cpus));
	strbuf_printf(&b, "}%s}},\"hooks\":{}}",
		      prop_one_in(r, 3) ? "" : ",\"memory\":{\"limit\":4096}");
	return strbuf_str(&b);
}

static struct container_class classify_config(const struct doc *config, struct arena *a)
{
	const struct oci_record_source given = { .id = STR("web"), .cgroup = "/x/web" };
	const struct classify_rules rules = { 0 };
	struct err err = { 0 };
	struct container_class class;
	struct oci_record o;
	struct str text;
	struct doc doc;

	CHECK_OK(precreate_check(config, a, &err));
	CHECK_OK(oci_record_build(config, &given, a, &text, &err));
	doc = parse(text, a);
	CHECK_OK(oci_record_parse(&doc, a, &o, &err));
	CHECK_OK(classify_container(&rules, &o.pod, &o.container, a, &class, &err));
	return class;
}

/* As the ledger would grant it, with any CPUs. */
static struct str make_placement(struct prop *r, const struct container_class *class,
				 struct arena *a)
{
	const unsigned n = demand_cpus(&class->demand);
	struct ledger_grant grant = { .pool = n ? POOL_GUARANTEED : POOL_SHARED };
	struct placement p;
	struct err err = { 0 };
	struct cpuset reserved;

	CHECK_OK(cpuset_parse(STR("0-1"), &reserved, &err));
	if (class->is_management) {
		CHECK_OK(placement_of_management(&class->settings, class->type, &reserved, &p,
						 &err));
	} else {
		do
			cpuset_add(&grant.cpus, (unsigned)prop_below(r, 64));
		while (cpuset_count(&grant.cpus) < n);
		CHECK_OK(placement_of_grant(&grant, &p, &err));
	}
	return placement_describe(&p, a);
}

static struct str without_cpu_settings(const struct doc *config, struct arena *a)
{
	static const char *const keys[] = { "cpus", "shares", "quota", "period" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_val_mut_copy(m, config->root), *cpu = root;
	struct err err = { 0 };
	struct str text;

	cpu = yyjson_mut_obj_get(cpu, "linux");
	cpu = yyjson_mut_obj_get(cpu, "resources");
	cpu = yyjson_mut_obj_get(cpu, "cpu");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		(void)yyjson_mut_obj_remove_key(cpu, keys[i]);
	CHECK_OK(doc_write(root, false, a, &text, &err));
	return text;
}

TEST(an_adjusted_configuration_asks_for_the_same_and_stays)
{
	size_t n_exclusive = 0, n_management = 0;
	struct prop r;

	PROP_LOOP (&r) {
		CLEANUP(arena_done) struct arena a;
		struct str text, response, again;
		struct container_class before, after;
		struct doc config, adjusted;
		struct err err = { 0 };

		arena_init(&a, 0);
		config = parse(random_config(&r, &a), &a);
		before = classify_config(&config, &a);
		response = make_placement(&r, &before, &a);
		CHECK_OK(precreate_adjust(&config, response, &a, &text, &err));
		adjusted = parse(text, &a);
		after = classify_config(&adjusted, &a);
		CHECK_INT(after.is_management, before.is_management);
		CHECK_UINT(demand_cpus(&after.demand), demand_cpus(&before.demand));
		CHECK_OK(precreate_adjust(&adjusted, response, &a, &again, &err));
		CHECK_STR(again, text);
		CHECK_STR(precreate_id(&adjusted), precreate_id(&config));
		CHECK_STR(without_cpu_settings(&adjusted, &a), without_cpu_settings(&config, &a));
		n_management += before.is_management;
		n_exclusive += !before.is_management && demand_cpus(&before.demand) > 0;
	}
	TEST_NOTE("%zu exclusive, %zu management", n_exclusive, n_management);
	CHECK(n_exclusive > 0 && n_management > 0);
}
