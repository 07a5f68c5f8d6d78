/* Byte for byte against examples in the format of docs/reference/nri.md, and against sessions
 * recorded between real runtimes and a plugin of the Go library. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/macro.h"
#include "nri_runtime.h"

#define RUN_POD                                                                                    \
	"0a92010a04706f6430120570706f64301a087569642d706f6430220764656661756c7432510a277461726765" \
	"742e"                                                                                     \
	"776f726b6c6f61642e6f70656e73686966742e696f2f6d616e6167656d656e7412267b22656666656374223a" \
	"2250"                                                                                     \
	"7265666572726564447572696e675363686564756c696e67227d421d1a1b2f6b756265706f64732f62757273" \
	"7461"                                                                                     \
	"626c652f706f64706f6430"
#define PLUGIN_SERVICE "0a1b6e72692e706b672e6170692e7631616c706861312e506c7567696e"
#define TIMEOUT "2080a8d6b907"

/* What the plugin of the examples answers. */
struct script {
	struct nri_cpu create, update, sync;
	bool refuse, refuse_quota, stop_updates;
	const char *last_event;
};

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	const struct script *s = user;

	CHECK_STR(pod->pod_namespace, strcmp(pod->id, "pod0") ? "openshift-test" : "default");
	CHECK_STR(c->name, "c");
	if (s->refuse)
		return nri_refuse(reply, "bad annotation resources.workload.openshift.io/%s",
				  "busy");
	if (s->create.cpus)
		nri_adjust_cpu(reply, &s->create);
	return 0;
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	const struct script *s = user;

	(void)pod;
	CHECK(requested->has_shares && requested->has_quota && requested->has_period);
	CHECK_UINT(requested->shares, 0);
	nri_update_cpu(reply, c->id, &s->update, false);
	return 0;
}

static int on_stop(void *user, const struct nri_pod *pod, const struct nri_container *c,
		   struct nri_reply *reply)
{
	const struct script *s = user;

	(void)pod;
	(void)c;
	if (s->stop_updates)
		nri_update_cpu(reply, "ctr1", &(struct nri_cpu){ .cpus = "2-3" }, true);
	return 0;
}

static int on_sync(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	const struct script *s = user;

	for (size_t i = 0; s->sync.cpus && i < all->n_containers; i++)
		nri_update_cpu(reply, all->containers[i].id, &s->sync, false);
	return 0;
}

static int on_event(void *user, enum nri_event event, const struct nri_pod *pod,
		    const struct nri_container *c, struct nri_reply *reply)
{
	(void)c;
	(void)reply;
	((struct script *)user)->last_event = nri_event_name(event);
	CHECK(pod->id[0]);
	return 0;
}

static const struct nri_handlers handlers = {
	.synchronize = on_sync,
	.create_container = on_create,
	.update_container = on_update,
	.stop_container = on_stop,
	.event = on_event,
};

static void session_new(struct session *s, struct script *script, const char *name,
			const char *index, uint32_t events)
{
	session_init(s, &handlers, script);
	s->name = name;
	s->index = index;
	s->events = events;
	session_start(s);
}

TEST(the_registration_is_example_one_with_our_protocol_version)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(session_done) struct session s;
	struct script script = { 0 };

	arena_init(&a, 0);
	session_new(&s, &script, "wlpart", "10", 0);
	CHECK_STR(runtime_to_hex(runtime_take(&s, MUX_CONN_RUNTIME, &a), &a),
		  "00000045000000010100"
		  "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65"
		  "120e5265676973746572506c7567696e1a150a06776c70617274120231301a0776302e31322e32");
}

TEST(header_and_data_go_in_a_frame_each)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(session_done) struct session s;
	struct script script = { 0 };
	struct str wire;

	arena_init(&a, 0);
	session_new(&s, &script, "wlpart", "10", 0);
	wire = session_pending(&s);
	CHECK_STR(runtime_to_hex((struct str){ wire.p, 26 }, &a),
		  "000000020000000a00000045000000010100"
		  "0000000200000045");
	CHECK_UINT(wire.n, 26 + 0x45);
}

struct example {
	const char *what;
	struct script script;
	const char *request;  /* ttrpc header and payload */
	const char *response; /* likewise */
	uint32_t events;
};

