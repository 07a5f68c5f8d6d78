/* FNV-1a and XXH64 as their authors define them. The results are stored in files and sent to other
 * programs, so they must not depend on the machine's byte order or alignment. */

#include "hash.h"

#include <endian.h>
#include <string.h>

/* The constants, rotations and lane order below are part of the definition of XXH64. */
#define PRIME1 UINT64_C(0x9e3779b185ebca87)
#define PRIME2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME3 UINT64_C(0x165667b19e3779f9)
#define PRIME4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME5 UINT64_C(0x27d4eb2f165667c5)

#define STRIPE 32 /* bytes: four lanes of eight */

uint32_t fnv1a32(uint32_t hash, struct str piece)
{
	for (size_t i = 0; i < piece.n; i++)
		hash = (hash ^ (unsigned char)piece.p[i]) * UINT32_C(16777619);
	return hash;
}

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

/* XXH64 is defined over little-endian integers, on every machine. */
static uint64_t read_le64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint32_t read_le32(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t round_of(uint64_t lane, uint64_t input)
{
	return rotate(lane + input * PRIME2, 31) * PRIME1;
}

/* Consumes the whole stripes and merges the four lanes. */
static uint64_t hash_stripes(struct str *text, uint64_t seed)
{
	uint64_t lane[4] = { seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1 };
	uint64_t hash;

	for (; text->n >= STRIPE; *text = str_skip(*text, STRIPE))
		for (size_t i = 0; i < 4; i++)
			lane[i] = round_of(lane[i], read_le64(text->p + 8 * i));
	hash = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
	for (unsigned i = 0; i < 4; i++)
		hash = (hash ^ round_of(0, lane[i])) * PRIME1 + PRIME4;
	return hash;
}

static uint64_t hash_tail(struct str text, uint64_t hash)
{
	for (; text.n >= 8; text = str_skip(text, 8))
		hash = rotate(hash ^ round_of(0, read_le64(text.p)), 27) * PRIME1 + PRIME4;
	if (text.n >= 4) {
		hash = rotate(hash ^ read_le32(text.p) * PRIME1, 23) * PRIME2 + PRIME3;
		text = str_skip(text, 4);
	}
	for (; text.n; text = str_skip(text, 1))
		hash = rotate(hash ^ (unsigned char)text.p[0] * PRIME5, 11) * PRIME1;
	return hash;
}

uint64_t xxh64(struct str text, uint64_t seed)
{
	uint64_t size_bytes = text.n;
	uint64_t hash = text.n >= STRIPE ? hash_stripes(&text, seed) : seed + PRIME5;

	hash = hash_tail(text, hash + size_bytes);
	/* The final mix: every input bit affects every output bit. */
	hash = (hash ^ hash >> 33) * PRIME2;
	hash = (hash ^ hash >> 29) * PRIME3;
	return hash ^ hash >> 32;
}
