/* The set of rendered files: order of arrival, one of each path, however many there are. */

#include "render/file_set.h"

#include "base/arena.h"
#include "base/macro.h"
#include "test.h"

static struct str path(unsigned n, struct arena *a)
{
	return str_printf(a, "pool-%u/etc/pinfold", n);
}

TEST(a_path_that_is_added_twice_keeps_its_position_and_gets_the_new_bytes)
{
	enum { N = 5000 };
	CLEANUP(arena_done) struct arena a;
	struct file_set set;

	arena_init(&a, 0);
	file_set_init(&set, &a);
	CHECK(!file_set_find(&set, STR("pool-0/etc/pinfold")));
	for (unsigned i = 0; i < N; i++)
		file_set_add(&set, path(i, &a), MODE_PLAIN, STR("first"));
	for (unsigned i = 0; i < N; i += 7)
		file_set_add(&set, path(i, &a), MODE_SCRIPT, STR("second"));
	CHECK_UINT(set.n, N);
	for (unsigned i = 0; i < N; i++) {
		const struct rendered_file *found = file_set_find(&set, path(i, &a));

		TEST_ROW("%u", i);
		CHECK(found == &set.items[i]);
		CHECK_STR(found->bytes, i % 7 ? "first" : "second");
		CHECK_UINT(found->mode, i % 7 ? MODE_PLAIN : MODE_SCRIPT);
	}
	CHECK(!file_set_find(&set, path(N, &a)));
	CHECK(!file_set_find(&set, STR("")));
}
