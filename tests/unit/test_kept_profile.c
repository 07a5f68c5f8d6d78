/* The profile in the state directory. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpus.h"
#include "pin/kept_profile.h"
#include "test.h"

static struct kept_profile example(struct arena *a)
{
	struct kept_profile kept = { .name = STR("worker"), .generation = 4 };
	struct err err = { 0 };
	struct doc doc;

	pool_config_init(&kept.pools);
	kept.pools.reserved = cpus("0-1");
	kept.pools.shared = cpus("2-3");
	kept.pools.guaranteed = cpus("4-7");
	kept.pools.fold_rest = true;
	kept.pools.defers_resize = true;
	CHECK_OK(doc_parse(STR("{\"spec\":{}}"), STR(""), NULL, a, &doc, &err));
	kept.profile = doc.root;
	return kept;
}

TEST(a_kept_profile_is_read_back)
{
	char dir[] = "/tmp/kept-profile-XXXXXX", where[64];
	CLEANUP(arena_done) struct arena a;
	struct kept_profile kept, back;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	kept = example(&a);
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(where, sizeof(where), "%s/state", dir);
	CHECK_INT(kept_profile_read(where, &a, &back, &err), -ENOENT);
	CHECK_OK(kept_profile_remove(where, &err));
	CHECK_OK(kept_profile_encode(&kept, &a, &text, &err));
	CHECK_OK(kept_profile_write(where, text, &err)); /* creates the directory */
	CHECK_OK(kept_profile_read(where, &a, &back, &err));
	CHECK_STR(back.name, "worker");
	CHECK_INT(back.generation, 4);
	CHECK(pool_config_eq(&back.pools, &kept.pools));
	CHECK(back.pools.fold_rest && back.pools.defers_resize);
	CHECK(doc_get(back.profile, STR("spec")) != NULL);
	CHECK_OK(kept_profile_remove(where, &err));
	CHECK_INT(kept_profile_read(where, &a, &back, &err), -ENOENT);
	CHECK(rmdir(where) == 0 && rmdir(dir) == 0);
}

TEST(a_damaged_file_is_an_error)
{
	static const char *const texts[] = { "", "{", "{}", "{\"name\":\"w\",\"generation\":1}",
					     ("{\"pools\":{\"mode\":\"classic\",\"reserved\":\"0\","
					      "\"shared\":\"\",\"guaranteed\":\"\"}}") };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		CLEANUP(arena_done) struct arena a;
		struct kept_profile kept;
		struct err err = { 0 };

		arena_init(&a, 0);
		TEST_ROW("%s", texts[i]);
		CHECK_INT(kept_profile_decode(str_from(texts[i]), STR("f"), &a, &kept, &err),
			  -EINVAL);
		CHECK(strncmp(err.msg, "f:", 2) == 0);
	}
}
