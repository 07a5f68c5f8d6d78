#pragma once

/* The hashes that formats prescribe: FNV-1a (the kubelet's checkpoint checksums) and XXH64 (pod
 * fingerprints, and our own state file). They find accidents, not attackers. */

#include <stdint.h>

#include "str.h"

#define FNV1A32_START UINT32_C(2166136261)

/* Goes on from `hash`, so that a text may come in pieces; begin with FNV1A32_START. */
uint32_t fnv1a32(uint32_t hash, struct str piece);

uint64_t xxh64(struct str text, uint64_t seed);
