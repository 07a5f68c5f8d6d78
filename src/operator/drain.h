#pragma once

/* Which pods of a node have to leave before it is disturbed. Pure. */

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* The members of a PodList that matter, as the store keeps them. */
int drain_pods_trim(yyjson_val *list, struct arena *a, struct str *ret, struct err *err);
