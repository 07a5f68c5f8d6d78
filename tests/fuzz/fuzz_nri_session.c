/* Arbitrary bytes from the runtime: the session responds or fails, everything it sends can be
 * decoded, and it sends the same however the socket splits the bytes. */

#include <stdlib.h>

#include "base/err.h"
#include "base/macro.h"
#include "nri/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_sync(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	(void)user;
	for (size_t i = 0; i < all->n_containers; i++)
		nri_update_cpu(reply, all->containers[i].id, nri_container_cpu(&all->containers[i]),
			       true);
	return 0;
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	(void)user;
	nri_adjust_cpu(reply, nri_container_cpu(c));
	for (size_t i = 0; i < pod->n_annotations; i++)
		nri_adjust_annotation(reply, pod->annotations[i].key, pod->annotations[i].value);
	return nri_find(c->labels, c->n_labels, "refuse") ? nri_refuse(reply, "%s", c->name) : 0;
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	(void)user;
	nri_adjust_env(reply, pod->name, nri_pod_cgroup_parent(pod));
	nri_update_cpu(reply, c->id, requested, false);
	return 0;
}

static int on_event(void *user, enum nri_event event, const struct nri_pod *pod,
		    const struct nri_container *c, struct nri_reply *reply)
{
	(void)user;
	(void)reply;
	return pod->pid == 7 && !c && nri_event_name(event) ? -1 : 0;
}

/* What goes out must be readable by the other side. */
static void check_output(struct session *s)
{
	CLEANUP(arena_done) struct arena a;
	struct ttrpc_reader readers[2] = { 0 };
	struct mux_reader m = { 0 };
	struct mux_piece piece;
	struct str out = session_pending(s);

	arena_init(&a, 0);
	while (mux_read(&m, &out, &piece, NULL) > 0) {
		struct ttrpc_frame f;

		while (piece.bytes.n > 0 &&
		       ttrpc_read(&readers[piece.conn - 1], &piece.bytes, &f)) {
			struct ttrpc_response r;

			if (f.type == TTRPC_RESPONSE &&
			    ttrpc_response_decode(f.data, &a, &r, NULL) < 0)
				abort();
		}
	}
	if (mux_is_inside(&m))
		abort();
	ttrpc_reader_done(&readers[0]);
	ttrpc_reader_done(&readers[1]);
}

static bool on_keep(void *user, enum nri_metadata kind, const char *key)
{
	(void)user;
	return kind == NRI_POD_ANNOTATION && key[0] != 'x';
}

#define HANDLERS                                                                                   \
	.synchronize = on_sync, .create_container = on_create, .update_container = on_update,      \
	.event = on_event

/* What it sends, in `a`. */
static struct str run(const struct nri_handlers *handlers, struct str bytes, size_t piece,
		      struct arena *a)
{
	struct err err = { 0 };
	struct session s;
	struct str sent;
	int r = 0;

	session_init(&s, handlers, NULL);
	s.name = "fuzz";
	s.index = "00";
	session_start(&s);
	while (r == 0 && bytes.n > 0) {
		const size_t n = bytes.n < piece ? bytes.n : piece;

		r = session_feed(&s, (struct str){ bytes.p, n }, &err);
		bytes = str_skip(bytes, n);
	}
	if (r < 0 && !err.msg[0])
		abort();
	check_output(&s);
	sent = str_dup(a, session_pending(&s));
	session_done(&s);
	return sent;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nri_handlers handlers[] = {
		{ HANDLERS },
		{ HANDLERS, .keep = on_keep },
	};
	const struct str bytes = { (const char *)data, size };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(handlers); i++)
		if (!str_eq(run(&handlers[i], bytes, size + 1, &a),
			    run(&handlers[i], bytes, 1 + size % 23, &a)))
			abort();
	return 0;
}
