/* The session against old runtimes and malformed input (docs/reference/nri.md#malformed-input). */

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "nri_runtime.h"

struct seen {
	size_t n_pods, n_containers, n_syncs, n_events, n_handled;
	enum nri_event event;
	bool connected;
	uint32_t events;
};

static int on_configure(void *user, const struct nri_runtime *runtime, uint32_t *events,
			struct nri_reply *reply)
{
	struct seen *seen = user;

	if (strcmp(runtime->name, "hostile") == 0)
		return nri_refuse(reply, "not with %s", runtime->name);
	seen->events = *events;
	return 0;
}

static int on_sync(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	struct seen *seen = user;

	seen->n_pods = all->n_pods;
	seen->n_containers = all->n_containers;
	seen->n_syncs++;
	for (size_t i = 0; i < all->n_containers; i++)
		nri_update_cpu(reply, all->containers[i].id, &(struct nri_cpu){ .cpus = "0" },
			       true);
	return 0;
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	(void)user;
	(void)pod;
	(void)c;
	nri_adjust_cpu(reply, &(struct nri_cpu){ .cpus = "0" });
	nri_adjust_annotation(reply, "a", "1");
	nri_adjust_env(reply, "E", "2");
	return 0;
}

static int on_event(void *user, enum nri_event event, const struct nri_pod *pod,
		    const struct nri_container *c, struct nri_reply *reply)
{
	struct seen *seen = user;

	(void)pod;
	seen->n_events++;
	seen->event = event;
	if (c && strcmp(c->id, "bad") == 0)
		return -1;
	(void)reply;
	return 0;
}

static void on_connected(void *user)
{
	((struct seen *)user)->connected = true;
}

static void on_handled(void *user, const char *method, uint64_t ns)
{
	(void)ns;
	CHECK(method[0]);
	((struct seen *)user)->n_handled++;
}

static const struct nri_handlers handlers = {
	.configure = on_configure,
	.synchronize = on_sync,
	.create_container = on_create,
	.event = on_event,
	.connected = on_connected,
	.handled = on_handled,
};

struct bench {
	struct arena a;
	struct session s;
	struct seen seen;
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){ 0 };
	arena_init(&b->a, 0);
	session_init(&b->s, &handlers, &b->seen);
	b->s.name = "test";
	b->s.index = "10";
	session_start(&b->s);
	(void)runtime_take(&b->s, MUX_CONN_RUNTIME, &b->a);
}

static void bench_done(struct bench *b)
{
	session_done(&b->s);
	arena_done(&b->a);
}

/* Feeds one call and returns the response. */
static struct ttrpc_response call(struct bench *b, const char *method, uint32_t stream,
				  struct str payload)
{
	struct err err = { 0 };

	CHECK_OK(session_feed(&b->s, runtime_request(method, stream, payload, &b->a), &err));
	return runtime_response(&b->s, stream, &b->a);
}

static void check_status(const struct ttrpc_response *r, int code, const char *message)
{
	CHECK(r->status != NULL);
	CHECK_INT(r->status->code, code);
	CHECK_STR(r->status->message, message);
	CHECK_UINT(r->payload.n, 0);
}

static struct str create_request(struct arena *a)
{
	struct nri_pod pod = { .id = "p" };
	struct nri_container c = { .id = "c" };
	struct nri_call m = { .pod = &pod, .container = &c };

	return runtime_encode(&nri_call_message, &m, a);
}

struct kept {
	size_t n_labels, n_annotations, bytes;
};

static int on_create_kept(void *user, const struct nri_pod *pod, const struct nri_container *c,
			  struct nri_reply *reply)
{
	struct kept *kept = user;

	(void)reply;
	*kept = (struct kept){ pod->n_labels + c->n_labels, pod->n_annotations,
			       pod->annotation_bytes };
	if (pod->n_annotations > 0)
		CHECK_STR(nri_find(pod->annotations, pod->n_annotations, "b"), "2");
	return 0;
}

static bool on_keep(void *user, enum nri_metadata kind, const char *key)
{
	(void)user;
	return kind == NRI_POD_ANNOTATION && (key[0] == 'b' || key[0] == 'x');
}

