/* Users of a cluster choose the labels and annotations of their pods. Here they choose badly, and
 * the agent, as a process with the memory of its manifest, synchronizes and pins all the same. */

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "kube/names.h"
#include "nri_peer.h"
#include "test.h"

#define MEMORY_LIMIT ((rlim_t)64 << 20) /* resources.limits.memory of the DaemonSet */
#define PEAK_LIMIT_KIB (28 << 10)	/* less than half: room for the rest of the agent's work */
#define MESSAGE_MAX ((size_t)3 << 20)	/* a runtime splits a list below 4 MiB */

struct attack {
	char dir[64], socket[96];
	int listener;
	struct runtime_peer peer;
	pid_t agent;
};

#ifdef __SANITIZE_ADDRESS__
static const bool is_sanitized = true;
#else
static const bool is_sanitized;
#endif

static void start_agent(struct attack *t)
{
	const char *program = getenv("PINFOLD");
	char run_dir[96];

	(void)snprintf(run_dir, sizeof(run_dir), "%s/run", t->dir);
	t->agent = fork();
	CHECK(t->agent >= 0);
	if (t->agent > 0)
		return;
	if (!is_sanitized) /* the shadow memory alone is more */
		(void)setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_LIMIT, MEMORY_LIMIT });
	if (!program)
		_exit(126);
	(void)execl(program, "pinfold", "agent", "--management", "0", "--run-dir", run_dir,
		    "--nri-socket", t->socket, "--kubelet-state", "/nonexistent", "--log-level",
		    "error",
		    /* Last, so that it may be absent. The leak check traces the process. */
		    is_sanitized ? "--no-confinement" : (char *)NULL, (char *)NULL);
	_exit(127);
}

static void attack_start(struct attack *t)
{
	if (getenv("MESON_EXE_WRAPPER"))
		TEST_SKIP("the limit of memory is too small for an emulator");
	*t = (struct attack){ .dir = "/tmp/attack-sync-XXXXXX" };
	CHECK(mkdtemp(t->dir) != NULL);
	(void)snprintf(t->socket, sizeof(t->socket), "%s/nri.sock", t->dir);
	t->listener = runtime_peer_listen(t->socket);
	start_agent(t);
	runtime_peer_accept(&t->peer, t->listener, "attacked");
}

/* Not ru_maxrss, which includes the time before exec: the memory of this process. */
static long peak_kib(pid_t pid)
{
	char path[64], line[256];
	long peak = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			peak = strtol(line + 6, NULL, 10);
	(void)fclose(f);
	return peak;
}

/* The agent is alive, and its peak is what it may be. */
static void attack_end(struct attack *t)
{
	char command[128];
	long peak;
	int status;

	CHECK(waitpid(t->agent, &status, WNOHANG) == 0);
	peak = peak_kib(t->agent);
	CHECK(kill(t->agent, SIGTERM) == 0);
	CHECK(waitpid(t->agent, &status, 0) == t->agent);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	TEST_ROW("peak %ld KiB", peak);
	CHECK(peak > 0);
#ifndef __SANITIZE_ADDRESS__
	CHECK(peak < PEAK_LIMIT_KIB);
#endif
	(void)close(t->peer.fd);
	(void)close(t->listener);
	runtime_peer_done(&t->peer);
	(void)snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	CHECK(system(command) == 0);
}

/* A pod with one container. Management pods are static ones, which need no permission. */
struct box {
	char id[32];
	struct nri_pod_linux pod_linux;
	struct nri_cpu cpu;
	struct nri_resources resources;
	struct nri_container_linux on_linux;
	struct nri_pod pod;
	struct nri_container container;
};

static struct nri_pair managed[] = {
	{ NAME_TARGET_PREFIX "management", "{\"effect\":\"PreferredDuringScheduling\"}" },
	{ NAME_CONFIG_SOURCE, "file" },
	{ NAME_RESOURCES_PREFIX "c", "{\"cpushares\":20}" },
};

static struct box *box_new(struct arena *a, unsigned n)
{
	struct box *b = arena_new(a, struct box);

