/* The Manager between a runtime and a cgroup tree, both ours: whole stories, no socket. The tree is
 * a plain directory with the files of cgroup v2. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/manager.h"
#include "agent/report.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/doc.h"
#include "cpu/topology_read.h"
#include "nri_runtime.h"

struct node {
	struct arena a;
	char dir[64];
	struct cgroup_fs cgroups;
	struct topology topology;
	struct ledger ledger;
	struct manager manager;
	struct session session;
	uint32_t stream;
};

static void write_at(const struct node *n, const char *path, const char *file, const char *text)
{
	char full[512];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s/%s", n->dir, path, file);
	f = fopen(full, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

static const char *read_at(struct node *n, const char *path, const char *file)
{
	char full[512];
	struct err err = { 0 };
	struct str text;

	(void)snprintf(full, sizeof(full), "%s/%s/%s", n->dir, path, file);
	CHECK_OK(file_read_at(AT_FDCWD, full, 4096, &n->a, &text, &err));
	return str_cstr(&n->a, str_trim(text));
}

/* A cgroup as a runtime or a kubelet makes it. "effective" follows by itself only in a kernel. */
static void make_cgroup(struct node *n, const char *path, const char *cpus)
{
	char full[512];
	struct err err = { 0 };

	(void)snprintf(full, sizeof(full), "%s/%s", n->dir, path);
	CHECK_OK(file_mkdirs_at(AT_FDCWD, full, 0755, &err));
	write_at(n, path, "cpuset.cpus", cpus);
	write_at(n, path, "cpuset.cpus.effective", cpus);
	write_at(n, path, "cpu.weight", "1");
	write_at(n, path, "cpu.max", "max 100000");
	write_at(n, path, "cgroup.procs", "");
}

static void node_init(struct node *n, const char *reserved, const char *shared,
		      const char *guaranteed)
{
	struct pool_config pools;
	struct err err = { 0 };

	*n = (struct node){ .stream = 1 };
	arena_init(&n->a, 0);
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	(void)snprintf(n->dir, sizeof(n->dir), "/tmp/manager-test-XXXXXX");
	CHECK(mkdtemp(n->dir) != NULL);
	write_at(n, ".", "cgroup.controllers", "cpuset cpu\n");
	make_cgroup(n, ".", "0-7");
	CHECK_OK(cgroup_open(&n->cgroups, n->dir, &err));
	CHECK_OK(topology_parse_synthetic(STR("pack:1 core:4 pu:2"), &n->a, &n->topology, &err));
	pool_config_init(&pools);
	pools.is_classic = !shared;
	CHECK_OK(cpuset_parse(str_from(reserved), &pools.reserved, &err));
	CHECK_OK(cpuset_parse(str_from(shared), &pools.shared, &err));
	CHECK_OK(cpuset_parse(str_from(guaranteed), &pools.guaranteed, &err));
	CHECK_OK(ledger_init(&n->ledger, &n->topology, &pools, &err));
	manager_init(&n->manager, &n->ledger, &n->cgroups);
	session_init(&n->session, &manager_handlers, &n->manager);
	n->session.name = "pinfold";
	n->session.index = "90";
	session_start(&n->session);
	(void)runtime_take(&n->session, MUX_CONN_RUNTIME, &n->a);
}

static void node_done(struct node *n)
{
	char command[128];

	session_done(&n->session);
	manager_done(&n->manager);
	ledger_done(&n->ledger);
	cgroup_done(&n->cgroups);
	(void)snprintf(command, sizeof(command), "rm -rf %s", n->dir);
	CHECK(system(command) == 0);
	arena_done(&n->a);
}

/* One container in a pod of its own. */
struct box {
	struct nri_pod_linux pod_linux;
	struct nri_pair annotations[2];
	struct nri_pod pod;
	struct nri_cpu cpu;
	struct nri_resources resources;
	struct nri_container_linux on_linux;
	struct nri_container container;
	char pod_cgroup[64], cgroup[96], pause[96];
};

