#pragma once

/* The OCI stage precreate: a container's whole runtime configuration, with the CPU settings that it
 * shall be born with. Nothing but cpus, shares, quota and period of linux.resources.cpu changes. An
 * adjusted configuration asks for the same as before (outside.h), so whoever reads it later decides
 * the same; and adjusting it again changes nothing. Pure; whose CPUs they are is decided by the
 * desk. */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* The container's id, which a configuration tells only by its linux.cgroupsPath: the last part of
 * "slice:prefix:ID", or of a path the last step without the prefix of its runtime ("libpod-ID"). ""
 * when there is none. */
struct str precreate_id(const struct doc *config);

/* Its cgroup, as the kernel will name it; "" when that cannot be told. In `a`. */
const char *precreate_cgroup(const struct doc *config, struct arena *a);

/* Refuses what is no configuration: also one with a key twice, which readers see differently. */
int precreate_check(const struct doc *config, struct arena *a, struct err *err);

/* `answer` is the desk's, as placement_describe() puts it. When nothing changes *ret is the very
 * text of `config`, which has been checked. */
int precreate_adjust(const struct doc *config, struct str response, struct arena *a,
		     struct str *ret, struct err *err);