static const struct example examples[] = {
	{
		.what = "3, 4: Configure",
		.events = 0x289,
		.request = "00000053000000010100" PLUGIN_SERVICE
			   "1209436f6e6669677572651a23120a636f6e7461696e6572641a0676322e392e39"
			   "20882728d00f320776302e31322e32" TIMEOUT,
		.response = "00000005000000010200"
			    "1203108905",
	},
	{
		.what = "4b: Configure, two events",
		.events = 0x88,
		.request = "00000053000000010100" PLUGIN_SERVICE
			   "1209436f6e6669677572651a23120a636f6e7461696e6572641a0676322e392e39"
			   "20882728d00f320776302e31322e32" TIMEOUT,
		.response = "00000005000000010200"
			    "1203108801",
	},
	{
		.what = "5, 6: Synchronize",
		.script.sync.cpus = "0-1",
		.request = "000000db000000030100" PLUGIN_SERVICE
			   "120b53796e6368726f6e697a651aa801" RUN_POD
			   "12110a04637472301204706f64301a01632003" TIMEOUT,
		.response = "00000015000000030200"
			    "12130a110a046374723012090a0712053203302d31",
	},
	{
		.what = "6b: Synchronize, nothing to change",
		.request = "000000db000000030100" PLUGIN_SERVICE
			   "120b53796e6368726f6e697a651aa801" RUN_POD
			   "12110a04637472301204706f64301a01632003" TIMEOUT,
		.response = "00000000000000030200",
	},
	{
		.what = "7, 8: RunPodSandbox",
		.script.last_event = "RunPodSandbox",
		.request = "000000ca000000050100" PLUGIN_SERVICE
			   "120d52756e506f6453616e64626f781a9501" RUN_POD TIMEOUT,
		.response = "00000000000000050200",
	},
	{
		.what = "8c: the same as StateChange",
		.script.last_event = "RunPodSandbox",
		.request =
			"000000ca000000070100" PLUGIN_SERVICE "120b53746174654368616e67651a97010801"
			"1292010a04706f6430120570706f64301a087569642d706f6430220764656661756c7432"
			"510a277461726765742e776f726b6c6f61642e6f70656e73686966742e696f2f6d616e61"
			"67656d656e7412267b22656666656374223a22507265666572726564447572696e675363"
			"686564756c696e67227d421d1a1b2f6b756265706f64732f627572737461626c652f706f"
			"64706f6430" TIMEOUT,
		.response = "00000000000000070200",
	},
#define CREATE                                                                                     \
	"00000105000000090100" PLUGIN_SERVICE "120f437265617465436f6e7461696e65721ace01" RUN_POD   \
	"12370a066e65776374721204706f64301a016320015a221a1312110a02086612001a0408a08d0632"         \
	"03322d372a0b2f6b756265706f64732f78" TIMEOUT
	{
		.what = "9, 10: CreateContainer",
		.script.create = { true, true, true, 20, 3000, 100000, "0-1", NULL },
		.request = CREATE,
		.response = "0000001e000000090200"
			    "121c0a1a3218121612140a020814120308b8171a0408a08d063203302d31",
	},
	{
		.what = "10b: quota -1",
		.script.create = { .has_quota = true, .quota_us = -1, .cpus = "0-1" },
		.request = CREATE,
		.response = "0000001c000000090200"
			    "121a0a18321612141212120b08ffffffffffffffffff013203302d31",
	},
	{
		.what = "10c: no adjustment",
		.request = CREATE,
		.response = "00000000000000090200",
	},
	{
		.what = "10d: refused",
		.script.refuse = true,
		.request = CREATE,
		.response = "00000039000000090200"
			    "0a370802123362616420616e6e6f746174696f6e207265736f75726365732e776f726b"
			    "6c6f61642e6f70656e73686966742e696f2f62757379",
	},
	{
		.what = "11, 12: UpdateContainer",
		.script.update.cpus = "0-1",
		.request =
			"000001180000000b0100" PLUGIN_SERVICE
			"120f557064617465436f6e7461696e65721ae101" RUN_POD
			"12370a066e65776374721204706f64301a016320015a221a1312110a02086612001a0408"
			"a08d063203322d372a0b2f6b756265706f64732f781a110a020a00120b0a0012001a0032"
			"03322d37" TIMEOUT,
		.response = "000000170000000b0200"
			    "12150a130a066e657763747212090a0712053203302d31",
	},
	{
		.what = "13: StopContainer with an update",
		.script.stop_updates = true,
		.request =
			"000001030000000d0100" PLUGIN_SERVICE
			"120d53746f70436f6e7461696e65721ace01" RUN_POD
			"12370a066e65776374721204706f64301a016320015a221a1312110a02086612001a0408"
			"a08d063203322d372a0b2f6b756265706f64732f78" TIMEOUT,
		.response = "000000170000000d0200"
			    "12150a130a046374723112090a0712053203322d331801",
	},
};