static void box_init(struct box *b, const char *name, const char *class, uint64_t shares,
		     int64_t quota_us)
{
	*b = (struct box){ 0 };
	(void)snprintf(b->pod_cgroup, sizeof(b->pod_cgroup), "kubepods/%spod-%s", class, name);
	(void)snprintf(b->cgroup, sizeof(b->cgroup), "/%s/%s", b->pod_cgroup, name);
	(void)snprintf(b->pause, sizeof(b->pause), "/%s/pause", b->pod_cgroup);
	b->pod_linux =
		(struct nri_pod_linux){ .cgroup_parent = b->pod_cgroup, .cgroups_path = b->pause };
	b->pod = (struct nri_pod){ .id = name,
				   .name = name,
				   .uid = name,
				   .pod_namespace = "ns",
				   .annotations = b->annotations,
				   .on_linux = &b->pod_linux };
	b->cpu = (struct nri_cpu){ .has_shares = true,
				   .shares = shares,
				   .has_quota = quota_us != 0,
				   .quota_us = quota_us,
				   .has_period = true,
				   .period_us = 100000 };
	b->resources.cpu = &b->cpu;
	b->on_linux = (struct nri_container_linux){ .resources = &b->resources,
						    .cgroups_path = b->cgroup };
	b->container = (struct nri_container){ .id = name,
					       .pod_id = name,
					       .name = "c",
					       .state = NRI_RUNNING,
					       .on_linux = &b->on_linux };
}

static void box_manage(struct box *b, const char *own)
{
	b->annotations[0] = (struct nri_pair){ "target.workload.openshift.io/management", "{}" };
	b->annotations[1] = (struct nri_pair){ "resources.workload.openshift.io/c", own };
	b->pod.n_annotations = 2;
}

static struct ttrpc_response ask(struct node *n, const char *method, const struct box *b,
				 struct nri_cpu *requested)
{
	struct nri_resources resources = { .cpu = requested };
	struct nri_call call = { .pod = (struct nri_pod *)&b->pod,
				 .container = (struct nri_container *)&b->container,
				 .resources = requested ? &resources : NULL };
	const struct str payload = runtime_encode(&nri_call_message, &call, &n->a);
	struct err err = { 0 };

	n->stream += 2;
	CHECK_OK(session_feed(&n->session, runtime_request(method, n->stream, payload, &n->a),
			      &err));
	manager_settle(&n->manager);
	return runtime_response(&n->session, n->stream, &n->a);
}

/* The CPU part of an answer; all empty when there is none. */
static struct nri_cpu answer_cpu(struct node *n, const struct ttrpc_response *r,
				 const struct pb_message *m)
{
	struct nri_answer answer = { 0 };
	struct err err = { 0 };
	struct nri_resources *resources = NULL;

	CHECK(!r->status);
	CHECK_OK(pb_decode(m, r->payload, &n->a, &answer, &err));
	if (answer.adjustment)
		resources = answer.adjustment->on_linux->resources;
	else if (answer.n_updates == 1)
		resources = answer.updates[0].on_linux->resources;
	return resources ? *resources->cpu : (struct nri_cpu){ .cpus = "" };
}

static struct nri_cpu create(struct node *n, const struct box *b)
{
	const struct ttrpc_response r = ask(n, "CreateContainer", b, NULL);

	return answer_cpu(n, &r, &nri_created_message);
}

TEST(each_container_goes_to_its_pool)
{
	CLEANUP(node_done) struct node n;
	struct box mgmt, share, alone;
	struct nri_cpu cpu;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&mgmt, "mgmt", "burstable/", 2, 0);
	box_manage(&mgmt, "{\"cpushares\":400,\"cpulimit\":500}");
	make_cgroup(&n, "kubepods/burstable/pod-mgmt", "0-7");
	make_cgroup(&n, "kubepods/burstable/pod-mgmt/pause", "0-7");
	CHECK(!ask(&n, "RunPodSandbox", &mgmt, NULL).status);
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt", "cpu.weight"), "16"); /* D13 */
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt/pause", "cpuset.cpus"), "0-1");
	cpu = create(&n, &mgmt);
	CHECK_STR(cpu.cpus, "0-1");
	CHECK_UINT(cpu.shares, 400);
	CHECK_INT(cpu.quota_us, 50000);

	box_init(&share, "share", "burstable/", 512, 0);
	cpu = create(&n, &share);
	CHECK_STR(cpu.cpus, "2-3");
	CHECK(!cpu.has_shares && !cpu.has_quota);

	box_init(&alone, "alone", "", 2048, 200000);
	make_cgroup(&n, "kubepods/pod-alone", "0-7");
	write_at(&n, "kubepods/pod-alone", "cpu.max", "200000 100000");
	cpu = create(&n, &alone);
	CHECK_STR(cpu.cpus, "4-5");
	CHECK(cpu.has_quota && !cpu.has_shares);
	CHECK_INT(cpu.quota_us, -1);
	CHECK_STR(read_at(&n, "kubepods/pod-alone", "cpu.max"), "max 100000");
	CHECK_UINT(n.manager.registry.n_containers, 3);
}