	(void)snprintf(b->id, sizeof(b->id), "pod-%u", n);
	b->pod_linux = (struct nri_pod_linux){ .cgroup_parent = "/kubepods/burstable/pod",
					       .cgroups_path = "" };
	b->cpu = (struct nri_cpu){ .has_shares = true, .shares = 2, .cpus = "", .mems = "" };
	b->resources.cpu = &b->cpu;
	b->on_linux = (struct nri_container_linux){ &b->resources, "" };
	b->pod = (struct nri_pod){ .id = b->id,
				   .name = b->id,
				   .uid = b->id,
				   .pod_namespace = "ns",
				   .on_linux = &b->pod_linux };
	b->container = (struct nri_container){ .id = b->id,
					       .pod_id = b->id,
					       .name = "c",
					       .state = NRI_RUNNING,
					       .on_linux = &b->on_linux };
	return b;
}

static struct ttrpc_response synchronize_one(struct attack *t, const struct box *b, bool more)
{
	const struct nri_sync part = { .pods = (struct nri_pod *)&b->pod,
				       .n_pods = 1,
				       .containers = (struct nri_container *)&b->container,
				       .n_containers = 1,
				       .more = more };
	struct str payload = runtime_peer_encode(&t->peer, &nri_sync_message, &part);
	struct ttrpc_response response;

	CHECK(payload.n < MESSAGE_MAX);
	(void)runtime_peer_time_call(&t->peer, "Synchronize", payload, &response);
	return response;
}

static struct nri_response decoded(struct ttrpc_response r, const struct pb_message *m,
				   struct arena *a)
{
	struct nri_response response = { 0 };
	struct err err = { 0 };

	TEST_ROW("%s", r.status ? r.status->message : "no status");
	CHECK(!r.status);
	CHECK_OK(pb_decode(m, r.payload, a, &response, &err));
	return response;
}

/* The last pod of the list, and one that is created, are ordinary management pods: both are pinned.
 */
static void check_that_the_agent_pins(struct attack *t)
{
	struct box *last = box_new(&t->peer.a, 10000), *created = box_new(&t->peer.a, 10001);
	struct nri_call call = { .pod = &created->pod, .container = &created->container };
	struct nri_response response;
	struct ttrpc_response created_response;
	size_t i = 0;

	last->pod.annotations = created->pod.annotations = managed;
	last->pod.n_annotations = created->pod.n_annotations = 3;
	response = decoded(synchronize_one(t, last, false), &nri_updated_message, &t->peer.a);
	CHECK(!response.more);
	while (i < response.n_updates && strcmp(response.updates[i].container_id, last->id) != 0)
		i++;
	if (i < response.n_updates) /* the agent limits the number of updates */
		CHECK_STR(response.updates[i].on_linux->resources->cpu->cpus, "0");
	created->container.state = NRI_CREATED;
	(void)runtime_peer_time_call(&t->peer, "CreateContainer",
				     runtime_peer_encode(&t->peer, &nri_call_message, &call),
				     &created_response);
	response = decoded(created_response, &nri_created_message, &t->peer.a);
	CHECK(response.adjustment);
	CHECK_STR(response.adjustment->on_linux->resources->cpu->cpus, "0");
	CHECK_UINT(response.adjustment->on_linux->resources->cpu->shares, 20);
}

/* `n` pods, each with `n_pairs` labels or annotations of which each value has `bytes` bytes. */
static void list_pods(struct attack *t, unsigned n, bool are_labels, const char *key,
		      size_t n_pairs, size_t bytes)
{
	for (unsigned i = 0; i < n; i++) {
		struct box *b = box_new(&t->peer.a, i);
		struct nri_pair *pairs = arena_array(&t->peer.a, struct nri_pair, n_pairs);
		char *value = arena_alloc(&t->peer.a, bytes + 1, 1);

		memset(value, 'x', bytes);
		value[bytes] = 0;
		for (size_t k = 0; k < n_pairs; k++)
			pairs[k] = (struct nri_pair){
				str_cstr(&t->peer.a, str_printf(&t->peer.a, "%s%zu", key, k)), value
			};
		if (are_labels) {
			b->pod.labels = b->container.labels = pairs;
			b->pod.n_labels = b->container.n_labels = n_pairs;
		} else {
			b->pod.annotations = pairs;
			b->pod.n_annotations = n_pairs;
		}
		CHECK(decoded(synchronize_one(t, b, true), &nri_updated_message, &t->peer.a).more);
		arena_reset(&t->peer.a);
	}
}

TEST(attack_a_megabyte_of_labels_per_pod_does_not_keep_the_agent_from_synchronizing)
{
	struct attack t;

	attack_start(&t);
	list_pods(&t, 110, true, "example.com/some-label-of-a-tenant-", 10000, 63);
	check_that_the_agent_pins(&t);
	attack_end(&t);
}