TEST(responses_match_the_examples)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		const struct example *e = &examples[i];
		struct script script = e->script;
		struct err err = { 0 };
		struct session s;
		struct strbuf wire;

		TEST_ROW("%s", e->what);
		script.last_event = NULL;
		session_new(&s, &script, "wlpart", "10", e->events);
		(void)runtime_take(&s, MUX_CONN_RUNTIME, &a);
		strbuf_init(&wire, &a);
		mux_write(&wire, MUX_CONN_PLUGIN, runtime_hex(e->request, &a));
		CHECK_OK(session_feed(&s, strbuf_str(&wire), &err));
		CHECK_STR(runtime_to_hex(runtime_take(&s, MUX_CONN_PLUGIN, &a), &a), e->response);
		if (e->script.last_event)
			CHECK_STR(script.last_event, e->script.last_event);
		session_done(&s);
	}
	TEST_NOTE("%zu examples", ARRAY_LEN(examples));
}

TEST(an_unsolicited_update_is_example_fourteen)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(session_done) struct session s;
	struct script script = { 0 };

	arena_init(&a, 0);
	session_new(&s, &script, "wlpart", "10", 0);
	(void)runtime_take(&s, MUX_CONN_RUNTIME, &a);
	CHECK_INT(session_update(&s, "ctr0", &(struct nri_cpu){ .cpus = "0-1" }), 0);
	CHECK_STR(runtime_to_hex(runtime_take(&s, MUX_CONN_RUNTIME, &a), &a),
		  "00000047000000030100"
		  "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65"
		  "1210557064617465436f6e7461696e657273"
		  "1a150a130a046374723012090a0712053203302d311801");
}

/* Sessions of real runtimes with a plugin of the Go library, recorded by tests/e2e/record-nri: one
 * frame of the multiplexer per line, "R>P" from the runtime, "P>R" from the plugin. */
static const char *const recordings[] = {
	"unit/data/nri/containerd-2.4.2.frames",
	"unit/data/nri/containerd-1.7.24.frames",
	"unit/data/nri/crio-1.36.3.frames",
};

struct recording {
	struct str from_runtime, from_plugin; /* all bytes, with their frames */
	size_t n;			      /* frames */
};

static void recording_read(const char *file, struct recording *ret, struct arena *a)
{
	struct strbuf runtime, plugin;
	struct str text, line, field;
	struct err err = { 0 };
	struct str_split lines;

	strbuf_init(&runtime, a);
	strbuf_init(&plugin, a);
	CHECK_OK(file_read_at(AT_FDCWD, test_data(file), 16 << 20, a, &text, &err));
	lines = str_split(text);
	for (ret->n = 0; str_next(&lines, '\n', &line) && line.n > 0; ret->n++) {
		struct str_split fields = str_split(line);

		CHECK(str_next(&fields, ' ', &field));
		TEST_ROW("%s: line %zu", file, ret->n + 1);
		CHECK(str_eq(field, STR("R>P")) || str_eq(field, STR("P>R")));
		for (int i = 0; i < 2; i++) { /* header, bytes; a comment may follow */
			struct strbuf *b = line.p[0] == 'R' ? &runtime : &plugin;

			CHECK(str_next(&fields, ' ', &field));
			strbuf_add(b, runtime_hex(str_cstr(a, field), a));
		}
	}
	ret->from_runtime = strbuf_str(&runtime);
	ret->from_plugin = strbuf_str(&plugin);
	TEST_NOTE("%s: %zu frames", file, ret->n);
}

#define ALL_EVENTS 0x7ff /* of pods and containers: what the recorded plugin subscribes to */

