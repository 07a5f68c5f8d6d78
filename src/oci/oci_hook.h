#pragma once

/* One call of the OCI hook: reads the runtime's input, writes the container's record and has it
 * placed by the agent, or while none runs by the same code in this process. */

#include <stdbool.h>

#include "pin/permission.h"
#include "pin/pools_source.h"

struct arena;
struct err;

enum oci_stage {
	OCI_PRECREATE, /* podman only: the hook returns an adjusted configuration */
	OCI_CREATE,    /* createRuntime, or prestart of older runtimes: the cgroup exists */
	OCI_REMOVE,    /* poststop */
};

struct oci_hook_config {
	struct pools_source pools;
	const char *run_dir, *cgroup_root, *topology;
	const char *proc;		 /* "/proc" */
	const char *id;			 /* precreate only; NULL: from the configuration */
	bool is_legacy;			 /* the names of 2021 count, too (D2) */
	struct permission_flags allowed; /* namespaces; none: as the agent knew them last */
	bool allows_unpinned; /* a container starts unplaced when the agent does not respond */
};

struct oci_hook_result {
	bool is_ignored;     /* the container is not placed; `text` says why */
	struct str text;     /* that, or its placement as JSON */
	struct str adjusted; /* precreate only: the configuration to continue with */
};

/* `input` is the container's state document, or its configuration for precreate. A refusal (-ENOSPC
 * and others) leaves no record and no assignment. -EHOSTDOWN: the agent's socket exists, and the
 * agent does not respond. */
int oci_hook_run(const struct oci_hook_config *config, enum oci_stage stage, struct str input,
		 struct arena *a, struct oci_hook_result *ret, struct err *err);
