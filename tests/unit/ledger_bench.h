#pragma once

/* A ledger for a small machine, with short functions for the tests of the ledger. */

#include <string.h>

#include "base/arena.h"
#include "cpu/topology.h"
#include "cpus.h"
#include "pool/ledger.h"
#include "test.h"

/* 16 CPUs: two NUMA nodes of four cores, siblings side by side; `offline` are left out. */
struct bench {
	struct arena a;
	struct topology topology;
	struct pool_config config;
	struct ledger l;
};

static inline void machine(struct bench *b, const char *offline, struct topology *ret)
{
	struct topology_cpu list[16];
	struct topology_input in = { .cpus = list, .offline = cpus(offline) };
	struct err err = { 0 };

	for (uint16_t cpu = 0; cpu < 16; cpu++)
		if (!cpuset_has(&in.offline, cpu))
			list[in.n_cpus++] = (struct topology_cpu){
				.cpu = cpu,
				.id = { [TOPOLOGY_CORE] = cpu / 2U,
					[TOPOLOGY_NUMA] = cpu / 8U,
					[TOPOLOGY_SOCKET] = cpu / 8U,
					[TOPOLOGY_UNCORE] = TOPOLOGY_NO_ID },
			};
	CHECK_OK(topology_build(&in, &b->a, ret, &err));
}

static inline struct pool_config config(const char *reserved, const char *shared,
					const char *guaranteed)
{
	struct pool_config c;

	pool_config_init(&c);
	c.reserved = cpus(reserved);
	c.is_classic = shared == NULL;
	c.shared = shared ? cpus(shared) : cpus("");
	c.guaranteed = cpus(guaranteed);
	return c;
}

static inline void bench_start(struct bench *b, struct pool_config c)
{
	struct err err = { 0 };

	*b = (struct bench){ .config = c };
	arena_init(&b->a, 0);
	machine(b, "", &b->topology);
	CHECK_OK(ledger_init(&b->l, &b->topology, &b->config, &err));
}

static inline void bench_done(struct bench *b)
{
	ledger_done(&b->l);
	arena_done(&b->a);
}

static inline struct ledger_request want(const char *pod, const char *container, int64_t milli)
{
	enum container_kind kind = strncmp(container, "init", 4) == 0 ? CONTAINER_INIT :
				   strncmp(container, "side", 4) == 0 ? CONTAINER_SIDECAR :
									CONTAINER_APP;

	return (struct ledger_request){
		.pod_uid = str_from(pod),
		.pod_namespace = STR("ns"),
		.pod_name = str_from(pod),
		.container = str_from(container),
		.demand = { kind, true, milli },
	};
}

/* The CPUs a container gets, or the error message. */
static inline const char *give(struct bench *b, const char *pod, const char *container,
			       int64_t milli)
{
	struct ledger_request r = want(pod, container, milli);
	struct ledger_grant grant;
	struct err err = { 0 };

	if (ledger_allocate(&b->l, &r, &grant, &err) < 0)
		return str_cstr(&b->a, str_from(err.msg));
	return str_cstr(&b->a, cpuset_format(&grant.cpus, &b->a));
}

static inline struct str pool_now(struct bench *b, enum pool pool)
{
	struct cpuset s;

	(void)ledger_cpus(&b->l, pool, &s);
	return cpuset_format(&s, &b->a);
}

static inline struct str free_now(struct bench *b)
{
	struct cpuset s;

	ledger_free(&b->l, &s);
	return cpuset_format(&s, &b->a);
}
