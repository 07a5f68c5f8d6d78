/* A runtime for plugins under test: registers one plugin over a Unix socket, reports N containers
 *to it, then creates containers one after the other and measures each response. nri.sh runs it with
 * the agent and with a Go plugin.
 *
 *	nri_runtime SOCKET CONTAINERS CALLS [ALONE]
 *
 * Half of the containers are of management pods, half share. The first ALONE of them own two CPUs.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "nri/nri_messages.h"
#include "rpc/mux.h"
#include "rpc/ttrpc.h"

#define SERVICE "nri.pkg.api.v1alpha1.Plugin"

struct peer {
	int fd;
	struct mux_reader mux;
	struct ttrpc_reader readers[2];
	uint32_t stream;
	struct arena a;
};

static void fail(const char *what)
{
	fprintf(stderr, "nri_runtime: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void send_all(struct peer *p, struct str bytes)
{
	while (bytes.n > 0) {
		const ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0)
			fail("send");
		bytes = str_skip(bytes, (size_t)n);
	}
}

/* The next message of a connection; its data is valid until the next call. */
static struct ttrpc_frame receive(struct peer *p, uint32_t conn)
{
	static char bytes[65536];
	static struct str rest;

	for (;;) {
		struct mux_piece piece;
		struct ttrpc_frame frame;
		ssize_t n;

		while (mux_read(&p->mux, &rest, &piece, NULL) > 0)
			while (piece.bytes.n > 0 && piece.conn - 1 < 2 &&
			       ttrpc_read(&p->readers[piece.conn - 1], &piece.bytes, &frame))
				if (piece.conn == conn)
					return frame;
		n = recv(p->fd, bytes, sizeof(bytes), 0);
		if (n <= 0)
			fail("the plugin hung up");
		rest = (struct str){ bytes, (size_t)n };
	}
}

static uint64_t call(struct peer *p, const char *method, struct str payload, struct str *ret)
{
	const struct ttrpc_request request = { SERVICE, method, payload, 2000000000 };
	struct ttrpc_frame frame;
	struct strbuf b;
	uint64_t began;

	strbuf_init(&b, &p->a);
	p->stream += 2;
	if (ttrpc_write_request(&b, MUX_CONN_PLUGIN, p->stream, &request, &p->a) < 0)
		fail("request");
	began = now_ns();
	send_all(p, strbuf_str(&b));
	frame = receive(p, MUX_CONN_PLUGIN);
	if (ret)
		*ret = str_dup(&p->a, frame.data);
	return now_ns() - began;
}

static struct str encode(const struct pb_message *m, const void *value, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	pb_encode(m, value, &b);
	return strbuf_str(&b);
}

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
	struct nri_pair annotations[2];
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
				 .n_annotations = managed ? 2 : 0,
				 .on_linux = &b->pod_linux };
	*c = (struct nri_container){ .id = b->id,
				     .pod_id = b->id,
				     .name = "c",
				     .state = NRI_RUNNING,
				     .on_linux = &b->on_linux };
}

static void synchronize(struct peer *p, unsigned n)
{
	struct box *boxes = arena_array(&p->a, struct box, n);
	struct nri_sync sync = { .pods = arena_array(&p->a, struct nri_pod, n),
				 .containers = arena_array(&p->a, struct nri_container, n),
				 .n_pods = n,
				 .n_containers = n };
	uint64_t ns;

	for (unsigned i = 0; i < n; i++)
		box_fill(&boxes[i], i, &sync.pods[i], &sync.containers[i]);
	ns = call(p, "Synchronize", encode(&nri_sync_message, &sync, &p->a), NULL);
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

static void measure(struct peer *p, unsigned first, unsigned n)
{
	uint64_t *times = calloc(n, sizeof(*times));
	size_t answered = 0;

	if (!times)
		fail("memory");
	for (unsigned i = 0; i < n; i++) {
		struct nri_pod pod;
		struct nri_container c;
		struct nri_call create = { .pod = &pod, .container = &c };
		struct box box = { 0 };
		struct str response;

		arena_reset(&p->a);
		box_fill(&box, first + i, &pod, &c);
		times[i] = call(p, "CreateContainer",
				with_ballast(encode(&nri_call_message, &create, &p->a), &p->a),
				&response);
		answered += response.n > 10;
		/* Removed again, so that the number of containers is constant. */
		create.event = NRI_REMOVE_POD;
		(void)call(p, "StateChange", encode(&nri_state_change_message, &create, &p->a),
			   NULL);
	}
	qsort(times, n, sizeof(*times), compare);
	printf("create %u: p50 %.0f us, p99 %.0f us, max %.0f us, %zu answers with CPUs\n", n,
	       us(times[n / 2]), us(times[n * 99 / 100]), us(times[n - 1]), answered);
	free(times);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct peer p = { .stream = UINT32_MAX }; /* the first is 1 */
	struct strbuf b;
	int listener;

	if (argc < 4 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	if (argc > 4)
		n_alone = (unsigned)strtoul(argv[4], NULL, 10);
	arena_init(&p.a, 0);
	memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
	(void)unlink(argv[1]);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0)
		fail(argv[1]);
	p.fd = accept(listener, NULL, NULL);
	(void)receive(&p, MUX_CONN_RUNTIME);
	strbuf_init(&b, &p.a);
	(void)ttrpc_write_response(&b, MUX_CONN_RUNTIME, 1, &(struct ttrpc_response){ 0 }, &p.a);
	send_all(&p, strbuf_str(&b));
	(void)call(&p, "Configure",
		   encode(&nri_runtime_message,
			  &(struct nri_runtime){ .name = "bench",
						 .version = "1",
						 .registration_timeout_ms = 5000,
						 .request_timeout_ms = 2000 },
			  &p.a),
		   NULL);
	synchronize(&p, (unsigned)strtoul(argv[2], NULL, 10));
	if (strcmp(argv[3], "0") != 0)
		measure(&p, (unsigned)strtoul(argv[2], NULL, 10),
			(unsigned)strtoul(argv[3], NULL, 10));
	(void)fflush(stdout);
	(void)pause(); /* the script measures the plugin, then kills this process */
	return 0;
}
