/* From the profiles of a cluster to the pools of a node and its NodePartition: without an API
 * server, with the real ledger, state directory and cgroup files. */

#include "agent/profile_follow.h"

#include "agent/agent.h"
#include "agent/agent_host.h"
#include "agent/config_watch.h"
#include "agent/profile_in_force.h"
#include "agent_node.h"
#include "cpus.h"
#include "nodesync/node_sync.h"
#include "nodesync/partition_desired.h"
#include "pin/kept_profile.h"

#define WORKER "\"node-role.kubernetes.io/worker\":\"\""
#define PROFILE(name, generation, cpu)                                                             \
	"{\"metadata\":{\"name\":\"" name "\",\"generation\":" generation                          \
	"},\"spec\":{\"cpu\":{" cpu "},\"nodeSelector\":{" WORKER "}}}"
#define GOOD "\"reserved\":\"0-1\",\"shared\":\"2-4\",\"isolated\":\"5-7\""
#define OTHER "\"reserved\":\"0\",\"shared\":\"1-3\",\"isolated\":\"rest\""
#define BAD "\"reserved\":\"0-99\""

struct fixture {
	struct node node;
	struct loop loop;
	char state_dir[80], pools_file[80];
	struct pools_source source;
	struct config_watch pools;
	struct watched_profile items[2];
	struct node_sync sync;
	struct profile_follow follow;
};

static void fixture_init(struct fixture *f)
{
	struct err err = { 0 };

	memset(f, 0, sizeof(*f));
	node_init(&f->node, "0-1", "2-3", "4-7");
	CHECK_OK(loop_init(&f->loop, &err));
	(void)snprintf(f->state_dir, sizeof(f->state_dir), "%s/state", f->node.dir);
	(void)snprintf(f->pools_file, sizeof(f->pools_file), "%s/pools", f->node.dir);
	f->source = (struct pools_source){ .pools_file = f->pools_file,
					   .state_dir = f->state_dir,
					   .or_whole_set = true };
	config_watch_init(&f->pools, &(struct config_watch_settings){ .pools = &f->source },
			  &f->node.manager);
	config_watch_start(&f->pools, &f->loop);
	f->sync.labels = "{" WORKER "}";
	f->sync.profiles.items = f->items;
	f->follow = (struct profile_follow){ .state_dir = f->state_dir,
					     .manager = &f->node.manager,
					     .pools = &f->pools };
}

static void fixture_done(struct fixture *f)
{
	config_watch_done(&f->pools);
	loop_done(&f->loop);
	node_done(&f->node);
}

/* The profiles of the cluster are these now; NULL: none. */
static void follow(struct fixture *f, const char *first, const char *second)
{
	f->items[0].text = (char *)first;
	f->items[1].text = (char *)second;
	f->sync.profiles.n = (size_t)(first != NULL) + (second != NULL);
	profile_follow_update(&f->follow, &f->sync);
}

static struct node_partition_status status_of(struct fixture *f)
{
	const struct partition_desired_source source = { .manager = &f->node.manager,
							 .version = STR("1") };

	return partition_desired(&source, NODE_PINNING, &f->node.a);
}

/* "0-1 2-4 5-7 Profile worker:3 True:Partitioned" */
static struct str summary(struct fixture *f)
{
	const struct node_partition_status s = status_of(f);
	const struct condition *ready = &s.conditions[PARTITION_READY];

	return str_printf(
		&f->node.a, PRI_STR " " PRI_STR " " PRI_STR " %s " PRI_STR ":%d %s:" PRI_STR,
		FMT_STR(s.management), FMT_STR(s.shared), FMT_STR(s.guaranteed),
		pools_origin_name(s.origin), FMT_STR(s.profile), (int)s.profile_generation,
		ready->status == CONDITION_TRUE ? "True" : "False", FMT_STR(ready->reason));
}

