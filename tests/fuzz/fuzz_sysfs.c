/* A /sys/devices as tests/machines/capture writes it, with any path below it holding any value. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/topology_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Nothing but lower-case words, digits and single slashes: no way out of the directory. */
static bool is_harmless(struct str path)
{
	char before = '/';

	if (path.n > 60)
		return false;
	for (size_t i = 0; i < path.n; i++) {
		const char c = path.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '/')
			return false;
		if (c == '/' && before == '/')
			return false;
		before = c;
	}
	return before != '/';
}

static void put(int dir, struct str path, struct str value, struct arena *a)
{
	char *name = (char *)str_cstr(a, path), *slash = strrchr(name, '/');
	int fd;

	if (slash) {
		*slash = 0;
		if (file_mkdirs_at(dir, name, 0700, NULL) < 0)
			return;
		*slash = '/';
	}
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	require(write(fd, value.p, value.n) == (ssize_t)value.n);
	(void)close(fd);
}

static void remove_tree(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP(arena_done) struct arena a = { 0 };
	struct str *names;
	size_t n = 0;

	if (fd < 0) {
		(void)unlinkat(dir, name, 0);
		return;
	}
	if (file_list_at(fd, ".", &a, &names, &n, NULL) == 0)
		for (size_t i = 0; i < n; i++)
			remove_tree(fd, str_cstr(&a, names[i]));
	(void)close(fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

static void unpack(int dir, struct str text, struct arena *a)
{
	struct str_split lines = str_split(text);
	struct str line;
	int n = 0;

	while (str_next(&lines, '\n', &line) && n++ < 100) {
		struct str_split parts = str_split(line);
		struct str path;

		if (str_next(&parts, '=', &path) && is_harmless(path))
			put(dir, path, parts.rest, a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char root[] = "/dev/shm/pinfold-fuzz-XXXXXX"; /* not a disk: every input is a tree */
	CLEANUP(arena_done) struct arena a = { 0 };
	struct topology t = { .n_cpus = 4242 };
	struct err err = { 0 };
	int dir, system, r;

	if (!mkdtemp(root))
		return 0; /* no such file system here */
	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dir >= 0);
	(void)mkdirat(dir, "system", 0700);
	unpack(dir, (struct str){ (const char *)data, size }, &a);
	system = openat(dir, "system", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (system >= 0) {
		r = topology_read_sysfs(system, &a, &t, &err);
		if (r == 0)
			require(t.n_cpus && t.n_cpus == cpuset_count(&t.online) && t.n_nodes);
		else
			require(r < 0 && err.code == -r && err.msg[0] && t.n_cpus == 4242);
		require(!strchr(err.msg, '\n'));
		(void)close(system);
	}
	(void)close(dir);
	remove_tree(AT_FDCWD, root);
	return 0;
}
