#pragma once

/* Conversion of static pods on their node (docs/reference/admission.md#static-pods): from the
 * manifest, before an API server sees the pod, without checks of namespace, effect and cluster
 * flag. Reading and writing the manifests is src/staticpod. */

#include <stdbool.h>

#include "codec/doc.h"

struct admission_result;
struct arena;
struct patch;

struct static_options {
	/* Every container of a converted pod gets a resources annotation, also without a CPU
	 * request, and memory without CPU is no error: what the agent does, so that every
	 * container in the management pool has a weight. False: exactly what OpenShift's kubelet
	 * does. */
	bool every_container;
};

/* The result's patch converts the pod. When it is refused, the manifest runs unchanged with its
 * CPU request; the message says why. -ENOMEM when the arena is exhausted. */
int static_pod_convert(yyjson_val *pod, const struct static_options *options, struct arena *a,
		       struct admission_result *ret);

/* The reverse: the patch that restores the CPU requests and limits of a converted pod from its
 * cores and annotations. Empty when nothing was converted. -ENOMEM as above, -EINVAL when it is
 * not a pod. */
int static_pod_revert(yyjson_val *object, struct arena *a, struct patch *ret);