TEST(a_profile_is_applied_changed_and_removed)
{
	CLEANUP(fixture_done) struct fixture f;
	struct kept_profile kept;
	struct err err = { 0 };

	fixture_init(&f);
	CHECK_STR(summary(&f), "0-7 0-7 0-7 None :0 True:NoProfile");
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 True:Partitioned");
	follow(&f, PROFILE("worker", "2", OTHER), NULL);
	CHECK_STR(summary(&f), "0 1-3 4-7 Profile worker:2 True:Partitioned");
	CHECK_OK(kept_profile_read(f.state_dir, &f.node.a, &kept, &err));
	CHECK_INT(kept.generation, 2);
	CHECK_STR(doc_str(doc_find(kept.profile, "/spec/cpu/isolated")), "rest");
	f.sync.labels = "{}"; /* the node lost its role */
	profile_follow_update(&f.follow, &f.sync);
	CHECK_STR(summary(&f), "0-7 0-7 0-7 None :0 True:NoProfile");
	CHECK_INT(kept_profile_read(f.state_dir, &f.node.a, &kept, &err), -ENOENT);
}

TEST(a_shared_pool_without_cpus_shows_in_the_condition)
{
	CLEANUP(fixture_done) struct fixture f;
	struct box alone;

	fixture_init(&f);
	follow(&f, PROFILE("worker", "1", "\"reserved\":\"0-1\",\"isolated\":\"rest\""), NULL);
	CHECK_STR(summary(&f), "0-1 2-7 2-7 Profile worker:1 True:Partitioned");
	box_init(&alone, "alone", "", 6144, 600000);
	CHECK_STR(create(&f.node, &alone).cpus, "2-7");
	CHECK_STR(summary(&f), "0-1 2-7 2-7 Profile worker:1 True:SharedPoolEmpty");
	CHECK_STR(status_of(&f).conditions[PARTITION_READY].message,
		  "no CPU of the shared pool is left, its containers use management CPUs 0-1");
	CHECK(!ask(&f.node, "RemovePodSandbox", &alone, NULL).status);
	CHECK_STR(summary(&f), "0-1 2-7 2-7 Profile worker:1 True:Partitioned");
}

TEST(a_conflict_and_a_bad_profile_leave_the_last_good_one)
{
	CLEANUP(fixture_done) struct fixture f;
	struct node_partition_status s;

	fixture_init(&f);
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	follow(&f, PROFILE("worker", "1", GOOD), PROFILE("rival", "1", OTHER));
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 False:ProfileConflict");
	s = status_of(&f);
	CHECK_INT(s.conditions[PARTITION_CONFLICT].status, CONDITION_TRUE);
	CHECK_STR(s.conditions[PARTITION_CONFLICT].message,
		  "more than one profile selects the node: rival, worker");
	follow(&f, PROFILE("worker", "2", BAD), NULL);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 False:ProfileInvalid");
	s = status_of(&f);
	CHECK_INT(s.conditions[PARTITION_CONFLICT].status, CONDITION_FALSE);
	CHECK_STR(s.conditions[PARTITION_READY].message,
		  "profile worker: spec.cpu.reserved: the machine has no CPUs 8-99, only 0-7");
	follow(&f, PROFILE("worker", "3", GOOD), NULL);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:3 True:Partitioned");
}

TEST(a_pools_file_comes_before_the_profile)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	write_at(&f.node, ".", "pools",
		 "{\"reserved\":\"0\",\"shared\":\"1\",\"guaranteed\":\"2-7\"}");
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	CHECK_STR(summary(&f), "0 1 2-7 File :0 False:Overridden");
	/* The same pools are as the profile says. */
	write_at(&f.node, ".", "pools",
		 "{\"reserved\":\"0-1\",\"shared\":\"2-4\",\"guaranteed\":\"5-7\"}");
	config_watch_update(&f.pools);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 File :0 True:Partitioned");
	CHECK_INT(unlinkat(f.node.cgroups.cpuset_fd, "pools", 0), 0);
	config_watch_update(&f.pools);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 True:Partitioned");
}

TEST(an_unreadable_kept_profile_is_replaced)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	write_at(&f.node, "state", KEPT_PROFILE_FILE, "{damaged");
	config_watch_update(&f.pools);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 False:ResizeRefused");
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	CHECK_STR(summary(&f), "0-1 2-4 5-7 Profile worker:1 True:Partitioned");
}