TEST(a_plugin_gets_the_labels_and_annotations_that_it_keeps)
{
	static const struct nri_handlers all = { .create_container = on_create_kept };
	static const struct nri_handlers some = { .create_container = on_create_kept,
						  .keep = on_keep };
	static char large[NRI_KEEP_MAX + 1];
	struct nri_pair pairs[] = { { "a", "1" }, { "b", "2" }, { "x", large } };
	const struct {
		const struct nri_handlers *handlers;
		size_t n_pairs, n_labels, n_annotations;
		bool is_over;
	} rows[] = {
		{ &all, 2, 4, 2, false },
		{ &some, 2, 0, 1, false },
		{ &all, 3, 6, 3, true },
		{ &some, 3, 0, 0, true }, /* none of them, not a part */
	};

	memset(large, 'y', sizeof(large) - 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t piece = 1; piece < 100000; piece = piece * 7 + 1) {
			CLEANUP(arena_done) struct arena a;
			struct nri_pod pod = { .labels = pairs,
					       .annotations = pairs,
					       .n_labels = rows[i].n_pairs,
					       .n_annotations = rows[i].n_pairs };
			struct nri_container c = { .labels = pairs, .n_labels = rows[i].n_pairs };
			const struct nri_call call = { .pod = &pod, .container = &c };
			struct kept kept = { .n_labels = 99 };
			struct err err = { 0 };
			struct session s;
			struct str bytes;

			TEST_ROW("row %zu, in pieces of %zu", i, piece);
			arena_init(&a, 0);
			session_init(&s, rows[i].handlers, &kept);
			s.name = s.index = "10";
			session_start(&s);
			bytes = runtime_request("CreateContainer", 1,
						runtime_encode(&nri_call_message, &call, &a), &a);
			for (; bytes.n > 0; bytes = str_skip(bytes, piece))
				CHECK_OK(session_feed(
					&s,
					(struct str){ bytes.p, bytes.n < piece ? bytes.n : piece },
					&err));
			CHECK_UINT(kept.n_labels, rows[i].n_labels);
			CHECK_UINT(kept.n_annotations, rows[i].n_annotations);
			CHECK((kept.bytes > NRI_KEEP_MAX) == rows[i].is_over);
			session_done(&s);
		}
}

TEST(configure_is_served_before_the_response_to_the_registration)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;
	struct err err = { 0 };
	struct strbuf wire;

	bench_init(&b);
	r = call(&b, "Configure", 1, STR(""));
	CHECK(!r.status);
	/* Create and every event, but not Update and Stop: they have no handler. */
	CHECK_STR(runtime_to_hex(r.payload, &b.a), "10ff0a");
	CHECK_UINT(b.seen.events, 0x57f);

	strbuf_init(&wire, &b.a);
	CHECK(ttrpc_write_response(&wire, MUX_CONN_RUNTIME, 1, &(struct ttrpc_response){ 0 },
				   &b.a) == 0);
	CHECK_OK(session_feed(&b.s, strbuf_str(&wire), &err));
	CHECK(!b.seen.connected);
	r = call(&b, "Synchronize", 3, STR(""));
	CHECK(!r.status);
	CHECK(b.seen.connected && b.s.is_synced);
}

TEST(a_refused_registration_ends_the_connection_with_the_runtimes_message)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_status status = { 2, "invalid plugin index" };
	struct err err = { 0 };
	struct strbuf wire;

	bench_init(&b);
	strbuf_init(&wire, &b.a);
	CHECK(ttrpc_write_response(&wire, MUX_CONN_RUNTIME, 1,
				   &(struct ttrpc_response){ .status = &status }, &b.a) == 0);
	CHECK_ERR(session_feed(&b.s, strbuf_str(&wire), &err), EACCES,
		  "the runtime refused the registration: \"invalid plugin index\"");
}

TEST(a_response_to_an_unknown_stream_is_ignored)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_status status = { 2, "no" };
	struct err err = { 0 };
	struct strbuf wire;

	bench_init(&b);
	strbuf_init(&wire, &b.a);
	CHECK(ttrpc_write_response(&wire, MUX_CONN_RUNTIME, 77,
				   &(struct ttrpc_response){ .status = &status }, &b.a) == 0);
	CHECK_OK(session_feed(&b.s, strbuf_str(&wire), &err));
}

