#pragma once

/* Memory that can be copied and put back at the same address. While it is on, malloc() and its
 * relatives of everything that is linked statically take memory from one region (--wrap, see
 * meson.build). So the state of a program with pointers can be saved and restored with memcpy(). */

#include <stdbool.h>
#include <stddef.h>

/* Switches the region on or off; frees are always told apart by their address. */
void heap_use(bool is_on);

/* Forgets every block of the region. */
void heap_reset(void);

/* A copy of the region in *ret, which is reused when it is large enough. */
struct heap_copy {
	char *bytes;
	size_t n, cap;
};
void heap_save(struct heap_copy *ret);
void heap_restore(const struct heap_copy *from);
void heap_copy_done(struct heap_copy *c);