TEST(a_profile_is_in_force_while_the_pools_are_its_own)
{
	CLEANUP(fixture_done) struct fixture f;
	struct profile_in_force in_force = { 0 };
	yyjson_val *profile;

	fixture_init(&f);
	CHECK(profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	CHECK(!profile);
	CHECK(!profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	CHECK(profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	CHECK_STR(doc_str(doc_find(profile, "/metadata/name")), "worker");
	CHECK(!profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	/* A conflict changes nothing; a pools file with other pools does. */
	follow(&f, PROFILE("worker", "1", GOOD), PROFILE("rival", "1", OTHER));
	CHECK(!profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	follow(&f, NULL, NULL);
	CHECK(profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	CHECK(!profile);
	write_at(&f.node, ".", "pools",
		 "{\"reserved\":\"0\",\"shared\":\"1\",\"guaranteed\":\"2-7\"}");
	follow(&f, PROFILE("worker", "1", GOOD), NULL);
	CHECK(!profile_in_force_read(&in_force, f.state_dir, &f.node.manager, &f.node.a, &profile));
	CHECK(!profile);
}

TEST(only_an_explicit_false_of_the_profile_keeps_interrupts)
{
	static const struct {
		const char *field;
		bool flag, keeps;
	} rows[] = {
		{ "", false, false },
		{ ",\"globallyDisableIrqLoadBalancing\":true", false, false },
		{ ",\"globallyDisableIrqLoadBalancing\":false", false, true },
		{ ",\"globallyDisableIrqLoadBalancing\":true", true, true },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct agent_config config = { .host.keeps_interrupts = rows[i].flag };
		const struct str text = str_printf(
			&a, "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"cpu\":{" GOOD "}%s}}",
			rows[i].field);
		static struct host h;
		struct err err = { 0 };
		struct doc doc;

		TEST_ROW("row %zu", i);
		CHECK_OK(doc_parse(text, STR(""), NULL, &a, &doc, &err));
		agent_host_follow(&h, &config, doc.root, &a);
		CHECK_INT(h.settings.keeps_interrupts, rows[i].keeps);
		agent_host_follow(&h, &config, NULL, &a);
		CHECK_INT(h.settings.keeps_interrupts, rows[i].flag);
	}
}

TEST(the_condition_of_the_host_has_the_first_problem)
{
	CLEANUP(arena_done) struct arena a;
	struct node_partition_status s = { 0 };
	static struct host h;

	arena_init(&a, 0);
	agent_host_condition(&h, &s, &a);
	CHECK_STR(s.conditions[PARTITION_HOST_CONFIGURED].reason, "HostNotChecked");
	h.has_checked = true;
	agent_host_condition(&h, &s, &a);
	CHECK_INT(s.conditions[PARTITION_HOST_CONFIGURED].status, CONDITION_TRUE);
	(void)err_set(&h.problems[HOST_INTERRUPTS], EROFS, "/proc/irq is read-only");
	agent_host_condition(&h, &s, &a);
	CHECK_INT(s.conditions[PARTITION_HOST_CONFIGURED].status, CONDITION_FALSE);
	CHECK_STR(s.conditions[PARTITION_HOST_CONFIGURED].message, "/proc/irq is read-only");
}

TEST(what_waits_is_pending)
{
	CLEANUP(fixture_done) struct fixture f;
	struct node_partition_status s;

	fixture_init(&f);
	f.node.manager.status.resize =
		(struct resize_report){ .state = RESIZE_DEFERRED, .why.msg = "busy" };
	f.node.manager.status.reboot =
		(struct reboot_notes){ .items = { { "isolcpus", cpus("2-3"), cpus("4-7"), "why" } },
				       .n = 1 };
	s = status_of(&f);
	CHECK_UINT(s.n_pending, 2);
	CHECK_INT(s.pending[0].need, NEED_RESIZE);
	CHECK_STR(s.pending[0].reason, "ResizeDeferred");
	CHECK_STR(s.pending[0].hash, "");
	CHECK_INT(s.pending[1].need, NEED_REBOOT);
	CHECK_STR(s.pending[1].message, "isolcpus has CPUs 2-3 instead of 4-7: why");
	CHECK_STR(s.pending[1].hash, ""); /* no agent applies it */
	CHECK_UINT(s.n_numa, f.node.topology.level[TOPOLOGY_NUMA].n);
}
