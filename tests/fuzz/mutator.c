/* libFuzzer's entry point to the mutators: compiled with FORM and HEAD for each target that has a
 * form (tests/fuzz/meson.build). */

#include "mutate.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return mutate_input(data, size, max_size, seed, HEAD, FORM);
}
