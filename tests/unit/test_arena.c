#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/macro.h"
#include "test.h"

TEST(blocks_are_aligned_and_do_not_overlap)
{
	static const size_t sizes[] = { 1, 3, 7, 16, 100, 5000, 20000, 1, 2000000, 9 };
	CLEANUP(arena_done) struct arena a;
	unsigned char *blocks[ARRAY_LEN(sizes) * 5];
	size_t n = 0;

	arena_init(&a, 0);
	for (size_t align = 1; align <= 16; align *= 2)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++, n++) {
			blocks[n] = arena_alloc(&a, sizes[i], align);
			TEST_ROW("%zu bytes aligned to %zu", sizes[i], align);
			CHECK_UINT((uintptr_t)blocks[n] % align, 0);
			memset(blocks[n], (int)n, sizes[i]);
		}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizes[i % ARRAY_LEN(sizes)]; k++)
			CHECK_UINT(blocks[i][k], i);
}

TEST(new_memory_is_zero_even_when_it_was_used_before)
{
	CLEANUP(arena_done) struct arena a;
	uint64_t *numbers;

	arena_init(&a, 0);
	memset(arena_alloc(&a, 8000, 1), 0xff, 8000);
	arena_reset(&a);
	numbers = arena_array(&a, uint64_t, 1000);
	for (size_t i = 0; i < 1000; i++)
		CHECK_UINT(numbers[i], 0);
}

TEST(the_limit_counts_bytes_including_alignment)
{
	static const struct {
		size_t limit, first, second, align;
		bool want;
	} cases[] = {
		{ 100, 50, 50, 1, true },	 { 100, 50, 51, 1, false },
		{ 100, 49, 51, 1, true },	 { 100, 49, 51, 2, false },
		{ 100, 1, 84, 16, true },	 { 100, 1, 85, 16, false },
		{ 100, 0, 100, 16, true },	 { 100, 0, 101, 1, false },
		{ 100, 100, 0, 1, true },	 { 100, 1, SIZE_MAX, 1, false },
		{ 100, 1, SIZE_MAX, 16, false }, { 1 << 20, 1, 1 << 20, 1, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, cases[i].limit);
		TEST_ROW("row %zu", i);
		CHECK(arena_alloc(&a, cases[i].first, 1));
		CHECK(!!arena_alloc(&a, cases[i].second, cases[i].align) == cases[i].want);
		CHECK(a.used <= a.limit);
	}
}

TEST(an_arena_beyond_its_limit_fails_until_it_is_reset)
{
	CLEANUP(arena_done) struct arena a;
	char *p;

	arena_init(&a, 100);
	p = arena_alloc(&a, 10, 1);
	CHECK(!arena_alloc(&a, 91, 1));
	CHECK(!arena_alloc(&a, 1, 1));
	CHECK(!arena_realloc(&a, p, 10, 11));
	CHECK(a.failed);
	arena_reset(&a);
	CHECK(arena_alloc(&a, 100, 1));
	CHECK(!a.failed);
}

TEST(an_array_whose_size_overflows_is_refused)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK(!arena_array(&a, uint64_t, SIZE_MAX / 4));
}

TEST(the_newest_block_grows_and_shrinks_in_place)
{
	CLEANUP(arena_done) struct arena a;
	char *p;

	arena_init(&a, 1000);
	p = arena_alloc(&a, 10, 1);
	CHECK(arena_realloc(&a, p, 10, 500) == p);
	CHECK_UINT(a.used, 500);
	CHECK(arena_realloc(&a, p, 500, 20) == p);
	CHECK_UINT(a.used, 20);
	CHECK(arena_alloc(&a, 1, 1) == (void *)(p + 20));
	CHECK(!arena_realloc(&a, arena_alloc(&a, 1, 1), 1, 1000));
}

TEST(a_block_that_is_not_the_newest_moves_with_its_bytes)
{
	CLEANUP(arena_done) struct arena a;
	char *p, *moved;

	arena_init(&a, 0);
	p = memcpy(arena_alloc(&a, 4, 1), "abc", 4);
	(void)arena_alloc(&a, 1, 1);
	CHECK(arena_realloc(&a, p, 4, 2) == p);
	moved = arena_realloc(&a, p, 4, 100);
	CHECK(moved != p);
	CHECK_STR((const char *)moved, "abc");
	CHECK_UINT((uintptr_t)moved % 16, 0);
	CHECK(arena_realloc(&a, NULL, 0, 8));
	CHECK(arena_realloc(&a, NULL, 0, 0));
}

