/* Watching the configuration, when directories are created later or cannot be watched. */

#include "agent/config_watch.h"

#include <sched.h>

#include "agent_node.h"

static const char managed[] =
	"apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  annotations:\n"
	"    target.workload.openshift.io/management: '{\"effect\": "
	"\"PreferredDuringScheduling\"}'\n"
	"spec:\n  containers:\n  - {name: etcd, resources: {requests: {cpu: 300m, memory: 1Gi}}}\n";

/* A node with pools in "late/pools" and manifests in "manifests"; neither directory exists yet.
 */
struct watch_fixture {
	struct node node;
	struct loop loop;
	char manifests[80], pools_file[80];
	struct pools_source source;
	struct config_watch watch;
};

static void write_pools(struct watch_fixture *f, const char *text)
{
	write_at(&f->node, "late", "pools.new", text);
	CHECK_INT(renameat(f->node.cgroups.cpuset_fd, "late/pools.new", f->node.cgroups.cpuset_fd,
			   "late/pools"),
		  0);
}

static void follower_init(struct watch_fixture *f)
{
	struct err err = { 0 };

	*f = (struct watch_fixture){ 0 };
	node_init(&f->node, "0-1", "2-3", "4-7");
	CHECK_OK(loop_init(&f->loop, &err));
	(void)snprintf(f->manifests, sizeof(f->manifests), "%s/manifests", f->node.dir);
	(void)snprintf(f->pools_file, sizeof(f->pools_file), "%s/late/pools", f->node.dir);
	f->source.pools_file = f->pools_file;
	config_watch_init(&f->watch,
			  &(struct config_watch_settings){ .pools = &f->source,
							   .static_pods = f->manifests },
			  &f->node.manager);
	config_watch_start(&f->watch, &f->loop);
}

static void follower_done(struct watch_fixture *f)
{
	config_watch_done(&f->watch);
	loop_done(&f->loop);
	node_done(&f->node);
}

static void make_directories(struct watch_fixture *f)
{
	CHECK_INT(mkdirat(f->node.cgroups.cpuset_fd, "late", 0755), 0);
	CHECK_INT(mkdirat(f->node.cgroups.cpuset_fd, "manifests", 0755), 0);
	write_at(&f->node, "manifests", "etcd.yaml", managed);
	write_pools(f, "{\"reserved\":\"0-1\",\"shared\":\"2-4\",\"guaranteed\":\"5-7\"}");
}

static const char *shared_now(struct watch_fixture *f)
{
	return str_cstr(&f->node.a, cpuset_format(&f->node.ledger.now.config.shared, &f->node.a));
}

TEST(files_of_a_directory_that_is_created_later_are_read)
{
	CLEANUP(follower_done) struct watch_fixture f;

	follower_init(&f);
	make_directories(&f);
	config_watch_tick(&f.watch);
	CHECK_STR(shared_now(&f), "2-4");
	CHECK_INT(f.node.manager.status.static_pods->items[0].verdict, STATIC_CONVERTED);

	/* From here on inotify reports changes. */
	write_pools(&f, "{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-7\"}");
	(void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
	CHECK_STR(shared_now(&f), "2-5");
}

static bool put(const char *path, const char *text)
{
	struct err err = { 0 };

	return file_write_value_at(AT_FDCWD, path, str_from(text), &err) >= 0;
}

/* In a user namespace, so that the limit applies to this process only. */
static bool limit_inotify(const char *instances)
{
	return put("/proc/sys/user/max_inotify_instances", instances);
}

/* The last test: a process cannot leave the namespace. */
TEST(without_inotify_static_pods_are_converted_and_pools_are_read_on_sighup)
{
	CLEANUP(follower_done) struct watch_fixture f;

	if (geteuid() != 0 || unshare(CLONE_NEWUSER) < 0 || !put("/proc/self/setgroups", "deny") ||
	    !put("/proc/self/uid_map", "0 0 1") || !put("/proc/self/gid_map", "0 0 1") ||
	    !limit_inotify("0"))
		TEST_SKIP("no user namespaces here");
	follower_init(&f);
	make_directories(&f);
	config_watch_tick(&f.watch);
	CHECK(f.watch.watch_fails);
	CHECK_STR(shared_now(&f), "2-3");
	CHECK_INT(f.node.manager.status.static_pods->items[0].verdict, STATIC_CONVERTED);
	config_watch_reload(&f.watch);
	CHECK_STR(shared_now(&f), "2-4");

	write_pools(&f, "{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-7\"}");
	CHECK(limit_inotify("10"));
	config_watch_tick(&f.watch);
	CHECK_STR(shared_now(&f), "2-5");
}
