#pragma once

/* Label selectors as text, with kubectl's syntax: "app=web,tier!=db,env in (a,b),!legacy". Pure. */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"

struct err;

/* Checks the syntax. -EINVAL with a sentence. */
int label_query_check(struct str text, struct err *err);

/* Whether labels satisfy a query that was checked. Labels are looked up in `first`, then in
 * `second`; both are objects or NULL. An empty query matches everything. */
bool label_query_matches(struct str text, yyjson_val *first, yyjson_val *second);
