#pragma once

/* Prometheus' text format (0.0.4): a family is a header, then its samples. Label values are
 * escaped; names are constants and not checked. Counting is up to the caller. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* `type` is "counter", "gauge" or "histogram". */
void prometheus_family(struct strbuf *b, const char *name, const char *type, const char *help);

struct prometheus_label {
	const char *name;
	const char *value;
};

/* Labels end with { 0 }; NULL is none. */
void prometheus_uint(struct strbuf *b, const char *name, const struct prometheus_label *labels,
		     uint64_t value);
void prometheus_double(struct strbuf *b, const char *name, const struct prometheus_label *labels,
		       double value);

/* A family with one sample and no labels. */
void prometheus_one(struct strbuf *b, const char *name, const char *type, const char *help,
		    uint64_t value);

/* A histogram of durations. `counts` has one entry per bound and one for larger values, not
 * cumulative. Bounds and sum are in nanoseconds, and printed in seconds. */
struct prometheus_histogram {
	const uint64_t *bounds_ns;
	size_t n_bounds;
	const uint64_t *counts;
	uint64_t sum_ns;
};

void prometheus_histogram(struct strbuf *b, const char *name, const struct prometheus_label *label,
			  const struct prometheus_histogram *h);

/* process_*: memory, CPU time, descriptors and start time, named as Prometheus' client libraries
 * do. */
void prometheus_process(struct strbuf *b);