TEST(what_has_no_place_is_refused_and_says_so)
{
	CLEANUP(node_done) struct node n;
	struct box a, b, bad;
	struct ttrpc_response r;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&a, "a", "", 3072, 300000);
	CHECK_STR(create(&n, &a).cpus, "4-6");
	box_init(&b, "b", "", 2048, 200000);
	r = ask(&n, "CreateContainer", &b, NULL);
	CHECK(r.status != NULL);
	CHECK_STR(r.status->message,
		  "pinfold: ns/b, container c: not enough cpus available to satisfy request: "
		  "requested=2, available=1");
	box_init(&bad, "bad", "burstable/", 2, 0);
	box_manage(&bad, "{\"cpuset\":\"5\"}");
	r = ask(&n, "CreateContainer", &bad, NULL);
	CHECK_STR(r.status->message, "pinfold: ns/bad, container c: annotation cpuset \"5\" is not "
				     "within the reserved CPUs 0-1");
	CHECK_UINT(n.manager.counters.refused, 2);
	CHECK_UINT(n.manager.registry.n_containers, 1);

	/* The pod goes, its CPUs come back. */
	CHECK(!ask(&n, "RemovePodSandbox", &a, NULL).status);
	CHECK_STR(create(&n, &b).cpus, "4-5");
}

TEST(a_kubelet_cannot_undo_a_pin)
{
	CLEANUP(node_done) struct node n;
	struct nri_cpu reconcile = {
		.has_shares = true, .has_quota = true, .has_period = true, .cpus = "2-7"
	};
	struct nri_cpu memory_only = {
		.has_shares = true, .shares = 2, .has_period = true, .period_us = 100000
	};
	struct ttrpc_response r;
	struct box b;
	struct nri_cpu cpu;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 2, 0);
	box_manage(&b, "{\"cpushares\":400}");
	(void)create(&n, &b);
	r = ask(&n, "UpdateContainer", &b, &reconcile);
	cpu = answer_cpu(&n, &r, &nri_updated_message);
	CHECK_STR(cpu.cpus, "0-1");
	CHECK(!cpu.has_shares);
	r = ask(&n, "UpdateContainer", &b, &memory_only);
	cpu = answer_cpu(&n, &r, &nri_updated_message);
	CHECK_UINT(cpu.shares, 400);
	CHECK_UINT(n.manager.counters.reasserted, 2);
}

TEST(a_resize_that_would_change_whose_cpus_are_whose_is_refused)
{
	CLEANUP(node_done) struct node n;
	struct nri_cpu more = { .has_shares = true,
				.shares = 3072,
				.has_quota = true,
				.quota_us = 300000,
				.has_period = true,
				.period_us = 100000 };
	struct nri_cpu same = { .has_shares = true,
				.shares = 2048,
				.has_quota = true,
				.quota_us = 200000,
				.has_period = true,
				.period_us = 100000 };
	struct ttrpc_response r;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	(void)create(&n, &b);
	r = ask(&n, "UpdateContainer", &b, &more);
	CHECK(r.status != NULL);
	CHECK(strstr(r.status->message, "pinfold: ns/b, container c: ") == r.status->message);
	r = ask(&n, "UpdateContainer", &b, &same); /* the quota stays lifted */
	CHECK_INT(answer_cpu(&n, &r, &nri_updated_message).quota_us, -1);
}

