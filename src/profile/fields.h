#pragma once

/* Reading the fields of an object with their types checked. A fault becomes a problem with its
 * place, the field takes its default, and reading goes on. Only for src/profile. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "codec/problems.h"

struct arena;
struct profile;

struct field_reader {
	const struct doc *doc;
	struct problem_list *p;
	struct arena *a;
};

/* The last step of a field's name: "enabled" of "spec.realTimeKernel.enabled". */
struct str field_key(const char *field);

/* As doc_get, but null counts as absent. */
yyjson_val *field_get(yyjson_val *object, struct str key);

/* The value of the field's last step in `object`. */
bool field_bool(const struct field_reader *r, yyjson_val *object, const char *field,
		bool otherwise);
struct str field_str(const struct field_reader *r, yyjson_val *object, const char *field);
int64_t field_int(const struct field_reader *r, yyjson_val *object, const char *field,
		  int64_t otherwise);
yyjson_val *field_object(const struct field_reader *r, yyjson_val *object, const char *field);

/* Names the keys of `object` that are not in `known` (which ends with NULL). */
void field_unknown(const struct field_reader *r, yyjson_val *object, const char *field,
		   const char *const *known, enum problem_level level);

/* The parts of profile_read that are not about CPU sets. */
void profile_read_tuning(const struct field_reader *r, yyjson_val *spec, struct profile *ret);
void profile_read_annotations(const struct field_reader *r, struct profile *ret);
