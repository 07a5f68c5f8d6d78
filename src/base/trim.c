/* Finds mappings in /proc/self/smaps and drops their pages with MADV_DONTNEED. For a private file
 * mapping without anonymous pages this loses nothing: the next access reads the page cache. */

#include "trim.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "arena.h"
#include "file.h"
#include "macro.h"

/* Mappings beyond these limits stay resident; nothing else depends on them. */
#define MAX_SMAPS ((size_t)1 << 20)
#define MAX_MAPPINGS 256

/* "7f39-7f3a r-xp 00000000 fd:01 123   /usr/lib/libc.so.6": true for a private, read-only mapping
 * of a file. */
static bool parse_mapping(struct str line, struct trim_mapping *ret)
{
	unsigned long start, end, inode;
	char text[128], mode[5];

	/* The path at the end of the line may be long, but the inode before it is all that is
	 * needed. */
	if (line.n >= sizeof(text))
		line.n = sizeof(text) - 1;
	(void)snprintf(text, sizeof(text), PRI_STR, FMT_STR(line));
	if (sscanf(text, "%lx-%lx %4s %*s %*s %lu", &start, &end, mode, &inode) != 4)
		return false;
	*ret = (struct trim_mapping){ start, end };
	return inode != 0 && mode[1] == '-' && mode[3] == 'p';
}

size_t trim_parse(struct str smaps, struct trim_mapping *ret, size_t max)
{
	struct str_split lines = str_split(smaps);
	struct trim_mapping mapping;
	struct str line;
	bool is_candidate = false;
	size_t n = 0;

	while (n < max && str_next(&lines, '\n', &line)) {
		/* A header line starts with a hexadecimal address in lower case, attributes with an
		 * upper-case letter. */
		if (line.n && (str_is_digit(line.p[0]) || (line.p[0] >= 'a' && line.p[0] <= 'f')))
			is_candidate = parse_mapping(line, &mapping);
		else if (is_candidate && str_starts(line, STR("Anonymous:"))) {
			line = str_trim(str_skip(line, sizeof("Anonymous:") - 1));
			if (str_eq(line, STR("0 kB")))
				ret[n++] = mapping;
			is_candidate = false;
		}
	}
	return n;
}

void trim_memory(void)
{
	struct trim_mapping mappings[MAX_MAPPINGS];
	struct arena a;
	struct str text;
	size_t n = 0;

	arena_init(&a, 0);
	if (file_read_at(AT_FDCWD, "/proc/self/smaps", MAX_SMAPS, &a, &text, NULL) == 0)
		n = trim_parse(text, mappings, MAX_MAPPINGS);
	arena_done(&a);
	/* After arena_done(), so that the memory of this function is returned as well. */
	(void)malloc_trim(0);
	for (size_t i = 0; i < n; i++)
		(void)madvise((void *)mappings[i].start, mappings[i].end - mappings[i].start,
			      MADV_DONTNEED);
}