TEST(what_started_without_us_is_repaired_at_synchronisation)
{
	CLEANUP(node_done) struct node n;
	struct box boxes[3];
	struct nri_pod pods[3];
	struct nri_container containers[3];
	struct nri_sync sync = {
		.pods = pods, .n_pods = 3, .containers = containers, .n_containers = 3
	};
	struct nri_answer answer = { 0 };
	struct err err = { 0 };
	struct ttrpc_response r;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&boxes[0], "mgmt", "burstable/", 2, 0);
	box_manage(&boxes[0], "{\"cpushares\":400}");
	box_init(&boxes[1], "share", "burstable/", 512, 0);
	box_init(&boxes[2], "alone", "", 2048, 200000);
	for (size_t i = 0; i < 3; i++) {
		make_cgroup(&n, boxes[i].pod_cgroup, "0-7");
		make_cgroup(&n, boxes[i].cgroup + 1, "0-7");
		write_at(&n, boxes[i].cgroup + 1, "cpu.max",
			 i == 2 ? "200000 100000" : "max 100000");
		pods[i] = boxes[i].pod;
		containers[i] = boxes[i].container;
	}
	CHECK_OK(session_feed(&n.session,
			      runtime_request("Synchronize", 3,
					      runtime_encode(&nri_sync_message, &sync, &n.a), &n.a),
			      &err));
	manager_settle(&n.manager);
	n.stream = 3;
	r = runtime_response(&n.session, 3, &n.a);
	CHECK(!r.status);
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt/mgmt", "cpuset.cpus"), "0-1");
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt/mgmt", "cpu.weight"), "49");
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-share/share", "cpuset.cpus"), "2-3");
	CHECK_STR(read_at(&n, "kubepods/pod-alone/alone", "cpuset.cpus"), "4-5");
	CHECK_STR(read_at(&n, "kubepods/pod-alone/alone", "cpu.max"), "max 100000");
	CHECK_UINT(n.manager.counters.missed, 3);
	/* The runtime's own record follows. */
	CHECK_OK(pb_decode(&nri_updated_message, r.payload, &n.a, &answer, &err));
	CHECK_UINT(answer.n_updates, 3);
	CHECK(answer.updates[0].ignore_failure);

	/* Again, with one pod gone: nothing to repair, and its CPUs are free. */
	for (size_t i = 0; i < 2; i++)
		write_at(&n, boxes[i].cgroup + 1, "cpuset.cpus.effective", i ? "2-3" : "0-1");
	sync.n_pods = sync.n_containers = 2;
	CHECK_OK(session_feed(&n.session,
			      runtime_request("Synchronize", 5,
					      runtime_encode(&nri_sync_message, &sync, &n.a), &n.a),
			      &err));
	n.stream = 5;
	CHECK(!runtime_response(&n.session, 5, &n.a).status);
	CHECK_UINT(n.manager.counters.missed, 3);
	CHECK_UINT(n.ledger.n, 0);
}

TEST(a_cgroup_that_somebody_changes_is_put_right)
{
	CLEANUP(node_done) struct node n;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 512, 0);
	(void)create(&n, &b);
	make_cgroup(&n, b.cgroup + 1, "0-7");
	manager_reassert(&n.manager, 1); /* not started: the runtime is still at it */
	CHECK_UINT(n.manager.counters.repaired, 0);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "2-3");
	write_at(&n, b.cgroup + 1, "cpuset.cpus.effective", "2-3");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	manager_reassert(&n.manager, 1);
	CHECK_UINT(n.manager.counters.repaired, 0);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reassert(&n.manager, 1);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_UINT(n.manager.counters.repaired, 1);
}

TEST(a_container_that_slipped_through_is_caught_when_it_has_started)
{
	CLEANUP(node_done) struct node n;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 512, 0);
	make_cgroup(&n, b.cgroup + 1, "0-7");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_UINT(n.manager.counters.missed, 1);
}

