#pragma once

/* The webhook configurations for an API server, made from deploy/base/webhooks.yaml, which the
 * build puts into the program: what is printed and what is deployed cannot differ. */

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
	struct str ca_pem;	    /* may be empty: the webhook puts it there itself */
	bool all_pods;		    /* the pools count every pod */
	bool taint_nodes;	    /* nodes are changed when they join, too */
};

/* "NAMESPACE/NAME[:PORT]"; the port stays as it is when there is none. */
int service_parse(const char *text, struct str *ret_namespace, struct str *ret_name,
		  uint64_t *ret_port, struct err *err);

/* An array of the configurations. */
int print_config_make(const struct print_config *c, struct arena *a, yyjson_mut_val **ret,
		      struct err *err);
