/* The manager between a runtime and a cgroup tree that are the test's, without a socket. */

#include "agent_node.h"
#include "pin/event_queue.h"

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

TEST(each_workload_type_has_its_own_cpus)
{
	static const struct {
		const char *type, *own, *cpus;
	} rows[] = {
		{ "management", "{\"cpushares\":400}", "0-1" },
		{ "ran", "{\"cpushares\":400,\"cpulimit\":500}", "2-3" },
		{ "ran", "{\"cpuset\":\"3\"}", "3" },
		{ "infra", "{}", "1-2" },		   /* overlaps both */
		{ "other", "{\"cpushares\":400}", "4-5" }, /* not configured: shared */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct pod_entry *pod;
		CLEANUP(node_done) struct node n;
		char target[64], name[8];
		struct box b;

		TEST_ROW("%s %s", rows[i].type, rows[i].own);
		node_init(&n, "0-3", "4-5", "6-7");
		node_set_type(&n, "management", "0-1");
		node_set_type(&n, "ran", "2-3");
		node_set_type(&n, "infra", "1-2");
		(void)snprintf(name, sizeof(name), "b%zu", i);
		(void)snprintf(target, sizeof(target), "target.workload.openshift.io/%s",
			       rows[i].type);
		box_init(&b, name, "burstable/", 2, 0);
		box_manage(&b, rows[i].own);
		b.annotations[0].key = target;
		make_cgroup(&n, b.pod_cgroup, "");
		CHECK_STR(create(&n, &b).cpus, rows[i].cpus);
		pod = n.manager.registry.pods[0];
		CHECK_INT(pod->is_management, i < 4);
		if (i < 4)
			CHECK_STR(pod->type, rows[i].type);
		CHECK_UINT(pod->shares, i < 2 ? 400 : 0);
	}
}

TEST(an_annotation_cannot_name_cpus_of_another_workload_type)
{
	CLEANUP(node_done) struct node n;
	struct ttrpc_response r;
	struct box b;

	node_init(&n, "0-3", "4-5", "6-7");
	node_set_type(&n, "management", "0-1");
	box_init(&b, "b", "burstable/", 2, 0);
	box_manage(&b, "{\"cpuset\":\"2\"}");
	r = ask(&n, "CreateContainer", &b, NULL);
	CHECK(r.status && strstr(r.status->message,
				 "annotation cpuset \"2\" is not within the management CPUs 0-1"));
}

TEST(status_and_metrics_show_every_workload_type)
{
	CLEANUP(node_done) struct node n;
	struct strbuf metrics;
	struct err err = { 0 };
	struct str text;
	struct box b;

	node_init(&n, "0-3", "4-5", "6-7");
	node_set_type(&n, "ran", "2-3");
	box_init(&b, "b", "burstable/", 2, 0);
	box_manage(&b, "{\"cpushares\":400}");
	b.annotations[0].key = "target.workload.openshift.io/ran";
	(void)create(&n, &b);
	CHECK_OK(doc_write(status_describe(&n.manager, doc_build(&n.a), &n.a), false, &n.a, &text,
			   &err));
	CHECK(str_has(text, STR("\"workloadTypes\":{\"management\":{\"cpus\":\"0-3\",\"count\":4,"
				"\"containers\":0},\"ran\":{\"cpus\":\"2-3\",\"count\":2,"
				"\"containers\":1}}")));
	CHECK(str_has(text, STR("\"pool\":\"management\",\"type\":\"ran\"")));
	strbuf_init(&metrics, &n.a);
	status_metrics(&n.manager, &metrics);
	CHECK(str_has(strbuf_str(&metrics), STR("pinfold_workload_type_cpus{type=\"ran\"} 2\n")));
	CHECK(str_has(strbuf_str(&metrics),
		      STR("pinfold_workload_type_containers{type=\"ran\"} 1\n")));
}

