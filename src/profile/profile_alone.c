#include "profile_alone.h"

#include "check.h"
#include "codec/problems.h"
#include "resolve.h"

void profile_alone_read(struct manifest m, bool is_partitioned, struct arena *a,
			struct profile_alone *ret, struct problem_list *p)
{
	const size_t errors = p->n_errors;
	bool has_all;

	(void)profile_read(m, a, &ret->profile, p);
	ret->pool = (struct machine_pool){ .name = ret->profile.name };
	ret->partition = (struct partition){ .profile = &ret->profile, .pool = &ret->pool };
	ret->is_resolved = false;
	if (!ret->profile.has_sound_sets)
		return;
	has_all = partition_take_lists(&ret->partition, a, p);
	check_sets(&ret->partition, p);
	check_intent(&ret->partition, is_partitioned, p);
	ret->is_resolved = has_all && p->n_errors == errors;
}