TEST(updates_are_sent_with_the_last_part_of_a_synchronization)
{
	CLEANUP(bench_done) struct bench b;
	struct nri_pod pods[3] = { { .id = "p0" }, { .id = "p1" }, { .id = "p2" } };
	struct nri_container c[2] = { { .id = "c0" }, { .id = "c1" } };
	struct nri_sync part1 = { .pods = pods, .n_pods = 2, .more = true };
	struct nri_sync part2 = {
		.pods = pods + 2, .n_pods = 1, .containers = c, .n_containers = 1, .more = true
	};
	struct nri_sync part3 = { .containers = c + 1, .n_containers = 1 };
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "Synchronize", 3, runtime_encode(&nri_sync_message, &part1, &b.a));
	CHECK_STR(runtime_to_hex(r.payload, &b.a), "1001");
	r = call(&b, "Synchronize", 7, runtime_encode(&nri_sync_message, &part2, &b.a));
	CHECK_STR(runtime_to_hex(r.payload, &b.a), "1001");
	CHECK_UINT(b.seen.n_syncs, 0);
	CHECK(!b.s.is_synced);
	r = call(&b, "Synchronize", 9, runtime_encode(&nri_sync_message, &part3, &b.a));
	CHECK_STR(runtime_to_hex(r.payload, &b.a), "0a0f0a02633012070a0512033201301801"
						   "0a0f0a02633112070a0512033201301801");
	CHECK_UINT(b.seen.n_pods, 3);
	CHECK_UINT(b.seen.n_containers, 2);
	/* The next synchronization starts from an empty inventory. */
	(void)call(&b, "Synchronize", 11, runtime_encode(&nri_sync_message, &part3, &b.a));
	CHECK_UINT(b.seen.n_pods, 0);
	CHECK_UINT(b.seen.n_containers, 1);
}

TEST(unknown_methods_and_services_get_status_unimplemented)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_request other = { "some.other.Service", "Configure", { 0 }, 0 };
	struct ttrpc_response r;
	struct err err = { 0 };
	struct strbuf wire;

	bench_init(&b);
	r = call(&b, "ValidateContainerAdjustment", 1, STR(""));
	check_status(&r, TTRPC_UNIMPLEMENTED, "method \"ValidateContainerAdjustment\"");
	r = call(&b, "", 3, STR(""));
	check_status(&r, TTRPC_UNIMPLEMENTED, "method \"\"");
	strbuf_init(&wire, &b.a);
	CHECK(ttrpc_write_request(&wire, MUX_CONN_PLUGIN, 5, &other, &b.a) == 0);
	CHECK_OK(session_feed(&b.s, strbuf_str(&wire), &err));
	r = runtime_response(&b.s, 5, &b.a);
	check_status(&r, TTRPC_UNIMPLEMENTED, "service \"some.other.Service\"");
}

TEST(stream_ids_must_be_odd_and_rising)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "Shutdown", 2, STR(""));
	check_status(&r, 3, "StreamID must be odd for client initiated streams");
	r = call(&b, "Shutdown", 5, STR(""));
	CHECK(!r.status && r.payload.n == 0);
	r = call(&b, "Shutdown", 5, STR(""));
	check_status(&r, 3, "StreamID cannot be re-used and must increment");
	r = call(&b, "Shutdown", 3, STR(""));
	check_status(&r, 3, "StreamID cannot be re-used and must increment");
	r = call(&b, "Shutdown", 9, STR("")); /* numbers may be left out */
	CHECK(!r.status);
}

TEST(a_payload_that_is_not_protobuf_gets_status_internal)
{
	static const char *const methods[] = {
		"Configure",	   "Synchronize",     "CreateContainer",
		"UpdateContainer", "StopContainer",   "StateChange",
		"RunPodSandbox",   "RemoveContainer", "UpdatePodSandbox",
	};
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;
	struct err err = { 0 };

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		TEST_ROW("%s", methods[i]);
		r = call(&b, methods[i], (uint32_t)(2 * i + 1),
			 STR("\x0a\x05"
			     "ab"));
		check_status(&r, TTRPC_INTERNAL,
			     "ttrpc: error unmarshalling payload: the message ends inside a field");
	}
	/* the envelope itself */
	CHECK_OK(session_feed(&b.s,
			      STR("\0\0\0\1\0\0\0\x0c"
				  "\0\0\0\2\0\0\0\x63\1\0"
				  "\x0a\x05"),
			      &err));
	r = runtime_response(&b.s, 0x63, &b.a);
	CHECK_INT(r.status->code, TTRPC_INTERNAL);
	CHECK(!b.s.is_synced);
}

TEST(a_call_without_its_pod_or_container_is_refused)
{
	CLEANUP(bench_done) struct bench b;
	struct nri_pod pod = { .id = "p" };
	struct nri_call only_pod = { .pod = &pod };
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "CreateContainer", 1, STR(""));
	check_status(&r, 13, "ttrpc: error unmarshalling payload: no pod, or no container");
	r = call(&b, "StartContainer", 3, runtime_encode(&nri_call_message, &only_pod, &b.a));
	check_status(&r, 13, "ttrpc: error unmarshalling payload: no pod, or no container");
	r = call(&b, "StopPodSandbox", 5, runtime_encode(&nri_call_message, &only_pod, &b.a));
	CHECK(!r.status);
	CHECK_UINT(b.seen.n_events, 1);
}

