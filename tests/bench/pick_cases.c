/* Compares picked CPUs and their cost with the kubelet's code.
 *
 *	pick_cases emit SEED N			cases for the peer program, on standard output
 *	pick_cases compare SEED N RESULTS	the same cases here, against the peer's results
 *	pick_cases emit-bench			the measured cases for the peer
 *	pick_cases bench RESULTS		measures ours and prints both
 *
 * peers/cpumanager/main.go describes the lines. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../prop/random_machine.h"
#include "base/err.h"
#include "base/macro.h"

struct pick_case {
	struct topology t;
	struct cpuset available;
	struct pick_request request;
};

/* Picks per machine. */
#define PICKS_PER_MACHINE 8

struct cases {
	uint64_t state;
	unsigned number;
	struct arena a;
	struct pick_case at;
};

static void cases_next(struct cases *c)
{
	if (c->number++ % PICKS_PER_MACHINE == 0) {
		const unsigned max = random_below(&c->state, 8) ? 96 : 512;
		struct machine_shape shape;

		arena_reset(&c->a);
		shape = machine_shape_draw(&c->state, max);
		c->at.t = machine_build(&shape, &c->a);
	}
	c->at.available = machine_free(&c->state, &c->at.t);
	c->at.request = machine_request(&c->state, &c->at.t, &c->at.available);
}

static void print_topology(const struct topology *t)
{
	printf("T %u", t->n_cpus);
	for (unsigned i = 0; i < t->n_cpus; i++) {
		const uint32_t *id = t->cpus[i].id;

		printf(" %u %u %u %u %u", t->cpus[i].cpu, id[TOPOLOGY_CORE], id[TOPOLOGY_SOCKET],
		       id[TOPOLOGY_NUMA], id[TOPOLOGY_UNCORE]);
	}
	printf("\n");
}

static void print_request(const char *kind, const char *name, const struct pick_case *c)
{
	CLEANUP(arena_done) struct arena a;
	const struct pick_request *r = &c->request;

	arena_init(&a, 0);
	printf("%s %s %u %u %d %d %d %d " PRI_STR "\n", kind, name, r->n_cpus, r->group,
	       r->distributed, r->spread, r->uncore, r->align_by_socket,
	       FMT_STR(cpuset_format(&c->available, &a)));
}

static int emit(uint64_t seed, unsigned n)
{
	struct cases c = { .state = seed };

	for (unsigned i = 0; i < n; i++) {
		char name[16];

		cases_next(&c);
		if (i % PICKS_PER_MACHINE == 0)
			print_topology(&c.at.t);
		(void)snprintf(name, sizeof(name), "%u", i);
		print_request("P", name, &c.at);
	}
	arena_done(&c.a);
	return 0;
}

/* Our result in the peer's format, allocated from `a`. */
static struct str response(const struct pick_case *c, struct arena *a)
{
	struct err err = { 0 };
	struct cpuset got;

	if (pick_cpus(&c->t, &c->available, &c->request, &got, &err) < 0)
		return str_printf(a, "error: %s", err.msg);
	return cpuset_format(&got, a);
}

struct tally {
	unsigned corrected, released, hangs, wrong;
};

static void tally_line(struct tally *t, struct str line, unsigned i, const struct pick_case *c)
{
	CLEANUP(arena_done) struct arena a;
	struct str_split columns = str_split(line);
	struct str number, released, corrected, ours;

	arena_init(&a, 0);
	ours = response(c, &a);
	if (!str_next(&columns, '\t', &number) || !str_next(&columns, '\t', &released) ||
	    !str_next(&columns, '\t', &corrected) || !str_eq(ours, corrected)) {
		t->wrong++;
		(void)fprintf(stderr, "case %u: ours " PRI_STR ", kubelet's " PRI_STR "\n", i,
			      FMT_STR(ours), FMT_STR(line));
		print_topology(&c->t);
		print_request("P", "?", c);
		return;
	}
	t->corrected++;
	t->released += str_eq(ours, released);
	t->hangs += str_eq(released, STR("hang"));
}

static int compare(uint64_t seed, unsigned n, FILE *responses)
{
	struct cases c = { .state = seed };
	struct tally t = { 0 };
	char *line = NULL;
	size_t cap = 0;

	for (unsigned i = 0; i < n; i++) {
		ssize_t length = getline(&line, &cap, responses);

		cases_next(&c);
		if (length < 1) {
			(void)fprintf(stderr, "the answers end at case %u\n", i);
			t.wrong++;
			break;
		}
		tally_line(&t, (struct str){ line, (size_t)length - 1 }, i, &c.at);
	}
	free(line);
	arena_done(&c.a);
	printf("%u picks equal the kubelet's with its known defects corrected, %u differ\n",
	       t.corrected, t.wrong);
	printf("%u of them equal the kubelet's as released; in %u it differs by those defects, in "
	       "%u it would never return\n",
	       t.released, t.corrected - t.released - t.hangs, t.hangs);
	return t.wrong ? 1 : 0;
}

