/* The state machine of a connection. Order of a connection: RegisterPlugin is sent, Configure comes
 * (possibly before the response to it), Synchronize in one or more parts, then events
 * (docs/reference/nri.md#handshake). A request is decoded, handled and its response queued within
 * one call of session_feed(), so there is never more than one exchange. */

#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

#define SERVICE_PLUGIN "nri.pkg.api.v1alpha1.Plugin"
#define SERVICE_RUNTIME "nri.pkg.api.v1alpha1.Runtime"
#define OUR_NRI_VERSION "v0.12.2" /* the version of api.proto that the message tables follow */

/* --- the reply of a handler --- */

/* Everything is copied into the arena of the call, because the reply is encoded after the handler
 * has returned. An allocation that fails is not reported here: the arena remembers it, and the
 * session responds with a failure. */
struct nri_reply {
	struct arena *a;
	struct nri_response response;
	const char *refusal; /* NULL: not refused */
};

static const char *copy_text(struct arena *a, const char *text)
{
	return str_cstr(a, str_from(text));
}

static struct nri_resources *resources_new(const struct nri_cpu *cpu, struct arena *a)
{
	struct nri_resources *r = arena_new(a, struct nri_resources);

	if (!r)
		return NULL;
	r->cpu = arena_new(a, struct nri_cpu);
	if (!r->cpu)
		return NULL;
	*r->cpu = *cpu;
	/* NULL becomes "", which proto3 does not write: the field is then absent, which means
	 * "unchanged". */
	r->cpu->cpus = copy_text(a, cpu->cpus);
	r->cpu->mems = copy_text(a, cpu->mems);
	return r;
}

static struct nri_adjustment *adjustment(struct nri_reply *reply)
{
	if (!reply->response.adjustment)
		reply->response.adjustment = arena_new(reply->a, struct nri_adjustment);
	return reply->response.adjustment;
}

void nri_adjust_cpu(struct nri_reply *reply, const struct nri_cpu *cpu)
{
	struct nri_adjustment *adj = adjustment(reply);
	struct nri_linux_adjustment *on_linux = arena_new(reply->a, struct nri_linux_adjustment);

	if (!adj || !on_linux)
		return; /* a->failed is set, and the session responds with a failure */
	on_linux->resources = resources_new(cpu, reply->a);
	adj->on_linux = on_linux;
}

static void add_pair(struct nri_pair **pairs, size_t *n, const struct nri_pair *pair,
		     struct arena *a)
{
	struct nri_pair *grown = arena_one_more(a, *pairs, *n, sizeof(**pairs));

	if (!grown)
		return;
	*pairs = grown;
	grown[*n] = (struct nri_pair){ copy_text(a, pair->key), copy_text(a, pair->value) };
	++*n;
}

void nri_adjust_annotation(struct nri_reply *reply, const char *key, const char *value)
{
	struct nri_adjustment *adj = adjustment(reply);

	if (adj)
		add_pair(&adj->annotations, &adj->n_annotations, &(struct nri_pair){ key, value },
			 reply->a);
}

void nri_adjust_env(struct nri_reply *reply, const char *name, const char *value)
{
	struct nri_adjustment *adj = adjustment(reply);

	if (adj)
		add_pair(&adj->env, &adj->n_env, &(struct nri_pair){ name, value }, reply->a);
}

static bool add_update(struct nri_response *response, const char *container_id,
		       const struct nri_cpu *cpu, bool may_fail, struct arena *a)
{
	struct nri_update *grown =
		arena_one_more(a, response->updates, response->n_updates, sizeof(*grown));
	struct nri_linux_update *on_linux = arena_new(a, struct nri_linux_update);

	if (!grown || !on_linux)
		return false;
	/* Always present: CRI-O dereferences `resources` without a check. */
	on_linux->resources = resources_new(cpu, a);
	response->updates = grown;
	grown[response->n_updates++] =
		(struct nri_update){ copy_text(a, container_id), on_linux, may_fail };
	return on_linux->resources != NULL;
}

