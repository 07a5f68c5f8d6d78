#include <stdlib.h>
#include <string.h>

#include "api_server.h"
#include "base/arena.h"
#include "base/macro.h"
#include "cluster/api_sync.h"
#include "test.h"

TEST(a_call_returns_the_object_and_later_calls_share_the_connection)
{
	CLEANUP(arena_done) struct arena a;
	struct api_server server;
	struct err err = { 0 };
	struct api_sync s;
	yyjson_val *object = NULL;

	arena_init(&a, 0);
	api_server_init(&server);
	api_server_set(&server, &(struct api_server_rule){ "GET", "/version", "", 200,
							   "{\"gitVersion\":\"v1.34.1\"}" });
	CHECK_OK(api_sync_open(&s, &server.kubeconfig, "test", &a, &err));
	for (int i = 0; i < 3; i++) {
		CHECK_OK(api_sync_get(&s, STR("/version"), &a, &object, &err));
		CHECK_STR(doc_str(doc_get(object, STR("gitVersion"))), "v1.34.1");
	}
	CHECK_UINT(s.api.http.connections, 1);
	api_sync_close(&s);
	api_server_done(&server);
}

TEST(an_error_status_becomes_an_error_with_the_servers_message)
{
	CLEANUP(arena_done) struct arena a;
	struct api_server server;
	struct err err = { 0 };
	struct api_sync s;
	yyjson_val *object = NULL;

	arena_init(&a, 0);
	api_server_init(&server);
	api_server_set(&server, &(struct api_server_rule){ "GET", "/x", "", 404,
							   "{\"message\":\"x not found\"}" });
	CHECK_OK(api_sync_open(&s, &server.kubeconfig, "test", &a, &err));
	CHECK_ERR(api_sync_get(&s, STR("/x"), &a, &object, &err), ENOENT,
		  "the API server responded 404: x not found");
	CHECK(object == NULL);
	api_sync_close(&s);
	api_server_done(&server);
}

TEST(a_response_may_be_text)
{
	CLEANUP(arena_done) struct arena a;
	struct api_server server;
	struct err err = { 0 };
	struct api_sync s;
	struct str text;

	arena_init(&a, 0);
	api_server_init(&server);
	api_server_set(&server,
		       &(struct api_server_rule){ "GET", "/log", "", 200, "{ not JSON\n\xff\n" });
	api_server_set(&server, &(struct api_server_rule){ "GET", "/none", "", 403,
							   "{\"message\":\"forbidden\"}" });
	CHECK_OK(api_sync_open(&s, &server.kubeconfig, "test", &a, &err));
	CHECK_OK(api_sync_text(&s, STR("/log"), &a, &text, &err));
	CHECK_STR(text, "{ not JSON\n\xff\n");
	CHECK_ERR(api_sync_text(&s, STR("/none"), &a, &text, &err), EACCES,
		  "the API server responded 403: forbidden");
	api_sync_close(&s);
	api_server_done(&server);
}

TEST(a_server_that_cannot_be_reached_is_an_error)
{
	const struct kubeconfig closed = { .host = "127.0.0.1", .port = 1, .prefix = "" };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct api_sync s;
	yyjson_val *object = NULL;

	arena_init(&a, 0);
	CHECK_OK(api_sync_open(&s, &closed, "test", &a, &err));
	CHECK_ERR(api_sync_get(&s, STR("/version"), &a, &object, &err), ECONNREFUSED,
		  "cannot connect to 127.0.0.1:1: connection refused");
	api_sync_close(&s);
	api_sync_close(&s);
}

TEST(a_command_without_a_cluster_is_told_how_to_name_one)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct kubeconfig k;

	arena_init(&a, 0);
	(void)unsetenv("KUBECONFIG");
	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	(void)setenv("HOME", "/nonexistent", 1);
	CHECK_ERR(api_sync_find_kubeconfig(NULL, NULL, &a, &k, &err), ENOENT,
		  "no cluster: give --kubeconfig, or set KUBECONFIG (there is no ~/.kube/config)");
	(void)setenv("KUBECONFIG", "/nonexistent/one:/nonexistent/two", 1);
	CHECK_INT(api_sync_find_kubeconfig(NULL, NULL, &a, &k, &err), -ENOENT);
	CHECK(strstr(err.msg, "/nonexistent/one") != NULL);
}

static int count_names(void *context, yyjson_val *object, struct err *err)
{
	struct strbuf *b = context;

	(void)err;
	strbuf_add(b, doc_str(doc_find(object, "/metadata/name")));
	return 0;
}

TEST(a_list_is_read_in_pages)
{
	CLEANUP(arena_done) struct arena a;
	struct api_server server;
	struct err err = { 0 };
	struct api_sync s;
	struct strbuf names;

	arena_init(&a, 0);
	strbuf_init(&names, &a);
	api_server_init(&server);
	api_server_set(&server,
		       &(struct api_server_rule){
			       "GET", "/api/v1/nodes", "continue=%61%3D", 200,
			       "{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"c\"}}]}" });
	api_server_set(
		&server,
		&(struct api_server_rule){
			"GET", "/api/v1/nodes", "limit=100&fieldSelector=x", 200,
			"{\"metadata\":{\"continue\":\"a=\"},\"items\":["
			"{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]}" });
	CHECK_OK(api_sync_open(&s, &server.kubeconfig, "test", &a, &err));
	CHECK_OK(api_sync_list(&s,
			       &(struct api_sync_list){ STR("/api/v1/nodes"), "fieldSelector=x",
							count_names, &names },
			       &err));
	CHECK_STR(strbuf_str(&names), "abc");
	api_sync_pause(&s, 1);
	CHECK_INT(api_sync_list(&s,
				&(struct api_sync_list){ STR("/api/v1/ghosts"), NULL, count_names,
							 &names },
				&err),
		  -ENOENT);
	api_sync_close(&s);
	api_server_done(&server);
}
