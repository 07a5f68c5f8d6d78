#pragma once

/* Prints the report of preflight checks: findings in groups, each with its remedy and the page that
 * explains it. */

#include "output.h"
#include "preflight/preflight.h"

int check_print(const struct preflight_report *r, enum output_format format, struct arena *a,
		struct err *err);

/* What -o json prints. */
yyjson_mut_val *check_document(const struct preflight_report *r, yyjson_mut_doc *m,
			       struct arena *a);
