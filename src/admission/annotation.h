#pragma once

/* The JSON inside our annotations: the effect of an opt-in and the resources of a container. Both
 * come from users; both parsers say what the API server's decoder would have said. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;
struct patch;

/* Checks the value of a target annotation: an object with the one key "effect", set to the one
 * supported effect. -EINVAL with the hook's sentence; it may be long, so it lives in the arena. */
int effect_check(struct str value, struct arena *a, struct str *ret_problem);

/* {"cpushares":N,"cpulimit":M}; a limit of 0 is none. */
struct container_cpu {
	uint64_t shares;
	int64_t limit_milli;
};

/* Decodes the first JSON value; what follows it is not looked at, unknown keys are refused. */
int container_cpu_parse(struct str value, struct arena *a, struct container_cpu *ret,
			struct err *err);
struct str container_cpu_format(const struct container_cpu *cpu, struct arena *a);

/* resources.workload.openshift.io/<container>, target.workload.openshift.io/<type>, and the
 * resource <type>.workload.openshift.io/cores. */
struct str resources_key(struct str container, struct arena *a);
struct str target_key(struct str type, struct arena *a);
struct str cores_resource(struct str type, struct arena *a);

/* What containers of best-effort pods get: the least weight, spelled with the blank upstream has.
 */
#define CONTAINER_CPU_BEST_EFFORT "{\"cpushares\": 2}"

enum own_kind {
	OWN_TARGET,	/* target.workload.openshift.io/... */
	OWN_RESOURCES,	/* resources.workload.openshift.io/... */
	OWN_STAMP,	/* the CPU facts for the node */
	OWN_LEGACY_CPU, /* the first document's per-container annotation */
	OWN_WARNING,	/* stays unless set anew */
};

struct own_annotation {
	struct str key;
	struct str name; /* what follows the prefix */
	struct str value;
	enum own_kind kind;
	bool is_settled; /* set again, so not to be removed */
};

struct annotation_set {
	struct str key, value;
};

/* The annotations of ours that a pod has, and those it shall have. */
struct annotations {
	struct arena *a;
	yyjson_val *map; /* all of them; not an object when there are none */
	struct own_annotation *own;
	size_t n_own;
	struct annotation_set *sets;
	size_t n_sets, cap_sets;
	bool failed; /* memory ran out */
};

/* With `legacy`, the first document's annotations are ours as well. */
void annotations_scan(struct annotations *ann, yyjson_val *map, bool legacy, struct arena *a);
struct own_annotation *annotations_find(const struct annotations *ann, struct str key);

/* Keeps what is there as it is. */
void annotations_keep(struct own_annotation *own);
void annotations_set(struct annotations *ann, struct str key, struct str value);

/* Operations for everything set; annotations of ours that were neither set nor kept are removed,
 * all but the warning. `meta` is the pod's metadata. */
void annotations_flush(struct annotations *ann, yyjson_val *meta, struct patch *p);