TEST(state_change_and_the_method_of_an_event_call_the_same_handler)
{
	static const struct {
		const char *method;
		enum nri_event event;
	} rows[] = {
		{ "RunPodSandbox", NRI_RUN_POD },
		{ "StopPodSandbox", NRI_STOP_POD },
		{ "RemovePodSandbox", NRI_REMOVE_POD },
		{ "PostCreateContainer", NRI_POST_CREATE_CONTAINER },
		{ "StartContainer", NRI_START_CONTAINER },
		{ "PostStartContainer", NRI_POST_START_CONTAINER },
		{ "PostUpdateContainer", NRI_POST_UPDATE_CONTAINER },
		{ "RemoveContainer", NRI_REMOVE_CONTAINER },
		{ "UpdatePodSandbox", NRI_UPDATE_POD },
		{ "PostUpdatePodSandbox", NRI_POST_UPDATE_POD },
	};
	CLEANUP(bench_done) struct bench b;
	struct nri_pod pod = { .id = "p" };
	struct nri_container c = { .id = "c" };
	uint32_t stream = 1;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nri_call m = { .event = (int32_t)rows[i].event,
				      .pod = &pod,
				      .container = &c };
		struct ttrpc_response r;

		TEST_ROW("%s", rows[i].method);
		b.seen.event = 0;
		r = call(&b, rows[i].method, stream, runtime_encode(&nri_call_message, &m, &b.a));
		CHECK(!r.status && r.payload.n == 0);
		CHECK_INT(b.seen.event, rows[i].event);
		b.seen.event = 0;
		r = call(&b, "StateChange", stream + 2,
			 runtime_encode(&nri_state_change_message, &m, &b.a));
		CHECK(!r.status && r.payload.n == 0);
		CHECK_INT(b.seen.event, rows[i].event);
		CHECK_STR(nri_event_name(rows[i].event), rows[i].method);
		stream += 4;
	}
	CHECK_UINT(b.seen.n_handled, 2 * ARRAY_LEN(rows));
}

TEST(an_event_of_a_newer_runtime_is_acknowledged)
{
	CLEANUP(bench_done) struct bench b;
	struct nri_call m = { .event = 99 };
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "StateChange", 1, runtime_encode(&nri_state_change_message, &m, &b.a));
	CHECK(!r.status);
	CHECK_UINT(b.seen.n_events, 0);
}

TEST(a_handler_that_fails_without_a_message_refuses_with_the_method_name)
{
	CLEANUP(bench_done) struct bench b;
	struct nri_pod pod = { .id = "p" };
	struct nri_container c = { .id = "bad" };
	struct nri_call m = { .pod = &pod, .container = &c };
	struct nri_runtime hostile = { .name = "hostile" };
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "StartContainer", 1, runtime_encode(&nri_call_message, &m, &b.a));
	check_status(&r, TTRPC_UNKNOWN, "StartContainer refused");
	r = call(&b, "Configure", 3, runtime_encode(&nri_runtime_message, &hostile, &b.a));
	check_status(&r, TTRPC_UNKNOWN, "not with hostile");
}

TEST(an_adjustment_carries_cpus_annotations_and_environment)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;

	bench_init(&b);
	r = call(&b, "CreateContainer", 1, create_request(&b.a));
	CHECK_STR(runtime_to_hex(r.payload, &b.a), "0a19"
						   "12060a016112013122060a0145120132"
						   "32071205120332"
						   "0130");
}

TEST(an_oversized_request_gets_a_status_and_the_next_one_is_served)
{
	enum { SIZE = 4194305 };
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;
	struct err err = { 0 };
	char *zeros;

	bench_init(&b);
	zeros = arena_zalloc(&b.a, SIZE, 1);
	/* 4194305 bytes of data in two frames, each within its limit */
	CHECK_OK(session_feed(&b.s,
			      STR("\0\0\0\1\0\0\0\x0a"
				  "\0\x40\0\1\0\0\0\1\1\0"),
			      &err));
	CHECK_OK(session_feed(&b.s, STR("\0\0\0\1\0\x40\0\1"), &err));
	CHECK_OK(session_feed(&b.s, (struct str){ zeros, SIZE }, &err));
	r = runtime_response(&b.s, 1, &b.a);
	check_status(&r, TTRPC_RESOURCE_EXHAUSTED,
		     "message length 4194305 exceed maximum message size of 4194304");
	r = call(&b, "Shutdown", 3, STR(""));
	CHECK(!r.status);
}

