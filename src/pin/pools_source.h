#pragma once

/* Which CPUs belong to which pool, from where an administrator put it: flags, our pools file, or
 * the kubelet marker of an OpenShift-style node. */

#include "pool/config.h"

struct arena;
struct err;
struct option_list;

struct pools_source {
	const char *reserved, *shared, *guaranteed; /* flags; NULL when not given */
	const char *pools_file;			    /* NULL: not looked at, as below */
	const char *marker_file;
	bool fold_rest;
	const char *const *policy_options; /* "full-pcpus-only=true" */
	size_t n_policy_options;
};

/* Flags go before the pools file, which goes before the marker. A missing file is passed over; none
 * of the three is -ENOENT. *ret_from names the source, for people. */
int pools_source_read(const struct pools_source *source, struct arena *a, struct pool_config *ret,
		      const char **ret_from, struct err *err);

/* The texts of the two files. */
int pools_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		     struct err *err);
int marker_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		      struct err *err);