void nri_update_cpu(struct nri_reply *reply, const char *container_id, const struct nri_cpu *cpu,
		    bool may_fail)
{
	(void)add_update(&reply->response, container_id, cpu, may_fail, reply->a);
}

int nri_refuse(struct nri_reply *reply, const char *fmt, ...)
{
	struct strbuf b;
	va_list ap;

	strbuf_init(&b, reply->a);
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	reply->refusal = b.failed ? "refused" : str_cstr(reply->a, strbuf_str(&b));
	/* Any negative number refuses; the text is what the runtime shows. */
	return -1;
}

/* --- requests --- */

struct method;

/* One call of the runtime, from its request to our response. */
struct exchange {
	struct session *s;
	uint32_t stream;
	const struct method *method; /* NULL until the request is decoded, or when unknown */
	struct str payload;
	struct nri_reply reply;
	const struct pb_message *response_message; /* NULL: a response without content */
	const void *response;
	struct nri_configured configured;
	int status; /* enum ttrpc_code */
};

typedef int (*serve_fn)(struct exchange *x, struct err *err);

struct method {
	const char *name;
	serve_fn serve;
	enum nri_event event; /* 0: none, or named in the message (StateChange) */
};

void session_init(struct session *s, const struct nri_handlers *handlers, void *user)
{
	*s = (struct session){ .handlers = handlers, .user = user };
	arena_init(&s->call, SESSION_MAX_MEMORY);
	arena_init(&s->syncing, SESSION_MAX_MEMORY);
	arena_init(&s->outgoing, 0);
}

void session_done(struct session *s)
{
	ttrpc_reader_done(&s->plugin_in);
	ttrpc_reader_done(&s->runtime_in);
	arena_done(&s->call);
	arena_done(&s->syncing);
	arena_done(&s->outgoing);
}

/* Called only when all bytes are sent or the connection is gone: `out` is one text, and moving its
 * rest to the front after each send would copy it again and again. */
static void reset_output(struct session *s)
{
	arena_reset(&s->outgoing);
	strbuf_init(&s->out, &s->outgoing);
	s->sent = 0;
}

static void drop_sync_parts(struct session *s)
{
	/* Freed, not kept for reuse: it may be megabytes, and is needed once per connection. */
	arena_done(&s->syncing);
	s->parts = (struct nri_sync){ 0 };
}

/* Queues a call to the runtime. Stream ids of a client are odd, so they rise by two. */
static int send_call(struct session *s, const char *method, const struct pb_message *m,
		     const void *value, uint32_t *ret_stream)
{
	struct ttrpc_request request = { .service = SERVICE_RUNTIME, .method = method };
	struct strbuf payload;
	int r;

	strbuf_init(&payload, &s->call);
	pb_encode(m, value, &payload);
	if (payload.failed)
		return -ENOMEM;
	request.payload = strbuf_str(&payload);
	r = ttrpc_write_request(&s->out, MUX_CONN_RUNTIME, s->next_stream, &request, &s->call);
	*ret_stream = s->next_stream;
	/* Also after a failure: an id must not be used twice, leaving one out is allowed
	 * (docs/reference/nri.md#ttrpc). */
	s->next_stream += 2;
	return r;
}

void session_start(struct session *s)
{
	const struct nri_register reg = { s->name, s->index, OUR_NRI_VERSION };

	ttrpc_reader_done(&s->plugin_in);
	ttrpc_reader_done(&s->runtime_in);
	s->mux = (struct mux_reader){ 0 };
	s->last_stream = 0;
	s->next_stream = 1;
	s->is_synced = s->can_update = false;
	arena_reset(&s->call);
	drop_sync_parts(s);
	reset_output(s);
	(void)send_call(s, "RegisterPlugin", &nri_register_message, &reg, &s->register_stream);
}

