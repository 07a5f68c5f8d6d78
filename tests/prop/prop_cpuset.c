/* Sets against the plainest model there is: an array of bools. */

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "prop.h"

struct model {
	bool has[CPUSET_MAX];
};

static void model_fill(struct model *m, unsigned first, unsigned last)
{
	while (first <= last)
		m->has[first++] = true;
}

/* A few runs, of lengths and places that meet word boundaries, within a machine of random size. */
static void draw(struct prop *r, struct cpuset *s, struct model *m)
{
	static const unsigned sizes[] = { 1, 8, 64, 65, 256, 1024, CPUSET_MAX };
	unsigned size = prop_pick(r, sizes);

	memset(s, 0, sizeof(*s));
	memset(m, 0, sizeof(*m));
	for (uint64_t n = prop_below(r, 12); n > 0; n--) {
		unsigned first = (unsigned)prop_below(r, size);
		unsigned last = first + (unsigned)prop_below(r, prop_one_in(r, 3) ? size : 3);

		if (last >= size)
			last = size - 1;
		cpuset_add_range(s, first, last);
		model_fill(m, first, last);
	}
	if (prop_one_in(r, 3)) {
		unsigned cpu = (unsigned)prop_below(r, size);

		cpuset_del(s, cpu);
		m->has[cpu] = false;
	}
}

static void check_is_model(const struct cpuset *s, const struct model *m)
{
	unsigned n = 0, first = CPUSET_NONE, last = CPUSET_NONE;

	for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu++) {
		if (cpuset_has(s, cpu) != m->has[cpu])
			test_fail(TEST_AT("cpuset_has"), "wrong for CPU %u", cpu);
		if (!m->has[cpu])
			continue;
		first = n++ ? first : cpu;
		last = cpu;
	}
	CHECK_UINT(cpuset_count(s), n);
	CHECK_UINT(cpuset_first(s), first);
	CHECK_UINT(cpuset_last(s), last);
	CHECK(cpuset_is_empty(s) == (n == 0));
}

TEST(set_operations_match_those_on_an_array_of_bools)
{
	static struct model a, b, m;
	struct prop r;

	PROP_LOOP (&r) {
		struct cpuset x, y, both, none = { 0 };
		bool subset = true, common = false;

		draw(&r, &x, &a);
		draw(&r, &y, &b);
		for (unsigned i = 0; i < CPUSET_MAX; i++) {
			subset &= !a.has[i] || b.has[i];
			common |= a.has[i] && b.has[i];
		}
		CHECK(cpuset_is_subset(&x, &y) == subset);
		CHECK(cpuset_intersects(&x, &y) == common);
		CHECK(cpuset_eq(&x, &y) == (memcmp(&a, &b, sizeof(a)) == 0));
		CHECK(cpuset_is_subset(&none, &x));

#define CHECK_OPERATION(apply, expression)                                                         \
	do {                                                                                       \
		both = x;                                                                          \
		apply(&both, &y);                                                                  \
		for (unsigned i = 0; i < CPUSET_MAX; i++)                                          \
			m.has[i] = (expression);                                                   \
		check_is_model(&both, &m);                                                         \
	} while (0)
		CHECK_OPERATION(cpuset_union, a.has[i] || b.has[i]);
		CHECK_OPERATION(cpuset_intersect, a.has[i] && b.has[i]);
		CHECK_OPERATION(cpuset_minus, a.has[i] && !b.has[i]);
		CHECK_OPERATION(cpuset_xor, a.has[i] != b.has[i]);
	}
}

TEST(a_loop_visits_each_cpu_once_in_order)
{
	static struct model m;
	struct prop r;

	PROP_LOOP (&r) {
		struct cpuset s, again = { 0 };
		unsigned above = 0;

		draw(&r, &s, &m);
		CPUSET_FOREACH (cpu, &s) {
			CHECK(cpu >= above && m.has[cpu]);
			cpuset_add(&again, cpu);
			above = cpu + 1;
		}
		CHECK(cpuset_eq(&s, &again));
	}
}

TEST(every_text_form_reads_back_as_the_same_set)
{
	static const struct {
		struct str (*format)(const struct cpuset *s, struct arena *a);
		int (*parse)(struct str text, struct cpuset *ret, struct err *err);
	} forms[] = {
		{ cpuset_format, cpuset_parse },
		{ cpuset_format, cpuset_parse_lenient },
		{ cpuset_format, cpuset_parse_kernel },
		{ cpuset_format_expanded, cpuset_parse },
	};
	CLEANUP(arena_done) struct arena a;
	static struct model m;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct cpuset s, back;
		struct err err = { 0 };

		arena_reset(&a);
		draw(&r, &s, &m);
		for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
			CHECK_OK(forms[i].parse(forms[i].format(&s, &a), &back, &err));
			CHECK(cpuset_eq(&s, &back));
		}
	}
}
