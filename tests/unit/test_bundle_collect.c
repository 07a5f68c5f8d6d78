/* The cluster's part of a support bundle, from an API server that serves a few kinds and refuses
 * others. tests/e2e/commands.sh does it with a real one. */

#include <errno.h>

#include "api_server.h"
#include "base/arena.h"
#include "base/macro.h"
#include "cli/bundle_collect.h"
#include "test.h"

#define PODS                                                                                       \
	"{\"items\":[{\"metadata\":{\"name\":\"agent-x\",\"namespace\":\"pinfold-agent\"},"        \
	"\"spec\":{\"containers\":[{\"name\":\"agent\",\"env\":[{\"name\":\"A\",\"value\":"        \
	"\"hidden\"}]}]},\"status\":{\"containerStatuses\":[{\"name\":\"agent\","                  \
	"\"restartCount\":1}]}}]}"
#define DEPLOYMENTS                                                                                \
	"{\"items\":[{\"metadata\":{\"name\":\"other\",\"labels\":{\"app.kubernetes.io/name\":"    \
	"\"shop\"}}},{\"metadata\":{\"name\":\"pinfold\",\"labels\":{\"app.kubernetes.io/name\":"  \
	"\"pinfold\"}}}]}"
#define LOG_PATH "/api/v1/namespaces/pinfold-agent/pods/agent-x/log"

static const struct api_server_rule rules[] = {
	{ "GET", "/version", "", 200, "{\"gitVersion\":\"v1.34.1\"}" },
	{ "GET", "/api/v1/nodes", "", 200, "{\"items\":[{\"metadata\":{\"name\":\"worker-0\"}}]}" },
	{ "GET", "/api/v1/pods", "", 200, PODS },
	{ "GET", "/api/v1/namespaces/pinfold-agent/pods", "", 200, PODS },
	{ "GET", "/api/v1/namespaces/pinfold/pods", "", 200, "{\"items\":[]}" },
	{ "GET", LOG_PATH, "previous=true", 403, "{\"message\":\"not yours\"}" },
	{ "GET", LOG_PATH, "container=agent&tailLines=2000&limitBytes=524288", 200, "now\n" },
	{ "GET", "/apis/apps/v1/deployments", "", 200, DEPLOYMENTS },
	{ "GET", "/api/v1/namespaces", "", 403, "{\"message\":\"not yours\"}" },
};

static struct str file_of(const struct bundle_build *b, const char *path)
{
	for (size_t i = 0; i < b->n; i++)
		if (str_eq(b->files[i].path, str_from(path)))
			return b->files[i].bytes;
	return STR("");
}

static struct str omission_of(const struct bundle_build *b, const char *what)
{
	for (size_t i = 0; i < b->n_omissions; i++)
		if (str_eq(b->omissions[i].what, str_from(what)))
			return b->omissions[i].why;
	return STR("");
}

static void collect(struct bundle_build *b, size_t max_bytes, bool with_logs, struct arena *a)
{
	struct api_server server;
	struct err err = { 0 };

	api_server_init(&server);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		api_server_set(&server, &rules[i]);
	bundle_build_init(b, max_bytes, a);
	CHECK_OK(bundle_collect_cluster(b, &server.kubeconfig, with_logs, &err));
	api_server_done(&server);
}

TEST(a_bundle_has_the_objects_and_logs_that_may_be_read)
{
	CLEANUP(arena_done) struct arena a;
	struct bundle_build b;

	arena_init(&a, 0);
	collect(&b, 1 << 20, true, &a);
	CHECK_STR(file_of(&b, "objects/nodes.json"),
		  "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n"
		  "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"worker-0\"}}\n"
		  "]}\n");
	CHECK(str_has(file_of(&b, "objects/pods.json"), STR("\"agent-x\"")));
	CHECK(!str_has(file_of(&b, "objects/pods.json"), STR("hidden")));
	CHECK(str_has(file_of(&b, "objects/deployments.json"), STR("\"name\":\"pinfold\"")));
	CHECK(!str_has(file_of(&b, "objects/deployments.json"), STR("shop")));
	CHECK_STR(file_of(&b, "logs/pinfold-agent/agent-x/agent.log"), "now\n");
	CHECK(str_has(file_of(&b, "versions.json"), STR("v1.34.1")));
	CHECK(str_has(file_of(&b, "check.json"), STR("\"findings\"")));
}

TEST(a_bundle_says_what_could_not_be_read)
{
	CLEANUP(arena_done) struct arena a;
	struct bundle_build b;

	arena_init(&a, 0);
	collect(&b, 1 << 20, true, &a);
	CHECK_STR(omission_of(&b, "objects/namespaces.json"),
		  "the API server responded 403: not yours");
	CHECK_STR(omission_of(&b, "objects/nodepartitions.json"),
		  "the cluster does not serve this kind");
	CHECK_STR(omission_of(&b, "logs/pinfold-agent/agent-x/agent.previous.log"),
		  "the API server responded 403: not yours");
	CHECK_STR(omission_of(&b, "Secrets and ConfigMaps"), "never read");
}

TEST(a_bundle_that_is_full_says_how_many_objects_it_lacks)
{
	CLEANUP(arena_done) struct arena a;
	struct bundle_build b;

	arena_init(&a, 0);
	collect(&b, 64, false, &a);
	CHECK_STR(file_of(&b, "objects/nodes.json"), "");
	CHECK(str_starts(omission_of(&b, "objects/nodes.json"), STR("1 of 1 objects: ")));
	CHECK_STR(omission_of(&b, "logs/"), "--no-logs");
}

TEST(a_cluster_that_does_not_answer_is_an_error)
{
	const struct kubeconfig closed = { .host = "127.0.0.1", .port = 1, .prefix = "" };
	CLEANUP(arena_done) struct arena a;
	struct bundle_build b;
	struct err err = { 0 };

	arena_init(&a, 0);
	bundle_build_init(&b, 1 << 20, &a);
	CHECK_INT(bundle_collect_cluster(&b, &closed, true, &err), -ECONNREFUSED);
	CHECK_UINT(b.n, 0);
}
