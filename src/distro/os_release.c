#include "os_release.h"

struct str os_release_get(struct str text, struct str key)
{
	struct str_split split = str_split(text);
	struct str line;

	while (str_next(&split, '\n', &line)) {
		struct str value;

		line = str_trim(line);
		if (!str_starts(line, key) || line.n <= key.n || line.p[key.n] != '=')
			continue;
		value = str_skip(line, key.n + 1);
		if (value.n >= 2 && (value.p[0] == '"' || value.p[0] == '\'') &&
		    value.p[value.n - 1] == value.p[0])
			value = (struct str){ value.p + 1, value.n - 2 };
		return value;
	}
	return STR("");
}
