#pragma once

/* The type and value of a plain YAML scalar. Reading follows Kubernetes' own tools (YAML 1.1 as in
 * sigs.k8s.io/yaml: yes/no/on/off are booleans, 010 is eight, 1_000 a thousand, 12:30 a string).
 * When writing, strings that any YAML 1.1 or 1.2 reader could read as another type are quoted. */

#include <stdbool.h>

#include "base/str.h"

struct arena;

enum yaml_kind {
	YAML_NULL,
	YAML_BOOL,
	YAML_NUMBER,
	YAML_STRING,
	YAML_NOT_FINITE, /* .inf and .nan: numbers that JSON cannot carry */
};

struct yaml_scalar {
	enum yaml_kind kind;
	bool boolean;	 /* YAML_BOOL */
	struct str text; /* YAML_NUMBER: as JSON writes it; YAML_STRING: unchanged */
};

struct yaml_scalar yaml_scalar_resolve(struct str text, struct arena *a);

/* True when every reader reads the unquoted text as a string. */
bool yaml_scalar_is_plain_safe(struct str text);
