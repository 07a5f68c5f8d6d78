#pragma once

/* The hashes that file formats prescribe: FNV-1a (checksums of the kubelet's checkpoints) and XXH64
 * (pod fingerprints, and the ledger's state file). They detect corruption, not tampering. */

#include <stdint.h>

#include "str.h"

#define FNV1A32_START UINT32_C(2166136261)

/* Continues from `hash`, so that a text may be hashed in pieces; start with FNV1A32_START. */
uint32_t fnv1a32(uint32_t hash, struct str piece);

uint64_t xxh64(struct str text, uint64_t seed);
