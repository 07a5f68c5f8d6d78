#pragma once

/* One pod while it is admitted: the request, what the steps read from it once (workload type,
 * namespace, quantities), and the edits that they may make to it. The steps (steps.h) call down
 * into this file; it makes no decision of its own, except to refuse what cannot be read. The
 * container functions also serve the conversion of static pods, which has no request. */

#include <stdbool.h>
#include <stddef.h>

#include "admission_state.h"
#include "annotation.h"
#include "decision.h"
#include "kube/pod.h"
#include "kube/qos.h"
#include "kube/quantity.h"

/* CPU and memory of one container, every quantity parsed once. */
struct container_resources {
	struct container c;
	struct quantity request[QOS_COUNTED__COUNT], limit[QOS_COUNTED__COUNT];
	bool has_request[QOS_COUNTED__COUNT], has_limit[QOS_COUNTED__COUNT];
};

struct pod_resources {
	struct container_resources *items; /* init containers, then app containers */
	size_t n;
};

struct pod_context {
	const struct admission_state *state;
	const struct admission_request *request;
	struct admission_result *result;
	struct arena *a;
	struct pod pod;
	struct subject subject;
	struct str namespace;
	struct annotations annotations;
	struct str type;   /* the workload type it opted in to; empty when it did not */
	struct str effect; /* value of its target annotation */
	struct pod_resources resources;
	bool has_resources; /* they were read */
	bool is_managed;    /* converted: the target annotation stays */
	bool is_counted;    /* its CPU is counted in a pool */
};

/* With state, request, result and arena set. False when the object is no pod and was refused. */
bool pod_context_init(struct pod_context *ctx);

/* False when the caches are not synchronized yet and the request was refused (403). */
bool pod_context_is_synced(struct pod_context *ctx);

/* False when the namespace does not exist and the request was refused (404). */
bool pod_context_find_namespace(struct pod_context *ctx, struct namespace_permission *ret);

/* Finds the one workload type (docs/reference/admission.md#workload-type). Returns the number of
 * target annotations; *ret_problem is set when there are several, or the type is empty. */
size_t pod_context_find_type(struct pod_context *ctx, struct str *ret_problem);

/* Reads the quantities, the first time. False when one is unreadable and the pod was refused. */
bool pod_context_read_resources(struct pod_context *ctx);

/* A 422 entry about the pod's annotations, which are printed as the user gave them. */
void pod_context_annotation_error(const struct pod_context *ctx, struct field_errors *p,
				  struct str detail);

/* The pod has a static pod's annotation and a node created it (D9). */
bool request_is_static_pod(const struct admission_request *request);

/* Unreadable quantities are added to the problems, and the result is -EINVAL; -ENOMEM without a
 * problem. */
int pod_resources_read(const struct pod *pod, struct arena *a, struct pod_resources *ret,
		       struct field_errors *problems);

/* A CPU amount in millicores; one that is out of range is added to the problems (D6). */
int container_milli(const struct container_resources *r, bool of_limit, int64_t *ret,
		    struct field_errors *problems);

/* Adds one container to the plugin's QoS class, without its CPU if it has been converted. */
void container_fold(struct qos_hook_fold *fold, const struct container_resources *r,
		    bool without_cpu);

/* The resource lists of one container. Nothing else in the container is named in an operation. */
struct resource_edit {
	struct patch *p;
	const struct container *c;
	struct str base;     /* pointer to its "resources" */
	struct str lists[2]; /* to its requests and limits */
	bool has_resources, has_requests, has_limits;
};

struct resource_edit resource_edit(struct patch *p, const struct container *c);
void resource_drop(struct resource_edit *e, bool of_limit, struct str name);

/* No operation where the amount is there already, however it is spelled. */
void resource_set(struct resource_edit *e, bool of_limit, struct str name,
		  const struct quantity *value);

/* CPU of a container as the workload resource, and as the annotation that keeps its weight and
 * limit for the runtime (docs/reference/admission.md#conversion). */
struct cpu_conversion {
	struct quantity cores; /* millicores, printed in the format of the CPU request */
	struct container_cpu cpu;
};

/* From the CPU request, which must exist, and the limit. -ERANGE with a problem. */
int cpu_conversion_plan(const struct container_resources *r, struct cpu_conversion *ret,
			struct field_errors *problems);

/* Replaces cpu with `resource` in requests and limits, and sets the annotation. */
void cpu_conversion_apply(const struct cpu_conversion *conversion, const struct container *c,
			  struct str resource, struct annotations *ann, struct patch *p);
