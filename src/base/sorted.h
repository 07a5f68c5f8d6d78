#pragma once

/* Searches in sorted arrays. */

#include <stddef.h>

/* The position of the first of `n` items that is not before the key: where the key is, or belongs.
 * `order` compares an item with the key, as strcmp() does. */
static inline size_t sorted_position(const void *items, size_t n, size_t size, const void *key,
				     int (*order)(const void *item, const void *key))
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (order((const char *)items + middle * size, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
