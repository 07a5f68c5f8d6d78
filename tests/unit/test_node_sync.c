/* The parts of node_sync together: a manager on one side, an API server on the other. */

#include "agent_node.h"
#include "api_server.h"
#include "kube/names.h"
#include "nodesync/node_sync.h"
#include "nodesync/nrt_sync.h"
#include "test.h"

static enum permission permission_is(const void *data, struct str namespace, struct str type)
{
	(void)type;
	(void)namespace;
	return *(const enum permission *)data;
}

/* A pod that claims the workload type management. */
static void add_management_pod(struct node *n, const char *config_source)
{
	struct nri_pair annotations[3];
	struct box b;

	box_init(&b, "mgmt", "burstable/", 2, 0);
	box_manage(&b, "{\"cpushares\":400}");
	annotations[0] = b.annotations[0];
	annotations[1] = b.annotations[1];
	annotations[2] = (struct nri_pair){ NAME_CONFIG_SOURCE, (char *)config_source };
	b.pod.annotations = annotations;
	b.pod.n_annotations = 3;
	(void)create(n, &b);
}

TEST(pods_in_the_wrong_pool_are_found_when_permissions_change)
{
	static const struct {
		const char *source;
		enum permission before, after;
		bool is_untrusted, is_permitted;
	} rows[] = {
		{ "file", PERMISSION_DENIED, PERMISSION_DENIED, false, false },
		{ "http", PERMISSION_UNKNOWN, PERMISSION_DENIED, false, false },
		{ "api", PERMISSION_UNKNOWN, PERMISSION_DENIED, false, false },
		{ "api", PERMISSION_UNKNOWN, PERMISSION_GRANTED, false, true },
		{ "api", PERMISSION_DENIED, PERMISSION_GRANTED, false, true },
		{ "api", PERMISSION_GRANTED, PERMISSION_GRANTED, false, false },
		{ "api", PERMISSION_GRANTED, PERMISSION_DENIED, true, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum permission permission = rows[i].before;
		struct node n;

		TEST_ROW("%zu: %s", i, rows[i].source);
		node_init(&n, "0-1", "2-3", "4-7");
		n.manager.rules.permission = permission_is;
		n.manager.rules.permission_data = &permission;
		add_management_pod(&n, rows[i].source);
		CHECK_STR(settings_cpus(&n, "mgmt"),
			  strcmp(rows[i].source, "api") != 0 || permission == PERMISSION_GRANTED ?
				  "0-1" :
				  "2-3");
		permission = rows[i].after;
		CHECK_INT(node_sync_has_untrusted_pod(&n.manager), rows[i].is_untrusted);
		CHECK_INT(node_sync_has_permitted_pod(&n.manager), rows[i].is_permitted);
		node_done(&n);
	}
}

#define NODE "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u1\",\"resourceVersion\":\"8\"}}"

static void write_kubeconfig(const struct node *n, unsigned port)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "current-context: a\n"
		       "contexts: [{name: a, context: {cluster: a}}]\n"
		       "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:%u', "
		       "insecure-skip-tls-verify: true}}]\n",
		       port);
	write_at(n, ".", "kubeconfig", text);
}

static unsigned n_reclassified;

static void on_permissions_changed(struct node_sync *s)
{
	(void)s;
	n_reclassified++;
}

static enum permission permission_of(const void *data, struct str namespace, struct str type)
{
	return node_sync_permission(data, namespace, type);
}