/* True when NRI >= 0.12.1: before that the runtime can deadlock when an update coincides with an
 * event (docs/reference/nri.md#locking). */
static bool version_can_update(const char *text)
{
	const uint64_t want[] = { 0, 12, 1 };
	struct str_split split = str_split(str_from(*text == 'v' ? text + 1 : text));

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct str part;
		uint64_t n;
		size_t digits = 0;

		if (!str_next(&split, '.', &part))
			return false;
		while (digits < part.n && part.p[digits] >= '0' && part.p[digits] <= '9')
			digits++; /* "1-rc.1", "1+dirty" */
		if (!str_to_u64((struct str){ part.p, digits }, UINT32_MAX, &n))
			return false;
		if (n != want[i])
			return n > want[i];
	}
	return true;
}

/* Without an explicit choice a plugin subscribes to the events it has handlers for. */
static uint32_t default_events(const struct nri_handlers *h)
{
	uint32_t own = NRI_MASK(NRI_CREATE_CONTAINER) | NRI_MASK(NRI_UPDATE_CONTAINER) |
		       NRI_MASK(NRI_STOP_CONTAINER);
	uint32_t mask = h->event ? NRI_MASK_EVERYWHERE & ~own : 0;

	if (h->create_container)
		mask |= NRI_MASK(NRI_CREATE_CONTAINER);
	if (h->update_container)
		mask |= NRI_MASK(NRI_UPDATE_CONTAINER);
	if (h->stop_container)
		mask |= NRI_MASK(NRI_STOP_CONTAINER);
	/* A mask of 0 subscribes to every event of the runtime, including unknown ones. */
	return mask ? mask : NRI_MASK(NRI_REMOVE_CONTAINER);
}

static int serve_configure(struct exchange *x, struct err *err)
{
	struct session *s = x->s;
	struct nri_runtime runtime;
	uint32_t events = s->events ? s->events : default_events(s->handlers);
	int r;

	pb_clear(&nri_runtime_message, &runtime);
	r = pb_decode(&nri_runtime_message, x->payload, &s->call, &runtime, err);
	if (r < 0)
		return r;
	s->can_update = version_can_update(runtime.nri_version);
	if (s->handlers->configure &&
	    s->handlers->configure(s->user, &runtime, &events, &x->reply) < 0 && !x->reply.refusal)
		nri_refuse(&x->reply, "configuration refused");
	x->configured.events = (int32_t)events;
	x->response_message = &nri_configured_message;
	x->response = &x->configured;
	return 0;
}

static int serve_synchronize(struct exchange *x, struct err *err)
{
	struct session *s = x->s;
	struct nri_inventory all;
	int r;

	s->parts.more = false;
	/* Decoding into the same struct continues its lists: after the last part they are the whole
	 * inventory. An absent `more` is not in the message, so it must be reset first. */
	r = pb_decode(&nri_sync_message, x->payload, &s->syncing, &s->parts, err);
	if (r < 0) {
		s->parts.more = false; /* the inventory is incomplete without this part: drop it */
		return r;
	}
	x->response_message = &nri_updated_message;
	x->response = &x->reply.response;
	if (s->parts.more) { /* the runtime expects "more" echoed, and no updates, for each part */
		x->reply.response.more = true;
		return 0;
	}
	all = (struct nri_inventory){ s->parts.pods, s->parts.n_pods, s->parts.containers,
				      s->parts.n_containers };
	if (s->handlers->synchronize && s->handlers->synchronize(s->user, &all, &x->reply) < 0 &&
	    !x->reply.refusal)
		nri_refuse(&x->reply, "synchronisation refused");
	if (!x->reply.refusal)
		s->is_synced = true;
	return 0;
}

/* A handler that fails without a text of its own refuses with the name of the method. */
static void check_handled(struct exchange *x, int r)
{
	if (r < 0 && !x->reply.refusal)
		nri_refuse(&x->reply, "%s refused", x->method->name);
}

