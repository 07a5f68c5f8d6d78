/* `pinfold agent --uninstall`: removes what the agent wrote from its Node, in at most three
 * requests. */

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "node_sync.h"

#define DEADLINE_MS 30000

struct uninstall {
	struct loop loop;
	struct arena arena;
	struct kubeconfig kubeconfig;
	struct str name;
	struct api api;
	struct api_call call;
	struct timer deadline;
	bool is_status_done;
	struct err err;
	int r;
};

static void finish(struct uninstall *u, int r)
{
	u->r = r;
	loop_stop(&u->loop);
}

/* The status first, then the taint: pods must not be scheduled to a Node whose CPUs are no longer
 * accounted for. */
static int plan_removal(struct uninstall *u, yyjson_val *node, struct api_request *ret)
{
	struct node_observed observed;
	int r = 0;

	node_observed_of(node, &observed);
	if (!u->is_status_done) {
		/* The response to each PATCH is the Node, which on_response() compares again; the
		 * flag ends this even if a kubelet writes the resources again. */
		u->is_status_done = true;
		ret->content_type = API_PATCH_STRATEGIC;
		ret->path = node_path(u->name, STR("status"), &u->arena);
		r = node_plan_removal(&observed, &u->arena, &ret->body, &u->err);
	}
	if (r == 0) {
		ret->content_type = API_PATCH_JSON;
		ret->path = node_path(u->name, STR(""), &u->arena);
		r = node_plan_taint(&observed, NODE_TAINT_REMOVE, &u->arena, &ret->body, &u->err);
	}
	return r;
}

static void on_response(struct api_call *call, yyjson_val *node, const struct err *err)
{
	struct uninstall *u = container_of(call, struct uninstall, call);
	struct api_request request = { .method = "PATCH" };
	int r;

	/* The Node is gone, and with it everything that was written. */
	if (err && err->code == ENOENT) {
		finish(u, 0);
		return;
	}
	if (err) {
		u->err = *err;
		finish(u, -(err->code ? err->code : EIO));
		return;
	}
	r = plan_removal(u, node, &request);
	if (r > 0)
		api_start(&u->api, &u->call, &request, on_response);
	else
		finish(u, r);
}

static void on_deadline(struct timer *t)
{
	struct uninstall *u = container_of(t, struct uninstall, deadline);

	finish(u, err_set(&u->err, ETIMEDOUT, "no response from the API server"));
}

static int run_requests(struct uninstall *u, struct err *err)
{
	int r = loop_init(&u->loop, err);

	if (r < 0)
		return r;
	r = api_init(&u->api, &u->loop, &u->kubeconfig, "pinfold-agent", err);
	if (r == 0) {
		timer_init(&u->deadline, &u->loop, on_deadline);
		timer_start(&u->deadline, DEADLINE_MS, 0);
		api_start(&u->api, &u->call,
			  &(struct api_request){ .method = "GET",
						 .path = node_path(u->name, STR(""), &u->arena) },
			  on_response);
		loop_run(&u->loop);
		api_cancel(&u->call);
		r = u->r;
		if (r < 0)
			r = err_set(err, -r, "Node " PRI_STR ": %s", FMT_STR(u->name), u->err.msg);
	}
	/* In this order: closing needs the loop, and the TLS context is used until the connection
	 * is closed. */
	api_close(&u->api);
	loop_done(&u->loop);
	api_done(&u->api);
	return r;
}

int node_sync_uninstall(const struct node_sync_config *config, struct err *err)
{
	struct uninstall u = { 0 };
	int r;

	if (config->is_off)
		return 0;
	arena_init(&u.arena, 0);
	r = node_connection_find(config, &u.arena, &u.kubeconfig, &u.name, err);
	if (r == 0)
		r = run_requests(&u, err);
	else if (r == -ENOENT && !config->kubeconfig)
		r = 0; /* without a cluster there is no Node */
	arena_done(&u.arena);
	return r;
}
