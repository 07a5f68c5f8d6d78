/* Cgroups that others change are corrected; the runtime and the cgroup tree are the test's. */

#include "agent_node.h"
#include "pin/event_queue.h"

TEST(reconcile_restores_a_cgroup_changed_externally)
{
	CLEANUP(node_done) struct node n;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 512, 0);
	(void)create(&n, &b);
	make_cgroup(&n, b.cgroup + 1, "0-7");
	manager_reconcile(&n.manager, 1); /* not started: the runtime still writes it */
	CHECK_UINT(n.manager.counters.drift_corrected, 0);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "2-3");
	write_at(&n, b.cgroup + 1, "cpuset.cpus.effective", "2-3");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	manager_reconcile(&n.manager, 1);
	CHECK_UINT(n.manager.counters.drift_corrected, 0);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 1);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_UINT(n.manager.counters.drift_corrected, 1);
}

/* No NRI call comes in between, so only the reconciliation itself can reset the arena. */
TEST(reconcile_uses_bounded_memory_while_drift_persists)
{
	CLEANUP(node_done) struct node n;
	struct event_queue events;
	struct box b;
	size_t used = 0;

	node_init(&n, "0-1", "2-3", "4-7");
	event_queue_init(&events);
	n.manager.events = &events;
	box_init(&b, "b", "burstable/", 512, 0);
	(void)create(&n, &b);
	make_cgroup(&n, b.cgroup + 1, "2-3");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	for (unsigned i = 0; i < 200; i++) {
		write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
		manager_reconcile(&n.manager, 1);
		if (i == 0)
			used = n.manager.scratch.used;
	}
	CHECK_UINT(n.manager.counters.drift_corrected, 200);
	CHECK_UINT(n.manager.scratch.used, used);
	event_queue_done(&events);
}

/* Every fourth of 512 CPUs: a list of about 500 characters. */
TEST(long_cpu_lists_are_not_cut)
{
	CLEANUP(node_done) struct node n;
	struct cpuset management = { 0 }, shared = { 0 };
	CLEANUP(arena_done) struct arena a;
	const char *list;
	char dir[256];
	uint32_t mask = 0;
	struct err err = { 0 };
	struct box b;

	arena_init(&a, 0);
	for (unsigned cpu = 0; cpu < 512; cpu++)
		cpuset_add(cpu % 4 == 0 ? &management : &shared, cpu);
	list = str_cstr(&a, cpuset_format(&management, &a));
	CHECK(strlen(list) > 256);
	node_init_on(&n, "pack:1 core:256 pu:2", list, str_cstr(&a, cpuset_format(&shared, &a)),
		     "");
	box_init(&b, "b", "burstable/", 2, 0);
	box_manage(&b, "{\"cpushares\":20}");
	make_cgroup(&n, b.pod_cgroup, "0-511");
	make_cgroup(&n, b.cgroup, "0-511");
	make_cgroup(&n, b.pause, "0-511");
	CHECK_STR(create(&n, &b).cpus, list);
	CHECK_STR(read_at(&n, b.pause, "cpuset.cpus"), list);
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	CHECK_STR(read_at(&n, b.cgroup, "cpuset.cpus"), list);

	(void)snprintf(dir, sizeof(dir), "%s/crio/crio.conf.d", n.dir);
	CHECK_OK(file_mkdirs_at(AT_FDCWD, dir, 0755, &err));
	write_at(&n, "crio/crio.conf.d", "01",
		 str_cstr(&a, str_printf(&a,
					 "[crio.runtime.workloads.management]\n"
					 "activation_annotation = "
					 "\"target.workload.openshift.io/management\"\n"
					 "annotation_prefix = \"resources.workload.openshift.io\"\n"
					 "resources = { \"cpuset\" = \"%s\" }\n",
					 list)));
	(void)snprintf(dir, sizeof(dir), "%s/crio", n.dir);
	n.manager.crio_dir = dir;
	CHECK_INT(manager_handlers.configure(&n.manager,
					     &(struct nri_runtime){ .name = "cri-o",
								    .version = "",
								    .nri_version = "" },
					     &mask, NULL),
		  0);
	CHECK_INT(n.manager.runtime.crio, CRIO_AGREES);
	CHECK_STR(n.manager.runtime.crio_cpus, list);
}

/* A reconciliation of 0 containers checks only the written ones. */
TEST(written_cgroups_are_checked_out_of_turn)
{
	CLEANUP(node_done) struct node n;
	struct box b, other;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "burstable/", 512, 0);
	box_init(&other, "other", "", 2048, 200000);
	make_cgroup(&n, other.pod_cgroup, "0-7"); /* the kubelet creates it first */
	(void)create(&n, &b);
	(void)create(&n, &other);
	make_cgroup(&n, b.cgroup + 1, "2-3");
	make_cgroup(&n, other.cgroup + 1, "4-5");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	CHECK(!ask(&n, "PostStartContainer", &other, NULL).status);
	manager_flush(&n.manager);
	manager_reconcile(&n.manager, 0);
	CHECK_UINT(n.manager.counters.drift_corrected, 0);

	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	write_at(&n, other.pod_cgroup, "cpu.max", "1000 100000");
	manager_reconcile(&n.manager, 0);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	CHECK_STR(read_at(&n, other.pod_cgroup, "cpu.max"), "max 100000");
	CHECK_UINT(n.manager.counters.drift_corrected, 2);

	/* Without a write, nothing is read. */
	for (size_t i = 0; i < n.manager.registry.n_containers; i++)
		CHECK(!n.manager.registry.containers[i]->was_written);
	CHECK(!ask(&n, "RemovePodSandbox", &b, NULL).status);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 0);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "0-7");
	CHECK_UINT(n.manager.counters.drift_corrected, 2);
}

/* The agent started while no inotify instance was available. */
TEST(unwatched_cgroups_are_watched_when_inotify_is_available)
{
	CLEANUP(node_done) struct node n;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	cgroup_watch_done(&n.manager.cgroup_watch);
	n.manager.cgroup_watch.unwatched_errno = n.manager.cgroup_watch.round_errno = EMFILE;
	box_init(&b, "b", "burstable/", 512, 0);
	(void)create(&n, &b);
	make_cgroup(&n, b.cgroup + 1, "2-3");
	CHECK(!ask(&n, "PostStartContainer", &b, NULL).status);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 0);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "0-7");
	CHECK(n.manager.reported_unwatched);

	manager_reconcile(&n.manager, 1); /* polling */
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
	manager_reconcile(&n.manager, 2); /* ends the round */
	manager_reconcile(&n.manager, 0);
	CHECK(!n.manager.reported_unwatched);
	write_at(&n, b.cgroup + 1, "cpuset.cpus", "0-7");
	manager_reconcile(&n.manager, 0);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "2-3");
}
