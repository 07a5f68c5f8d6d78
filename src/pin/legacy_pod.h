#pragma once

/* How the 2021 enhancement of workload partitioning marks pods (D2): a label for the workload type,
 * or the annotation or label "io.openshift.management", and the CPU request of each container in an
 * annotation. Only read in the legacy dialect, where a pod has none of the present names. Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct err;
struct nri_pod;

/* Whether the functions below read the annotation or the label of this name. */
bool legacy_reads(struct str annotation);
bool legacy_reads_label(struct str label);

/* The workload type; "" when there is none. */
struct str legacy_type(const struct nri_pod *pod);

/* The cpushares of a container; 0 without an annotation. -EINVAL for an annotation that is no CPU
 * quantity. */
int legacy_shares(const struct nri_pod *pod, const char *container, uint64_t *ret, struct err *err);

/* The sum over all containers; an annotation that does not parse counts 0. */
uint64_t legacy_pod_shares(const struct nri_pod *pod);
