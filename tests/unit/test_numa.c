/* NUMA policies in the agent, from the runtime's request to the reply: which nodes a container's
 * CPUs and memory come from. The decision itself is in test_ledger.c. */

#include "agent/device_watch.h"
#include "agent_node.h"
#include "pin/event_queue.h"

TEST(exclusive_cpus_come_from_as_few_numa_nodes_as_possible)
{
	CLEANUP(node_done) struct node n;
	struct box a, b;
	struct ttrpc_response r;

	/* CPU 3 is on node 0, 6-7 are on node 1. */
	node_init_on(&n, "numa:2 core:4 pu:1", "0-2", "4-5", "3,6-7");
	box_init(&a, "a", "", 2048, 200000);
	CHECK_STR(create(&n, &a).cpus, "6-7");
	CHECK(!ask(&n, "RemovePodSandbox", &a, NULL).status);
	n.ledger.now.config.topology.policy = HINT_POLICY_SINGLE_NUMA_NODE;
	box_init(&b, "b", "", 3072, 300000);
	r = ask(&n, "CreateContainer", &b, NULL);
	CHECK(r.status != NULL);
	CHECK_STR(r.status->message,
		  "pinfold: ns/b, container c: TopologyAffinityError: Resources cannot be "
		  "allocated with Topology locality: policy single-numa-node, scope container, 3 "
		  "CPUs; free CPUs: 1 on node 0, 2 on node 1");
}

TEST(refused_container_is_in_the_status_and_in_an_event_until_it_is_created)
{
	CLEANUP(node_done) struct node n;
	struct event_queue events;
	yyjson_val *refused;
	struct str text;
	struct err err = { 0 };
	struct doc doc;
	struct box b;

	node_init_on(&n, "numa:2 core:4 pu:1", "0-2", "4-5", "3,6-7");
	event_queue_init(&events);
	n.manager.events = &events;
	n.ledger.now.config.topology.policy = HINT_POLICY_SINGLE_NUMA_NODE;
	box_init(&b, "b", "", 3072, 300000);
	for (int i = 0; i < 2; i++) /* the kubelet tries again */
		CHECK(ask(&n, "CreateContainer", &b, NULL).status);
	CHECK_STR(event_reason(events.items[0].kind), "TopologyAffinityError");
	CHECK_UINT(events.items[0].count, 2);
	CHECK_OK(doc_write(status_describe(&n.manager, doc_build(&n.a), &n.a), false, &n.a, &text,
			   &err));
	CHECK_OK(doc_parse(text, STR("status"), NULL, &n.a, &doc, &err));
	refused = doc_get(doc.root, STR("refused"));
	CHECK_UINT(yyjson_arr_size(refused), 1);
	CHECK_STR(doc_str(doc_find(refused, "/0/pod")), "b");
	CHECK_STR(doc_str(doc_find(refused, "/0/reason")), "TopologyAffinityError");
	CHECK_STR(doc_str(doc_get(doc.root, STR("topologyPolicy"))), "single-numa-node");
	n.ledger.now.config.topology.policy = HINT_POLICY_BEST_EFFORT;
	CHECK_STR(create(&n, &b).cpus, "3,6-7");
	CHECK_UINT(n.manager.refusals.n, 0);
	event_queue_done(&events);
}

TEST(memory_nodes_are_set_and_restored_with_policies_that_refuse)
{
	CLEANUP(node_done) struct node n;
	struct nri_cpu cpu;
	struct box a, b, c;

	node_init_on(&n, "numa:2 core:4 pu:1", "0", "1,4", "2-3,5-7");
	box_init(&a, "a", "", 2048, 200000);
	CHECK_STR(create(&n, &a).mems, ""); /* best-effort */
	n.ledger.now.config.topology.policy = HINT_POLICY_RESTRICTED;
	box_init(&b, "b", "", 2048, 200000);
	cpu = create(&n, &b);
	CHECK_STR(cpu.cpus, "5-6");
	CHECK_STR(cpu.mems, "1");
	make_cgroup(&n, b.cgroup + 1, "5-6");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.mems"), "1");
	write_at(&n, b.cgroup + 1, "cpuset.mems", "0-1");
	manager_reconcile(&n.manager, 2);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.mems"), "1");
	CHECK_UINT(n.manager.counters.drift_corrected, 1);
	/* The kubelet's memory manager has chosen: the CPUs follow, its nodes stay. */
	CHECK(!ask(&n, "RemovePodSandbox", &a, NULL).status);
	box_init(&c, "c", "", 1024, 100000);
	c.cpu.mems = "1";
	cpu = create(&n, &c);
	CHECK_STR(cpu.cpus, "7");
	CHECK_STR(cpu.mems, "");
}

