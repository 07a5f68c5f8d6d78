#pragma once

/* The configured CPU lists of the pools: three disjoint lists, or in classic mode only the
 * management pool's, and the policy options. Checked against a machine
 * (docs/reference/pools.md#invariants, I1), compared and hashed. Which container owns a CPU is in
 * ledger.h. */

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "cpu/hints.h"
#include "cpu/pick_options.h"
#include "kube/pool.h"
#include "kube/workload_type.h"

struct arena;
struct doc;
struct err;
struct topology;

/* A workload type and its CPUs, which are a part of the management pool. Those of two types may
 * overlap or be equal, as CRI-O's workloads may. */
struct pool_type {
	char name[WORKLOAD_TYPE_MAX + 1];
	struct cpuset cpus;
};

#define POOL_TYPES_MAX 8

struct pool_config {
	/* No `shared` list: the shared pool is every online CPU that is neither in the management
	 * pool nor assigned exclusively. */
	bool is_classic;
	struct cpuset reserved; /* the management pool */
	struct cpuset shared;	/* not in classic mode */
	struct cpuset
		guaranteed; /* classic mode: where exclusive CPUs come from; empty: anywhere */
	bool fold_rest;	    /* online CPUs in no list go to shared; otherwise they are refused */
	/* strict_cpu_reservation keeps, in classic mode, shared containers off the management CPUs.
	 * It is on by default here; in the kubelet it is off. */
	struct pick_options options;
	/* The NUMA nodes of exclusive CPUs (D17): policy and scope of the kubelet's topology
	 * manager. Its default policy is none; here it is best-effort. */
	struct hint_config topology;
	/* A resize to these pools that conflicts with assignments is deferred until the CPUs are
	 * released, instead of refused. Neither compared nor written to the state. */
	bool defers_resize;
	/* The types with CPUs of their own, sorted by name. The type management exists without an
	 * entry, too, and then has the whole management pool. */
	struct pool_type types[POOL_TYPES_MAX];
	size_t n_types;
};

/* Sets the defaults: pools mode, strict reservation, NUMA policy best-effort for each container,
 * everything else empty and off. */
void pool_config_init(struct pool_config *c);

/* I1: disjoint, on this machine, complete, shared not empty; and no mutually exclusive options.
 * Offline CPUs of the machine count as well. */
int pool_config_check(const struct pool_config *c, const struct topology *t, struct err *err);

/* Adds a type, or replaces its CPUs. -EINVAL for an invalid name, -E2BIG beyond POOL_TYPES_MAX. */
int pool_config_set_type(struct pool_config *c, struct str name, const struct cpuset *cpus,
			 struct err *err);

/* Whether pods may have this workload type here. */
bool pool_config_has_type(const struct pool_config *c, struct str name);

/* The CPUs of a type, of `management`, the present CPUs of the pool: all of them for a type without
 * CPUs of its own, or with none left. */
void pool_config_type_cpus(const struct pool_config *c, struct str name,
			   const struct cpuset *management, struct cpuset *ret);

bool pool_config_eq(const struct pool_config *a, const struct pool_config *b);

/* Equal for equal configurations; independent of the machine and of online CPUs. */
uint64_t pool_config_hash(const struct pool_config *c);

/* The pools that a configuration gives on a machine. Offline CPUs are included. */
void pool_config_shared(const struct pool_config *c, const struct topology *t, struct cpuset *ret);
void pool_config_guaranteed(const struct pool_config *c, const struct topology *t,
			    struct cpuset *ret);

/* {"mode":"pools","reserved":"0-1","shared":"2-5","guaranteed":"6-15","options":{...},
 *  "topologyPolicy":"restricted","topologyScope":"pod"}, and "types":{"ran":"1"} if there are any.
 */
yyjson_mut_val *pool_config_to_doc(const struct pool_config *c, yyjson_mut_doc *m, struct arena *a);
/* {"ran":"2-3"}, also in the pools file; `v` NULL: none. */
int pool_config_read_types(const struct doc *doc, yyjson_val *v, struct pool_config *c,
			   struct err *err);
int pool_config_from_doc(const struct doc *doc, yyjson_val *v, struct pool_config *ret,
			 struct err *err);