TEST(equal_settings_are_stored_once)
{
	CLEANUP(node_done) struct node n;
	struct registry *r = &n.manager.registry;
	struct box boxes[6];
	char names[6][2] = { "a", "b", "c", "d", "e", "f" };

	node_init(&n, "0-1", NULL, "2-7");
	for (size_t i = 0; i < 5; i++) {
		box_init(&boxes[i], names[i], "burstable/", 512, 0);
		(void)create(&n, &boxes[i]);
	}
	CHECK_UINT(r->n_containers, 5);
	CHECK_UINT(r->n_settings, 1); /* a copy each would be 1 KiB per container */
	CHECK(registry_find(r, "a")->settings == registry_find(r, "e")->settings);
	box_init(&boxes[5], names[5], "", 2048, 200000);
	CHECK_STR(create(&n, &boxes[5]).cpus, "2-3"); /* the shared containers leave these CPUs */
	CHECK_STR(settings_cpus(&n, "a"), "4-7");
	CHECK_UINT(r->n_settings, 2);
	for (size_t i = 0; i < 6; i++)
		CHECK(!ask(&n, "RemovePodSandbox", &boxes[i], NULL).status);
	CHECK_UINT(r->n_settings, 0);
}

static enum permission permission_is_unknown(const void *data, struct str namespace,
					     struct str type)
{
	(void)data;
	(void)namespace;
	(void)type;
	return PERMISSION_UNKNOWN;
}

TEST(attack_a_forged_pod_gets_neither_management_cpus_nor_weight)
{
	static const struct {
		const char *what, *class, *own;
		uint64_t shares;
		int64_t quota_us;
	} rows[] = {
		{ "BestEffort", "besteffort/", "{\"cpushares\":262144}", 2, 0 },
		{ "Burstable, repeats its shares", "burstable/", "{\"cpushares\":4096}", 4096, 0 },
		{ "Burstable, repeats its limit", "burstable/",
		  "{\"cpushares\":4096,\"cpulimit\":4000}", 4096, 400000 },
		{ "names CPUs", "burstable/", "{\"cpuset\":\"0-1\",\"cpushares\":99}", 2, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nri_cpu cpu;
		struct node n;
		struct box b;

		TEST_ROW("%s", rows[i].what);
		node_init(&n, "0-1", "2-3", "4-7");
		n.manager.rules.permission = permission_is_unknown;
		box_init(&b, "evil", rows[i].class, rows[i].shares, rows[i].quota_us);
		box_manage(&b, rows[i].own);
		make_cgroup(&n, b.pod_cgroup, "");
		cpu = create(&n, &b);
		CHECK_STR(cpu.cpus, "2-3");
		CHECK(!cpu.has_shares && !cpu.has_quota);
		CHECK_STR(read_at(&n, b.pod_cgroup, "cpu.weight"), "1");
		CHECK_UINT(n.manager.counters.annotations_rejected, 1);
		node_done(&n);
	}
}

TEST(container_without_cpus_is_refused_with_a_reason)
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
				     "within the management CPUs 0-1");
	CHECK_UINT(n.manager.counters.refused, 2);
	CHECK_UINT(n.manager.registry.n_containers, 1);

	/* The CPUs of a removed pod are available again. */
	CHECK(!ask(&n, "RemovePodSandbox", &a, NULL).status);
	CHECK_STR(create(&n, &b).cpus, "4-5");
}

