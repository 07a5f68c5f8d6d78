#pragma once

/* Workloads to fill a cluster with when there are no manifests: kinds of pods as Pod manifests,
 * each with a share of the mix. They go through admission like any other pod. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

enum sim_workload {
	SIM_RAN_SITE, /* distributed units, with the platform's pods around them */
	SIM_CORE,     /* network functions of a core */
	SIM_MIXED,    /* both, and batch work */
	SIM_WORKLOAD__COUNT
};

#define SIM_WORKLOADS "ran-site|core|mixed" /* for option tables, in the order of the enum */

int sim_workload_parse(struct str name, enum sim_workload *ret, struct err *err);
const char *sim_workload_name(enum sim_workload workload);

#define SIM_WORKLOAD_PODS_MAX 24

/* The kinds of pods of a workload, and the weight of each. */
struct sim_mix {
	yyjson_val *pods[SIM_WORKLOAD_PODS_MAX];
	unsigned weights[SIM_WORKLOAD_PODS_MAX];
	unsigned total;
	size_t n;
};

void sim_mix_make(enum sim_workload workload, struct arena *a, struct sim_mix *ret);

/* The index of the kind that a number below `total` stands for. */
size_t sim_mix_pick(const struct sim_mix *mix, uint64_t number);