static uint64_t device_nodes(const void *data, const struct nri_pod *pod, const char *container)
{
	(void)pod;
	return container ? *(const uint64_t *)data : 3;
}

TEST(cpus_are_on_the_nodes_of_the_devices)
{
	CLEANUP(node_done) struct node n;
	uint64_t nodes = 2;
	struct box a, b;

	node_init_on(&n, "numa:2 core:4 pu:1", "0", "1,4", "2-3,5-7");
	n.manager.devices = (struct manager_devices){ .nodes = device_nodes, .data = &nodes };
	box_init(&a, "a", "", 2048, 200000);
	CHECK_STR(create(&n, &a).cpus, "5-6"); /* node 0 without the device */
	n.ledger.now.config.topology.policy = HINT_POLICY_SINGLE_NUMA_NODE;
	box_init(&b, "b", "", 2048, 200000);
	CHECK(strstr(ask(&n, "CreateContainer", &b, NULL).status->message, "; devices on node 1"));
}

/* Pod ns/a with container c: a device on node 1, one on nodes 0 and 1, one without nodes. */
TEST(nodes_of_devices_are_read_from_the_kubelet)
{
	static const char response[] = "\x0a\x2a" /* pods */
				       "\x0a\x01"
				       "a"
				       "\x12\x02"
				       "ns"
				       "\x1a\x21"
				       "\x0a\x01"
				       "c" /* containers */
				       "\x12\x0d"
				       "\x0a\x05"
				       "x.y/z"
				       "\x1a\x04\x0a\x02\x08\x01" /* on node 1 */
				       "\x12\x07"
				       "\x0a\x05"
				       "x.y/w" /* without a topology */
				       "\x12\x04"
				       "\x1a\x02\x0a\x00"; /* on node 0, which is not encoded */
	CLEANUP(node_done) struct node n;
	struct device_watch w = { 0 };
	struct nri_pod pod = { .name = "a", .pod_namespace = "ns" };

	node_init(&n, "0-1", "2-3", "4-7");
	device_watch_init(&w, NULL, NULL, &n.manager);
	CHECK(!n.manager.devices.nodes);
	device_watch_read(&w, (struct str){ response, sizeof(response) - 1 });
	CHECK_UINT(w.n, 1);
	CHECK_STR(w.items[0].container, "c");
	CHECK_STR(w.items[0].pod, pod.name);
	CHECK_STR(w.items[0].namespace, pod.pod_namespace);
	CHECK_UINT(w.items[0].mask, 3);
	device_watch_read(&w, STR("\xff")); /* what was known stays */
	CHECK_UINT(w.n, 1);
	device_watch_done(&w);
}

#define STAMP                                                                                      \
	"{\"c\":{\"kind\":\"app\",\"milli\":1000,\"pool\":\"guaranteed\"},"                        \
	"\"d\":{\"kind\":\"app\",\"milli\":2000,\"pool\":\"guaranteed\"}}"

/* Adds a stamp and the kubelet's sum to a pod. */
static void box_stamp(struct box *b, struct nri_resources *sum, struct nri_cpu *cpu, int64_t milli)
{
	b->annotations[0] = (struct nri_pair){ "pinfold.io/cpus", STAMP };
	b->pod.n_annotations = 1;
	*cpu = (struct nri_cpu){ .has_shares = true, .shares = (uint64_t)milli * 1024 / 1000 };
	*sum = (struct nri_resources){ .cpu = cpu };
	b->pod_linux.pod_resources = milli ? sum : NULL;
}

