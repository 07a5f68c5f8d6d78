#pragma once

/* Structure-aware mutation. Random bytes mostly break a length or a bracket, and the parser stops
 * there. These functions take an input apart by its wire form, change one piece and put it together
 * again with correct lengths, so that the code behind the framing sees many inputs. What is not of
 * that form gets libFuzzer's own mutation, and so do half of the inputs that are: broken framing
 * has to be tried as well. */

#include <stddef.h>
#include <stdint.h>

/* Of libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* A pseudo-random sequence: the same seed gives the same mutations. */
struct dice {
	uint64_t state;
};

/* 0 to sides - 1. */
size_t dice_roll(struct dice *d, size_t sides);

/* Changes `size` bytes (at least one) at `data` in place, with space for `max`; returns the new
 * size. */
typedef size_t (*mutate_fn)(uint8_t *data, size_t size, size_t max, struct dice *d);

size_t mutate_json(uint8_t *data, size_t size, size_t max, struct dice *d); /* or lines of it */
size_t mutate_yaml(uint8_t *data, size_t size, size_t max, struct dice *d);
size_t mutate_protobuf(uint8_t *data, size_t size, size_t max, struct dice *d);
size_t mutate_http2(uint8_t *data, size_t size, size_t max, struct dice *d);
size_t mutate_nri(uint8_t *data, size_t size, size_t max,
		  struct dice *d); /* mux, ttrpc, protobuf */

/* The whole input: `head` bytes that choose options of the target, and a message of that form. */
size_t mutate_input(uint8_t *data, size_t size, size_t max, unsigned int seed, size_t head,
		    mutate_fn form);
