/* Decides by its form how a topology argument is read: "host", a directory, a file, or a synthetic
 * string. */

#include "topology_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "topology_hwloc.h"

#define FILE_MAX_BYTES ((size_t)64 << 20) /* the XML of a machine with thousands of CPUs */

int topology_parse(struct str text, struct str file, struct arena *a, struct topology *ret,
		   struct err *err)
{
	const struct str trimmed = str_trim(text);

	if (str_starts(trimmed, STR("{")))
		return topology_parse_json(text, file, a, ret, err);
	if (str_starts(trimmed, STR("<")))
		return topology_parse_xml(text, file, a, ret, err);
	return topology_parse_synthetic(text, a, ret, err);
}

int topology_read_host(struct arena *a, struct topology *ret, struct err *err)
{
	AUTO_CLOSE int system = open("/sys/devices/system", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct topology_extra extra = { 0 };
	/* Without /sys hwloc has other sources, and the extra sets stay empty. */
	int r = system < 0 ? 0 : topology_sysfs_extra(system, &extra, err);

	return r < 0 ? r : topology_hwloc_host(&extra, a, ret, err);
}

/* A copy of a whole root, of /sys, or of /sys/devices/system itself. */
static int read_directory(const char *path, struct arena *a, struct topology *ret, struct err *err)
{
	static const char *const places[] = { "sys/devices/system", "devices/system", "." };
	AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir < 0)
		return err_set(err, errno, "open %s: %s", path, strerror(errno));
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO_CLOSE int system = openat(dir, places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (system < 0)
			continue;
		r = topology_read_sysfs(system, a, ret, err);
		return r < 0 ? err_wrap(err, "%s", path) : 0;
	}
	return err_set(err, ENOENT, "%s: no sys/devices/system in this directory", path);
}

int topology_read(const char *from, struct arena *a, struct topology *ret, struct err *err)
{
	struct str text;
	struct stat st;
	int r;

	if (strcmp(from, "host") == 0)
		return topology_read_host(a, ret, err);
	if (stat(from, &st) < 0) /* with a '/' it is a path, not a synthetic string */
		return strchr(from, '/') ? err_set(err, errno, "%s: %s", from, strerror(errno)) :
					   topology_parse_synthetic(str_from(from), a, ret, err);
	if (S_ISDIR(st.st_mode))
		return read_directory(from, a, ret, err);
	r = file_read_at(AT_FDCWD, from, FILE_MAX_BYTES, a, &text, err);
	if (r < 0)
		return r;
	if (str_starts(str_trim(text), STR("{")))
		return topology_parse_json(text, str_from(from), a, ret, err);
	/* JSON does not go through hwloc, so it needs no process of its own. */
	return topology_parse_child(text, str_from(from), a, ret, err);
}