TEST(in_pod_scope_the_stamp_says_what_the_pod_needs)
{
	static const struct {
		int64_t sum_milli;
		const char *first;
		size_t n_assigned;
	} rows[] = {
		{ 3000, "5", 2 }, /* both at once, on node 1 */
		{ 3500, "5", 2 }, /* a third container is in the shared pool */
		{ 0, "5", 1 },	  /* the runtime has no sum: nothing is reserved */
		{ 2000, "5", 1 }, /* the stamp is forged */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(node_done) struct node n;
		struct nri_resources sum;
		struct nri_cpu cpu;
		struct box b;

		TEST_ROW("%lld", (long long)rows[i].sum_milli);
		node_init_on(&n, "numa:2 core:4 pu:1", "0", "1,4", "2-3,5-7");
		n.ledger.now.config.topology =
			(struct hint_config){ .policy = HINT_POLICY_SINGLE_NUMA_NODE,
					      .scope = HINT_SCOPE_POD };
		box_init(&b, "b", "", 1024, 100000);
		box_stamp(&b, &sum, &cpu, rows[i].sum_milli);
		CHECK_STR(create(&n, &b).cpus, rows[i].first);
		CHECK_UINT(n.ledger.n, rows[i].n_assigned);
		b.container.id = "d";
		b.container.name = "d";
		b.cpu.shares = 2048;
		b.cpu.quota_us = 200000;
		CHECK_STR(create(&n, &b).cpus, "6-7");
		CHECK(!ask(&n, "RemovePodSandbox", &b, NULL).status);
		CHECK_UINT(n.ledger.n, 0);
	}
}

TEST(container_whose_stamp_is_wrong_does_not_get_what_was_reserved_by_it)
{
	CLEANUP(node_done) struct node n;
	struct nri_resources sum;
	struct nri_cpu cpu;
	struct box b;

	node_init_on(&n, "numa:2 core:4 pu:1", "0", "1,4", "2-3,5-7");
	n.ledger.now.config.topology.scope = HINT_SCOPE_POD;
	box_init(&b, "b", "", 1024, 100000);
	box_stamp(&b, &sum, &cpu, 3000);
	CHECK_STR(create(&n, &b).cpus, "5");
	CHECK_UINT(n.ledger.n, 2);
	b.container.id = "d"; /* the stamp says two CPUs */
	b.container.name = "d";
	CHECK_STR(create(&n, &b).cpus, "6");
}

/* A pod whose containers have all ended, and a container that is restarted after the agent. */
TEST(pod_with_finished_containers_keeps_its_cpus_over_a_synchronization)
{
	CLEANUP(node_done) struct node n;
	struct nri_sync sync;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	CHECK_STR(create(&n, &b).cpus, "4-5");
	b.container.state = NRI_STOPPED;
	sync = (struct nri_sync){
		.pods = &b.pod, .n_pods = 1, .containers = &b.container, .n_containers = 1
	};
	CHECK(!synchronize(&n, &sync).status);
	CHECK_UINT(n.ledger.n, 1);
	CHECK(!ask(&n, "RemovePodSandbox", &b, NULL).status);
	CHECK_UINT(n.ledger.n, 0);
}

TEST(hotplug_does_not_widen_a_container_that_names_its_cpus)
{
	CLEANUP(node_done) struct node n;
	struct box all, one;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&all, "all", "burstable/", 2, 0);
	box_manage(&all, "{\"cpushares\":400}");
	box_init(&one, "one", "burstable/", 2, 0);
	box_manage(&one, "{\"cpushares\":400,\"cpuset\":\"1\"}");
	CHECK_STR(create(&n, &all).cpus, "0-1");
	CHECK_STR(create(&n, &one).cpus, "1");
	manager_repin(&n.manager);
	CHECK_STR(settings_cpus(&n, "all"), "0-1");
	CHECK_STR(settings_cpus(&n, "one"), "1");
	(void)cpuset_parse(STR("0,2-7"), &n.topology.online, NULL); /* CPU 1 is offline */
	manager_repin(&n.manager);
	CHECK_STR(settings_cpus(&n, "all"), "0");
	CHECK_STR(settings_cpus(&n, "one"), "1");
}
