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

/* One call of the runtime, from the end of its request to our response. */
struct exchange {
	struct session *s;
	uint32_t stream;
	const struct method *method; /* NULL when unknown */
	struct nri_reply reply;
	const struct pb_message *response_message; /* NULL: a response without content */
	const void *response;
	struct nri_configured configured;
	int status;	 /* enum ttrpc_code */
	bool is_handled; /* the method is known and its handler was called */
};

typedef int (*serve_fn)(struct exchange *x, struct err *err);

struct method {
	const char *name;
	serve_fn serve;
	enum nri_event event; /* 0: none, or named in the message (StateChange) */
	const struct pb_message *message;
};

static bool wants_pair(void *user, unsigned map, struct str key);
static int begin_payload(void *user, struct pb_payload *ret, struct err *err);

void session_init(struct session *s, const struct nri_handlers *handlers, void *user)
{
	*s = (struct session){ .handlers = handlers,
			       .user = user,
			       .filter = { wants_pair, s, NRI_KEEP_MAX },
			       .stream = { .on_payload = begin_payload, .user = s } };
	if (handlers->keep)
		s->stream.filter = &s->filter;
	arena_init(&s->call, handlers->keep ? SESSION_MAX_KEPT : SESSION_MAX_MEMORY);
	arena_init(&s->syncing, handlers->keep ? SESSION_MAX_KEPT : SESSION_MAX_MEMORY);
	arena_init(&s->own, 0);
	arena_init(&s->outgoing, 0);
}

void session_done(struct session *s)
{
	ttrpc_reader_done(&s->plugin_in);
	ttrpc_reader_done(&s->runtime_in);
	pb_stream_done(&s->stream);
	arena_done(&s->call);
	arena_done(&s->own);
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

	strbuf_init(&payload, &s->own);
	pb_encode(m, value, &payload);
	if (payload.failed)
		return -ENOMEM;
	request.payload = strbuf_str(&payload);
	r = ttrpc_write_request(&s->out, MUX_CONN_RUNTIME, s->next_stream, &request, &s->own);
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
	s->is_configured = s->is_synced = s->can_update = false;
	arena_reset(&s->call);
	arena_reset(&s->own);
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
		while (digits < part.n && str_is_digit(part.p[digits]))
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
	const struct nri_runtime *runtime = &s->in.runtime;
	uint32_t events = s->events ? s->events : default_events(s->handlers);

	(void)err;
	s->is_configured = true;
	s->can_update = version_can_update(runtime->nri_version);
	if (s->handlers->configure &&
	    s->handlers->configure(s->user, runtime, &events, &x->reply) < 0 && !x->reply.refusal)
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

	(void)err;
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
	const struct nri_call *call = &x->s->in.call;
	int r;

	r = check_call(call, false, err);
	if (r < 0)
		return r;
	x->response_message = event == NRI_CREATE_CONTAINER ? &nri_created_message :
							      &nri_updated_message;
	x->response = &x->reply.response;
	if (event == NRI_CREATE_CONTAINER && h->create_container)
		r = h->create_container(x->s->user, call->pod, call->container, &x->reply);
	else if (event == NRI_STOP_CONTAINER && h->stop_container)
		r = h->stop_container(x->s->user, call->pod, call->container, &x->reply);
	else if (event == NRI_UPDATE_CONTAINER && h->update_container)
		r = h->update_container(
			x->s->user, call->pod, call->container,
			call->resources && call->resources->cpu ? call->resources->cpu : &nothing,
			&x->reply);
	check_handled(x, r);
	return 0;
}

