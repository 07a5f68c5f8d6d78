#pragma once

/* The webhook configurations for an API server, made from deploy/base/webhooks.yaml, which the
 * build embeds into the program so that printed and deployed configurations agree. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

struct print_config {
	const char *url;	    /* "https://127.0.0.1:8443"; NULL: a Service */
	const char *service;	    /* "NAMESPACE/NAME[:PORT]"; NULL: as in the file */
	const char *failure_policy; /* NULL: as in the file */
	struct str ca_pem;	    /* may be empty: certificate rotation sets it */
	bool all_pods;	  /* with pools every pod is counted, not only those that opted in */
	bool taint_nodes; /* also mutate nodes when they join */
};

/* "NAMESPACE/NAME[:PORT]"; the port stays as it is when there is none. */
int service_parse(const char *text, struct str *ret_namespace, struct str *ret_name,
		  uint64_t *ret_port, struct err *err);

/* An array of the configurations. */
int print_config_make(const struct print_config *c, struct arena *a, yyjson_mut_val **ret,
		      struct err *err);
