#pragma once

/* An OCI hook's work: reads what the runtime says on standard input, keeps the container's record,
 * and has it placed: by the agent that runs, or while none does by the very code it would use. */

#include <stdbool.h>

#include "pin/pools_source.h"

struct arena;
struct err;

enum oci_stage {
	OCI_PRECREATE, /* podman's own: the runtime's configuration goes through us */
	OCI_CREATE,    /* createRuntime, or prestart of older runtimes: the cgroup is there */
	OCI_REMOVE,    /* poststop */
};

struct oci_hook_config {
	struct pools_source pools;
	const char *run_dir, *cgroup_root, *topology, *kubelet_state;
	const char *proc; /* "/proc" */
	const char *id;	  /* of precreate; NULL: as the configuration tells */
	const char *const *namespaces;
	size_t n_namespaces;
};

struct oci_hook_result {
	bool is_ignored;     /* nothing to do here, and why */
	struct str text;     /* that, or what it got as JSON */
	struct str adjusted; /* of precreate: the configuration to go on with */
};

/* `input` is the container's state document, or its configuration for precreate. A refusal (-ENOSPC
 * and others) leaves nothing behind. */
int oci_hook_run(const struct oci_hook_config *config, enum oci_stage stage, struct str input,
		 struct arena *a, struct oci_hook_result *ret, struct err *err);
