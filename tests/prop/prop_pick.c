/* Picks on random machines of up to 1024 CPUs. */

#include <errno.h>

#include "prop.h"
#include "random_machine.h"
#include "reference_pick.h"

#include "base/macro.h"

#define PICKS_PER_MACHINE 4

struct sample {
	struct arena a;
	struct topology t;
	struct cpuset available;
	struct pick_request request;
};

static void sample_done(struct sample *s)
{
	arena_done(&s->a);
}

static void draw_machine(struct prop *p, unsigned max_cpus, struct sample *ret)
{
	const struct machine_shape shape = machine_shape_draw(&p->state, max_cpus);

	arena_init(&ret->a, 0);
	ret->t = machine_build(&shape, &ret->a);
	CHECK(ret->t.n_cpus > 0);
}

static void draw_pick(struct prop *p, struct sample *ret)
{
	ret->available = machine_free(&p->state, &ret->t);
	ret->request = machine_request(&p->state, &ret->t, &ret->available);
}

TEST(a_pick_has_the_requested_size_is_available_and_is_repeatable)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(sample_done) struct sample s;

		draw_machine(&p, 1024, &s);
		for (int i = 0; i < PICKS_PER_MACHINE; i++) {
			struct cpuset known, got = { { 42 } }, again;
			struct err err = { 0 };

			draw_pick(&p, &s);
			known = s.available;
			cpuset_intersect(&known, &s.t.online);
			if (pick_cpus(&s.t, &s.available, &s.request, &got, &err) < 0) {
				CHECK(s.request.n_cpus > cpuset_count(&known));
				CHECK_INT(err.code, ENOSPC);
				CHECK_UINT(got.w[0], 42);
				continue;
			}
			CHECK_UINT(cpuset_count(&got), s.request.n_cpus);
			CHECK(cpuset_is_subset(&got, &known));
			CHECK_OK(pick_cpus(&s.t, &s.available, &s.request, &again, &err));
			CHECK(cpuset_eq(&got, &again));
		}
	}
}

TEST(a_pick_equals_the_reference_implementation)
{
	CLEANUP(arena_done) struct arena a;
	struct prop p;

	arena_init(&a, 0);
	PROP_LOOP (&p) {
		CLEANUP(sample_done) struct sample s;

		draw_machine(&p, prop_one_in(&p, 16) ? 256 : 64, &s);
		for (int i = 0; i < PICKS_PER_MACHINE; i++) {
			struct cpuset got, want;
			struct err err = { 0 };
			int r;

			draw_pick(&p, &s);
			r = pick_cpus(&s.t, &s.available, &s.request, &got, &err);
			CHECK_UINT(reference_pick(&s.t, &s.available, &s.request, &want), r == 0);
			if (r == 0)
				CHECK_STR(cpuset_format(&got, &a), cpuset_format(&want, &a));
			arena_reset(&a);
		}
	}
}

/* Packed picks of whole cores out of whole cores split no core. */
TEST(packed_picks_do_not_split_cores)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(sample_done) struct sample s;
		struct err err = { 0 };
		struct cpuset got, split;
		unsigned threads;

		draw_machine(&p, 1024, &s);
		draw_pick(&p, &s);
		threads = topology_average(&s.t, TOPOLOGY_CORE);
		if (threads != s.t.level[TOPOLOGY_CORE].max_size)
			continue; /* of different widths: no number is whole cores of all */
		topology_split(&s.t, TOPOLOGY_CORE, &s.available, &split);
		cpuset_minus(&s.available, &split);
		cpuset_intersect(&s.available, &s.t.online);
		s.request.n_cpus = cpuset_count(&s.available) / 2 / threads * threads;
		s.request.spread = false;
		s.request.group = threads;
		CHECK_OK(pick_cpus(&s.t, &s.available, &s.request, &got, &err));
		topology_split(&s.t, TOPOLOGY_CORE, &got, &split);
		CHECK(cpuset_is_empty(&split));
	}
}

/* With equal shares asked for and possible, no node gives more than a group above another. */
TEST(a_distributed_pick_is_even_on_a_free_machine)
{
	struct prop p;

	PROP_LOOP (&p) {
		CLEANUP(sample_done) struct sample s;
		unsigned least = UINT32_MAX, most = 0;
		struct err err = { 0 };
		struct cpuset got;

		draw_machine(&p, 1024, &s);
		s.request = (struct pick_request){ .distributed = true, .group = 1 };
		s.request.n_cpus = (unsigned)prop_below(&p, s.t.n_cpus + 1);
		CHECK_OK(pick_cpus(&s.t, &s.t.online, &s.request, &got, &err));
		for (unsigned i = 0; i < s.t.level[TOPOLOGY_NUMA].n; i++) {
			struct cpuset part = { 0 };
			unsigned n;

			topology_add_element(&s.t, TOPOLOGY_NUMA, i, &part);
			cpuset_intersect(&part, &got);
			n = cpuset_count(&part);
			if (n && n < least)
				least = n;
			if (n > most)
				most = n;
		}
		/* nodes of one size only: else a remainder may have one place to go */
		if (s.t.level[TOPOLOGY_NUMA].max_size * s.t.level[TOPOLOGY_NUMA].n == s.t.n_cpus)
			CHECK(most == 0 || most - least <= 1);
	}
}

/* 32 nodes, each filled differently: the kubelet's search would take years. */
TEST(the_search_over_many_nodes_ends)
{
	const struct machine_shape shape = { .sockets = 2,
					     .nodes_per_socket = 16,
					     .caches_per_node = 1,
					     .cores_per_cache = 33,
					     .threads = 1 };
	CLEANUP(sample_done) struct sample s;
	struct err err = { 0 };
	struct cpuset got;

	arena_init(&s.a, 0);
	s.t = machine_build(&shape, &s.a);
	s.available = s.t.online;
	for (unsigned i = 0; i < 32; i++)
		for (unsigned j = 0; j < i; j++)
			cpuset_del(&s.available, i * 33 + j);
	for (int align = 0; align < 2; align++) {
		s.request = (struct pick_request){
			.n_cpus = 301, .group = 1, .distributed = true, .align_by_socket = align
		};
		CHECK_OK(pick_cpus(&s.t, &s.available, &s.request, &got, &err));
		CHECK_UINT(cpuset_count(&got), 301);
		CHECK(cpuset_is_subset(&got, &s.available));
	}
}
