/* Counts without locks: each thread writes its own counters, a scrape reads those of all threads.
 * The sums may miss reviews that finish during the scrape. */

#include "metrics.h"

#include <stdio.h>

#include "base/macro.h"
#include "base/str.h"
#include "net/prometheus.h"

/* From 50 us, which is typical, to 1 s, after which the API server gives up by default. */
static const uint64_t bounds_ns[] = {
	50000,	  100000,   200000,   500000,	 1000000,   2000000,   5000000,
	10000000, 25000000, 50000000, 100000000, 250000000, 500000000, 1000000000,
};
_Static_assert(ARRAY_LEN(bounds_ns) == HISTOGRAM_BOUNDS, "a bucket for every bound");

static const char *const hook_names[] = {
	[HOOK_MUTATE_PODS] = "mutate_pods",
	[HOOK_MUTATE_NODES] = "mutate_nodes",
	[HOOK_VALIDATE_PODS] = "validate_pods",
	[HOOK_VALIDATE_NODES] = "validate_nodes",
	[HOOK_VALIDATE_INFRA] = "validate_infrastructures",
	[HOOK_VALIDATE_PROFILES] = "validate_performanceprofiles",
};
_Static_assert(ARRAY_LEN(hook_names) == HOOK__COUNT, "every hook has a name");

static const char *const result_names[] = {
	[RESULT_ALLOWED] = "allowed", [RESULT_CHANGED] = "changed",
	[RESULT_REFUSED] = "refused", [RESULT_MALFORMED] = "malformed",
	[RESULT_FAILED] = "failed",
};
_Static_assert(ARRAY_LEN(result_names) == RESULT__COUNT, "every result has a name");

static void counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n,
			      memory_order_relaxed); /* only this thread writes it */
}

static uint64_t counter_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void metrics_count(struct thread_counters *t, enum hook_kind hook, enum review_result result,
		   enum admission_rule rule, uint64_t duration_ns)
{
	struct hook_counters *h = &t->hooks[hook];
	size_t i = 0;

	while (i < HISTOGRAM_BOUNDS && duration_ns > bounds_ns[i])
		i++;
	counter_add(&h->reviews[result][rule], 1);
	counter_add(&h->buckets[i], 1);
	counter_add(&h->sum_ns, duration_ns);
}

static void write_reviews(struct strbuf *b, const struct thread_counters *threads, unsigned n,
			  enum hook_kind hook)
{
	for (size_t result = 0; result < RESULT__COUNT; result++)
		for (size_t rule = 0; rule <= RULE__COUNT; rule++) {
			const struct prometheus_label labels[] = {
				{ "hook", hook_names[hook] },
				{ "result", result_names[result] },
				{ "rule", rule < RULE__COUNT ?
						  rule_name((enum admission_rule)rule) :
						  "none" },
				{ 0 },
			};
			uint64_t sum = 0;

			for (unsigned t = 0; t < n; t++)
				sum += counter_get(&threads[t].hooks[hook].reviews[result][rule]);
			/* Most of the several hundred combinations never occur; a series appears
			 * with its first review. */
			if (sum)
				prometheus_uint(b, "pinfold_admission_reviews_total", labels, sum);
		}
}

static void write_durations(struct strbuf *b, const struct thread_counters *threads, unsigned n,
			    enum hook_kind hook)
{
	const struct prometheus_label labels[] = { { "hook", hook_names[hook] }, { 0 } };
	uint64_t counts[HISTOGRAM_BOUNDS + 1] = { 0 };
	struct prometheus_histogram h = { bounds_ns, HISTOGRAM_BOUNDS, counts, 0 };

	for (unsigned t = 0; t < n; t++) {
		h.sum_ns += counter_get(&threads[t].hooks[hook].sum_ns);
		for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
			counts[i] += counter_get(&threads[t].hooks[hook].buckets[i]);
	}
	prometheus_histogram(b, "pinfold_admission_duration_seconds", labels, &h);
}

void metrics_write(struct strbuf *b, const struct thread_counters *threads, unsigned n)
{
	prometheus_family(b, "pinfold_admission_reviews_total", "counter",
			  "Admission reviews, by result and by the rule that decided");
	for (enum hook_kind hook = 0; hook < HOOK__COUNT; hook++)
		write_reviews(b, threads, n, hook);
	prometheus_family(b, "pinfold_admission_duration_seconds", "histogram",
			  "Time from the complete review to its response, without the network");
	for (enum hook_kind hook = 0; hook < HOOK__COUNT; hook++)
		write_durations(b, threads, n, hook);
}