static bool event_is_of_pod(enum nri_event e)
{
	return e <= NRI_REMOVE_POD || e == NRI_UPDATE_POD || e == NRI_POST_UPDATE_POD;
}

static int decode_call(struct exchange *x, const struct pb_message *m, struct nri_call *ret,
		       struct err *err)
{
	/* Enough instead of pb_clear(): the struct itself has no strings. */
	*ret = (struct nri_call){ 0 };
	return pb_decode(m, x->payload, &x->s->call, ret, err);
}

/* Runtimes always send both messages; handlers rely on that and never get NULL. */
static int check_call(const struct nri_call *call, bool of_pod, struct err *err)
{
	if (!call->pod || (!of_pod && !call->container))
		return err_set(err, EBADMSG, "no pod, or no container");
	return 0;
}

/* The three calls that have a handler of their own and a response with content. */
static int serve_container(struct exchange *x, struct err *err)
{
	static const struct nri_cpu nothing = { .cpus = "", .mems = "" };
	const struct nri_handlers *h = x->s->handlers;
	const enum nri_event event = x->method->event;
	struct nri_call call;
	int r;

	r = decode_call(x, &nri_call_message, &call, err);
	if (r == 0)
		r = check_call(&call, false, err);
	if (r < 0)
		return r;
	x->response_message = event == NRI_CREATE_CONTAINER ? &nri_created_message :
							      &nri_updated_message;
	x->response = &x->reply.response;
	if (event == NRI_CREATE_CONTAINER && h->create_container)
		r = h->create_container(x->s->user, call.pod, call.container, &x->reply);
	else if (event == NRI_STOP_CONTAINER && h->stop_container)
		r = h->stop_container(x->s->user, call.pod, call.container, &x->reply);
	else if (event == NRI_UPDATE_CONTAINER && h->update_container)
		r = h->update_container(
			x->s->user, call.pod, call.container,
			call.resources && call.resources->cpu ? call.resources->cpu : &nothing,
			&x->reply);
	check_handled(x, r);
	return 0;
}

/* Every other call about a pod or a container; its response has no content. */
static int serve_event(struct exchange *x, struct err *err)
{
	const struct nri_handlers *h = x->s->handlers;
	enum nri_event event = x->method->event;
	struct nri_call call;
	bool of_pod;
	int r;

	r = decode_call(x,
			event == 0	       ? &nri_state_change_message :
			event_is_of_pod(event) ? &nri_pod_call_message :
						 &nri_call_message,
			&call, err);
	if (r < 0)
		return r;
	if (event == 0) { /* StateChange: runtimes before NRI 0.12 name the event in the message */
		if (call.event < NRI_RUN_POD || call.event > NRI_POST_UPDATE_POD)
			return 0; /* an event of a newer NRI: success, and no handler */
		event = (enum nri_event)call.event;
	}
	of_pod = event_is_of_pod(event);
	r = check_call(&call, of_pod, err);
	if (r < 0)
		return r;
	if (h->event)
		check_handled(x, h->event(x->s->user, event, call.pod,
					  of_pod ? NULL : call.container, &x->reply));
	return 0;
}

/* The runtime closes the connection after this call; that is what the plugin acts on. */
static int serve_shutdown(struct exchange *x, struct err *err)
{
	(void)x;
	(void)err;
	return 0;
}

