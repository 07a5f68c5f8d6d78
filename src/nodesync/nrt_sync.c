/* Once a second the object is built from the manager's state and compared by hash with the one last
 * written; only a difference, or the refresh, becomes a request. Building it is cheap compared with
 * tracking every change that could matter to it. */

#include "nrt_sync.h"

#include <errno.h>
#include <fcntl.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/macro.h"
#include "cluster/object_path.h"
#include "pin/manager.h"
#include "pod_resources.h"

#define FIELD_MANAGER "pinfold-agent"
#define REFRESH_MS 60000
#define RETRY_MS 10000

void nrt_sync_init(struct nrt_sync *t, const struct nrt_config *config, struct manager *m)
{
	*t = (struct nrt_sync){ .config = config, .manager = m };
	arena_init(&t->memory_arena, 0);
}

/* Huge pages may be reserved at run time, so memory is read again with every refresh. */
static void read_memory(struct nrt_sync *t)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = { 0 };

	/* The names in t->memories live here until the next refresh. */
	arena_reset(&t->memory_arena);
	t->memories = (struct nrt_memories){ 0 };
	if (nrt_memory_read(root, &t->memory_arena, &t->memories, &err) < 0)
		log_warning("cannot read the memory of the NUMA nodes, publishing none",
			    LOG_ERR(&err));
}

static int write_object(struct nrt_sync *t, const struct nrt_node *node, struct arena *a,
			struct str *ret, struct err *err)
{
	const struct hint_config *topology = &t->manager->ledger->now.config.topology;
	const struct nrt_settings settings = {
		.node = node->name,
		.node_uid = node->uid,
		.policy = hint_policy_name(topology->policy),
		.scope = hint_scope_name(topology->scope),
		.cpu_is_every_cpu = t->config->cpu_is_every_cpu,
	};
	struct podres_snapshot pods;

	pod_resources_snapshot(t->manager, a, &pods);
	return nrt_write(&(struct nrt_input){ &settings, t->manager->ledger, &pods, &t->memories },
			 a, ret, err);
}

static void on_response(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct nrt_sync *t = container_of(call, struct nrt_sync, call);
	const uint64_t now = loop_now_ms(call->api->loop);

	/* The hash and not the response is kept: the server may add fields. */
	(void)object;
	t->is_busy = false;
	if (!err) {
		t->written = t->sending;
		t->refresh_ms = now + REFRESH_MS;
		if (t->is_failing)
			log_info("NodeResourceTopology published again");
		t->is_failing = false;
		return;
	}
	t->retry_ms = now + RETRY_MS;
	if (!t->is_failing)
		log_warning(err->code == ENOENT ? "cannot publish NodeResourceTopology, retrying: "
						  "is the CRD installed?" :
						  "cannot publish NodeResourceTopology, retrying",
			    LOG_ERR(err));
	t->is_failing = true;
}

static void send_object(struct nrt_sync *t, const struct nrt_node *node, struct str text,
			struct arena *a)
{
	const struct object_ref ref = { .api = STR(NRT_API),
					.resource = STR(NRT_RESOURCE),
					.name = node->name };

	/* Becomes `written` only with a success; the state may change again while the request is in
	 * flight. */
	t->sending = xxh64(text, 0);
	t->is_busy = true;
	api_start(node->api, &t->call,
		  &(struct api_request){ .method = "PATCH",
					 .path = object_apply_path(&ref, STR(FIELD_MANAGER), a),
					 .content_type = API_PATCH_APPLY,
					 .body = text },
		  on_response);
}

void nrt_sync_tick(struct nrt_sync *t, const struct nrt_node *node)
{
	const uint64_t now = loop_now_ms(node->api->loop);
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	/* Where the kubelet assigns CPUs, only the kubelet knows which are free. */
	if (!t->config->is_on || t->manager->kubelet_manages || t->is_busy || now < t->retry_ms)
		return;
	if (now >= t->refresh_ms)
		read_memory(t);
	if (write_object(t, node, &a, &text, &err) < 0)
		return; /* a name is not UTF-8 */
	/* The hash saves a request per second; the refresh recreates a deleted object. */
	if (now >= t->refresh_ms || xxh64(text, 0) != t->written)
		send_object(t, node, text, &a);
}

void nrt_sync_close(struct nrt_sync *t)
{
	api_cancel(&t->call);
	arena_done(&t->memory_arena);
}