/* The measured cases: larger machines of the same shape. */
static const struct bench_case {
	const char *name;
	unsigned cpus, sockets, nodes_per_socket;
	unsigned wanted, group;
	bool distributed, uncore;
} benches[] = {
	{ "packed-2-of-16", 16, 2, 1, 2, 1, false, false },
	{ "packed-2-of-64", 64, 2, 4, 2, 1, false, false },
	{ "packed-2-of-128", 128, 2, 4, 2, 1, false, false },
	{ "packed-2-of-256", 256, 2, 4, 2, 1, false, false },
	{ "packed-2-of-512", 512, 2, 4, 2, 1, false, false },
	{ "packed-2-of-1024", 1024, 2, 4, 2, 1, false, false },
	{ "packed-half-of-16", 16, 2, 1, 9, 1, false, false },
	{ "packed-half-of-64", 64, 2, 4, 34, 1, false, false },
	{ "packed-half-of-256", 256, 2, 4, 130, 1, false, false },
	{ "packed-half-of-1024", 1024, 2, 4, 514, 1, false, false },
	{ "uncore-6-of-64", 64, 2, 4, 6, 1, false, true },
	{ "uncore-6-of-256", 256, 2, 4, 6, 1, false, true },
	{ "uncore-6-of-1024", 1024, 2, 4, 6, 1, false, true },
	{ "distributed-half-of-16", 16, 2, 1, 9, 1, true, false },
	{ "distributed-half-of-64", 64, 2, 4, 34, 1, true, false },
	{ "distributed-half-of-256", 256, 2, 4, 130, 1, true, false },
	{ "distributed-half-of-1024", 1024, 2, 4, 514, 1, true, false },
};

static struct pick_case bench_case(const struct bench_case *b, struct arena *a)
{
	const unsigned nodes = b->sockets * b->nodes_per_socket;
	const unsigned caches = b->cpus / nodes >= 16 ? 2 : 1; /* per node */
	const struct machine_shape shape = {
		.sockets = b->sockets,
		.nodes_per_socket = b->nodes_per_socket,
		.caches_per_node = caches,
		.cores_per_cache = b->cpus / nodes / caches / 2,
		.threads = 2,
		.siblings_apart = true,
	};
	struct pick_case c = { .t = machine_build(&shape, a) };

	c.available = c.t.online;
	c.request = (struct pick_request){ .n_cpus = b->wanted,
					   .group = b->group,
					   .distributed = b->distributed,
					   .uncore = b->uncore };
	return c;
}

static int emit_bench(void)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(benches); i++) {
		struct pick_case c = bench_case(&benches[i], &a);

		print_topology(&c.t);
		print_request("B", benches[i].name, &c);
	}
	return 0;
}

static double now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(const struct pick_case *c)
{
	const double start = now_ns();
	unsigned n = 0;

	do {
		struct cpuset got;

		for (int i = 0; i < 64; i++, n++)
			if (pick_cpus(&c->t, &c->available, &c->request, &got, NULL) < 0)
				abort();
	} while (now_ns() - start < 1e8);
	return (now_ns() - start) / n;
}

/* CPU time for one pick. */
struct times {
	double ours_ns, kubelets_ns;
};

static bool same_series(const struct bench_case *a, const struct bench_case *b)
{
	return strncmp(a->name, b->name, (size_t)(strstr(a->name, "-of-") - a->name)) == 0;
}

/* How time grows with the machine from the first row of a series to the last: the x of cpus^x. */
static void print_growth(size_t first, size_t last, const struct times *times)
{
	const double size = log((double)benches[last].cpus / benches[first].cpus);

	printf("  grows with CPUs as: pinfold ^%.2f, kubelet ^%.2f\n",
	       log(times[last].ours_ns / times[first].ours_ns) / size,
	       log(times[last].kubelets_ns / times[first].kubelets_ns) / size);
}

static int bench(FILE *responses)
{
	CLEANUP(arena_done) struct arena a;
	struct times times[ARRAY_LEN(benches)];
	size_t first = 0;

	arena_init(&a, 0);
	printf("%-28s %12s %14s %10s\n", "pick, CPU time each", "pinfold us", "kubelet us",
	       "ratio");
	for (size_t i = 0; i < ARRAY_LEN(benches); i++) {
		struct pick_case c = bench_case(&benches[i], &a);
		char name[64];

		times[i].ours_ns = measure(&c);
		if (fscanf(responses, "%63s %lf", name, &times[i].kubelets_ns) != 2 ||
		    strcmp(name, benches[i].name) != 0) {
			(void)fprintf(stderr, "no answer to %s\n", benches[i].name);
			return 1;
		}
		printf("%-28s %12.2f %14.1f %9.0fx\n", name, times[i].ours_ns / 1e3,
		       times[i].kubelets_ns / 1e3, times[i].kubelets_ns / times[i].ours_ns);
		if (i + 1 == ARRAY_LEN(benches) || !same_series(&benches[i], &benches[i + 1])) {
			print_growth(first, i, times);
			first = i + 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	const unsigned n = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : 0;
	FILE *file = NULL;
	int status = 2;

	if (argc == 5 || (argc == 3 && strcmp(mode, "bench") == 0)) {
		file = fopen(argv[argc - 1], "r");
		if (!file) {
			perror(argv[argc - 1]);
			return 2;
		}
	}
	if (strcmp(mode, "emit") == 0 && argc == 4)
		status = emit(seed, n);
	else if (strcmp(mode, "compare") == 0 && file)
		status = compare(seed, n, file);
	else if (strcmp(mode, "emit-bench") == 0)
		status = emit_bench();
	else if (strcmp(mode, "bench") == 0 && file)
		status = bench(file);
	else
		(void)fputs("usage: see the head of pick_cases.c\n", stderr);
	if (file)
		(void)fclose(file);
	return status;
}