static const struct method methods[] = {
	{ "CreateContainer", serve_container, NRI_CREATE_CONTAINER },
	{ "UpdateContainer", serve_container, NRI_UPDATE_CONTAINER },
	{ "StopContainer", serve_container, NRI_STOP_CONTAINER },
	{ "StateChange", serve_event, 0 },
	{ "RunPodSandbox", serve_event, NRI_RUN_POD },
	{ "StopPodSandbox", serve_event, NRI_STOP_POD },
	{ "RemovePodSandbox", serve_event, NRI_REMOVE_POD },
	{ "PostCreateContainer", serve_event, NRI_POST_CREATE_CONTAINER },
	{ "StartContainer", serve_event, NRI_START_CONTAINER },
	{ "PostStartContainer", serve_event, NRI_POST_START_CONTAINER },
	{ "PostUpdateContainer", serve_event, NRI_POST_UPDATE_CONTAINER },
	{ "RemoveContainer", serve_event, NRI_REMOVE_CONTAINER },
	{ "UpdatePodSandbox", serve_event, NRI_UPDATE_POD },
	{ "PostUpdatePodSandbox", serve_event, NRI_POST_UPDATE_POD },
	{ "Configure", serve_configure, 0 },
	{ "Synchronize", serve_synchronize, 0 },
	{ "Shutdown", serve_shutdown, 0 },
};

static const struct method *method_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

const char *nri_event_name(enum nri_event event)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].event == event && event != 0)
			return methods[i].name;
	return "unknown";
}

/* Responds with a ttrpc status code instead of a handler's refusal. */
#define fail(x, code, ...) ((x)->status = (int)(code), (void)nri_refuse(&(x)->reply, __VA_ARGS__))

static void send_status(struct exchange *x, int code, const char *message)
{
	struct ttrpc_status status = { code, message };
	const struct ttrpc_response response = { &status, { 0 } };
	struct arena scratch;

	arena_init(&scratch, 0); /* the call's own may be exhausted */
	(void)ttrpc_write_response(&x->s->out, MUX_CONN_PLUGIN, x->stream, &response, &scratch);
	arena_done(&scratch);
}

static void send_response(struct exchange *x)
{
	struct ttrpc_response response = { 0 };
	struct strbuf payload;

	if (x->s->call.failed) { /* a partial response would leave a container unpinned */
		send_status(x, TTRPC_RESOURCE_EXHAUSTED, "out of memory for this request");
		return;
	}
	if (x->reply.refusal) {
		send_status(x, x->status ? x->status : TTRPC_UNKNOWN, x->reply.refusal);
		return;
	}
	strbuf_init(&payload, &x->s->call);
	if (x->response_message)
		pb_encode(x->response_message, x->response, &payload);
	response.payload = strbuf_str(&payload);
	if (payload.failed || ttrpc_write_response(&x->s->out, MUX_CONN_PLUGIN, x->stream,
						   &response, &x->s->call) < 0)
		send_status(x, TTRPC_RESOURCE_EXHAUSTED, "the response is too large");
}

