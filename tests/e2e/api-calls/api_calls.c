/* Every kind of call that the API client can make, on a real API server: api_calls KUBECONFIG.
 * Prints one line for each; the last is "done". tests/e2e/cluster.sh checks the effects. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/api.h"
#include "cluster/object_path.h"

struct step {
	const char *what, *method, *path, *content_type, *body;
	unsigned status;
	const char *pointer, *value; /* expected in the response */
};

#define MAPS "/api/v1/namespaces/default/configmaps"
#define NODE "/api/v1/nodes/api-calls"

static const struct step steps[] = {
	{ "get what is not there", "GET", MAPS "/api-calls", NULL, NULL, 404, NULL, NULL },
	{ "create", "POST", MAPS, API_JSON,
	  "{\"metadata\":{\"name\":\"api-calls\"},\"data\":{\"a\":\"1\"}}", 201, "/data/a", "1" },
	{ "create again", "POST", MAPS, API_JSON, "{\"metadata\":{\"name\":\"api-calls\"}}", 409,
	  NULL, NULL },
	{ "get", "GET", MAPS "/api-calls", NULL, NULL, 200, "/data/a", "1" },
	{ "JSON patch", "PATCH", MAPS "/api-calls", API_PATCH_JSON,
	  "[{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"1\"},"
	  "{\"op\":\"replace\",\"path\":\"/data/a\",\"value\":\"2\"}]",
	  200, "/data/a", "2" },
	{ "JSON patch whose test fails", "PATCH", MAPS "/api-calls", API_PATCH_JSON,
	  "[{\"op\":\"test\",\"path\":\"/data/a\",\"value\":\"1\"}]", 422, NULL, NULL },
	{ "merge patch", "PATCH", MAPS "/api-calls", API_PATCH_MERGE, "{\"data\":{\"b\":\"3\"}}",
	  200, "/data/b", "3" },
	{ "server-side apply", "PATCH", MAPS "/api-calls?fieldManager=pinfold&force=true",
	  API_PATCH_APPLY,
	  "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"api-calls\"},"
	  "\"data\":{\"a\":\"4\"}}",
	  200, "/data/a", "4" },
	{ "not an object", "POST", MAPS, API_JSON, "[", 400, NULL, NULL },
	{ "create a node", "POST", "/api/v1/nodes", API_JSON,
	  "{\"metadata\":{\"name\":\"api-calls\"}}", 201, "/metadata/name", "api-calls" },
	{ "status by merge patch", "PATCH", NODE "/status", API_PATCH_MERGE,
	  "{\"status\":{\"capacity\":{\"management.workload.openshift.io/cores\":\"8000\"}}}", 200,
	  "/status/capacity/management.workload.openshift.io~1cores", "8k" },
	{ "delete the node", "DELETE", NODE, NULL, NULL, 200, NULL, NULL },
	{ "delete", "DELETE", MAPS "/api-calls", NULL, NULL, 200, NULL, NULL },
};

struct run {
	struct loop loop;
	struct api api;
	struct api_call call;
	size_t at;
	int status;
};

static void next(struct run *run);

static void on_event(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct run *run = container_of(call, struct run, call);

	(void)object;
	printf("event: %u %s\n", call->http.status, err ? err->msg : "");
	run->status = err ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!err)
		puts("done");
	loop_stop(&run->loop);
}

static void record(struct run *run)
{
	const struct object_event e = { .api = STR("v1"),
					.kind = STR("Namespace"),
					.name = STR("default"),
					.reason = STR("Tested"),
					.message = STR("every kind of call was made"),
					.component = STR("pinfold-test"),
					.now_s = (int64_t)time(NULL) };
	CLEANUP(arena_done) struct arena a;
	struct str path, body;

	arena_init(&a, 0);
	if (object_event_write(&e, &a, &path, &body, NULL) >= 0)
		api_start(&run->api, &run->call,
			  &(struct api_request){ .method = "POST",
						 .path = path,
						 .content_type = API_JSON,
						 .body = body },
			  on_event);
}

static void on_done(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct run *run = container_of(call, struct run, call);
	const struct step *s = &steps[run->at++];
	struct str got = s->pointer ? doc_str(doc_find(object, s->pointer)) : STR("");

	printf("%s: %u %s\n", s->what, call->http.status, err ? err->msg : "");
	if (call->http.status != s->status || (err != NULL) != (s->status >= 400) ||
	    (s->pointer && !str_eq(got, str_from(s->value)))) {
		printf("unexpected, want: %u " PRI_STR "\n", s->status, FMT_STR(got));
		loop_stop(&run->loop);
		return;
	}
	next(run);
}

static void next(struct run *run)
{
	const struct step *s = &steps[run->at];

	if (run->at == ARRAY_LEN(steps)) {
		record(run);
		return;
	}
	api_start(&run->api, &run->call,
		  &(struct api_request){ .method = s->method,
					 .path = str_from(s->path),
					 .content_type = s->content_type,
					 .body = str_from(s->body) },
		  on_done);
}

int main(int argc, char **argv)
{
	CLEANUP(arena_done) struct arena a;
	struct run run = { .status = EXIT_FAILURE };
	struct kubeconfig kubeconfig;
	struct err err;

	arena_init(&a, 0);
	if (argc != 2 || kubeconfig_read(argv[1], NULL, &a, &kubeconfig, &err) < 0 ||
	    loop_init(&run.loop, &err) < 0) {
		fprintf(stderr, "%s\n", argc == 2 ? err.msg : "usage: api_calls KUBECONFIG");
		return 2;
	}
	if (api_init(&run.api, &run.loop, &kubeconfig, "pinfold-test", &err) >= 0) {
		next(&run);
		loop_run(&run.loop);
	} else {
		fprintf(stderr, "%s\n", err.msg);
	}
	api_close(&run.api);
	loop_done(&run.loop);
	api_done(&run.api);
	return run.status;
}
