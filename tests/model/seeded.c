#include "seeded.h"

#include "base/err.h"
#include "pin/classify.h"
#include "pin/manager.h"
#include "pin/manager_state.h"
#include "pool/ledger.h"
#include "wrap.h"

enum seeded_bug seeded_bug;

const char *const seeded_names[BUG__COUNT] = {
	[BUG_NONE] = "none",
	[BUG_STATE_NOT_WRITTEN] = "the state is not written",
	[BUG_SHARED_NOT_MOVED] = "shared containers are not moved",
	[BUG_NOT_RELEASED] = "the CPUs of a removed pod stay assigned",
	[BUG_NOT_ADOPTED] = "running containers are not adopted",
	[BUG_ANY_PERMISSION] = "permission is ignored",
	[BUG_SAME_CPU] = "every container gets the same CPU",
	[BUG_DRIFT_IGNORED] = "drift is ignored",
};

WRAP(manager_repin_shared);
WRAP(ledger_release_pod);
WRAP(ledger_synchronize);
WRAP(ledger_allocate);
WRAP(cpu_settings_enforce);

int __wrap_manager_repin_shared(struct manager *m)
{
	return seeded_bug == BUG_SHARED_NOT_MOVED ? 0 : __real_manager_repin_shared(m);
}

int __wrap_ledger_release_pod(struct ledger *l, struct str uid, struct err *err)
{
	return seeded_bug == BUG_NOT_RELEASED ? 0 : __real_ledger_release_pod(l, uid, err);
}

int __wrap_ledger_synchronize(struct ledger *l, struct ledger_live *live, size_t n,
			      const struct str *pods, size_t n_pods, struct err *err)
{
	for (size_t i = 0; i < n && seeded_bug == BUG_NOT_ADOPTED; i++)
		live[i].request.pod_uid = STR("other");
	return __real_ledger_synchronize(l, live, n, pods, n_pods, err);
}

int __wrap_ledger_allocate(struct ledger *l, const struct ledger_request *request,
			   struct ledger_grant *ret, struct err *err)
{
	const int r = __real_ledger_allocate(l, request, ret, err);

	if (r >= 0 && seeded_bug == BUG_SAME_CPU && ret->pool == POOL_GUARANTEED) {
		ret->cpus = (struct cpuset){ 0 };
		cpuset_add(&ret->cpus, 3);
	}
	return r;
}

int __wrap_cpu_settings_enforce(const struct cpu_settings *s, const struct cgroup_fs *fs,
				const char *path, struct err *err)
{
	return seeded_bug == BUG_DRIFT_IGNORED ? 0 : __real_cpu_settings_enforce(s, fs, path, err);
}
