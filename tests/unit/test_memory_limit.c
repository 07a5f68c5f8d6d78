#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "cgroup/memory_limit.h"
#include "test.h"

static void put(const char *root, const char *path, const char *text)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "mkdir -p $(dirname %s%s) && printf '%s' >%s%s",
		       root, path, text, root, path);
	CHECK_INT(system(command), 0);
}

TEST(the_smallest_limit_of_the_cgroups_counts)
{
	static const struct {
		const char *what, *cgroup;
		struct {
			const char *path, *text;
		} files[3];
		uint64_t want; /* 0: the machine's memory */
	} rows[] = {
		{ "a container with v2",
		  "0::/\\n",
		  { { "/sys/fs/cgroup/memory.max", "268435456\\n" } },
		  268435456 },
		{ "the limit of a cgroup above",
		  "0::/a/b.slice\\n",
		  { { "/sys/fs/cgroup/a/memory.max", "1000000\\n" },
		    { "/sys/fs/cgroup/a/b.slice/memory.max", "max\\n" } },
		  1000000 },
		{ "the smaller of two",
		  "0::/a/b\\n",
		  { { "/sys/fs/cgroup/a/memory.max", "1000000\\n" },
		    { "/sys/fs/cgroup/a/b/memory.max", "900000\\n" } },
		  900000 },
		{ "v1, among other controllers",
		  "3:cpu,cpuacct:/x\\n5:memory:/kubepods/pod:1\\n0::/y\\n",
		  { { "/sys/fs/cgroup/memory/kubepods/pod:1/memory.limit_in_bytes", "67108864\\n" },
		    { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\\n" },
		    { "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\\n" } },
		  67108864 },
		{ "a container with the path of the host",
		  "5:memory:/kubepods/pod1/abc\\n",
		  { { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\\n" } },
		  67108864 },
		{ "a process outside its namespace",
		  "0::/../../x\\n",
		  { { "/sys/fs/cgroup/memory.max", "5000000\\n" } },
		  5000000 },
		{ "no limit", "0::/a\\n", { { "/sys/fs/cgroup/a/memory.max", "max\\n" } }, 0 },
		{ "no cgroups", "", { { 0 } }, 0 },
		{ "nonsense",
		  "memory\\n:\\n::\\n5:memory\\n",
		  { { "/sys/fs/cgroup/memory.max", "x1" } },
		  0 },
	};
	const uint64_t machine =
		(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char root[] = "/tmp/pinfold-memory-XXXXXX", command[64];

		TEST_ROW("%s", rows[i].what);
		CHECK(mkdtemp(root) != NULL);
		put(root, "/proc/self/cgroup", rows[i].cgroup);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].files) && rows[i].files[k].path; k++)
			put(root, rows[i].files[k].path, rows[i].files[k].text);
		CHECK_UINT(memory_limit_bytes(root), rows[i].want ? rows[i].want : machine);
		(void)snprintf(command, sizeof(command), "rm -rf %s", root);
		CHECK_INT(system(command), 0);
	}
}
