#pragma once

/* Static pods as the node converts them (spec/admission.md 3.2): from their manifest, before any
 * API server sees them; no namespace, no effect, no cluster flag. */

#include <stdbool.h>

#include "codec/doc.h"

struct admission_result;
struct arena;
struct patch;

struct static_options {
	/* Every container of a managed pod ends up with a resources annotation, also those that
	 * request no CPU, and memory alone is no error: what our agent does, so that everything on
	 * the reserved CPUs has a weight. Without it, exactly what OpenShift's kubelet does. */
	bool every_container;
};

/* The result's patch is what the conversion changes. Refused means that the manifest runs as it is,
 * on its ordinary CPU request; the message says why. -ENOMEM when the arena is exhausted. */
int static_pod_convert(yyjson_val *pod, const struct static_options *options, struct arena *a,
		       struct admission_result *ret);

/* The way back: the patch that makes an ordinary pod of a converted one, with the CPU requests and
 * limits that its cores and annotations stand for. Empty when nothing of it was converted. -ENOMEM
 * as above, -EINVAL when it is no pod. */
int static_pod_revert(yyjson_val *object, struct arena *a, struct patch *ret);
