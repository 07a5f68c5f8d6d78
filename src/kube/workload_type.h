#pragma once

/* Names of workload types. A type is the end of an annotation key and the beginning of a resource
 * name, "<type>.workload.openshift.io/cores", so it is a DNS label. */

#include <stdbool.h>

#include "base/str.h"

#define WORKLOAD_TYPE_MAX 63 /* characters */

bool workload_type_is_valid(struct str type);
