#pragma once

/* Macros that every module uses: array sizes, container_of, and cleanup at the end of a scope. */

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* From a pointer to an embedded member back to the struct that owns it. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define AUTO_CLOSE CLEANUP(auto_close)
#define AUTO_FREE CLEANUP(auto_free)

static inline void auto_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void auto_free(void *p)
{
	free(*(void **)p);
}
