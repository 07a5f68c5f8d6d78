#include "cpu_stat.h"

#include <fcntl.h>

#include "base/arena.h"
#include "base/file.h"

#define STAT_MAX ((size_t)4 << 20)

struct str cpu_stat_lines(struct str stat)
{
	struct str_split lines = str_split(stat);
	struct str line;
	size_t from = 0, at = 0;

	/* They come first, after their sum. */
	while (str_next(&lines, '\n', &line) && str_starts(line, STR("cpu"))) {
		at += line.n + 1;
		if (str_starts(line, STR("cpu ")))
			from = at;
	}
	if (at > stat.n)
		at = stat.n; /* the last line has no end */
	return from < at ? (struct str){ stat.p + from, at - from } : STR("");
}

int cpu_stat_read(struct arena *a, struct str *ret, struct err *err)
{
	struct str text;
	int r = file_read_at(AT_FDCWD, "/proc/stat", STAT_MAX, a, &text, err);

	if (r < 0)
		return r;
	*ret = cpu_stat_lines(text);
	return 0;
}
