/* The cgroup driver decides the form of a name: with cgroupfs it is the path itself, with systemd
 * it is "slice:prefix:id", and the path follows from systemd's naming rules. Names come from the
 * runtime or from an OCI bundle, so they are checked before they are used as paths. */

#include "cgroup_path.h"

#include <string.h>

#include "base/arena.h"

#define SLICE ".slice"

/* Every prefix that ends before a dash is a slice of its own (systemd.slice(5)). */
const char *cgroup_slice_path(struct str slice, struct arena *a)
{
	const size_t stem = slice.n - (sizeof(SLICE) - 1);
	struct strbuf b;

	strbuf_init(&b, a);
	if (str_eq(slice, STR("-" SLICE)))
		return "";
	for (size_t i = 1; i < stem; i++)
		if (slice.p[i] == '-') {
			strbuf_add(&b, (struct str){ slice.p, i });
			strbuf_add(&b, STR(SLICE "/"));
		}
	strbuf_add(&b, slice);
	return str_cstr(a, strbuf_str(&b));
}

/* The name comes from the runtime and must not lead out of the cgroup tree. */
static bool is_inside(const char *path)
{
	struct str_split steps = str_split(str_from(path));
	struct str step;

	while (str_next(&steps, '/', &step))
		if (str_eq(step, STR("..")) || str_eq(step, STR(".")))
			return false;
	return true;
}

static const char *systemd_path(struct str_split *parts, struct str slice, struct arena *a)
{
	struct str prefix, id;
	const char *parent;

	if (!str_next(parts, ':', &prefix) || !str_next(parts, ':', &id) || prefix.n == 0 ||
	    id.n == 0 || !str_ends(slice, STR(SLICE)))
		return "";
	parent = cgroup_slice_path(slice, a);
	return str_cstr(a, str_printf(a, "%s%s" PRI_STR "-" PRI_STR ".scope", parent,
				      *parent ? "/" : "", FMT_STR(prefix), FMT_STR(id)));
}

const char *cgroup_path_of(const char *name, struct arena *a)
{
	struct str_split parts = str_split(str_from(name));
	const char *path = name;
	struct str first;

	if (!str_next(&parts, ':', &first))
		return "";
	if (strchr(name, ':'))
		path = systemd_path(&parts, first, a);
	else if (!strchr(name, '/') && str_ends(first, STR(SLICE)))
		path = cgroup_slice_path(first, a);
	while (*path == '/')
		path++;
	return is_inside(path) ? str_cstr(a, str_from(path)) : "";
}
