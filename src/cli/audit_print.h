#pragma once

/* Output and exit status of `verify` and `local verify`. */

#include <stdbool.h>
#include <yyjson.h>

#include "base/options.h"
#include "cgroup/foreign.h"

struct arena;
struct audit;
struct doc;
struct err;

#define AUDIT_STRICT_OPTION(type)                                                                  \
	{                                                                                          \
		OPT_FLAG, 0, "strict", NULL,                                                       \
			"count foreign processes on exclusive CPUs as findings", NULL,             \
			offsetof(type, strict)                                                     \
	}

struct audit_format {
	const char *output; /* value of -o */
	bool strict;
	struct foreign_host host;
};

/* Returns EXIT_YES, or EXIT_FINDING when there are findings or, if strict, foreign processes. */
int audit_print(const struct audit *t, const struct audit_format *form, struct arena *a,
		struct err *err);

/* What -o json prints, and the same read back: a support bundle keeps the result of a node. */
yyjson_mut_val *audit_document(const struct audit *t, const struct audit_format *form,
			       yyjson_mut_doc *m, struct arena *a);
int audit_from_doc(const struct doc *doc, struct arena *a, struct audit *ret, struct err *err);