/* Without this, reading a large file through a pipe would need the sum of all intermediate sizes.
 */
TEST(a_large_block_grows_without_leaving_copies_behind)
{
	CLEANUP(arena_done) struct arena a;
	size_t size = 64;
	char *p;

	arena_init(&a, (size_t)9 << 20);
	p = memset(arena_alloc(&a, size, 1), 'x', size);
	while (size < (size_t)8 << 20) {
		p = arena_realloc(&a, p, size, size * 2);
		CHECK(p);
		memset(p + size, 'x', size);
		size *= 2;
	}
	CHECK_UINT(a.used, size);
	for (size_t i = 0; i < size; i++)
		if (p[i] != 'x')
			CHECK_UINT(i, size);
	CHECK(arena_alloc(&a, 1, 1));
}

TEST(a_reset_keeps_the_largest_chunk_up_to_256_kib)
{
	CLEANUP(arena_done) struct arena a;
	void *block;

	arena_init(&a, 0);
	arena_reset(&a);
	for (unsigned i = 0; i < 100; i++)
		(void)arena_alloc(&a, 10000, 1);
	arena_reset(&a);
	CHECK_UINT(a.used, 0);
	CHECK_UINT((size_t)(a.end - a.next), 256 << 10);
	block = arena_alloc(&a, 200000, 1); /* fits into the kept chunk */
	arena_reset(&a);
	CHECK(arena_alloc(&a, 1, 1) == block);
}

TEST(reserve_makes_space_and_keeps_the_items)
{
	CLEANUP(arena_done) struct arena a;
	size_t cap = 0, grown = 0;
	uint32_t *items = NULL;

	arena_init(&a, 0);
	for (uint32_t n = 0; n < 1000; n++) {
		const size_t before = cap;

		items = arena_reserve(&a, items, n, &cap, sizeof(*items));
		CHECK(n < cap);
		grown += cap != before;
		items[n] = n;
		(void)arena_alloc(&a, 1, 1); /* so that it cannot grow in place */
	}
	for (uint32_t n = 0; n < 1000; n++)
		CHECK_UINT(items[n], n);
	CHECK_UINT(grown, 8);
}

TEST(a_list_without_a_capacity_is_full_at_powers_of_two)
{
	CLEANUP(arena_done) struct arena a;
	uint32_t *items = NULL;
	size_t moved = 0;

	arena_init(&a, 0);
	for (uint32_t n = 0; n < 1000; n++) {
		uint32_t *now = arena_one_more(&a, items, n, sizeof(*items));

		CHECK(now);
		moved += now != items;
		items = now;
		items[n] = n;
		(void)arena_alloc(&a, 1, 1); /* so that it cannot grow in place */
	}
	for (uint32_t n = 0; n < 1000; n++)
		CHECK_UINT(items[n], n);
	CHECK_UINT(moved, 11); /* at 0, 1, 2, 4 ... 512 */
}

TEST(memory_beyond_its_own_is_taken_from_the_budget_and_given_back)
{
	struct budget budget = { .limit = 3 << 20 };
	CLEANUP(arena_done) struct arena a, other;
	void *p;

	arena_init(&a, 0);
	arena_init(&other, 0);
	arena_use_budget(&a, &budget, 1 << 20);
	arena_use_budget(&other, &budget, 1 << 20);
	CHECK(arena_alloc(&a, 1 << 19, 1) && arena_alloc(&other, 1 << 19, 1));
	CHECK_UINT(budget_used(&budget), 0);
	p = arena_alloc(&a, 2 << 20, 1);
	CHECK(p != NULL);
	CHECK(budget_used(&budget) >= 3 << 19 && budget_used(&budget) <= budget.limit);
	CHECK(!arena_alloc(&other, 3 << 20, 1) && other.failed); /* the rest is not enough for it */
	CHECK(!arena_realloc(&a, p, 2 << 20, 8 << 20) && a.failed);
	arena_reset(&a);
	arena_reset(&other);
	CHECK_UINT(budget_used(&budget), 0);
	CHECK(!a.failed && arena_alloc(&other, 3 << 20, 1));
	arena_done(&other);
	CHECK_UINT(budget_used(&budget), 0);
	CHECK(!arena_alloc(&other, 5 << 20, 1)); /* also after the end it has its budget */
}
