#include "preflight.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/macro.h"

static const char *const group_names[] = {
	[PREFLIGHT_DISTRIBUTION] = "distribution",
	[PREFLIGHT_KERNEL] = "kernel",
	[PREFLIGHT_CPUS] = "CPUs",
	[PREFLIGHT_RUNTIME] = "container runtime",
	[PREFLIGHT_KUBELET] = "kubelet",
	[PREFLIGHT_AGENT] = "agent",
	[PREFLIGHT_CLUSTER] = "cluster",
	[PREFLIGHT_WEBHOOK] = "webhook",
	[PREFLIGHT_NODES] = "nodes",
};
_Static_assert(ARRAY_LEN(group_names) == PREFLIGHT_GROUP__COUNT, "every group has a name");

static const char *const level_names[] = {
	[PREFLIGHT_OK] = "ok",
	[PREFLIGHT_NOTE] = "note",
	[PREFLIGHT_WARNING] = "warning",
	[PREFLIGHT_FAILURE] = "failure",
};
_Static_assert(ARRAY_LEN(level_names) == PREFLIGHT_LEVEL__COUNT, "every level has a name");

#define CHECK_ROW(name, group, id) { PREFLIGHT_##group, id },
static const struct {
	enum preflight_group group;
	const char *id;
} checks[] = { PREFLIGHT_CHECKS(CHECK_ROW) };

const char *preflight_group_name(enum preflight_group group)
{
	return group_names[group];
}

const char *preflight_level_name(enum preflight_level level)
{
	return level_names[level];
}

const char *preflight_check_id(enum preflight_check check)
{
	return checks[check].id;
}

enum preflight_group preflight_check_group(enum preflight_check check)
{
	return checks[check].group;
}

void preflight_report_init(struct preflight_report *r, struct arena *a)
{
	*r = (struct preflight_report){ .a = a };
}

void preflight_add(struct preflight_report *r, enum preflight_check check,
		   enum preflight_level level, struct str message, struct str remedy)
{
	r->items = arena_reserve(r->a, r->items, r->n, &r->cap, sizeof(*r->items));
	r->items[r->n++] = (struct preflight_finding){ check, level, message, remedy };
	r->count[level]++;
}

bool preflight_version(struct str text, unsigned ret[2])
{
	size_t at = 0;

	if (str_starts(text, STR("v")))
		text = str_skip(text, 1);
	for (int i = 0; i < 2; i++) {
		size_t digits = 0;
		uint64_t n;

		while (at + digits < text.n && str_is_digit(text.p[at + digits]))
			digits++;
		if (!str_to_u64((struct str){ text.p + at, digits }, UINT32_MAX, &n))
			return false;
		ret[i] = (unsigned)n;
		at += digits;
		if (i == 0 && (at >= text.n || text.p[at] != '.'))
			return false;
		at++;
	}
	return true;
}

bool preflight_is_older(const unsigned version[2], unsigned major, unsigned minor)
{
	return version[0] < major || (version[0] == major && version[1] < minor);
}
