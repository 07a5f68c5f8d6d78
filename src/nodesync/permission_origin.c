#include "permission_origin.h"

#include <string.h>

#include "base/macro.h"
#include "kube/object_time.h"

const char *permission_origin_name(enum permission_origin origin)
{
	static const char *const names[] = { [PERMISSIONS_UNDECIDED] = "",
					     [PERMISSIONS_FROM_DIGEST] = "Digest",
					     [PERMISSIONS_FROM_NAMESPACES] = "Namespaces" };

	_Static_assert(ARRAY_LEN(names) == PERMISSION_ORIGIN__COUNT, "every origin has a name");
	return names[origin];
}

enum permission_origin permission_origin_decide(enum permission_origin now,
						const struct permission_facts *f)
{
	if (!f->is_usable)
		return f->is_answered ? PERMISSIONS_FROM_NAMESPACES : now;
	if (now == PERMISSIONS_FROM_NAMESPACES && f->is_listed && !f->is_same)
		return PERMISSIONS_FROM_NAMESPACES;
	return PERMISSIONS_FROM_DIGEST;
}

static uint64_t first_expiry(const struct digest_age *age, struct str renewed, int64_t now_s,
			     uint64_t now_ms)
{
	int64_t renewed_s, age_s;

	if (!object_time_read(renewed, &renewed_s))
		return 0;
	age_s = now_s - renewed_s;
	if (age_s < 0)
		age_s = 0;
	return (uint64_t)age_s * 1000 < age->valid_ms ?
		       now_ms + age->valid_ms - (uint64_t)age_s * 1000 :
		       0;
}

void digest_age_observe(struct digest_age *age, struct str renewed, int64_t now_s, uint64_t now_ms)
{
	const bool is_first = !age->renewed[0];

	if (renewed.n >= sizeof(age->renewed) || str_eq(str_from(age->renewed), renewed))
		return;
	age->expires_ms = is_first ? first_expiry(age, renewed, now_s, now_ms) :
				     now_ms + age->valid_ms;
	memcpy(age->renewed, renewed.p, renewed.n);
	age->renewed[renewed.n] = '\0';
}

bool digest_age_is_valid(struct digest_age *age, bool is_connected, uint64_t now_ms)
{
	if (age->expires_ms && !is_connected)
		age->expires_ms = now_ms + age->valid_ms;
	if (now_ms >= age->expires_ms)
		age->expires_ms = 0;
	return age->expires_ms != 0;
}
