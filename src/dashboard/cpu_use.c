#include "cpu_use.h"

#include <inttypes.h>

#include "base/arena.h"

enum { FIELD_IDLE = 3, FIELD_IOWAIT = 4, FIELD_GUEST = 8 };

/* "cpu3 1 2 3 ...". False for other lines. */
static bool read_line(struct str line, uint64_t *ret_cpu, uint64_t *ret_busy, uint64_t *ret_total)
{
	struct str_split words = str_split(line);
	struct str word;
	uint64_t value;
	int i = 0;

	if (!str_next(&words, ' ', &word) || !str_starts(word, STR("cpu")) ||
	    !str_to_u64(str_skip(word, 3), CPUSET_MAX - 1, ret_cpu))
		return false;
	*ret_busy = *ret_total = 0;
	/* Time of guests is part of user time already. */
	for (; i < FIELD_GUEST && str_next(&words, ' ', &word); i++) {
		if (!str_to_u64(word, UINT64_MAX / 16, &value))
			return false;
		*ret_total += value;
		if (i != FIELD_IDLE && i != FIELD_IOWAIT)
			*ret_busy += value;
	}
	return i > FIELD_IOWAIT;
}

struct str cpu_use_read(struct cpu_use *u, struct str stat, struct arena *a)
{
	struct str_split lines = str_split(stat);
	struct strbuf b;
	struct str line;

	strbuf_init(&b, a);
	strbuf_addc(&b, '{');
	while (str_next(&lines, '\n', &line)) {
		uint64_t cpu, busy, total, passed;

		if (!read_line(line, &cpu, &busy, &total))
			continue;
		/* Counters of a CPU start again when it comes online. */
		passed = total > u->total[cpu] ? total - u->total[cpu] : 0;
		if (u->has_reading && passed && busy >= u->busy[cpu])
			strbuf_printf(&b, "%s\"%" PRIu64 "\":%" PRIu64, b.n > 1 ? "," : "", cpu,
				      (busy - u->busy[cpu]) * 100 / passed);
		u->busy[cpu] = busy;
		u->total[cpu] = total;
	}
	strbuf_addc(&b, '}');
	if (!u->has_reading) {
		u->has_reading = true;
		return STR("");
	}
	return strbuf_str(&b);
}
