#pragma once

/* Which CPUs belong to which pool, as configured by an administrator: flags, the pools file, or the
 * kubelet marker of an OpenShift node. Reads and parses; pool/config.h checks. */

#include "pool/config.h"

struct arena;
struct err;
struct option_list;

struct pools_source {
	const char *reserved, *shared, *guaranteed; /* flags; NULL when not given */
	const char *pools_file;			    /* NULL: not read, like the next two */
	const char *marker_file;
	const char *legacy_marker; /* of 2021 (D2): contains only a CPU list */
	const char *const *types;  /* "ran=2-3" */
	size_t n_types;
	bool fold_rest;
	const char *topology_policy, *topology_scope; /* flags; NULL when not given */
	const char *const *policy_options;	      /* "full-pcpus-only=true" */
	size_t n_policy_options;
};

/* The lists come from flags, else from the pools file, else from the node's marker, else from the
 * marker, else from the one of 2021; the NUMA policy and the policy options of flags override those
 * of the pools file. A missing file is skipped; -ENOENT when there is no source at all. *ret_from
 * names the source, for messages.
 */
int pools_source_read(const struct pools_source *source, struct arena *a, struct pool_config *ret,
		      const char **ret_from, struct err *err);

/* The marker of this node, where those of its machine config pool differ. */
const char *node_marker_of(const char *marker_file, struct arena *a);

/* Parse the files. Pure. */
int pools_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		     struct err *err);
int marker_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		      struct err *err);
int legacy_marker_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
			struct err *err);
