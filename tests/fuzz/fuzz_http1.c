/* HTTP/1.1 requests: no crash, and the same requests however the bytes are split. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "net/http.h"
#include "net/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_REQUESTS 64
#define MAX_BYTES 8192

struct reading {
	int64_t results[MAX_REQUESTS];
	size_t body_sum[MAX_REQUESTS];
	size_t n;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool is_inside(struct str s, const char *bytes, size_t n)
{
	return s.p >= bytes && s.p + s.n <= bytes + n;
}

static size_t sum(struct str s)
{
	size_t total = s.n;

	for (size_t i = 0; i < s.n; i++)
		total = total * 31 + (unsigned char)s.p[i];
	return total;
}

/* What handlers read of a request. */
static void read_fields(const struct http1_request *request)
{
	CLEANUP(arena_done) struct arena a;
	struct str path, query, value;

	arena_init(&a, 0);
	http_split_target(request->target, &path, &query);
	value = http_query_get(query, STR("a"), &a);
	require(value.n <= query.n);
	value = http1_field(request->head, "Host");
	require(value.n <= request->head.n);
}

static void read_all(const uint8_t *data, size_t size, size_t step, struct reading *r)
{
	static char bytes[MAX_BYTES];
	struct http1_parser parser = { 0 };
	size_t start = 0, shown = 0;

	memcpy(bytes, data, size);
	memset(r, 0, sizeof(*r));
	while (shown < size && r->n < MAX_REQUESTS) {
		shown = size - shown > step ? shown + step : size;
		for (;;) {
			struct http1_request request;
			int64_t n = http1_parse(&parser, bytes + start, shown - start, &request);

			if (!n)
				break;
			r->results[r->n] = n;
			if (n > 0) {
				require(is_inside(request.method, bytes + start, (size_t)n));
				require(is_inside(request.target, bytes + start, (size_t)n));
				require(is_inside(request.body, bytes + start, (size_t)n));
				require(is_inside(request.head, bytes + start, (size_t)n));
				read_fields(&request);
				r->body_sum[r->n] = sum(request.body);
				start += (size_t)n;
			}
			if (++r->n == MAX_REQUESTS || n < 0)
				return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = { 1, 7, 64 };
	struct reading whole, pieces;

	if (size > MAX_BYTES)
		return 0;
	read_all(data, size, size ? size : 1, &whole);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		read_all(data, size, steps[i], &pieces);
		require(memcmp(&whole, &pieces, sizeof(whole)) == 0);
	}
	return 0;
}
