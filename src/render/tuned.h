#pragma once

/* TuneD profiles: the five of OpenShift's Tuned object (spec/render.md section 5.6), and one file
 * for TuneD on any host. */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct partition;

/* The Tuned object; the caller adds the owner. */
yyjson_mut_val *tuned_object(yyjson_mut_doc *m, const struct partition *part, struct arena *a);

/* The labels a profile's MachineConfig carries: the given one, or its role (section 5.3). */
void profile_machine_labels(yyjson_mut_doc *m, yyjson_mut_val *to, const struct partition *part);

/* tuned.conf for a host: what OpenShift's says, without what the kernel arguments do already. */
struct str tuned_host_conf(const struct partition *part, struct arena *a);
