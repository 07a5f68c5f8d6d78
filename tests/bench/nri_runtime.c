/* A runtime for plugins under test: registers one plugin over a Unix socket, reports N containers
 * to it, then creates containers one after the other and measures each response. nri.sh runs it
 *with the agent and with a Go plugin.
 *
 *	nri_runtime SOCKET CONTAINERS CALLS [ALONE]
 *
 * Half of the containers are of management pods, half share. The first ALONE of them own two CPUs.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/nri_peer.h"
#include "base/macro.h"

/* Unknown fields of the size of a real container's mounts and environment. */
static struct str with_ballast(struct str message, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, message);
	for (int i = 0; i < 30; i++)
		strbuf_add(&b, STR("\x9a\x06\x46"
				   "SOME_ENVIRONMENT_VARIABLE_OF_A_SERVICE=tcp://10.96.0.1:443/and/"
				   "then/so"));
	return strbuf_str(&b);
}

struct box {
	char id[65], uid[40], name[24], parent[96], path[192];
	struct nri_pod_linux pod_linux;
	struct nri_pair annotations[3];
	struct nri_cpu cpu;
	struct nri_resources resources;
	struct nri_container_linux on_linux;
};

static unsigned n_alone;

static void box_fill(struct box *b, unsigned n, struct nri_pod *pod, struct nri_container *c)
{
	const bool alone = n < n_alone, managed = !alone && n % 2;

	(void)snprintf(b->id, sizeof(b->id), "%064x", n);
	(void)snprintf(b->uid, sizeof(b->uid), "%08x-0000-4000-8000-%012x", n, n);
	(void)snprintf(b->name, sizeof(b->name), "pod-%u", n);
	(void)snprintf(b->parent, sizeof(b->parent), "/kubepods/%spod%s", alone ? "" : "burstable/",
		       b->uid);
	(void)snprintf(b->path, sizeof(b->path), "%s/%s", b->parent, b->id);
	b->pod_linux = (struct nri_pod_linux){ .cgroup_parent = b->parent, .cgroups_path = "" };
	b->annotations[0] = (struct nri_pair){ "target.workload.openshift.io/management",
					       "{\"effect\":\"PreferredDuringScheduling\"}" };
	b->annotations[1] = (struct nri_pair){ "resources.workload.openshift.io/c",
					       "{\"cpushares\":20,\"cpulimit\":30}" };
	/* A static pod: the agent has no API server to ask about its namespace. */
	b->annotations[2] = (struct nri_pair){ "kubernetes.io/config.source", "file" };
	b->cpu = (struct nri_cpu){ .has_shares = true,
				   .shares = alone   ? 2048 :
					     managed ? 2 :
						       102,
				   .has_quota = alone,
				   .quota_us = alone ? 200000 : 0,
				   .has_period = true,
				   .period_us = 100000 };
	b->resources.cpu = &b->cpu;
	b->on_linux = (struct nri_container_linux){ &b->resources, b->path };
	*pod = (struct nri_pod){ .id = b->id,
				 .name = b->name,
				 .uid = b->uid,
				 .pod_namespace = "default",
				 .annotations = b->annotations,
				 .n_annotations = managed ? 3 : 0,
				 .on_linux = &b->pod_linux };
	*c = (struct nri_container){ .id = b->id,
				     .pod_id = b->id,
				     .name = "c",
				     .state = NRI_RUNNING,
				     .on_linux = &b->on_linux };
}

static void synchronize(struct runtime_peer *p, unsigned n)
{
	struct box *boxes = arena_array(&p->a, struct box, n);
	struct nri_sync sync = { .pods = arena_array(&p->a, struct nri_pod, n),
				 .containers = arena_array(&p->a, struct nri_container, n),
				 .n_pods = n,
				 .n_containers = n };
	struct ttrpc_response response;
	uint64_t ns;

	for (unsigned i = 0; i < n; i++)
		box_fill(&boxes[i], i, &sync.pods[i], &sync.containers[i]);
	ns = runtime_peer_time_call(p, "Synchronize",
				    runtime_peer_encode(p, &nri_sync_message, &sync), &response);
	printf("synchronize %u containers: %.1f ms\n", n, (double)ns / 1e6);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void measure(struct runtime_peer *p, unsigned first, unsigned n)
{
	uint64_t *times = calloc(n, sizeof(*times));
	size_t answered = 0;

	if (!times)
		exit(2);
	for (unsigned i = 0; i < n; i++) {
		struct nri_pod pod;
		struct nri_container c;
		struct nri_call create = { .pod = &pod, .container = &c };
		struct box box = { 0 };
		struct ttrpc_response response;

		arena_reset(&p->a);
		box_fill(&box, first + i, &pod, &c);
		times[i] = runtime_peer_time_call(
			p, "CreateContainer",
			with_ballast(runtime_peer_encode(p, &nri_call_message, &create), &p->a),
			&response);
		answered += response.payload.n > 0;
		/* Removed again, so that the number of containers is constant. */
		create.event = NRI_REMOVE_POD;
		(void)runtime_peer_time_call(
			p, "StateChange",
			runtime_peer_encode(p, &nri_state_change_message, &create), &response);
	}
	qsort(times, n, sizeof(*times), compare);
	printf("create %u: p50 %.0f us, p99 %.0f us, max %.0f us, %zu answers with CPUs\n", n,
	       us(times[n / 2]), us(times[n * 99 / 100]), us(times[n - 1]), answered);
	free(times);
}

int main(int argc, char **argv)
{
	struct runtime_peer p;

	if (argc < 4)
		return 2;
	if (argc > 4)
		n_alone = (unsigned)strtoul(argv[4], NULL, 10);
	runtime_peer_accept(&p, runtime_peer_listen(argv[1]), "bench");
	synchronize(&p, (unsigned)strtoul(argv[2], NULL, 10));
	if (strcmp(argv[3], "0") != 0)
		measure(&p, (unsigned)strtoul(argv[2], NULL, 10),
			(unsigned)strtoul(argv[3], NULL, 10));
	(void)fflush(stdout);
	(void)pause(); /* the script measures the plugin, then kills this process */
	return 0;
}
