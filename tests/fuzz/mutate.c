#include "mutate.h"

/* SplitMix64: any seed is a good one. */
size_t dice_roll(struct dice *d, size_t sides)
{
	uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return (size_t)(x % sides);
}

size_t mutate_input(uint8_t *data, size_t size, size_t max, unsigned int seed, size_t head,
		    mutate_fn form)
{
	struct dice d = { seed };
	size_t n;

	if (size <= head || dice_roll(&d, 2) == 0)
		return LLVMFuzzerMutate(data, size, max);
	if (head > 0 && dice_roll(&d, 8) == 0) {
		data[dice_roll(&d, head)] = (uint8_t)dice_roll(&d, 256);
		return size;
	}
	n = head + form(data + head, size - head, max - head, &d);
	return n ? n : LLVMFuzzerMutate(data, size, max); /* libFuzzer takes no empty input */
}