/* An agent that starts while the API server is unreachable uses what the last one knew. */
static void restart_without_api_server(struct node *n, const struct node_sync_config *config)
{
	struct err err = { 0 };
	struct node_sync s;
	struct loop loop;

	CHECK_OK(loop_init(&loop, &err));
	CHECK_OK(node_sync_init(&s, config, &err));
	s.run_fd = open(n->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	node_sync_start(&s, &loop, &n->manager);
	CHECK_INT(node_sync_permission(&s, STR("ns"), STR("management")), PERMISSION_GRANTED);
	CHECK_INT(node_sync_permission(&s, STR("ns"), STR("ran")), PERMISSION_DENIED);
	CHECK_INT(node_sync_permission(&s, STR("other"), STR("management")), PERMISSION_DENIED);
	node_sync_close(&s);
	loop_done(&loop);
	node_sync_done(&s);
	(void)close(s.run_fd);
}

/* From a kubeconfig that is written late to a Node with its resources. */
TEST(the_agent_waits_for_its_kubeconfig_then_registers_and_learns_the_namespaces)
{
	struct node_sync_config config = { .node_name = "N1", .version = "1", .registers = true };
	CLEANUP(node_done) struct node n;
	struct api_server server;
	struct nrt_node node;
	struct node_sync s;
	struct err err = { 0 };
	char path[128];

	node_init(&n, "0-1", "2-3", "4-7");
	api_server_init(&server);
	api_server_set(
		&server,
		&(struct api_server_rule){
			"GET", "/api/v1/namespaces", "limit=", 200,
			"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{"
			"\"name\":\"ns\",\"annotations\":{\"workload.openshift.io/allowed\":"
			"\"management\"}}}]}" });
	api_server_set(&server,
		       &(struct api_server_rule){
			       "GET", "/api/v1/nodes", "limit=", 200,
			       "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}" });
	api_server_set(&server, /* so that the empty list is not read again */
		       &(struct api_server_rule){ "GET", "/api/v1/nodes", "watch=1", 500, "{}" });
	api_server_set(&server,
		       &(struct api_server_rule){ "POST", "/api/v1/nodes", "", 201, NODE });
	(void)snprintf(path, sizeof(path), "%s/kubeconfig", n.dir);
	config.kubeconfig = path;
	CHECK_OK(node_sync_init(&s, &config, &err));
	CHECK(s.connection.is_configured);
	s.on_permissions_changed = on_permissions_changed;
	s.run_fd = open(n.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n.manager.rules.permission = permission_of;
	n.manager.rules.permission_data = &s;
	add_management_pod(&n, "api");
	node_sync_start(&s, &server.loop, &n.manager);
	API_SERVER_WAIT(&server, s.failures.n == 2);
	CHECK(!s.connection.is_open);
	CHECK(!node_sync_get_node(&s, &node));
	write_kubeconfig(&n, server.kubeconfig.port);
	API_SERVER_WAIT(&server, s.writer.n_written[NODE_WRITE_REGISTER] == 1);
	CHECK(node_sync_get_node(&s, &node));
	CHECK_STR(node.name, "n1");
	CHECK_STR(node.uid, "u1");
	/* The namespace allows the pod, which has been in the shared pool until now. */
	CHECK_STR(settings_cpus(&n, "mgmt"), "2-3");
	API_SERVER_WAIT(&server, n_reclassified == 1);
	node_sync_tick(&s);
	CHECK(faccessat(s.run_fd, "namespaces.json", F_OK, 0) == 0);
	node_sync_tick(&s); /* nothing has changed since */
	node_sync_close(&s);
	api_server_done(&server);
	node_sync_done(&s);
	restart_without_api_server(&n, &config);
	(void)close(s.run_fd);
}

static void on_profiles_changed(struct node_sync *s)
{
	s->manager->status.pools.origin = POOLS_FROM_NOTHING;
}

/* The Node was deleted, and its next one has another role or none. */
TEST(the_pools_of_a_kept_profile_are_published_only_after_the_profiles_were_read)
{
	struct node_sync_config config = { .node_name = "n1", .version = "1" };
	CLEANUP(node_done) struct node n;
	struct api_server server;
	struct node_sync s;
	struct err err = { 0 };
	char path[128];

	node_init(&n, "0-1", "2-3", "4-7");
	n.manager.status.pools.origin = POOLS_FROM_PROFILE;
	api_server_init(&server);
	api_server_set(&server,
		       &(struct api_server_rule){
			       "GET", "/api/v1/nodes", "limit=", 200,
			       "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" NODE "]}" });
	api_server_set(&server,
		       &(struct api_server_rule){
			       "GET", "/apis/performance.openshift.io/v2/performanceprofiles",
			       "limit=", 200,
			       "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}" });
	api_server_set(&server, &(struct api_server_rule){ "PATCH", "/api/v1/nodes/n1/status", "",
							   200, NODE });
	(void)snprintf(path, sizeof(path), "%s/kubeconfig", n.dir);
	config.kubeconfig = path;
	write_kubeconfig(&n, server.kubeconfig.port);
	CHECK_OK(node_sync_init(&s, &config, &err));
	s.on_profiles_changed = on_profiles_changed;
	node_sync_start(&s, &server.loop, &n.manager);
	API_SERVER_WAIT(&server, s.node_watch.watch.is_synced && s.profiles.is_known);
	CHECK(s.writer.observed.exists && s.writer.writing == NODE_WRITE_NONE);
	CHECK_UINT(s.writer.n_written[NODE_WRITE_STATUS], 0);
	node_sync_tick(&s);
	API_SERVER_WAIT(&server, s.writer.n_written[NODE_WRITE_STATUS] == 1);
	node_sync_close(&s);
	api_server_done(&server);
	node_sync_done(&s);
}

TEST(memory_is_returned_after_the_start_and_after_every_new_connection)
{
	static const struct {
		uint64_t connections;
		bool want;
	} ticks[] = {
		{ 0, false }, { 0, false }, { 0, true },  { 0, false }, { 0, false },
		{ 1, false }, { 1, false }, { 1, false }, { 1, true },	{ 1, false },
		{ 1, false }, { 2, false }, { 3, false }, { 3, false }, { 3, true },
	};
	struct trim_schedule t = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(ticks); i++) {
		TEST_ROW("tick %zu", i);
		CHECK_INT(trim_schedule_tick(&t, ticks[i].connections), ticks[i].want);
	}
}

TEST(the_kubelets_address_comes_first_and_the_service_address_second)
{
	char dir[] = "/tmp/pinfold-prefer-XXXXXX";
	CLEANUP(arena_done) struct arena a;
	struct kubeconfig k = { .host = "10.96.0.1", .port = 443, .token_path = "token" };
	const char *path;
	FILE *f;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	path = str_printf(&a, "%s/kubelet.conf", dir).p;
	node_connection_prefer_kubelet(path, &a, &k); /* does not exist */
	CHECK_STR(str_from(k.host), "10.96.0.1");
	CHECK(!k.other_host);
	f = fopen(path, "we");
	CHECK(f != NULL);
	(void)fputs("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
		    "clusters: [{name: k, cluster: {server: 'https://10.0.0.7:6443'}}]\n",
		    f);
	(void)fclose(f);
	node_connection_prefer_kubelet(path, &a, &k);
	CHECK_STR(str_from(k.host), "10.0.0.7");
	CHECK_UINT(k.port, 6443);
	CHECK_STR(str_from(k.other_host), "10.96.0.1");
	CHECK_UINT(k.other_port, 443);
	CHECK_STR(str_from(k.token_path), "token"); /* the credentials stay the pod's */
	(void)unlink(path);
	(void)rmdir(dir);
}

/* --api-server replaces the address and nothing else; where it is given, no other one is tried. */
TEST(a_named_api_server_replaces_the_address_of_the_kubeconfig)
{
	char dir[] = "/tmp/pinfold-named-XXXXXX";
	CLEANUP(arena_done) struct arena a;
	struct node_sync_config config = { .node_name = "n" };
	struct kubeconfig k;
	struct err err = { 0 };
	struct str name;
	FILE *f;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	config.kubeconfig = str_printf(&a, "%s/config", dir).p;
	f = fopen(config.kubeconfig, "we");
	CHECK(f != NULL);
	(void)fputs("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
		    "clusters: [{name: k, cluster: {server: 'https://10.96.0.1/prefix'}}]\n"
		    "users: [{name: u, user: {token: secret}}]\n",
		    f);
	(void)fclose(f);
	CHECK_OK(node_connection_find(&config, &a, &k, &name, &err));
	CHECK_STR(str_from(k.host), "10.96.0.1");
	config.api_server = "https://192.0.2.9:7443";
	CHECK_OK(node_connection_find(&config, &a, &k, &name, &err));
	CHECK_STR(str_from(k.host), "192.0.2.9");
	CHECK_UINT(k.port, 7443);
	CHECK_STR(str_from(k.prefix), "");
	CHECK(!k.other_host);
	config.api_server = "192.0.2.9:7443";
	CHECK_INT(node_connection_find(&config, &a, &k, &name, &err), -EINVAL);
	CHECK(str_starts(str_from(err.msg), STR("--api-server: ")));
	(void)unlink(config.kubeconfig);
	(void)rmdir(dir);
}

TEST(failures_are_logged_at_most_once_a_minute)
{
	struct api_failures f = { 0 };
	struct err err = { .code = 5, .msg = "down" };

	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	api_failures_add(&f, 5, "watch the Node", &err);
	CHECK_UINT(f.logged_ms, 5);
	api_failures_add(&f, 5 + API_FAILURES_LOG_MS - 1, "watch the Node", &err);
	CHECK_UINT(f.logged_ms, 5);
	api_failures_add(&f, 5 + API_FAILURES_LOG_MS, "watch the Node", &err);
	CHECK_UINT(f.logged_ms, 5 + API_FAILURES_LOG_MS);
	CHECK_UINT(f.n, 3);
}