/* Every other call about a pod or a container; its response has no content. */
static int serve_event(struct exchange *x, struct err *err)
{
	const struct nri_handlers *h = x->s->handlers;
	enum nri_event event = x->method->event;
	const struct nri_call *call = &x->s->in.call;
	bool of_pod;
	int r;

	if (event == 0) { /* StateChange: runtimes before NRI 0.12 name the event in the message */
		if (call->event < NRI_RUN_POD || call->event > NRI_POST_UPDATE_POD)
			return 0; /* an event of a newer NRI: success, and no handler */
		event = (enum nri_event)call->event;
	}
	of_pod = event_is_of_pod(event);
	r = check_call(call, of_pod, err);
	if (r < 0)
		return r;
	if (h->event)
		check_handled(x, h->event(x->s->user, event, call->pod,
					  of_pod ? NULL : call->container, &x->reply));
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
	{ "CreateContainer", serve_container, NRI_CREATE_CONTAINER, &nri_call_message },
	{ "UpdateContainer", serve_container, NRI_UPDATE_CONTAINER, &nri_call_message },
	{ "StopContainer", serve_container, NRI_STOP_CONTAINER, &nri_call_message },
	{ "StateChange", serve_event, 0, &nri_state_change_message },
	{ "RunPodSandbox", serve_event, NRI_RUN_POD, &nri_pod_call_message },
	{ "StopPodSandbox", serve_event, NRI_STOP_POD, &nri_pod_call_message },
	{ "RemovePodSandbox", serve_event, NRI_REMOVE_POD, &nri_pod_call_message },
	{ "PostCreateContainer", serve_event, NRI_POST_CREATE_CONTAINER, &nri_call_message },
	{ "StartContainer", serve_event, NRI_START_CONTAINER, &nri_call_message },
	{ "PostStartContainer", serve_event, NRI_POST_START_CONTAINER, &nri_call_message },
	{ "PostUpdateContainer", serve_event, NRI_POST_UPDATE_CONTAINER, &nri_call_message },
	{ "RemoveContainer", serve_event, NRI_REMOVE_CONTAINER, &nri_call_message },
	{ "UpdatePodSandbox", serve_event, NRI_UPDATE_POD, &nri_pod_call_message },
	{ "PostUpdatePodSandbox", serve_event, NRI_POST_UPDATE_POD, &nri_pod_call_message },
	{ "Configure", serve_configure, 0, &nri_runtime_message },
	{ "Synchronize", serve_synchronize, 0, &nri_sync_message },
	{ "Shutdown", serve_shutdown, 0, NULL },
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

/* --- receiving --- */

static bool wants_pair(void *user, unsigned map, struct str key)
{
	const struct session *s = user;
	char text[512];

	if (key.n >= sizeof(text) || memchr(key.p, 0, key.n))
		return false;
	memcpy(text, key.p, key.n);
	text[key.n] = 0;
	return s->handlers->keep(s->user, (enum nri_metadata)map, text);
}

static const struct method *method_of(const struct ttrpc_request *head)
{
	return strcmp(head->service, SERVICE_PLUGIN) == 0 ? method_find(head->method) : NULL;
}

/* Service and method come before the payload, as every encoder writes them, and say what it is. */
static int begin_payload(void *user, struct pb_payload *ret, struct err *err)
{
	struct session *s = user;

	if (s->in.has_payload)
		return err_set(err, EBADMSG, "two payloads");
	s->in.has_payload = true;
	s->in.method = method_of(&s->in.head);
	if (!s->in.method || !s->in.method->message)
		return 0;
	*ret = (struct pb_payload){ s->in.method->message, &s->in.call, &s->call };
	if (ret->message == &nri_runtime_message)
		ret->value = &s->in.runtime;
	if (ret->message != &nri_sync_message)
		return 0;
	/* Decoding into the same struct continues its lists: after the last part they are the whole
	 * inventory. An absent `more` is not in the message, so it must be reset first. */
	s->parts.more = false;
	ret->value = &s->parts;
	ret->a = &s->syncing;
	return 0;
}

static void begin_request(struct session *s, const struct ttrpc_frame *frame)
{
	s->in = (struct session_call){ 0 };
	pb_clear(&ttrpc_request_message, &s->in.head);
	pb_clear(&nri_runtime_message, &s->in.runtime);
	pb_stream_start(&s->stream, &ttrpc_request_message, &s->in.head, &s->call, frame->size);
	/* The texts are those of the Go ttrpc server. */
	if (frame->stream % 2 == 0) {
		s->in.status = TTRPC_INVALID_ARGUMENT;
		(void)err_set(&s->in.problem, EPROTO,
			      "StreamID must be odd for client initiated streams");
	} else if (frame->stream <= s->last_stream) {
		s->in.status = TTRPC_INVALID_ARGUMENT;
		(void)err_set(&s->in.problem, EPROTO,
			      "StreamID cannot be re-used and must increment");
	} else {
		/* Before the length is checked: the id is used up also when the request is refused.
		 */
		s->last_stream = frame->stream;
		if (!frame->is_oversized)
			return;
		s->in.status = TTRPC_RESOURCE_EXHAUSTED;
		(void)err_set(&s->in.problem, EMSGSIZE,
			      "message length %u exceed maximum message size of %u", frame->size,
			      TTRPC_MAX_DATA);
	}
}

static void dispatch(struct exchange *x)
{
	struct session *s = x->s;
	struct session_call *in = &s->in;
	int r = in->problem.code ? -in->problem.code : 0;

	x->method = method_of(&in->head);
	if (r == 0 && in->has_payload && x->method != in->method)
		r = err_set(&in->problem, EBADMSG, "the method follows the payload");
	if (r == 0 && strcmp(in->head.service, SERVICE_PLUGIN) != 0) {
		fail(x, TTRPC_UNIMPLEMENTED, "service %s", quote(str_from(in->head.service)).text);
		return;
	}
	if (r == 0 && !x->method) {
		fail(x, TTRPC_UNIMPLEMENTED, "method %s", quote(str_from(in->head.method)).text);
		return;
	}
	if (r == 0)
		r = x->method->serve(x, &in->problem);
	/* Without this part the inventory is incomplete: the earlier ones are dropped. */
	if (r < 0 && in->method && in->method->message == &nri_sync_message)
		s->parts.more = false;
	if (r == -ENOMEM)
		fail(x, TTRPC_RESOURCE_EXHAUSTED, "%s", in->problem.msg);
	else if (r < 0)
		fail(x, TTRPC_INTERNAL, "ttrpc: error unmarshalling payload: %s", in->problem.msg);
	x->is_handled = r == 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void serve_request(struct session *s, const struct ttrpc_frame *frame)
{
	const bool was_synced = s->is_synced;
	const uint64_t began_ns = now_ns();
	struct exchange x = { .s = s, .stream = frame->stream, .reply.a = &s->call };

	if (s->in.status)
		fail(&x, s->in.status, "%s", s->in.problem.msg);
	else
		dispatch(&x);
	send_response(&x);
	if (s->handlers->handled && x.is_handled)
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
	r = ttrpc_response_decode(frame->data, &s->own, &response, err);
	if (r < 0)
		return err_wrap(err, "response to the registration");
	if (response.status && response.status->code != TTRPC_OK)
		r = err_set(err, EACCES, "the runtime refused the registration: %s",
			    quote(str_from(response.status->message)).text);
	arena_reset(&s->own);
	return r;
}

/* The data is decoded as it comes and never stored: a synchronization is megabytes long. */
static void feed_request(struct session *s, struct str bytes)
{
	struct ttrpc_piece piece;

	while (bytes.n > 0 && ttrpc_read_piece(&s->plugin_in, &bytes, &piece)) {
		if (piece.frame->type != TTRPC_REQUEST)
			continue;
		if (piece.is_first)
			begin_request(s, piece.frame);
		if (!s->in.problem.code)
			(void)pb_stream_feed(&s->stream, piece.bytes, &s->in.problem);
		if (piece.is_last)
			serve_request(s, piece.frame);
	}
}

static int feed_response(struct session *s, struct str bytes, struct err *err)
{
	struct ttrpc_frame frame;
	int r = 0;

	while (r == 0 && bytes.n > 0 && ttrpc_read(&s->runtime_in, &bytes, &frame)) {
		if (frame.type == TTRPC_RESPONSE)
			r = check_registration(s, &frame, err);
		ttrpc_release(&s->runtime_in);
	}
	return r;
}

int session_feed(struct session *s, struct str bytes, struct err *err)
{
	struct mux_piece piece;
	int r;

	while ((r = mux_read(&s->mux, &bytes, &piece, err)) > 0) {
		/* Frames of other connection ids are ignored. */
		if (piece.conn == MUX_CONN_PLUGIN)
			feed_request(s, piece.bytes);
		else if (piece.conn == MUX_CONN_RUNTIME)
			r = feed_response(s, piece.bytes, err);
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

	if (!add_update(&response, container_id, cpu, true, &s->own))
		return -ENOMEM;
	r = send_call(s, "UpdateContainers", &nri_updated_message, &response, &stream);
	arena_reset(&s->own);
	return r;
}
