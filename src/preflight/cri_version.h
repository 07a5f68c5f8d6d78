#pragma once

/* Name and version of a container runtime, as its CRI socket answers (method Version). Blocks, with
 * a time limit. */

#include "base/str.h"

struct arena;
struct err;

int cri_version_read(const char *socket_path, struct arena *a, struct str *ret_name,
		     struct str *ret_version, struct err *err);
