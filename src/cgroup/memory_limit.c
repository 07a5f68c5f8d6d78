/* Reads /proc/self/cgroup and the limits along the path. Inside a container the path may be that of
 * the host, which does not exist there; the mount itself is then the container's cgroup, and it is
 * read in every case. */

#include "memory_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/str.h"

#define MAX_FILE_BYTES ((size_t)64 << 10)

static uint64_t machine_bytes(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

static struct str read_text(const char *root, const char *path, struct arena *a)
{
	struct str text = STR("");

	(void)file_read_at(AT_FDCWD, str_cstr(a, str_printf(a, "%s%s", root, path)), MAX_FILE_BYTES,
			   a, &text, NULL);
	return text;
}

/* "max" (v2) and numbers beyond any machine (v1) are no limit: the minimum ignores them. */
static void apply_limit(const char *root, const char *dir, struct str cgroup, const char *file,
			struct arena *a, uint64_t *limit)
{
	const char *path =
		str_cstr(a, str_printf(a, "%s" PRI_STR "/%s", dir, FMT_STR(cgroup), file));
	uint64_t bytes;

	if (str_to_u64(str_trim(read_text(root, path, a)), UINT64_MAX, &bytes) && bytes < *limit)
		*limit = bytes;
}

static void apply_path(const char *root, const char *dir, struct str cgroup, const char *file,
		       struct arena *a, uint64_t *limit)
{
	/* ".." in front: the process is outside its cgroup namespace's root. */
	if (str_has(cgroup, STR("..")))
		cgroup.n = 0;
	for (;;) {
		while (cgroup.n && cgroup.p[cgroup.n - 1] == '/')
			cgroup.n--;
		apply_limit(root, dir, cgroup, file, a, limit);
		if (!cgroup.n)
			return;
		while (cgroup.n && cgroup.p[cgroup.n - 1] != '/')
			cgroup.n--;
	}
}

static bool has_memory(struct str controllers)
{
	struct str_split names = str_split(controllers);
	struct str name;

	while (str_next(&names, ',', &name))
		if (str_eq(name, STR("memory")))
			return true;
	return false;
}

uint64_t memory_limit_bytes(const char *root)
{
	CLEANUP(arena_done) struct arena a;
	struct str line, id, controllers;
	uint64_t limit = machine_bytes();
	struct str_split lines;

	arena_init(&a, 0);
	lines = str_split(read_text(root, "/proc/self/cgroup", &a));
	while (str_next(&lines, '\n', &line)) {
		/* "0::/kubepods/x" (v2), "5:cpu,memory:/kubepods/x" (v1); the path may have colons.
		 */
		struct str_split fields = str_split(line);

		if (!str_next(&fields, ':', &id) || !str_next(&fields, ':', &controllers))
			continue;
		line = str_skip(line, id.n + controllers.n + 2);
		if (!controllers.n)
			apply_path(root, "/sys/fs/cgroup", line, "memory.max", &a, &limit);
		else if (has_memory(controllers))
			apply_path(root, "/sys/fs/cgroup/memory", line, "memory.limit_in_bytes", &a,
				   &limit);
	}
	return limit;
}
