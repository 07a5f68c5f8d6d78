#include "pin/placement.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "nri/nri.h"
#include "test.h"

#define SHARES(n) .has_shares = true, .shares = (n)
#define QUOTA(n) .has_quota = true, .quota_us = (n), .has_period = true, .period_us = 100000

static struct cpuset cpus(const char *list)
{
	struct cpuset s;

	CHECK(cpuset_parse(str_from(list), &s, NULL) == 0);
	return s;
}

TEST(management_container_stays_within_the_management_cpus)
{
	static const struct {
		const char *asked, *got, *sentence;
	} table[] = {
		{ "", "0-3", NULL },
		{ "1,2", "1-2", NULL },
		{ "3-4", NULL, "annotation cpuset \"3-4\" is not within the management CPUs 0-3" },
		{ "9", NULL, "annotation cpuset \"9\" is not within the management CPUs 0-3" },
	};
	const struct cpuset reserved = cpus("0-3");
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct cpu_settings requested = { .cpus = cpus(table[i].asked) };
		struct placement p;
		struct err err = { 0 };
		int r;

		TEST_ROW("%s", table[i].asked);
		r = placement_of_management(&requested, STR("management"), &reserved, &p, &err);
		CHECK_INT(r == 0, table[i].got != NULL);
		if (r == 0)
			CHECK_STR(cpuset_format(&p.settings.cpus, &a), table[i].got);
		else if (table[i].sentence)
			CHECK_STR(err.msg, table[i].sentence);
	}
}

TEST(an_empty_set_is_never_pushed)
{
	const struct ledger_grant grant = { .pool = POOL_SHARED };
	CLEANUP(arena_done) struct arena a;
	struct placement p;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_ERR(placement_of_grant(&grant, &p, &err), ENOSPC, "no CPU left in the shared pool");
}

TEST(exclusive_containers_get_no_quota_and_shared_ones_only_cpus)
{
	struct ledger_grant grant = { .pool = POOL_GUARANTEED, .cpus = cpus("4-5") };
	CLEANUP(arena_done) struct arena a;
	struct placement p;
	struct err err = { 0 };
	struct nri_cpu say;

	arena_init(&a, 0);
	CHECK_OK(placement_of_grant(&grant, &p, &err));
	CHECK(p.is_exclusive && p.settings.has_quota);
	CHECK(settings_difference(&p.settings,
				  &(struct nri_cpu){ SHARES(2048), QUOTA(200000), .cpus = "" },
				  RUNTIME_CURRENT, &a, &say));
	CHECK_STR(say.cpus, "4-5");
	CHECK(say.has_quota && !say.has_shares && !say.has_period);
	CHECK_INT(say.quota_us, -1);

	grant.pool = POOL_SHARED;
	CHECK_OK(placement_of_grant(&grant, &p, &err));
	CHECK(settings_difference(&p.settings,
				  &(struct nri_cpu){ SHARES(512), QUOTA(50000), .cpus = "" },
				  RUNTIME_CURRENT, &a, &say));
	CHECK(say.cpus && !say.has_quota && !say.has_shares);
	/* Spelled differently, but the same. */
	CHECK(!settings_difference(&p.settings, &(struct nri_cpu){ .cpus = "4,5" }, RUNTIME_CURRENT,
				   &a, &say));
}

TEST(update_is_overridden_only_where_it_changes_settings)
{
	CLEANUP(arena_done) struct arena a;
	const struct cpu_settings settings = {
		.cpus = cpus("0-1"), .shares = 20, .has_quota = true, .quota_us = 3000
	};
	struct nri_cpu say;

	arena_init(&a, 0);
	/* A CPU manager's reconcile: cpus only, zeros elsewhere. */
	CHECK(settings_difference(&settings,
				  &(struct nri_cpu){ SHARES(0), .has_quota = true, .cpus = "2-7" },
				  RUNTIME_UPDATE, &a, &say));
	CHECK_STR(say.cpus, "0-1");
	CHECK(!say.has_shares && !say.has_quota);
	/* A resize of memory carries the least shares and a period. */
	CHECK(settings_difference(&settings, &(struct nri_cpu){ SHARES(2), .cpus = "" },
				  RUNTIME_UPDATE, &a, &say));
	CHECK(say.has_shares && !say.cpus);
	CHECK_UINT(say.shares, 20);
	CHECK(!settings_difference(&settings, &(struct nri_cpu){ .cpus = "" }, RUNTIME_UPDATE, &a,
				   &say));
	CHECK(!settings_difference(&settings, &(struct nri_cpu){ SHARES(20), .cpus = "0,1" },
				   RUNTIME_UPDATE, &a, &say));
}

TEST(kubelet_mode_removes_management_cpus_and_keeps_shared_containers_in_their_pool)
{
	static const struct {
		const char *shared, *given, *want;
	} table[] = {
		{ "", "", "" },	      { "", "4-7", "" },       { "", "0-7", "2-7" },
		{ "", "0-1", "" },    { "2-3", "0-7", "2-3" }, { "2-3", "0-3,6-7", "2-3" },
		{ "2-3", "4-5", "" }, { "2-3", "2-3", "" },
	};
	const struct cpuset reserved = cpus("0-1");
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct err err = { 0 };
		const struct cpuset shared = cpus(table[i].shared);
		struct placement p;

		TEST_ROW("%s of %s", table[i].given, table[i].shared);
		CHECK_OK(placement_in_kubelet_mode(table[i].given, &reserved, &shared, &p, &err));
		CHECK_STR(cpuset_format(&p.settings.cpus, &a), table[i].want);
	}
}

TEST(shared_cpus_that_the_kubelet_assigns_are_noticed)
{
	/* One after the other: the kubelet's lists of containers, and what is taken then. */
	static const struct {
		const char *given, *taken;
	} table[] = {
		{ "0-15", "" },	 /* a shared container */
		{ "10-11", "" }, /* exclusive, of the guaranteed pool */
		{ "4", "4" },	 /* exclusive, of the shared pool */
		{ "5", "4-5" },
		{ "0-3,6-15", "4-5" }, /* the kubelet's new list of the first */
		{ "0-3,5-15", "4" },   /* one was released */
		{ "0-15", "" },
	};
	const struct cpuset shared = cpus("4-7");
	CLEANUP(arena_done) struct arena a;
	struct cpuset taken = { 0 };

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		TEST_ROW("row %zu: %s", i, table[i].given);
		placement_note_taken(table[i].given, &shared, &taken);
		CHECK_STR(cpuset_format(&taken, &a), table[i].taken);
	}
}
