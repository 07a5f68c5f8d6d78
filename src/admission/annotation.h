#pragma once

/* The annotations of workload partitioning on a pod: their keys, the JSON in their values (the
 * effect of an opt-in, the CPU of a container), and which of them are set, kept or removed, as
 * the fewest patch operations. Values come from users; both parsers return the message of the API
 * server's decoder. Other annotations are never named in an operation. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;
struct patch;

/* Checks the value of a target annotation (docs/reference/admission.md#effect). -EINVAL with
 * OpenShift's message, which may be long, so it is in the arena. */
int effect_check(struct str value, struct arena *a, struct str *ret_problem);

/* {"cpushares":N,"cpulimit":M}; a limit of 0 means no limit. */
struct container_cpu {
	uint64_t shares;
	int64_t limit_milli;
};

/* Decodes the first JSON value and ignores what follows it, as Go's Decoder does. Unknown keys
 * are refused. */
int container_cpu_parse(struct str value, struct arena *a, struct container_cpu *ret,
			struct err *err);
struct str container_cpu_format(const struct container_cpu *cpu, struct arena *a);

/* resources.workload.openshift.io/<container>, target.workload.openshift.io/<type>, and the
 * resource <type>.workload.openshift.io/cores. */
struct str resources_key(struct str container, struct arena *a);
struct str target_key(struct str type, struct arena *a);
struct str cores_resource(struct str type, struct arena *a);

/* For containers of best-effort pods: the minimum weight, with the blank that OpenShift writes. */
#define CONTAINER_CPU_BEST_EFFORT "{\"cpushares\": 2}"

enum own_kind {
	OWN_TARGET,	/* target.workload.openshift.io/... */
	OWN_RESOURCES,	/* resources.workload.openshift.io/... */
	OWN_STAMP,	/* the CPU stamp */
	OWN_LEGACY_CPU, /* the per-container annotation of 2021 */
	OWN_WARNING,	/* stays unless it is set again */
};

struct own_annotation {
	struct str key;
	struct str name; /* what follows the prefix */
	struct str value;
	enum own_kind kind;
	bool is_kept; /* not removed */
};

struct annotation_set {
	struct str key, value;
};

/* The workload annotations that a pod has, and those that are set. */
struct annotations {
	struct arena *a;
	yyjson_val *map; /* all annotations of the pod; not an object when there are none */
	struct own_annotation *own;
	size_t n_own;
	struct annotation_set *sets;
	size_t n_sets, cap_sets;
	bool failed; /* memory ran out */
};

/* With `legacy`, the annotations of 2021 are included (D2). */
void annotations_scan(struct annotations *ann, yyjson_val *map, bool legacy, struct arena *a);
struct own_annotation *annotations_find(const struct annotations *ann, struct str key);

/* It stays as it is. */
void annotations_keep(struct own_annotation *own);
void annotations_set(struct annotations *ann, struct str key, struct str value);

/* Adds the operations to the patch. Workload annotations that were neither set nor kept are
 * removed, except the warning. `meta` is the pod's metadata. */
void annotations_flush(struct annotations *ann, yyjson_val *meta, struct patch *p);
