/* The body of a watch: no crash, and the same lines however the bytes are split. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/watch_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	size_t lines, events, sum;
};

static struct reading read_all(const uint8_t *data, size_t size, size_t step)
{
	struct watch_lines lines = { 0 };
	struct reading got = { 0 };

	for (size_t at = 0; at < size; at += step) {
		struct str bytes = { (const char *)data + at, size - at < step ? size - at : step };
		struct str line;

		while (watch_lines_next(&lines, &bytes, &line, NULL) > 0) {
			CLEANUP(arena_done) struct arena a;
			struct watch_event event;

			arena_init(&a, (size_t)64 << 20);
			got.lines++;
			for (size_t i = 0; i < line.n; i++)
				got.sum = got.sum * 31 + (unsigned char)line.p[i];
			got.events += watch_event_parse(line, &a, &event, NULL) >= 0;
		}
	}
	watch_lines_done(&lines);
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 7, 64 };
	struct reading whole = read_all(data, size, size ? size : 1);

	if (size > 8192)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct reading pieces = read_all(data, size, steps[i]);

		if (memcmp(&whole, &pieces, sizeof(whole)) != 0)
			abort();
	}
	return 0;
}
