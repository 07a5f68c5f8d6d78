/* Routes of the agent's endpoints; connections are net/small_server.h's. */

#include "status_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "cpu/cpu_stat.h"
#include "net/prometheus.h"
#include "oci/oci_containers.h"
#include "oci/oci_record.h"
#include "pin/manager.h"
#include "status.h"

static struct http_response text_response(unsigned status, struct str text)
{
	return (struct http_response){ .status = status,
				       .content_type = "text/plain",
				       .body = text };
}

static struct http_response json_response(struct str text)
{
	return (struct http_response){ .status = 200,
				       .content_type = "application/json",
				       .body = text };
}

static struct http_response get_status(const struct status_server *s, struct arena *a)
{
	yyjson_mut_doc *doc = doc_build(a);
	struct str text;

	if (doc_write(status_describe(s->manager, doc, a), true, a, &text, NULL) < 0)
		text = STR("{}");
	return json_response(text);
}

static struct http_response get_metrics(const struct status_server *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	status_metrics(s->manager, &b);
	return (struct http_response){ .status = 200,
				       .content_type = PROMETHEUS_CONTENT_TYPE,
				       .body = strbuf_str(&b) };
}

/* How busy the CPUs are is the difference of two readings; the dashboard takes it while a page
 * shows the node. */
static struct http_response get_cpus(const struct status_server *s, struct arena *a)
{
	struct err err = { 0 };
	struct str text;

	(void)s;
	if (cpu_stat_read(a, &text, &err) < 0)
		return text_response(500, str_dup(a, str_from(err.msg)));
	return text_response(200, text);
}

static struct http_response get_alive(const struct status_server *s, struct arena *a)
{
	(void)s;
	(void)a;
	return text_response(200, STR("ok\n"));
}

static struct http_response get_ready(const struct status_server *s, struct arena *a)
{
	(void)a;
	if (s->manager->runtime.is_connected)
		return text_response(200, STR("ok\n"));
	return text_response(503, STR("not connected to the container runtime\n"));
}

/* The hook waits for the response before the container starts. */
static struct http_response handle_hook(const struct status_server *s, struct str method,
					struct str id, struct arena *a)
{
	struct err err = { 0 };
	struct str text = STR("{}");

	if (!s->oci || !oci_record_id_is_valid(id))
		return text_response(404, STR("no such container\n"));
	if (str_eq(method, STR("DELETE")))
		oci_containers_remove(s->oci, id);
	else if (!str_eq(method, STR("POST")))
		return text_response(405, STR("POST or DELETE\n"));
	else if (oci_containers_add(s->oci, id, a, &text, &err) < 0)
		/* The client reports this status as a refusal, with the text as its reason. */
		return text_response(409, str_dup(a, str_from(err.msg)));
	return json_response(text);
}

static const struct {
	struct str path;
	bool is_local; /* names pods: not on the port */
	struct http_response (*get)(const struct status_server *s, struct arena *a);
} routes[] = {
	{ STR_INIT("/status"), true, get_status }, { STR_INIT("/metrics"), false, get_metrics },
	{ STR_INIT("/cpus"), false, get_cpus },	   { STR_INIT("/healthz"), false, get_alive },
	{ STR_INIT("/readyz"), false, get_ready },
};

static struct http_response handle_get(const struct status_server *s,
				       const struct http_request *request)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!str_eq(request->path, routes[i].path))
			continue;
		if (routes[i].is_local && !request->is_trusted)
			return text_response(403, STR("served on the agent's Unix socket only\n"));
		return routes[i].get(s, request->arena);
	}
	return text_response(404, STR("paths: /status, /metrics, /cpus, /healthz, /readyz\n"));
}

static void handle(const struct small_request *received, struct small_response *ret, void *context)
{
	const struct http_request *request = &received->http;
	const struct status_server *s = context;

	if (request->is_trusted && str_starts(request->path, STR("/oci/")))
		ret->http =
			handle_hook(s, request->method, str_skip(request->path, 5), request->arena);
	else if (!str_eq(request->method, STR("GET")))
		ret->http = text_response(405, STR("GET only\n"));
	else
		ret->http = handle_get(s, request);
}

int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err)
{
	int r;

	*s = (struct status_server){
		.manager = m,
		.socket = { .handler = handle, .context = s, .is_local = true },
		.port = { .handler = handle, .context = s }
	};
	/* A socket at `path` is stale: this agent holds the lock of the run directory. */
	r = small_server_open(&s->socket, loop,
			      net_listen_unix(path, SMALL_SERVER_MAX_CONNECTIONS, err), err);
	if (r < 0)
		return r;
	s->path = strdup(path);
	return address ? small_server_listen(&s->port, loop, address, err) : 0;
}

void status_server_done(struct status_server *s)
{
	small_server_close(&s->socket);
	small_server_close(&s->port);
	if (s->path)
		(void)unlink(s->path);
	free(s->path);
}
