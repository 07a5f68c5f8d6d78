/* The dashboard's state with 5,000 nodes and 150,000 pods: memory, the answer for the list of
 * nodes, and the answer for one change. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/macro.h"
#include "dashboard/shown_state.h"
#include "dashboard/views.h"

#define NODES 5000
#define PODS_PER_NODE 30

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static double rss_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long total, resident = 0;

	if (!f || fscanf(f, "%ld %ld", &total, &resident) != 2)
		abort();
	(void)fclose(f);
	return (double)resident * 4096 / (1 << 20);
}

static void put_node(struct shown_state *s, struct arena *a, int i, int shared)
{
	static const char node[] =
		"{\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"node-role.kubernetes.io/"
		"worker\":"
		"\"\",\"kubernetes.io/hostname\":\"node-%d\"}},\"status\":{\"allocatable\":{"
		"\"management.workload.openshift.io/"
		"cores\":\"4k\"},\"conditions\":[{\"type\":\"Ready\","
		"\"status\":\"True\"}]}}";
	static const char partition[] =
		"{\"metadata\":{\"name\":\"node-%d\"},\"status\":{\"agentVersion\":\"0.2.0\","
		"\"source\":\"Profile\",\"profile\":{\"name\":\"ran\",\"generation\":1},\"cpus\":{"
		"\"management\":\"0-3\",\"shared\":\"4-%d\",\"guaranteed\":\"16-63\",\"online\":"
		"\"0-63\"},"
		"\"pools\":[{\"name\":\"guaranteed\",\"containers\":4,\"exclusiveCPUs\":\"16-23\","
		"\"freeCPUs\":40}],\"topology\":[{\"socket\":0,\"numaNode\":0,\"cache\":0,"
		"\"cores\":"
		"\"0,32 1,33 2,34 3,35 4,36 5,37 6,38 7,39 8,40 9,41 10,42 11,43 12,44 13,45 14,46 "
		"15,47\"},{\"socket\":1,\"numaNode\":1,\"cache\":1,\"cores\":\"16,48 17,49 18,50 "
		"19,51 "
		"20,52 21,53 22,54 23,55 24,56 25,57 26,58 27,59 28,60 29,61 30,62 31,63\"}],"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
		"\"Partitioned\"}]}}";
	struct doc doc;

	arena_reset(a);
	if (doc_parse(str_printf(a, node, i, i), STR(""), NULL, a, &doc, NULL) < 0)
		abort();
	shown_state_put_node(s, doc.root);
	if (doc_parse(str_printf(a, partition, i, shared), STR(""), NULL, a, &doc, NULL) < 0 ||
	    shown_state_put_partition(s, doc.root, NULL) < 0)
		abort();
}

static void put_pod(struct shown_state *s, struct arena *a, int node, int i)
{
	const struct shown_container containers[] = {
		{ .name = STR("main"),
		  .cpus = STR(""),
		  .pool = POOL_SHARED,
		  .kind = CONTAINER_APP,
		  .millicores = 100,
		  .shares = 102 },
	};
	struct shown_pod p = { .namespace = STR("shop"),
			       .state = STR("Running"),
			       .uid = STR("00000000-0000-0000-0000-000000000000"),
			       .containers = containers,
			       .n = 1 };

	arena_reset(a);
	p.name = str_printf(a, "frontend-7d9c6b5f4-%d-%d", node, i);
	p.node = str_printf(a, "node-%d", node);
	shown_state_put_pod(s, &p);
}

int main(void)
{
	const double empty = rss_mib();
	struct shown_state s;
	struct arena a;
	double start;
	struct str text;

	arena_init(&a, 0);
	shown_state_init(&s);
	s.is_cluster = true;
	start = now_ms();
	for (int i = 0; i < NODES; i++)
		put_node(&s, &a, i, 15);
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < PODS_PER_NODE; k++)
			put_pod(&s, &a, i, k);
	s.is_complete = true;
	printf("%zu nodes, %zu pods: %.0f ms, %.1f MiB\n", s.n_nodes, s.n_pods, now_ms() - start,
	       rss_mib() - empty);
	arena_reset(&a);
	start = now_ms();
	text = view_cluster(&s, &a);
	printf("the list of nodes: %.1f ms, %zu kB\n", now_ms() - start, text.n / 1000);
	(void)view_changes(&s, &a);
	arena_reset(&a);
	put_node(&s, &a, 7, 14);
	start = now_ms();
	text = view_changes(&s, &a);
	printf("one change: %.3f ms, %zu bytes\n", now_ms() - start, text.n);
	shown_state_done(&s);
	arena_done(&a);
	return 0;
}
