/* What the agent follows while it runs, when directories come late or cannot be watched. */

#include "agent/config_watch.h"

#include <sched.h>

#include "agent_node.h"

static const char managed[] =
	"apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  annotations:\n"
	"    target.workload.openshift.io/management: '{\"effect\": "
	"\"PreferredDuringScheduling\"}'\n"
	"spec:\n  containers:\n  - {name: etcd, resources: {requests: {cpu: 300m, memory: 1Gi}}}\n";

/* A node whose pools are in "late/pools" and whose manifests are in "manifests"; neither is there.
 */
struct follower {
	struct node node;
	struct loop loop;
	char manifests[80], pools_file[80];
	struct pools_source source;
	struct config_watch live;
};

static void write_pools(struct follower *f, const char *text)
{
	write_at(&f->node, "late", "pools.new", text);
	CHECK_INT(renameat(f->node.cgroups.cpuset_fd, "late/pools.new", f->node.cgroups.cpuset_fd,
			   "late/pools"),
		  0);
}

static void follower_init(struct follower *f)
{
	struct err err = { 0 };

	*f = (struct follower){ 0 };
	node_init(&f->node, "0-1", "2-3", "4-7");
	CHECK_OK(loop_init(&f->loop, &err));
	(void)snprintf(f->manifests, sizeof(f->manifests), "%s/manifests", f->node.dir);
	(void)snprintf(f->pools_file, sizeof(f->pools_file), "%s/late/pools", f->node.dir);
	f->source.pools_file = f->pools_file;
	config_watch_init(&f->live,
			  &(struct config_watch_settings){ .pools = &f->source,
							   .static_pods = f->manifests },
			  &f->node.manager);
	config_watch_start(&f->live, &f->loop);
}

static void follower_done(struct follower *f)
{
	config_watch_done(&f->live);
	loop_done(&f->loop);
	node_done(&f->node);
}

static void make_directories(struct follower *f)
{
	CHECK_INT(mkdirat(f->node.cgroups.cpuset_fd, "late", 0755), 0);
	CHECK_INT(mkdirat(f->node.cgroups.cpuset_fd, "manifests", 0755), 0);
	write_at(&f->node, "manifests", "etcd.yaml", managed);
	write_pools(f, "{\"reserved\":\"0-1\",\"shared\":\"2-4\",\"guaranteed\":\"5-7\"}");
}

static const char *shared_now(struct follower *f)
{
	return str_cstr(&f->node.a, cpuset_format(&f->node.ledger.now.config.shared, &f->node.a));
}

TEST(what_lies_in_a_directory_that_comes_late_is_read)
{
	CLEANUP(follower_done) struct follower f;

	follower_init(&f);
	make_directories(&f);
	config_watch_tick(&f.live);
	CHECK_STR(shared_now(&f), "2-4");
	CHECK_INT(f.node.manager.static_pods->items[0].verdict, STATIC_CONVERTED);

	/* From here on it is told. */
	write_pools(&f, "{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-7\"}");
	(void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
	CHECK_STR(shared_now(&f), "2-5");
}

static bool put(const char *path, const char *text)
{
	struct err err = { 0 };

	return file_write_value_at(AT_FDCWD, path, str_from(text), &err) >= 0;
}

/* In a user namespace of our own, so that nobody else is short of it. */
static bool limit_inotify(const char *instances)
{
	return put("/proc/sys/user/max_inotify_instances", instances);
}

/* The last one: there is no way back out of the namespace. */
TEST(without_inotify_static_pods_are_converted_and_pools_read_later)
{
	CLEANUP(follower_done) struct follower f;

	if (geteuid() != 0 || unshare(CLONE_NEWUSER) < 0 || !put("/proc/self/setgroups", "deny") ||
	    !put("/proc/self/uid_map", "0 0 1") || !put("/proc/self/gid_map", "0 0 1") ||
	    !limit_inotify("0"))
		TEST_SKIP("no user namespaces here");
	follower_init(&f);
	make_directories(&f);
	config_watch_tick(&f.live);
	CHECK(f.live.said_unheard);
	CHECK_STR(shared_now(&f), "2-3");
	CHECK_INT(f.node.manager.static_pods->items[0].verdict, STATIC_CONVERTED);
	config_watch_reload(&f.live);
	CHECK_STR(shared_now(&f), "2-4");

	write_pools(&f, "{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-7\"}");
	CHECK(limit_inotify("10"));
	config_watch_tick(&f.live);
	CHECK_STR(shared_now(&f), "2-5");
}