TEST(each_kind_of_event_is_queued_once_for_its_object)
{
	static const struct {
		enum event_kind kind;
		const char *pod, *text;
	} rows[] = {
		{ EVENT_ANNOTATION_REJECTED, "liar",
		  "container c: annotations rejected: it is not known whether its namespace allows "
		  "the workload type" },
		{ EVENT_CONTAINER_REFUSED, "big",
		  "container c: not enough cpus available to satisfy request: requested=8, "
		  "available=4" },
		{ EVENT_DRIFT_CORRECTED, "plain",
		  "container c: restored CPU settings changed externally, CPUs 2-3" },
		{ EVENT_RUNTIME_LOST, "", "lost the connection to the container runtime: gone" },
	};
	CLEANUP(node_done) struct node n;
	struct box plain, liar, big;
	struct event_queue events;

	node_init(&n, "0-1", "2-3", "4-7");
	event_queue_init(&events);
	n.manager.events = &events;
	box_init(&plain, "plain", "burstable/", 512, 0);
	(void)create(&n, &plain);
	CHECK_UINT(events.n, 0);
	box_init(&liar, "liar", "burstable/", 512, 0);
	box_manage(&liar, "{\"cpushares\":400}");
	n.manager.rules.permission = permission_is_unknown;
	CHECK_STR(create(&n, &liar).cpus, "2-3");
	box_init(&big, "big", "", 8192, 800000);
	CHECK(ask(&n, "CreateContainer", &big, NULL).status != NULL);
	make_cgroup(&n, plain.cgroup + 1, "2-3");
	CHECK(!ask(&n, "PostStartContainer", &plain, NULL).status);
	write_at(&n, plain.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 2);
	n.manager.runtime.is_connected = true;
	manager_handlers.disconnected(&n.manager, "gone");
	manager_handlers.disconnected(&n.manager, "still gone");
	CHECK_UINT(events.n, ARRAY_LEN(rows));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", event_reason(rows[i].kind));
		CHECK_INT(events.items[i].kind, rows[i].kind);
		CHECK_STR(events.items[i].pod, rows[i].pod);
		CHECK_STR(events.items[i].text, rows[i].text);
		CHECK_UINT(events.items[i].count, 1);
	}
	event_queue_done(&events);
}

TEST(update_by_the_kubelet_does_not_change_cpu_settings)
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
	cpu = response_cpu(&n, &r, &nri_updated_message);
	CHECK_STR(cpu.cpus, "0-1");
	CHECK(!cpu.has_shares);
	r = ask(&n, "UpdateContainer", &b, &memory_only);
	cpu = response_cpu(&n, &r, &nri_updated_message);
	CHECK_UINT(cpu.shares, 400);
	CHECK_UINT(n.manager.counters.updates_overridden, 2);
}

TEST(resize_that_would_change_exclusive_cpus_is_refused)
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
	CHECK_INT(response_cpu(&n, &r, &nri_updated_message).quota_us, -1);
}

/* The runtime waits for the reply with one timeout for the whole node. */
TEST(synchronization_replies_before_it_writes_cgroups)
{
	static const struct {
		const char *runtimes_cpus; /* of the exclusive container */
		const char *shared_after_reply;
	} rows[] = {
		{ "4-5", "0-7" }, /* it keeps its CPUs: nothing depends on the order */
		{ "0-7", "2-3" }, /* the runtime moves it: the shared container has left before */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(node_done) struct node n;
		struct box share, alone, created;
		struct nri_sync sync = { .n_pods = 2, .n_containers = 2 };

		TEST_ROW("%s", rows[i].runtimes_cpus);
		node_init(&n, "0-1", "2-3", "4-7");
		box_init(&share, "share", "burstable/", 512, 0);
		box_init(&alone, "alone", "", 2048, 200000);
		box_init(&created, "created", "", 2048, 200000);
		alone.cpu.cpus = rows[i].runtimes_cpus;
		make_cgroup(&n, share.cgroup + 1, "0-7");
		sync.pods = (struct nri_pod[]){ share.pod, alone.pod };
		sync.containers = (struct nri_container[]){ share.container, alone.container };
		CHECK(!synchronize(&n, &sync).status);
		CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), rows[i].shared_after_reply);
		/* The next request finds everything written, also when no flush came between. */
		CHECK_STR(create(&n, &created).cpus, "6-7");
		CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "2-3");
	}
}

