/* How many exclusive CPUs a container and a whole pod need, by the kubelet's rules
 * (docs/reference/cpu-manager.md#eligibility, docs/reference/cpu-manager.md#pod-total). */

#include "demand.h"

#include "cpu/cpuset.h"

unsigned demand_cpus(const struct demand *d)
{
	if (!d->is_guaranteed || d->kind == CONTAINER_EPHEMERAL || d->cpu_milli <= 0 ||
	    d->cpu_milli % 1000 != 0)
		return 0;
	/* More than any machine has; prevents an overflow of sums over a pod. */
	if (d->cpu_milli / 1000 > (int64_t)CPUSET_MAX * 1000)
		return CPUSET_MAX * 1000;
	return (unsigned)(d->cpu_milli / 1000);
}

unsigned demand_pod_cpus(const struct demand *containers, size_t n)
{
	unsigned lasting = 0, fullest = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned cpus = demand_cpus(&containers[i]);

		/* Sidecars (restartable init containers) and containers run until the pod ends. An
		 * ordinary init container runs alone with the sidecars that were started before it.
		 */
		if (containers[i].kind != CONTAINER_INIT)
			lasting += cpus;
		else if (lasting + cpus > fullest)
			fullest = lasting + cpus;
	}
	return lasting > fullest ? lasting : fullest;
}
