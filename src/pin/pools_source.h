#pragma once

/* Which CPUs belong to which pool, as configured by an administrator: flags, the pools file, the
 * profile of the cluster (kept_profile.h), or the kubelet marker of an OpenShift node. Reads and
 * parses; pool/config.h checks. */

#include "partition/node_partition.h"
#include "pool/config.h"

struct arena;
struct err;
struct option_list;

struct pools_source {
	const char *reserved, *shared, *guaranteed; /* flags; NULL when not given */
	const char *pools_file;			    /* NULL: not read, like the next three */
	const char *state_dir;			    /* of the kept profile */
	const char *marker_file;
	const char *legacy_marker; /* of 2021 (D2): contains only a CPU list */
	const char *const *types;  /* "ran=2-3" */
	size_t n_types;
	bool fold_rest;
	bool or_whole_set; /* without a source: classic mode without management CPUs */
	const char *topology_policy, *topology_scope; /* flags; NULL when not given */
	const char *const *policy_options;	      /* "full-pcpus-only=true" */
	size_t n_policy_options;
};

/* The source that was used. */
struct pools_found {
	enum pools_origin origin;
	const char *from;   /* for messages: "flags", "profile", or the file */
	struct str profile; /* name; only of a profile, like the next */
	int64_t generation;
};

/* The lists come from flags, else from the pools file, else from the kept profile, else from the
 * node's marker, else from the marker, else from the one of 2021; the NUMA policy and the policy
 * options of flags override those of the other sources. A missing file is skipped; -ENOENT when
 * there is no source at all. *ret_found is set on failure, too. */
int pools_source_read(const struct pools_source *source, struct arena *a, struct pool_config *ret,
		      struct pools_found *ret_found, struct err *err);

/* The marker of this node, where those of its machine config pool differ. */
const char *node_marker_of(const char *marker_file, struct arena *a);

/* Parse the files. Pure. */
int pools_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		     struct err *err);
int marker_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		      struct err *err);
int legacy_marker_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
			struct err *err);
