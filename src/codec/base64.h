#pragma once

/* Base64 (RFC 4648, standard alphabet, padded): patches in admission responses, data URLs,
 * certificates in kubeconfig files. */

#include "base/str.h"

struct arena;
struct err;

struct str base64_encode(struct str bytes, struct arena *a);

/* Strict: padding required, no blanks, no unused bits set. */
int base64_decode(struct str text, struct arena *a, struct str *ret, struct err *err);