static void dispatch(struct exchange *x, const struct ttrpc_frame *frame)
{
	struct ttrpc_request request;
	struct err err = { 0 };
	int r;

	r = ttrpc_request_decode(frame->data, &x->s->call, &request, &err);
	if (r < 0) {
		fail(x, TTRPC_INTERNAL, "ttrpc: error unmarshalling payload: %s", err.msg);
		return;
	}
	if (strcmp(request.service, SERVICE_PLUGIN) != 0) {
		fail(x, TTRPC_UNIMPLEMENTED, "service %s", quote(str_from(request.service)).text);
		return;
	}
	x->method = method_find(request.method);
	if (!x->method) {
		fail(x, TTRPC_UNIMPLEMENTED, "method %s", quote(str_from(request.method)).text);
		return;
	}
	x->payload = request.payload;
	r = x->method->serve(x, &err);
	if (r == -ENOMEM)
		fail(x, TTRPC_RESOURCE_EXHAUSTED, "%s", err.msg);
	else if (r < 0)
		fail(x, TTRPC_INTERNAL, "ttrpc: error unmarshalling payload: %s", err.msg);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The status texts are those of the Go ttrpc server. */
static void serve_request(struct session *s, const struct ttrpc_frame *frame)
{
	const bool was_synced = s->is_synced;
	const uint64_t began_ns = now_ns();
	struct exchange x = { .s = s, .stream = frame->stream, .reply.a = &s->call };

	if (frame->stream % 2 == 0) {
		fail(&x, TTRPC_INVALID_ARGUMENT,
		     "StreamID must be odd for client initiated streams");
	} else if (frame->stream <= s->last_stream) {
		fail(&x, TTRPC_INVALID_ARGUMENT, "StreamID cannot be re-used and must increment");
	} else {
		/* Before the length is checked: the id is used up also when the request is refused.
		 */
		s->last_stream = frame->stream;
		if (frame->is_oversized)
			fail(&x, TTRPC_RESOURCE_EXHAUSTED,
			     "message length %u exceed maximum message size of %u", frame->size,
			     TTRPC_MAX_DATA);
		else
			dispatch(&x, frame);
	}
	send_response(&x);
	/* A payload means that the method is known and its handler was called. */
	if (s->handlers->handled && x.payload.p)
		s->handlers->handled(s->user, x.method->name, now_ns() - began_ns);
	arena_reset(&s->call);
	if (!s->parts.more)
		drop_sync_parts(s);
	/* After the response is queued, so that a handler which sends updates does not send them
	 * before it. */
	if (s->is_synced && !was_synced && s->handlers->connected)
		s->handlers->connected(s->user);
}

/* Only the response to RegisterPlugin has an effect: a refusal ends the connection. Responses to
 * updates and to unknown streams are ignored. */
static int check_registration(struct session *s, const struct ttrpc_frame *frame, struct err *err)
{
	struct ttrpc_response response;
	int r;

	if (frame->stream != s->register_stream || frame->is_oversized)
		return 0;
	r = ttrpc_response_decode(frame->data, &s->call, &response, err);
	if (r < 0)
		return err_wrap(err, "response to the registration");
	if (response.status && response.status->code != TTRPC_OK)
		r = err_set(err, EACCES, "the runtime refused the registration: %s",
			    quote(str_from(response.status->message)).text);
	arena_reset(&s->call);
	return r;
}

static int feed_piece(struct session *s, const struct mux_piece *piece, struct err *err)
{
	const bool of_plugin = piece->conn == MUX_CONN_PLUGIN;
	struct str bytes = piece->bytes;
	struct ttrpc_frame frame;
	int r = 0;

	if (!of_plugin && piece->conn != MUX_CONN_RUNTIME)
		return 0; /* frames of other connection ids are ignored */
	while (r == 0 && bytes.n > 0 &&
	       ttrpc_read(of_plugin ? &s->plugin_in : &s->runtime_in, &bytes, &frame)) {
		if (of_plugin && frame.type == TTRPC_REQUEST)
			serve_request(s, &frame);
		else if (!of_plugin && frame.type == TTRPC_RESPONSE)
			r = check_registration(s, &frame, err);
		ttrpc_release(of_plugin ? &s->plugin_in : &s->runtime_in);
	}
	return r;
}

int session_feed(struct session *s, struct str bytes, struct err *err)
{
	struct mux_piece piece;
	int r;

	while ((r = mux_read(&s->mux, &bytes, &piece, err)) > 0) {
		r = feed_piece(s, &piece, err);
		if (r < 0)
			return r;
		/* A peer that sends requests but reads nothing would otherwise grow this buffer
		 * without limit. */
		if (s->out.n - s->sent > SESSION_MAX_PENDING)
			return err_set(err, ENOBUFS, "the runtime does not read our responses");
	}
	return r;
}

struct str session_pending(const struct session *s)
{
	return str_skip(strbuf_str(&s->out), s->sent);
}

void session_sent(struct session *s, size_t n)
{
	s->sent += n;
	if (s->sent >= s->out.n)
		reset_output(s);
}

int session_update(struct session *s, const char *container_id, const struct nri_cpu *cpu)
{
	struct nri_response response = { 0 };
	uint32_t stream;
	int r;

	if (!add_update(&response, container_id, cpu, true, &s->call))
		return -ENOMEM;
	r = send_call(s, "UpdateContainers", &nri_updated_message, &response, &stream);
	arena_reset(&s->call);
	return r;
}