TEST(synchronization_corrects_containers_started_without_the_agent)
{
	CLEANUP(node_done) struct node n;
	struct box boxes[3];
	struct nri_pod pods[3];
	struct nri_container containers[3];
	struct nri_sync sync = {
		.pods = pods, .n_pods = 3, .containers = containers, .n_containers = 3
	};
	struct nri_response response = { 0 };
	struct err err = { 0 };
	struct ttrpc_response r;
	int heard;

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
	r = synchronize(&n, &sync);
	manager_flush(&n.manager);
	CHECK(!r.status);
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt/mgmt", "cpuset.cpus"), "0-1");
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-mgmt/mgmt", "cpu.weight"), "49");
	CHECK_STR(read_at(&n, "kubepods/burstable/pod-share/share", "cpuset.cpus"), "2-3");
	CHECK_STR(read_at(&n, "kubepods/pod-alone/alone", "cpuset.cpus"), "4-5");
	CHECK_STR(read_at(&n, "kubepods/pod-alone/alone", "cpu.max"), "max 100000");
	CHECK_UINT(n.manager.counters.adopted_late, 3);
	/* The runtime's own record follows. */
	CHECK_OK(pb_decode(&nri_updated_message, r.payload, &n.a, &response, &err));
	CHECK_UINT(response.n_updates, 3);
	CHECK(response.updates[0].ignore_failure);

	/* Again, with one pod gone: nothing to repair, and its CPUs are free. What listens stays:
	 * there may be no other to be had. An inotify counts its watches from 1 and upwards. */
	heard = n.manager.registry.containers[n.manager.registry.n_containers - 1]->watch.cpuset;
	for (size_t i = 0; i < 2; i++)
		write_at(&n, boxes[i].cgroup + 1, "cpuset.cpus.effective", i ? "2-3" : "0-1");
	sync.n_pods = sync.n_containers = 2;
	CHECK(!synchronize(&n, &sync).status);
	manager_flush(&n.manager);
	CHECK_UINT(n.manager.counters.adopted_late, 3);
	CHECK_UINT(n.ledger.n, 0);
	CHECK(n.manager.registry.containers[0]->watch.cpuset > heard);
	write_at(&n, boxes[1].cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 0);
	CHECK_STR(read_at(&n, boxes[1].cgroup + 1, "cpuset.cpus"), "2-3");
}

/* It is in no list, and its creation was not reported. */
TEST(container_being_created_at_connection_is_pinned_before_it_starts)
{
	static const char *const events[] = { "PostCreateContainer", "StartContainer" };

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		CLEANUP(node_done) struct node n;
		struct box b, large;
		struct ttrpc_response r;

		TEST_ROW("%s", events[i]);
		node_init(&n, "0-1", "2-3", "4-7");
		box_init(&b, "b", "burstable/", 512, 0);
		make_cgroup(&n, b.cgroup + 1, "0-7");
		CHECK(!ask(&n, events[i], &b, NULL).status);
		CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
		CHECK_UINT(n.manager.counters.adopted_late, 1);

		/* Known by now: enforced, not adopted again. */
		write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
		CHECK(!ask(&n, "StartContainer", &b, NULL).status);
		CHECK_UINT(n.manager.counters.adopted_late, 1);
		CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");

		/* Without a place it does not begin. */
		box_init(&large, "large", "", 8192, 800000);
		r = ask(&n, events[i], &large, NULL);
		CHECK_INT(r.status != NULL, i == 1);
		CHECK_UINT(n.manager.counters.refused, i);

		/* CRI-O starts it all the same; then it does without. */
		make_cgroup(&n, large.cgroup + 1, "0-7");
		CHECK(!ask(&n, "PostStartContainer", &large, NULL).status);
		CHECK_STR(read_at(&n, large.cgroup + 1, "cpuset.cpus"), "2-3");
		CHECK_UINT(n.ledger.n, 0);
	}
}

/* Found by the model checker: the runtime writes the CPUs of the reply into a cgroup that did not
 * exist when they changed. */
TEST(cpus_assigned_after_the_reply_to_a_shared_container_are_left_before_it_starts)
{
	CLEANUP(node_done) struct node n;
	struct box shared, owner;
	struct nri_cpu cpu;

	node_init(&n, "0-1", NULL, NULL);
	box_init(&shared, "shared", "burstable/", 512, 0);
	box_init(&owner, "owner", "", 2048, 200000);
	cpu = create(&n, &shared);
	CHECK_STR(cpu.cpus, "2-7");
	CHECK_STR(create(&n, &owner).cpus, "2-3");
	make_cgroup(&n, shared.cgroup + 1, cpu.cpus);
	CHECK(!ask(&n, "StartContainer", &shared, NULL).status);
	CHECK_STR(read_at(&n, shared.cgroup + 1, "cpuset.cpus"), "4-7");
}

/* Found by the model checker: the runtime applies the updates of a synchronization after the reply,
 * and the pools may have been resized by then. */