/* The bytes that the Go library sent on the plugin connection are the bytes that we send. */
TEST(recorded_sessions_get_the_responses_of_the_go_library)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(recordings); i++) {
		struct script script = {
			.create = { true, true, true, 20, 3000, 100000, "0", NULL },
			.update.cpus = "0",
			.sync.cpus = "0",
		};
		struct err err = { 0 };
		struct recording r;
		struct session s;
		struct str sent;

		recording_read(recordings[i], &r, &a);
		session_new(&s, &script, "recorder", "20", ALL_EVENTS);
		CHECK_OK(session_feed(&s, r.from_runtime, &err));
		sent = str_dup(&a, session_pending(&s));
		CHECK_STR(runtime_to_hex(runtime_stream(sent, MUX_CONN_PLUGIN, &a), &a),
			  runtime_to_hex(runtime_stream(r.from_plugin, MUX_CONN_PLUGIN, &a), &a));
		CHECK(s.is_synced);
		session_done(&s);
	}
}

/* Decodes the request of that method; fails the test when there is none. */
static void recorded_call(const struct recording *r, const char *method, struct nri_call *ret,
			  struct arena *a)
{
	const bool of_pod = strstr(method, "Sandbox") != NULL;
	struct str bytes = runtime_stream(r->from_runtime, MUX_CONN_PLUGIN, a);
	struct ttrpc_reader reader = { 0 };
	struct ttrpc_request request;
	struct ttrpc_frame frame;
	struct err err = { 0 };

	*ret = (struct nri_call){ 0 };
	while (ttrpc_read(&reader, &bytes, &frame)) {
		frame.data = str_dup(a, frame.data);
		pb_clear(&ttrpc_request_message, &request);
		CHECK_OK(pb_decode(&ttrpc_request_message, frame.data, a, &request, &err));
		if (strcmp(request.method, method) != 0)
			continue;
		CHECK_OK(pb_decode(of_pod ? &nri_pod_call_message : &nri_call_message,
				   request.payload, a, ret, &err));
		break;
	}
	ttrpc_reader_done(&reader);
	CHECK(ret->pod != NULL);
}

TEST(recorded_requests_are_read_field_by_field)
{
	CLEANUP(arena_done) struct arena a;
	const struct nri_cpu *cpu;
	struct nri_call call;
	struct recording r;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(recordings); i++) {
		recording_read(recordings[i], &r, &a);
		recorded_call(&r, "CreateContainer", &call, &a);
		CHECK_STR(call.pod->name, "mgmt");
		CHECK_STR(call.pod->pod_namespace, "openshift-test");
		CHECK_STR(nri_find(call.pod->annotations, call.pod->n_annotations,
				   "target.workload.openshift.io/management"),
			  "{\"effect\":\"PreferredDuringScheduling\"}");
		CHECK_STR(nri_pod_cgroup_parent(call.pod),
			  "/pinfold-nri-record-pods/burstable/pod-mgmt");
		CHECK_STR(call.container->name, "c");
		CHECK_STR(call.container->pod_id, call.pod->id);
		cpu = nri_container_cpu(call.container);
		CHECK(cpu->has_shares && cpu->has_period);
		CHECK_UINT(cpu->shares, 2);
		CHECK_UINT(cpu->period_us, 100000);
		CHECK_STR(cpu->cpus, "1");

		recorded_call(&r, "UpdateContainer", &call, &a);
		CHECK_STR(call.resources->cpu->cpus, "0-1");
		cpu = nri_container_cpu(call.container); /* as adjusted at creation */
		CHECK_UINT(cpu->shares, 20);
		CHECK_INT(cpu->quota_us, 3000);
		CHECK_STR(cpu->cpus, "0");
	}
}

TEST(every_recorded_event_names_its_pod_and_container)
{
	/* containerd 1.7 and CRI-O 1.36 send most of these as StateChange. */
	static const char *const methods[] = {
		"RunPodSandbox",      "PostCreateContainer", "StartContainer",
		"PostStartContainer", "PostUpdateContainer", "StopContainer",
		"RemoveContainer",    "StopPodSandbox",	     "RemovePodSandbox",
	};
	CLEANUP(arena_done) struct arena a;
	struct nri_call call;
	struct recording r;

	arena_init(&a, 0);
	recording_read(recordings[0], &r, &a);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		TEST_ROW("%s", methods[i]);
		recorded_call(&r, methods[i], &call, &a);
		CHECK_STR(call.pod->name, "mgmt");
		if (!strstr(methods[i], "Sandbox"))
			CHECK_STR(call.container->name, "c");
	}
}
