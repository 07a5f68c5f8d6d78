/* nri-replay: plays a recorded NRI session to a plugin and prints what the plugin replies, so that
 * a plugin can be tried without a runtime. The plugin is started as a runtime starts those in
 * /opt/nri/plugins, so every plugin works, in any language. See nri-replay(1). */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/str.h"
#include "runtime_peer.h"

#define RESPONSE_TIMEOUT_S 10
#define RECORDING_MAX ((size_t)64 << 20)
#define PLUGIN_FD 3

#define MAX_ANNOTATIONS 16

struct replay {
	struct runtime_peer peer;
	uint32_t events;			      /* that the plugin subscribed to */
	struct nri_pair annotations[MAX_ANNOTATIONS]; /* added to every pod that is not listed */
	size_t n_annotations;
	struct arena a; /* the recording */
};

static void print_cpu(const struct nri_resources *resources)
{
	const struct nri_cpu *cpu = resources ? resources->cpu : NULL;

	if (cpu && *cpu->cpus)
		printf(" cpus %s", cpu->cpus);
	if (cpu && *cpu->mems)
		printf(" mems %s", cpu->mems);
	if (cpu && cpu->has_shares)
		printf(" shares %llu", (unsigned long long)cpu->shares);
	if (cpu && cpu->has_quota)
		printf(" quota %lld", (long long)cpu->quota_us);
	if (cpu && cpu->has_period)
		printf(" period %llu", (unsigned long long)cpu->period_us);
}

static void print_pairs(const char *what, const struct nri_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("  %s %s=%s\n", what, pairs[i].key, pairs[i].value);
}

static void print_response(const struct nri_response *r)
{
	const struct nri_adjustment *adjust = r->adjustment;

	if (adjust && adjust->on_linux) {
		printf("  adjust");
		print_cpu(adjust->on_linux->resources);
		printf("\n");
	}
	if (adjust) {
		print_pairs("annotation", adjust->annotations, adjust->n_annotations);
		print_pairs("env", adjust->env, adjust->n_env);
	}
	for (size_t i = 0; i < r->n_updates; i++) {
		printf("  update %s", r->updates[i].container_id);
		if (r->updates[i].on_linux)
			print_cpu(r->updates[i].on_linux->resources);
		printf("%s\n", r->updates[i].ignore_failure ? " (may fail)" : "");
	}
}

static const struct pb_message *response_message(const char *method)
{
	static const char *const with_updates[] = { "Synchronize", "UpdateContainer",
						    "StopContainer" };

	if (strcmp(method, "CreateContainer") == 0)
		return &nri_created_message;
	for (size_t i = 0; i < ARRAY_LEN(with_updates); i++)
		if (strcmp(method, with_updates[i]) == 0)
			return &nri_updated_message;
	return NULL;
}

/* As a runtime: only the events that the plugin chose, and what comes before them. */
static bool is_subscribed(const struct replay *p, const struct ttrpc_request *request,
			  struct arena *a)
{
	struct nri_call call = { 0 };

	if (strcmp(request->method, "StateChange") == 0)
		return pb_decode(&nri_state_change_message, request->payload, a, &call, NULL) ==
			       0 &&
		       call.event > 0 && call.event < 32 && p->events & NRI_MASK(call.event);
	for (int e = NRI_RUN_POD; e <= NRI_POST_UPDATE_POD; e++)
		if (strcmp(request->method, nri_event_name((enum nri_event)e)) == 0)
			return p->events & NRI_MASK(e);
	return true;
}

/* A message that occurs twice is merged: a second pod, with annotations only, adds them. */
static struct str with_annotations(struct replay *p, const struct ttrpc_request *request)
{
	struct nri_pod pod = { .annotations = p->annotations, .n_annotations = p->n_annotations };
	const struct nri_call call = { .pod = &pod };
	const bool is_change = strcmp(request->method, "StateChange") == 0;
	struct strbuf b;
	bool is_event = is_change;

	for (int e = NRI_RUN_POD; e <= NRI_POST_UPDATE_POD; e++)
		if (strcmp(request->method, nri_event_name((enum nri_event)e)) == 0)
			is_event = true;
	if (!is_event || p->n_annotations == 0)
		return request->payload;
	strbuf_init(&b, &p->peer.a);
	strbuf_add(&b, request->payload);
	pb_encode(is_change ? &nri_state_change_message : &nri_pod_call_message, &call, &b);
	return strbuf_str(&b);
}

static int play_request(struct replay *p, const struct ttrpc_request *request, struct err *err)
{
	const struct pb_message *m = response_message(request->method);
	struct ttrpc_response response;
	struct nri_configured configured = { 0 };
	struct nri_response content = { 0 };
	int r;

	r = runtime_peer_call(&p->peer, request->method, with_annotations(p, request), &response,
			      err);
	if (r < 0)
		return r;
	if (response.status && response.status->code != TTRPC_OK) {
		printf("%s: refused: %s\n", request->method, response.status->message);
		return 0;
	}
	printf("%s\n", request->method);
	if (strcmp(request->method, "Configure") == 0) {
		r = pb_decode(&nri_configured_message, response.payload, &p->peer.a, &configured,
			      err);
		p->events = configured.events ? (uint32_t)configured.events : UINT32_MAX;
		printf("  events 0x%x\n", p->events);
	} else if (m) {
		r = pb_decode(m, response.payload, &p->peer.a, &content, err);
	}
	if (r < 0)
		return err_wrap(err, "response to %s", request->method);
	print_response(&content);
	return 0;
}