TEST(update_that_the_runtime_applies_late_is_corrected_before_another_container_starts)
{
	CLEANUP(node_done) struct node n;
	struct box shared, owner;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&shared, "shared", "burstable/", 512, 0);
	box_init(&owner, "owner", "", 2048, 200000);
	(void)create(&n, &shared);
	make_cgroup(&n, shared.cgroup + 1, "2-3");
	CHECK(!ask(&n, "PostStartContainer", &shared, NULL).status);
	(void)create(&n, &owner);
	make_cgroup(&n, owner.cgroup + 1, "4-5");
	write_at(&n, shared.cgroup + 1, "cpuset.cpus", "2-5");
	CHECK(!ask(&n, "StartContainer", &owner, NULL).status);
	CHECK_STR(read_at(&n, shared.cgroup + 1, "cpuset.cpus"), "2-3");
}

static int refuse_to_persist(const struct ledger *l, void *data, struct err *err)
{
	const bool *fails = data;

	(void)l;
	return *fails ? err_set(err, ENOSPC, "no space left on device") : 0;
}

/* Found by the model checker: the CPUs stayed assigned until the next synchronization. */
TEST(cpus_are_released_later_when_the_ledger_cannot_be_written)
{
	CLEANUP(node_done) struct node n;
	struct box owner;
	bool fails = false;

	node_init(&n, "0-1", "2-3", "4-7");
	n.ledger.persist = refuse_to_persist;
	n.ledger.persist_data = &fails;
	box_init(&owner, "owner", "", 2048, 200000);
	(void)create(&n, &owner);
	fails = true;
	CHECK(!ask(&n, "RemovePodSandbox", &owner, NULL).status);
	manager_reconcile(&n.manager, 1);
	CHECK_UINT(n.ledger.n, 1);
	fails = false;
	manager_reconcile(&n.manager, 1);
	CHECK_UINT(n.ledger.n, 0);
}

/* Found by the model checker: the agent did not know the container, which ran on all CPUs. */
TEST(running_container_is_shared_while_the_ledger_cannot_be_written)
{
	CLEANUP(node_done) struct node n;
	struct nri_sync sync = { .n_pods = 1, .n_containers = 1 };
	struct box b;
	bool fails = true;

	node_init(&n, "0-1", "2-3", "4-7");
	n.ledger.persist = refuse_to_persist;
	n.ledger.persist_data = &fails;
	box_init(&b, "alone", "", 2048, 200000);
	make_cgroup(&n, b.pod_cgroup, "0-7");
	make_cgroup(&n, b.cgroup + 1, "0-7");
	sync.pods = &b.pod;
	sync.containers = &b.container;
	CHECK(!synchronize(&n, &sync).status);
	manager_flush(&n.manager);
	CHECK_UINT(n.manager.registry.n_containers, 1);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_UINT(n.ledger.n, 0);
}

TEST(container_that_was_missed_is_adopted_after_its_start)
{
	CLEANUP(node_done) struct node n;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 512, 0);
	make_cgroup(&n, b.cgroup + 1, "0-7");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_UINT(n.manager.counters.adopted_late, 1);
}

TEST(classic_mode_moves_shared_containers_before_assigning_cpus)
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
	/* More than is free: no container moves. */
	box_init(&greedy, "greedy", "", 8192, 800000);
	CHECK(ask(&n, "CreateContainer", &greedy, NULL).status != NULL);
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "4-7");
	CHECK(!ask(&n, "RemovePodSandbox", &alone, NULL).status);
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "2-7");
}

