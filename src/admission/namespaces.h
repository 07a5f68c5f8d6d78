#pragma once

/* Which workload types a namespace allows, and a table of namespaces by name. The table is filled
 * in any order, then sealed; of two with the same name the last one counts. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;

struct namespace_permission {
	struct str allowed;	   /* value of the annotation workload.openshift.io/allowed */
	struct str legacy_allowed; /* of the label of 2021 */
	bool has_allowed, has_legacy_allowed;
};

/* Exact comparison with the items of the list, without trimming
 * (docs/reference/admission.md#allowed-list). */
bool type_is_allowed(struct str allowed, struct str type);

struct namespace_entry;

struct namespace_table {
	struct namespace_entry *items; /* sorted by name, once sealed */
	size_t n, cap;
};

/* Strings point into the object. */
struct namespace_permission namespace_permission_of(yyjson_val *object);

/* The object has to outlive the table. */
void namespace_table_add(struct namespace_table *t, yyjson_val *object, struct arena *a);
void namespace_table_seal(struct namespace_table *t);

/* A deep copy of a sealed table. */
struct namespace_table namespace_table_copy(const struct namespace_table *t, struct arena *a);

bool namespace_table_find(const struct namespace_table *t, struct str name,
			  struct namespace_permission *ret);
