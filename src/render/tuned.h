#pragma once

/* TuneD profiles: the five of OpenShift's Tuned object (docs/reference/openshift-render.md#tuned),
 * and one file for TuneD on any host. */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct partition;

/* The Tuned object; the caller adds the owner. */
yyjson_mut_val *tuned_object(yyjson_mut_doc *m, const struct partition *part, struct arena *a);

/* The labels of a profile's MachineConfig: the given one, or its role
 * (docs/reference/openshift-render.md#names-and-labels). */
void profile_machine_labels(yyjson_mut_doc *m, yyjson_mut_val *to, const struct partition *part);

/* tuned.conf for a host: OpenShift's settings without those that the kernel arguments cover. */
struct str tuned_host_conf(const struct partition *part, struct arena *a);
