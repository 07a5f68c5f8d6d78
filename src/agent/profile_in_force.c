#include "profile_in_force.h"

#include <sys/stat.h>

#include "base/arena.h"
#include "pin/kept_profile.h"
#include "pin/manager.h"

static bool has_pools_of(const struct kept_profile *kept, const struct manager *m)
{
	struct pool_config now = m->ledger->now.config;

	/* A profile always folds; lists that name all CPUs are the same without it. */
	now.fold_rest = true;
	return pool_config_hash(&kept->pools) == pool_config_hash(&now);
}

yyjson_val *profile_in_force_get(const char *state_dir, const struct manager *m, struct arena *a)
{
	struct kept_profile kept;

	if (kept_profile_read(state_dir, a, &kept, NULL) < 0 || !has_pools_of(&kept, m))
		return NULL;
	return kept.profile;
}

bool profile_in_force_read(struct profile_in_force *f, const char *state_dir,
			   const struct manager *m, struct arena *a, yyjson_val **ret)
{
	const struct profile_in_force before = *f;
	struct stat st = { 0 };

	*ret = NULL;
	if (stat(str_cstr(a, str_printf(a, "%s/" KEPT_PROFILE_FILE, state_dir)), &st) < 0)
		st = (struct stat){ 0 };
	f->inode = st.st_ino;
	f->time = st.st_mtim;
	/* The pools follow a moment after the file, or not at all while containers are in the way:
	 * until then it is read each time. */
	if (f->is_read && f->inode == before.inode && f->time.tv_sec == before.time.tv_sec &&
	    f->time.tv_nsec == before.time.tv_nsec && (f->has_pools || !f->inode))
		return false;
	f->is_read = true;
	if (f->inode)
		*ret = profile_in_force_get(state_dir, m, a);
	f->has_pools = *ret != NULL;
	return !before.is_read || f->has_pools || before.has_pools;
}
