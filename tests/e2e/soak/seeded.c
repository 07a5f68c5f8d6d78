/* Bugs that tests/e2e/soak.sh has to find, one for each invariant: SEEDED_BUG is the number of one.
 * `meson setup -Dseeded_bugs=true` builds a program for each, tests/e2e/pinfold-BUG; the linker
 * replaces the functions below. No product has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cgroup/cpu_settings.h"
#include "pin/manager_state.h"
#include "pool/ledger.h"

enum { SHARED_NOT_MOVED = 1, NOT_RELEASED, DRIFT_IGNORED, DESCRIPTOR_LEAK, MEMORY_LEAK };

#define WRAP(name) __typeof__(name) __wrap_##name, __real_##name
WRAP(manager_repin_shared);
WRAP(ledger_release_pod);
WRAP(cpu_settings_enforce);

/* The CPUs of an exclusive container stay CPUs of the shared ones. */
int __wrap_manager_repin_shared(struct manager *m)
{
	return SEEDED_BUG == SHARED_NOT_MOVED ? 0 : __real_manager_repin_shared(m);
}

int __wrap_ledger_release_pod(struct ledger *l, struct str uid, struct err *err)
{
	if (SEEDED_BUG == DESCRIPTOR_LEAK && dup(STDERR_FILENO) < 0)
		return err_set(err, EMFILE, "seeded bug");
	/* Written to, because untouched memory is not resident. */
	if (SEEDED_BUG == MEMORY_LEAK) {
		char *leak = malloc(256 * 1024);

		if (leak)
			memset(leak, 1, 256 * 1024);
		__asm__ volatile("" : : "r"(leak) : "memory");
		/* cppcheck-suppress memleak */
	}
	return SEEDED_BUG == NOT_RELEASED ? 0 : __real_ledger_release_pod(l, uid, err);
}

int __wrap_cpu_settings_enforce(const struct cpu_settings *s, const struct cgroup_fs *fs,
				const char *path, struct err *err)
{
	return SEEDED_BUG == DRIFT_IGNORED ? 0 : __real_cpu_settings_enforce(s, fs, path, err);
}
