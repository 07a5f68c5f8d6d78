/* The cost of an allocation in the ledger: picking CPUs, checking the invariants, and writing the
 * state to a tmpfs, with few and with many assignments. The budget for the whole response to NRI
 * CreateContainer is 200 us. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "pool/store.h"

#define ROUNDS 300

static void require(bool ok, const struct err *err)
{
	if (ok)
		return;
	(void)fprintf(stderr, "bench_ledger: %s\n", err->msg);
	exit(2);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 1024 CPUs, 8 NUMA nodes, two threads per core side by side. */
static void machine(struct arena *a, struct topology *ret)
{
	struct topology_cpu *cpus = arena_array(a, struct topology_cpu, 1024);
	struct topology_input in = { .cpus = cpus, .n_cpus = 1024 };
	struct err err = { 0 };

	for (uint16_t cpu = 0; cpu < 1024; cpu++)
		cpus[cpu] = (struct topology_cpu){ .cpu = cpu,
						   .id = { [TOPOLOGY_CORE] = cpu / 2U,
							   [TOPOLOGY_SOCKET] = cpu / 512U,
							   [TOPOLOGY_NUMA] = cpu / 128U,
							   [TOPOLOGY_UNCORE] = cpu / 16U } };
	require(topology_build(&in, a, ret, &err) == 0, &err);
}

static void allocate(struct ledger *l, unsigned pod)
{
	char uid[40];
	struct ledger_request r = { .pod_namespace = STR("namespace"),
				    .pod_name = STR("a-pod-of-some-deployment-7d4b9-x2v5k"),
				    .container = STR("app"),
				    .demand = { CONTAINER_APP, true, 2000 } };
	struct ledger_grant grant;
	struct err err = { 0 };

	(void)snprintf(uid, sizeof(uid), "%08x-0000-4000-8000-000000000000", pod * 2654435761U);
	r.pod_uid = str_from(uid);
	require(ledger_allocate(l, &r, &grant, &err) >= 0, &err);
}

static void release(struct ledger *l, unsigned pod)
{
	char uid[40];
	struct err err = { 0 };

	(void)snprintf(uid, sizeof(uid), "%08x-0000-4000-8000-000000000000", pod * 2654435761U);
	require(ledger_release_pod(l, str_from(uid), &err) == 1, &err);
}

static void measure(struct ledger *l, const char *how, unsigned n)
{
	double took[ROUNDS];

	for (unsigned i = 0; i < n; i++)
		allocate(l, i);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double start = now_us();

		allocate(l, n);
		took[i] = now_us() - start;
		release(l, n);
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	(void)printf("%-10s %4u containers: allocate p50 %7.1f us, p99 %7.1f us\n", how, n,
		     took[ROUNDS / 2], took[ROUNDS * 99 / 100]);
	for (unsigned i = 0; i < n; i++)
		release(l, i);
}

int main(void)
{
	static const unsigned sizes[] = { 0, 100, 400 };
	CLEANUP(arena_done) struct arena a;
	char dir[] = "/dev/shm/pinfold-bench-XXXXXX";
	struct pool_config c;
	struct topology t;
	struct store_report report;
	struct err err = { 0 };
	struct ledger memory, durable;
	struct store store;

	arena_init(&a, 0);
	machine(&a, &t);
	pool_config_init(&c);
	cpuset_add_range(&c.reserved, 0, 3);
	cpuset_add_range(&c.shared, 4, 127);
	cpuset_add_range(&c.guaranteed, 128, 1023);
	require(ledger_init(&memory, &t, &c, &err) == 0, &err);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		measure(&memory, "in memory", sizes[i]);
	ledger_done(&memory);
	if (!mkdtemp(dir)) {
		(void)printf("no /dev/shm: writes are not measured\n");
		return 0;
	}

	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_settings settings = { fd, "state", "boot", &t, &c };

	require(store_open(&store, &durable, &settings, &report, &err) == 0, &err);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		measure(&durable, "on a tmpfs", sizes[i]);
	ledger_done(&durable);
	store_done(&store);
	(void)unlinkat(fd, "state", 0);
	(void)unlinkat(fd, "state.lock", 0);
	(void)rmdir(dir);
	return 0;
}
