/* Random profiles on random machines: the pools of a node are valid there, whatever the profile
 * says, or there is an error. */

#include <stdio.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "partition/node_profile.h"
#include "prop.h"

static void random_machine(struct prop *r, struct arena *a, struct topology *ret)
{
	struct err err = { 0 };
	char text[128];

	(void)snprintf(text, sizeof(text), "pack:%u numa:%u core:%u pu:%u",
		       (unsigned)prop_between(r, 1, 2), (unsigned)prop_between(r, 1, 3),
		       (unsigned)prop_between(r, 1, 8), (unsigned)prop_between(r, 1, 2));
	CHECK_OK(topology_parse_synthetic(str_from(text), a, ret, &err));
}

static struct str random_set(struct prop *r, struct arena *a)
{
	static const char *const expressions[] = {
		"first 1 core of each numa", "1 cpu",	      "10%",	"rest",
		"last 1 core of socket 0",   "all of numa 1", "2 cpus", "50%"
	};
	const unsigned first = (unsigned)prop_below(r, 12);

	if (prop_one_in(r, 2))
		return str_from(expressions[prop_below(r, ARRAY_LEN(expressions))]);
	return str_printf(a, "%u-%u", first, first + (unsigned)prop_below(r, 6));
}

static struct str random_profile(struct prop *r, struct arena *a)
{
	static const char *const keys[] = { "reserved", "shared", "isolated", "offlined",
					    "ovsDpdk" };
	const char *before = "";
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeSelector\":{\"x/y\":"
			   "\"\"},\"cpu\":{"));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (i >= 3 ? !prop_one_in(r, 4) : prop_one_in(r, 6))
			continue;
		strbuf_printf(&b, "%s\"%s\":\"" PRI_STR "\"", before, keys[i],
			      FMT_STR(random_set(r, a)));
		before = ",";
	}
	strbuf_add(&b, STR("}}}"));
	return strbuf_str(&b);
}

TEST(pools_of_a_profile_are_valid_on_the_machine_or_there_is_an_error)
{
	unsigned valid = 0, invalid = 0;
	struct prop r;

	PROP_LOOP (&r) {
		CLEANUP(arena_done) struct arena a;
		struct problem_list p;
		struct pool_config c;
		struct err err = { 0 };
		struct topology t;
		struct doc doc;

		arena_init(&a, 0);
		random_machine(&r, &a, &t);
		CHECK_OK(doc_parse(random_profile(&r, &a), STR(""), NULL, &a, &doc, &err));
		problem_list_init(&p, &a);
		if (!node_profile_pools(doc.root, &t, &a, &c, &p)) {
			CHECK(p.n_errors > 0 && node_profile_errors(&p, &a).n > 0);
			invalid++;
			continue;
		}
		valid++;
		CHECK_UINT(p.n_errors, 0);
		CHECK_OK(pool_config_check(&c, &t, &err));
		CHECK(!cpuset_intersects(&c.reserved, &c.guaranteed));
		CHECK(!cpuset_intersects(&c.shared, &c.guaranteed));
		CHECK(!cpuset_intersects(&c.reserved, &c.shared));
	}
	TEST_NOTE("%u profiles fit, %u do not", valid, invalid);
	CHECK((valid > 0 && invalid > 0) || r.runs < 100);
}