/* D23: as on a kubelet, whose shared containers may always use the reserved CPUs. */
TEST(shared_containers_use_management_cpus_while_all_others_are_exclusive)
{
	static const char text[] =
		"no CPU of the shared pool is left, its containers use management CPUs 0-1";
	CLEANUP(node_done) struct node n;
	struct box share, alone;
	struct event_queue events;
	struct cpuset cpus;

	node_init(&n, "0-1", NULL, NULL);
	event_queue_init(&events);
	n.manager.events = &events;
	box_init(&share, "share", "burstable/", 512, 0);
	CHECK_STR(create(&n, &share).cpus, "2-7");
	make_cgroup(&n, share.cgroup + 1, "2-7");
	manager_reconcile(&n.manager, 1);
	CHECK(!manager_shared_is_empty(&n.manager, &cpus));
	CHECK_UINT(events.n, 0);
	box_init(&alone, "alone", "", 6144, 600000);
	CHECK_STR(create(&n, &alone).cpus, "2-7");
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "0-1");
	CHECK(manager_shared_is_empty(&n.manager, &cpus));
	manager_reconcile(&n.manager, 1);
	manager_reconcile(&n.manager, 1);
	CHECK_UINT(events.n, 1);
	CHECK_STR(event_reason(events.items[0].kind), "SharedPoolEmpty");
	CHECK_STR(events.items[0].text, text);
	CHECK_UINT(events.items[0].count, 1);
	CHECK(!ask(&n, "RemovePodSandbox", &alone, NULL).status);
	CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "2-7");
	manager_reconcile(&n.manager, 1);
	CHECK(!n.manager.reported_shared_empty);
	CHECK_UINT(events.n, 1);
	event_queue_done(&events);
}

/* A node without a profile. */
TEST(management_containers_without_cpus_of_their_own_leave_exclusive_ones)
{
	CLEANUP(node_done) struct node n;
	struct box platform, alone;

	node_init(&n, "", NULL, NULL);
	box_init(&platform, "platform", "burstable/", 512, 0);
	box_manage(&platform, "{\"cpushares\":400}");
	CHECK_STR(create(&n, &platform).cpus, "0-7");
	make_cgroup(&n, platform.cgroup + 1, "0-7");
	box_init(&alone, "alone", "", 2048, 200000);
	CHECK_STR(create(&n, &alone).cpus, "0-1");
	CHECK_STR(read_at(&n, platform.cgroup + 1, "cpuset.cpus"), "2-7");
	CHECK(!ask(&n, "RemovePodSandbox", &alone, NULL).status);
	CHECK_STR(read_at(&n, platform.cgroup + 1, "cpuset.cpus"), "0-7");
	CHECK_UINT(n.manager.counters.drift_corrected, 0);
}

TEST(the_last_cpu_of_a_node_without_management_cpus_is_not_assigned)
{
	CLEANUP(node_done) struct node n;
	struct box all, most;
	struct ttrpc_response r;

	node_init(&n, "", NULL, NULL);
	box_init(&all, "all", "", 8192, 800000);
	r = ask(&n, "CreateContainer", &all, NULL);
	CHECK(r.status != NULL);
	CHECK_STR(r.status->message, "pinfold: ns/all, container c: it would own every CPU, and no "
				     "CPU is left for other containers");
	box_init(&most, "most", "", 7168, 700000);
	CHECK_STR(create(&n, &most).cpus, "0-6");
}

TEST(new_sandbox_of_the_same_pod_keeps_its_cpus)
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

/* A restarted containerd sends no event for the removal of older pods. */
TEST(cpus_of_a_vanished_pod_are_released)
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
	manager_reconcile(&n.manager, 2);
	CHECK(!ask(&n, "PostStartContainer", &first, NULL).status);
	CHECK(ask(&n, "CreateContainer", &third, NULL).status != NULL);
	/* Whose cgroup was never seen is not over, and who has not started may be about to. */
	remove_cgroup(&n, first.pod_cgroup);
	CHECK_STR(create(&n, &third).cpus, "4-5");
	CHECK_UINT(n.ledger.n, 2);
	CHECK_UINT(n.manager.registry.n_pods, 2);

	make_cgroup(&n, third.cgroup + 1, "4-5");
	manager_reconcile(&n.manager, 2);
	CHECK(!ask(&n, "PostStartContainer", &third, NULL).status);
	remove_cgroup(&n, third.pod_cgroup);
	manager_reconcile(&n.manager, 2);
	manager_reconcile(&n.manager, 2);
	CHECK_UINT(n.ledger.n, 1);
}

/* A restarted containerd lists older sandboxes, but does not report their removal. The agent never
 * saw the cgroup of a pod that ended before it connected. */
