#pragma once

/* Reads a support bundle from an archive or from the directory that it was extracted to. Links are
 * not followed: a bundle comes from elsewhere, and its files must be its own. */

#include <stdbool.h>

#include "saved_bundle.h"

/* Whether the path is a bundle: an archive, or a directory with the index of one. */
bool bundle_at(const char *path);

int bundle_load(const char *path, struct arena *a, struct saved_bundle *ret, struct err *err);