TEST(a_request_that_needs_too_much_memory_is_refused_and_the_next_one_served)
{
	const size_t size = 4000000;
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_response r;
	char *pods;

	bench_init(&b);
	pods = arena_zalloc(&b.a, size, 1);
	for (size_t i = 0; i < size; i += 2)
		pods[i] = 0x0a; /* an empty pod, of two bytes */
	r = call(&b, "Synchronize", 1, (struct str){ pods, size });
	check_status(&r, TTRPC_RESOURCE_EXHAUSTED, "the message needs more memory than allowed");
	CHECK(!b.s.is_synced);
	r = call(&b, "Synchronize", 3, STR(""));
	CHECK(!r.status);
	CHECK_UINT(b.seen.n_pods, 0);
}

TEST(frames_of_other_connections_and_messages_of_other_types_are_ignored)
{
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_init(&b);
	CHECK_OK(session_feed(&b.s,
			      STR("\0\0\0\0\0\0\0\2ab"
				  "\0\0\0\3\0\0\0\1c"),
			      &err));
	/* data, response and an unknown type on our connection; a request on the other */
	CHECK_OK(session_feed(&b.s,
			      STR("\0\0\0\1\0\0\0\x1e"
				  "\0\0\0\0\0\0\0\1\3\0"
				  "\0\0\0\0\0\0\0\1\2\0"
				  "\0\0\0\0\0\0\0\1\x09\0"
				  "\0\0\0\2\0\0\0\x0a"
				  "\0\0\0\0\0\0\0\1\1\0"),
			      &err));
	CHECK_UINT(session_pending(&b.s).n, 0);
}

TEST(two_calls_in_one_frame_and_one_call_in_many_are_served)
{
	CLEANUP(bench_done) struct bench b;
	struct ttrpc_reader reader = { 0 };
	struct err err = { 0 };
	struct ttrpc_frame f;
	struct strbuf both, wire;
	struct str stream, responses;

	bench_init(&b);
	strbuf_init(&both, &b.a);
	strbuf_add(&both, runtime_stream(runtime_request("Shutdown", 1, STR(""), &b.a), 1, &b.a));
	strbuf_add(&both, runtime_stream(runtime_request("Shutdown", 3, STR(""), &b.a), 1, &b.a));
	strbuf_init(&wire, &b.a);
	mux_write(&wire, MUX_CONN_PLUGIN, strbuf_str(&both));
	stream = runtime_stream(runtime_request("Shutdown", 5, STR(""), &b.a), 1, &b.a);
	for (size_t i = 0; i < stream.n; i++)
		mux_write(&wire, MUX_CONN_PLUGIN, (struct str){ stream.p + i, 1 });
	for (size_t i = 0; i < wire.n; i++)
		CHECK_OK(session_feed(&b.s, (struct str){ wire.p + i, 1 }, &err));
	responses = runtime_take(&b.s, MUX_CONN_PLUGIN, &b.a);
	for (uint32_t want = 1; want <= 5; want += 2) {
		CHECK(ttrpc_read(&reader, &responses, &f));
		CHECK_UINT(f.stream, want);
	}
	CHECK_UINT(responses.n, 0);
	ttrpc_reader_done(&reader);
}

TEST(unsolicited_updates_need_nri_0_12_1)
{
	static const struct {
		const char *version;
		bool can;
	} rows[] = {
		{ "", false },	     { "v0.12.0", false },
		{ "0.12.0", false }, { "v0.11.9", false },
		{ "v0.12.1", true }, { "0.12.1", true },
		{ "v0.12.2", true }, { "v0.13.0", true },
		{ "v1.0.0", true },  { "v0.12.1-rc.1", true },
		{ "v0.12", false },  { "nonsense", false },
		{ "v0.x.1", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(bench_done) struct bench b;
		struct nri_runtime runtime = { .nri_version = rows[i].version };
		struct ttrpc_response r;

		TEST_ROW("\"%s\"", rows[i].version);
		bench_init(&b);
		r = call(&b, "Configure", 1, runtime_encode(&nri_runtime_message, &runtime, &b.a));
		CHECK(!r.status);
		CHECK_INT(b.s.can_update, rows[i].can);
	}
}