TEST(attack_long_annotations_do_not_keep_the_agent_from_synchronizing)
{
	struct attack t;

	attack_start(&t);
	list_pods(&t, 250, false, "example.com/notes-", 1, 250000);
	check_that_the_agent_pins(&t);
	attack_end(&t);
}

/* The names that the agent reads are no way around it. */
TEST(attack_long_annotations_with_the_agents_own_names_are_dropped)
{
	static const struct {
		const char *key;
		size_t n, bytes;
	} rows[] = {
		{ NAME_RESOURCES_PREFIX "c", 1, 250000 },
		{ NAME_RESOURCES_PREFIX "c", 6000, 8 },
		{ NAME_RESOURCES_PREFIX "c", 8, 30000 },
		{ NAME_TARGET_PREFIX "management", 1, 250000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct attack t;

		attack_start(&t);
		list_pods(&t, 250, false, rows[i].key, rows[i].n, rows[i].bytes);
		check_that_the_agent_pins(&t);
		attack_end(&t);
	}
}

/* Where the text has "NUL", the message has the byte. */
static struct str with_nul(struct str bytes)
{
	char *at;

	while ((at = memmem(bytes.p, bytes.n, "NUL", 3)))
		memcpy(at, (char[]){ 0, 0, 0 }, 3);
	return bytes;
}

TEST(attack_a_nul_in_an_annotation_does_not_keep_the_agent_from_synchronizing)
{
	static struct nri_pair rows[] = {
		{ "example.com/notes", "NUL" },
		{ NAME_RESOURCES_PREFIX "c", "{}NUL" },
		{ NAME_TARGET_PREFIX "managementNUL", "x" },
	};
	struct attack t;

	attack_start(&t);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct box *b = box_new(&t.peer.a, i);
		const struct nri_sync part = { .pods = &b->pod,
					       .n_pods = 1,
					       .containers = &b->container,
					       .n_containers = 1,
					       .more = true };
		struct ttrpc_response response;

		b->pod.annotations = &rows[i];
		b->pod.n_annotations = 1;
		(void)runtime_peer_time_call(
			&t.peer, "Synchronize",
			with_nul(runtime_peer_encode(&t.peer, &nri_sync_message, &part)),
			&response);
		CHECK(decoded(response, &nri_updated_message, &t.peer.a).more);
	}
	check_that_the_agent_pins(&t);
	attack_end(&t);
}

/* The pod is a management pod, but for what it has beside its annotations. */
TEST(attack_annotations_beyond_the_limit_gain_nothing)
{
	static const struct {
		const char *what;
		size_t bytes;
		const char *key, *cpus;
	} rows[] = {
		{ "nothing", 1, "example.com/notes", "0" },
		{ "an annotation that the agent does not read", 100000, "example.com/notes", "0" },
		{ "one that it reads", 20000, NAME_RESOURCES_PREFIX "other", "0" },
		{ "one that is too large", 40000, NAME_RESOURCES_PREFIX "other", NULL },
	};
	struct attack t;

	attack_start(&t);
	(void)synchronize_one(&t, box_new(&t.peer.a, 0), false);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct box *b = box_new(&t.peer.a, 1 + i);
		struct nri_pair pairs[4] = { managed[0], managed[1], managed[2] };
		const struct nri_call call = { .pod = &b->pod, .container = &b->container };
		char *value = arena_zalloc(&t.peer.a, rows[i].bytes + 1, 1);
		const struct nri_adjustment *adjustment;
		struct ttrpc_response response;

		memset(value, ' ', rows[i].bytes);
		pairs[3] = (struct nri_pair){ rows[i].key, value };
		b->pod.annotations = pairs;
		b->pod.n_annotations = 4;
		(void)runtime_peer_time_call(&t.peer, "CreateContainer",
					     runtime_peer_encode(&t.peer, &nri_call_message, &call),
					     &response);
		adjustment = decoded(response, &nri_created_message, &t.peer.a).adjustment;
		TEST_ROW("%s", rows[i].what);
		CHECK(adjustment != NULL);
		if (rows[i].cpus)
			CHECK_STR(adjustment->on_linux->resources->cpu->cpus, rows[i].cpus);
		else
			CHECK(strcmp(adjustment->on_linux->resources->cpu->cpus, "0") != 0);
	}
	attack_end(&t);
}