TEST(in_classic_mode_those_who_share_make_room_first)
{
	CLEANUP(node_done) struct node n;
	struct box share, alone, greedy;

	node_init(&n, "0-1", NULL, NULL);
	box_init(&share, "share", "burstable/", 512, 0);
	CHECK_STR(create(&n, &share).cpus, "2-7");
	make_cgroup(&n, share.cgroup + 1, "2-7");
	box_init(&alone, "alone", "", 2048, 200000);
	CHECK_STR(create(&n, &alone).cpus, "2-3");
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "4-7");
	/* Too much for what is left: nobody moves. */
	box_init(&greedy, "greedy", "", 8192, 800000);
	CHECK(ask(&n, "CreateContainer", &greedy, NULL).status != NULL);
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "4-7");
	CHECK(!ask(&n, "RemovePodSandbox", &alone, NULL).status);
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "2-7");
}

TEST(a_new_sandbox_of_the_same_pod_keeps_its_cpus)
{
	CLEANUP(node_done) struct node n;
	struct box first, second;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&first, "one", "", 2048, 200000);
	box_init(&second, "two", "", 2048, 200000);
	second.pod.uid = "one";
	CHECK_STR(create(&n, &first).cpus, "4-5");
	CHECK_STR(create(&n, &second).cpus, "4-5");
	CHECK(!ask(&n, "RemovePodSandbox", &first, NULL).status);
	CHECK_UINT(n.ledger.n, 1);
	CHECK(!ask(&n, "RemovePodSandbox", &second, NULL).status);
	CHECK_UINT(n.ledger.n, 0);
}

static void remove_cgroup(const struct node *n, const char *path)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "rm -r %s/%s", n->dir, path);
	CHECK(system(command) == 0);
}

/* A containerd that was restarted has forgotten that it must tell. */
TEST(a_pod_that_ends_without_a_word_gives_its_cpus_back)
{
	CLEANUP(node_done) struct node n;
	struct box first, second, third;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&first, "one", "", 2048, 200000);
	box_init(&second, "two", "", 2048, 200000);
	box_init(&third, "three", "", 2048, 200000);
	CHECK_STR(create(&n, &first).cpus, "4-5");
	CHECK_STR(create(&n, &second).cpus, "6-7");
	make_cgroup(&n, first.cgroup + 1, "4-5");
	manager_reassert(&n.manager, 2);
	CHECK(!ask(&n, "PostStartContainer", &first, NULL).status);
	CHECK(ask(&n, "CreateContainer", &third, NULL).status != NULL);
	/* Whose cgroup was never seen is not over, and who has not started may be about to. */
	remove_cgroup(&n, first.pod_cgroup);
	CHECK_STR(create(&n, &third).cpus, "4-5");
	CHECK_UINT(n.ledger.n, 2);
	CHECK_UINT(n.manager.registry.n_pods, 2);

	make_cgroup(&n, third.cgroup + 1, "4-5");
	manager_reassert(&n.manager, 2);
	CHECK(!ask(&n, "PostStartContainer", &third, NULL).status);
	remove_cgroup(&n, third.pod_cgroup);
	manager_reassert(&n.manager, 2);
	manager_reassert(&n.manager, 2);
	CHECK_UINT(n.ledger.n, 1);
}

TEST(the_status_tells_what_everybody_shall_have)
{
	CLEANUP(node_done) struct node n;
	struct err err = { 0 };
	struct str text;
	struct doc doc;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	(void)create(&n, &b);
	CHECK_OK(doc_write(report_status(&n.manager, doc_build(&n.a), &n.a), false, &n.a, &text,
			   &err));
	CHECK_OK(doc_parse(text, STR("status"), NULL, &n.a, &doc, &err));
	CHECK_STR(doc_str(doc_find(doc.root, "/mode")), "pools");
	CHECK_STR(doc_str(doc_find(doc.root, "/pools/guaranteed/free")), "6-7");
	CHECK_STR(doc_str(doc_find(doc.root, "/containers/0/cpus")), "4-5");
	CHECK_STR(doc_text(doc_find(doc.root, "/containers/0/quotaUs")), "-1");
	CHECK_STR(doc_str(doc_find(doc.root, "/pods/0/cgroup")), "kubepods/pod-b");
}
