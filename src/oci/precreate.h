#pragma once

/* The OCI stage precreate: writes CPU settings into a container's runtime configuration, so that it
 * starts with them. Only cpus, mems, shares, quota and period of linux.resources.cpu change. An
 * adjusted configuration still expresses the original request (oci_record_is_adjusted()), so later
 * stages decide the same, and adjusting it again changes nothing. Pure; oci_containers.h decides.
 */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* The container's id, which a configuration has only in linux.cgroupsPath: the last part of
 * "slice:prefix:ID", or the last path component without the runtime's prefix ("libpod-ID"). "" when
 * there is none. */
struct str precreate_id(const struct doc *config);

/* Its cgroup, as the kernel will name it; "" when unknown. In `a`. */
const char *precreate_cgroup(const struct doc *config, struct arena *a);

/* Refuses invalid configurations, including duplicate keys, which parsers resolve differently. */
int precreate_check(const struct doc *config, struct arena *a, struct err *err);

/* `placement` is the JSON of placement_describe(). When nothing changes, *ret is the unchanged text
 * of `config`, which precreate_check() has accepted. */
int precreate_adjust(const struct doc *config, struct str placement, struct arena *a,
		     struct str *ret, struct err *err);
