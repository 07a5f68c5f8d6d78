#pragma once

/* Failed requests to the API server: counted for the metrics, and logged at most once a minute,
 * because every retry fails while the server is unreachable. */

#include <stdint.h>

struct err;

#define API_FAILURES_LOG_MS 60000

struct api_failures {
	uint64_t n;
	uint64_t logged_ms;
};

/* `request` says what was attempted: "patch the Node". */
void api_failures_add(struct api_failures *f, uint64_t now_ms, const char *request,
		      const struct err *err);