TEST(cpus_of_a_pod_that_ended_before_the_synchronization_are_released)
{
	CLEANUP(node_done) struct node n;
	struct box ended, again, runs;
	struct nri_pod pods[3];
	struct nri_sync sync = { .pods = pods, .n_pods = 3, .n_containers = 1 };

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&ended, "one", "", 2048, 200000);
	box_init(&again, "again", "", 2048, 200000); /* its sandbox after a reboot */
	again.pod.uid = "one";
	again.pod_linux.cgroup_parent = ended.pod_cgroup;
	box_init(&runs, "two", "", 2048, 200000);
	CHECK_STR(create(&n, &ended).cpus, "4-5");
	CHECK_STR(create(&n, &runs).cpus, "6-7");
	pods[0] = ended.pod;
	pods[1] = again.pod;
	pods[2] = runs.pod;
	sync.containers = &runs.container;
	CHECK(!synchronize(&n, &sync).status);
	CHECK_UINT(n.ledger.n, 2);

	/* No cgroup of any pod is where it is to be. */
	manager_reconcile(&n.manager, 4);
	manager_reconcile(&n.manager, 4);
	CHECK_UINT(n.manager.registry.n_pods, 3);
	CHECK_UINT(n.ledger.n, 2);

	make_cgroup(&n, runs.pod_cgroup, "0-7");
	make_cgroup(&n, runs.cgroup + 1, "6-7");
	CHECK(!ask(&n, "RemovePodSandbox", &again, NULL).status);
	CHECK_UINT(n.ledger.n, 2);
	manager_reconcile(&n.manager, 4);
	manager_reconcile(&n.manager, 4);
	CHECK_UINT(n.manager.registry.n_pods, 1);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_STR(read_at(&n, runs.cgroup + 1, "cpuset.cpus"), "6-7");
}

/* Whichever event reported it: shared containers are moved, vanished pods are released. */
TEST(missed_container_gets_cpus_without_shared_containers)
{
	static const char *const events[] = { "PostCreateContainer", "StartContainer",
					      "PostStartContainer", "UpdateContainer" };

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		CLEANUP(node_done) struct node n;
		struct box share, over, alone;

		TEST_ROW("%s", events[i]);
		node_init(&n, "0-1", NULL, NULL);
		box_init(&share, "share", "burstable/", 512, 0);
		make_cgroup(&n, share.cgroup + 1, "0-7");
		CHECK_STR(create(&n, &share).cpus, "2-7");
		box_init(&over, "over", "", 4096, 400000);
		make_cgroup(&n, over.cgroup + 1, "0-7");
		CHECK_STR(create(&n, &over).cpus, "2-5");
		CHECK(!ask(&n, "PostStartContainer", &over, NULL).status);
		remove_cgroup(&n, over.pod_cgroup);

		box_init(&alone, "alone", "", 3072, 300000);
		make_cgroup(&n, alone.cgroup + 1, "0-7");
		CHECK(!ask(&n, events[i], &alone, NULL).status);
		CHECK_STR(read_at(&n, share.cgroup + 1, "cpuset.cpus"), "5-7");
		manager_reconcile(&n.manager, 2);
		CHECK_STR(read_at(&n, alone.cgroup + 1, "cpuset.cpus"), "2-4");
	}
}

TEST(status_lists_the_cpu_settings_of_every_container)
{
	CLEANUP(node_done) struct node n;
	struct err err = { 0 };
	struct str text;
	struct doc doc;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	(void)create(&n, &b);
	CHECK_OK(doc_write(status_describe(&n.manager, doc_build(&n.a), &n.a), false, &n.a, &text,
			   &err));
	CHECK_OK(doc_parse(text, STR("status"), NULL, &n.a, &doc, &err));
	CHECK_STR(doc_str(doc_find(doc.root, "/mode")), "pools");
	CHECK_STR(doc_str(doc_find(doc.root, "/pools/guaranteed/free")), "6-7");
	CHECK_STR(doc_str(doc_find(doc.root, "/containers/0/cpus")), "4-5");
	CHECK_STR(doc_text(doc_find(doc.root, "/containers/0/quotaUs")), "-1");
	CHECK_STR(doc_str(doc_find(doc.root, "/pods/0/cgroup")), "kubepods/pod-b");
}
