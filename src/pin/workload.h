#pragma once

/* CRI-O's "workloads": which workload a pod belongs to, and what the annotation of one container
 * changes in the workload's defaults (docs/reference/crio-workloads.md). With it a container gets
 * the same CPU settings on any runtime as from CRI-O's own drop-in. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct cpu_settings;
struct err;
struct nri_pair;

/* Zero and empty mean "not set", as in CRI-O. */
struct workload_cpu {
	uint64_t shares;
	int64_t quota_us;
	uint64_t period_us;
	struct str cpus;
	int64_t limit_milli; /* becomes a quota */
};

struct workload {
	struct str name;
	struct str activation; /* pod annotation that selects it, with any value */
	struct str prefix;     /* of "<prefix>/<container>": the container's own settings */
	struct workload_cpu defaults;
};

struct workloads {
	struct workload *items; /* sorted by name; the first match is used */
	size_t n;
	struct str infra_cpus; /* CRI-O's infra_ctr_cpuset */
	bool is_cgroupfs;      /* its cgroup_manager; the default is systemd */
};

/* The workload of every type of workload partitioning: the annotations of containers have one
 * prefix for all types. It sets no CPUs: a container without a cpuset in its annotation gets all
 * CPUs that its type has at the moment. */
extern const struct workload workload_defaults;

/* Parses CRI-O's configuration: `texts` are the files in the order CRI-O reads them. A workload
 * that is defined again replaces the earlier one as a whole. With `is_legacy` a workload may have
 * the members of the 2021 enhancement instead, `cpu_set` and `label` (D2). -EINVAL for a file that
 * does not parse, -EDOM, with CRI-O's message, for a workload that CRI-O refuses to start with. */
int workloads_parse(const struct str *texts, const struct str *names, size_t n, bool is_legacy,
		    struct arena *a, struct workloads *ret, struct err *err);

/* The workload of a pod; NULL when it has none. */
const struct workload *workloads_match(const struct workloads *w,
				       const struct nri_pair *annotations, size_t n);

/* The settings of one container. -EINVAL for an annotation that CRI-O cannot read either. */
int workload_resolve(const struct workload *w, const char *container,
		     const struct nri_pair *annotations, size_t n, struct arena *a,
		     struct workload_cpu *ret, struct err *err);

/* Whether the container has an annotation of workload_defaults. */
bool workload_is_set(const char *container, const struct nri_pair *annotations, size_t n);

/* The same as CPU settings. -EINVAL for a cpuset that is no CPU list: CRI-O passes the text on
 * unread, Pinfold refuses it. */
int workload_settings(const struct workload_cpu *cpu, struct cpu_settings *ret, struct err *err);

/* The sum of the cpushares of a pod's containers, for its own cgroup (D13); 0 when there are none.
 * An annotation that does not parse counts 0. */
uint64_t workload_pod_shares(const struct workload *w, const struct nri_pair *annotations, size_t n,
			     struct arena *a);
