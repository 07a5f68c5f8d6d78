/* One cgroup against what it should be. */

#include "base/macro.h"
#include "cgroup/cpu_settings.h"
#include "cpus.h"
#include "test.h"

TEST(rounding_by_kernel_and_systemd_is_no_drift)
{
	static const struct {
		const char *what;
		enum cgroup_version version;
		const char *cpus, *effective;
		uint64_t weight;
		int64_t quota_us;
		unsigned drift;
	} table[] = {
		{ "as it should be", CGROUP_V2, "0-1", "0-1", 35, 3500, 0 },
		{ "an older runtime's weight", CGROUP_V2, "0-1", "0-1", 10, 3500, 0 },
		{ "systemd's rounding", CGROUP_V2, "0-1", "0-1", 35, 4000, 0 },
		{ "v1 keeps shares", CGROUP_V1, "0-1", "0-1", 256, 3500, 0 },
		{ "v1 has no weights", CGROUP_V1, "0-1", "0-1", 10, 3500, DRIFT_WEIGHT },
		{ "other CPUs", CGROUP_V2, "0-3", "0-3", 35, 3500, DRIFT_CPUS },
		{ "the parent gives less", CGROUP_V2, "0-1", "0", 35, 3500, DRIFT_FEWER },
		{ "inherited", CGROUP_V2, "", "0-7", 35, 3500, DRIFT_CPUS },
		{ "inherited, and just right", CGROUP_V2, "", "0-1", 35, 3500, DRIFT_CPUS },
		{ "the right list, but not in effect", CGROUP_V2, "0-1", "4-5", 35, 3500,
		  DRIFT_CPUS },
		{ "another weight", CGROUP_V2, "0-1", "0-1", 100, 3500, DRIFT_WEIGHT },
		{ "no limit", CGROUP_V2, "0-1", "0-1", 35, -1, DRIFT_QUOTA },
		{ "everything", CGROUP_V1, "1", "1", 2, 1000,
		  DRIFT_CPUS | DRIFT_WEIGHT | DRIFT_QUOTA },
	};
	const struct cpu_settings want = {
		.cpus = cpus("0-1"), .shares = 256, .has_quota = true, .quota_us = 3500
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct cgroup_cpu now = { .cpus = cpus(table[i].cpus),
						.effective = cpus(table[i].effective),
						.weight = table[i].weight,
						.quota_us = table[i].quota_us,
						.period_us = 100000 };

		TEST_ROW("%s", table[i].what);
		CHECK_UINT(cpu_settings_drift(&want, table[i].version, &now), table[i].drift);
	}
}

TEST(settings_that_are_not_set_cannot_drift)
{
	const struct cgroup_cpu now = { .cpus = cpus("3"),
					.effective = cpus("3"),
					.weight = 77,
					.quota_us = 1234,
					.period_us = 5000 };
	const struct {
		const char *what;
		struct cpu_settings want;
		unsigned drift;
	} table[] = {
		{ "nothing", { .shares = 0 }, 0 },
		{ "its CPUs alone", { .cpus = cpus("3") }, 0 },
		{ "its quota, with any period", { .has_quota = true, .quota_us = 1234 }, 0 },
		{ "its quota, with another period",
		  { .has_quota = true, .quota_us = 1234, .period_us = 100000 },
		  DRIFT_QUOTA },
		{ "no quota", { .has_quota = true, .quota_us = -1 }, DRIFT_QUOTA },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		TEST_ROW("%s", table[i].what);
		CHECK_UINT(cpu_settings_drift(&table[i].want, CGROUP_V2, &now), table[i].drift);
	}
}

TEST(pod_weight_must_be_the_linear_conversion)
{
	static const struct {
		const char *what;
		enum cgroup_version version;
		bool is_pod;
		uint64_t weight, written;
		unsigned drift;
	} table[] = {
		{ "a pod, linearly", CGROUP_V2, true, 39, 39, 0 },
		{ "a pod, as containers are", CGROUP_V2, true, 100, 39, DRIFT_WEIGHT },
		{ "a container, linearly", CGROUP_V2, false, 39, 100, 0 },
		{ "a pod on v1", CGROUP_V1, true, 1024, 1024, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct cgroup_cpu now = { .weight = table[i].weight, .quota_us = -1 };
		const struct cpu_settings want = { .shares = 1024,
						   .has_linear_weight = table[i].is_pod };

		TEST_ROW("%s", table[i].what);
		CHECK_UINT(cpu_settings_drift(&want, table[i].version, &now), table[i].drift);
		CHECK_UINT(cpu_settings_weight(&want, table[i].version), table[i].written);
	}
}