/* The runtime's bytes of a recording: lines "R>P <header> <payload> # <method>" in hexadecimal. */
static int read_recording(const char *path, struct arena *a, struct strbuf *ret, struct err *err)
{
	struct str text, line;
	struct str_split lines;
	int r;

	r = file_read_at(AT_FDCWD, path, RECORDING_MAX, a, &text, err);
	if (r < 0)
		return r;
	strbuf_init(ret, a);
	lines = str_split(text);
	while (str_next(&lines, '\n', &line)) {
		if (!str_starts(line, STR("R>P ")))
			continue;
		for (line = str_skip(line, 4); line.n > 0 && line.p[0] != '#';) {
			const int high = str_hex_digit(line.p[0]);
			const int low = line.n > 1 ? str_hex_digit(line.p[1]) : -1;

			if (line.p[0] != ' ' && (high < 0 || low < 0))
				return err_set(err, EINVAL, "%s: not a recorded NRI session", path);
			if (line.p[0] != ' ')
				strbuf_addc(ret, (char)(high << 4 | low));
			line = str_skip(line, line.p[0] == ' ' ? 1 : 2);
		}
	}
	return ret->n > 0 ? 0 : err_set(err, EINVAL, "%s: has no frame of a runtime", path);
}

static int play(struct replay *p, struct str recording, struct err *err)
{
	struct ttrpc_reader reader = { 0 };
	struct mux_reader mux = { 0 };
	struct mux_piece piece;
	int r;

	while ((r = mux_read(&mux, &recording, &piece, err)) > 0) {
		struct ttrpc_frame frame;

		r = 0;
		while (piece.conn == MUX_CONN_PLUGIN && r == 0 && piece.bytes.n > 0 &&
		       ttrpc_read(&reader, &piece.bytes, &frame)) {
			struct ttrpc_request request;

			pb_clear(&ttrpc_request_message, &request);
			r = pb_decode(&ttrpc_request_message, frame.data, &p->a, &request, err);
			if (r == 0 && is_subscribed(p, &request, &p->a))
				r = play_request(p, &request, err);
			arena_reset(&p->peer.a);
		}
		if (r < 0)
			break;
	}
	ttrpc_reader_done(&reader);
	return r;
}

static pid_t start_plugin(char **argv, int fd)
{
	const char *slash = strrchr(argv[0], '/');
	const pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (dup2(fd, PLUGIN_FD) < 0 || setenv("NRI_PLUGIN_SOCKET", "3", 1) < 0 ||
	    setenv("NRI_PLUGIN_NAME", slash ? slash + 1 : argv[0], 1) < 0 ||
	    setenv("NRI_PLUGIN_IDX", "00", 1) < 0)
		_exit(127);
	(void)execvp(argv[0], argv);
	(void)fprintf(stderr, "nri-replay: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int replay(struct replay *p, const char *path, char **plugin, struct err *err)
{
	const struct timeval timeout = { .tv_sec = RESPONSE_TIMEOUT_S };
	struct nri_register name;
	struct strbuf recording;
	int sockets[2] = { -1, -1 }, status, r;
	pid_t pid;

	arena_init(&p->a, 0);
	r = read_recording(path, &p->a, &recording, err);
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		r = err_set(err, errno, "socketpair: %s", strerror(errno));
	if (r < 0) {
		arena_done(&p->a);
		return r;
	}
	(void)fflush(stdout); /* or the child would have a copy of what is in the buffer */
	pid = start_plugin(plugin, sockets[1]);
	(void)close(sockets[1]);
	(void)setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	runtime_peer_init(&p->peer, sockets[0]);
	r = pid < 0 ? err_set(err, errno, "fork: %s", strerror(errno)) :
		      runtime_peer_register(&p->peer, &name, err);
	if (r == 0) {
		printf("RegisterPlugin %s-%s\n", name.index, name.name);
		r = play(p, strbuf_str(&recording), err);
	}
	(void)close(sockets[0]); /* the plugin ends: its runtime is gone */
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	runtime_peer_done(&p->peer);
	arena_done(&p->a);
	return r;
}

static bool add_annotation(struct replay *p, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || p->n_annotations == MAX_ANNOTATIONS)
		return false;
	*equals = 0;
	p->annotations[p->n_annotations++] = (struct nri_pair){ text, equals + 1 };
	return true;
}

int main(int argc, char **argv)
{
	struct replay p = { .events = UINT32_MAX };
	struct err err = { 0 };
	bool is_usable = true;
	int c;

	while ((c = getopt(argc, argv, "+a:")) != -1) /* '+': options of the plugin are its own */
		is_usable = c == 'a' && add_annotation(&p, optarg) && is_usable;
	if (!is_usable || argc - optind < 2) {
		(void)fprintf(stderr, "usage: nri-replay [-a KEY=VALUE]... RECORDING PLUGIN "
				      "[ARGUMENT]...\n");
		return 2;
	}
	if (replay(&p, argv[optind], argv + optind + 1, &err) == 0)
		return 0;
	(void)fflush(stdout);
	(void)fprintf(stderr, "nri-replay: %s\n", err.msg);
	return err.code == EINVAL || err.code == ENOENT ? 2 : 1;
}
