/* The plugin over real sockets: a runtime that starts later and restarts; one instance at a time;
 * a plugin that the runtime started. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macro.h"
#include "nri_runtime.h"

struct fixture {
	char dir[64], socket_path[96], lock_path[96];
	int listener, conn;
	struct nri_plugin *plugin;
	unsigned n_connected, n_disconnected, n_syncs;
	char why[256];
	struct arena a;
};

static int on_sync(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	(void)all;
	(void)reply;
	((struct fixture *)user)->n_syncs++;
	return 0;
}

static void on_connected(void *user)
{
	((struct fixture *)user)->n_connected++;
}

static void on_disconnected(void *user, const char *why)
{
	struct fixture *w = user;

	w->n_disconnected++;
	(void)snprintf(w->why, sizeof(w->why), "%s", why);
}

static const struct nri_handlers handlers = {
	.synchronize = on_sync,
	.connected = on_connected,
	.disconnected = on_disconnected,
};

static struct nri_plugin *plugin_new(struct fixture *w)
{
	return nri_plugin_new(&(struct nri_options){ .name = "test",
						     .index = "10",
						     .socket_path = w->socket_path,
						     .lock_path = w->lock_path,
						     .handlers = &handlers,
						     .user = w });
}

static void listen_again(struct fixture *w)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)unlink(w->socket_path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", w->socket_path);
	w->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(w->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(listen(w->listener, 4) == 0);
}

static void fixture_init(struct fixture *w)
{
	*w = (struct fixture){ .listener = -1, .conn = -1 };
	arena_init(&w->a, 0);
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/nri-test-XXXXXX");
	CHECK(mkdtemp(w->dir) != NULL);
	(void)snprintf(w->socket_path, sizeof(w->socket_path), "%s/nri.sock", w->dir);
	(void)snprintf(w->lock_path, sizeof(w->lock_path), "%s/lock", w->dir);
}

static void fixture_done(struct fixture *w)
{
	nri_plugin_free(w->plugin);
	auto_close(&w->listener);
	auto_close(&w->conn);
	(void)unlink(w->socket_path);
	(void)unlink(w->lock_path);
	(void)rmdir(w->dir);
	arena_done(&w->a);
}

/* Runs the plugin's loop until `fd` is readable, or for a second. */
static void run_until_readable(struct fixture *w, int fd)
{
	for (int i = 0; i < 100; i++) {
		struct pollfd fds[2] = { { .fd = fd, .events = POLLIN } };
		struct nri_poll want;

		nri_plugin_poll(w->plugin, &want);
		fds[1] = (struct pollfd){ .fd = want.fd, .events = want.events };
		(void)poll(fds, 2,
			   want.timeout_ms >= 0 && want.timeout_ms < 10 ? want.timeout_ms : 10);
		if (fds[0].revents)
			return;
		CHECK(nri_plugin_dispatch(w->plugin, fds[1].revents) == 0);
	}
}

static void accept_plugin(struct fixture *w)
{
	char bytes[4096];

	run_until_readable(w, w->listener);
	w->conn = accept(w->listener, NULL, NULL);
	CHECK(w->conn >= 0);
	run_until_readable(w, w->conn);
	CHECK(recv(w->conn, bytes, sizeof(bytes), 0) > 0);
}

static void send_request(struct fixture *w, const char *method, uint32_t stream)
{
	const struct str call = runtime_request(method, stream, STR(""), &w->a);

	CHECK(send(w->conn, call.p, call.n, 0) == (ssize_t)call.n);
}

static void serve_handshake(struct fixture *w)
{
	char bytes[4096];

	accept_plugin(w);
	send_request(w, "Configure", 1);
	send_request(w, "Synchronize", 3);
	run_until_readable(w, w->conn);
	CHECK(recv(w->conn, bytes, sizeof(bytes), 0) > 0);
}

TEST(the_plugin_connects_to_a_runtime_that_starts_later_and_after_a_restart)
{
	CLEANUP(fixture_done) struct fixture w;

	fixture_init(&w);
	w.plugin = plugin_new(&w);
	CHECK(w.plugin != NULL);
	for (int i = 0; i < 3; i++) {
		struct nri_poll want;

		nri_plugin_poll(w.plugin, &want);
		CHECK_INT(want.fd, -1);
		CHECK(want.timeout_ms >= 0 && want.timeout_ms <= 1250);
		(void)poll(NULL, 0, want.timeout_ms);
		CHECK(nri_plugin_dispatch(w.plugin, 0) == 0);
	}
	CHECK_UINT(w.n_disconnected, 1); /* reported once, not at every attempt */
	CHECK(strstr(nri_plugin_problem(w.plugin), "nri.sock: No such file or directory"));

	listen_again(&w);
	serve_handshake(&w);
	CHECK(nri_plugin_is_connected(w.plugin));
	CHECK_STR(nri_plugin_problem(w.plugin), "");
	CHECK_UINT(w.n_connected, 1);

	auto_close(&w.conn); /* a restart */
	auto_close(&w.listener);
	run_until_readable(&w, -1);
	CHECK(!nri_plugin_is_connected(w.plugin));
	listen_again(&w);
	serve_handshake(&w);
	CHECK_UINT(w.n_connected, 2);
	CHECK_UINT(w.n_syncs, 2);
}

/* A runtime that stops a container does not synchronize before that has ended, and a pod may have a
 * grace period of minutes. */
TEST(a_plugin_keeps_its_place_until_the_runtime_synchronizes_it)
{
	CLEANUP(fixture_done) struct fixture w;
	struct nri_poll want;
	char bytes[4096];

	fixture_init(&w);
	listen_again(&w);
	w.plugin = plugin_new(&w);
	accept_plugin(&w);
	nri_plugin_poll(w.plugin, &want);
	CHECK(want.timeout_ms > 0 && want.timeout_ms <= 20000); /* nothing heard yet */

	send_request(&w, "Configure", 1);
	run_until_readable(&w, w.conn);
	CHECK(recv(w.conn, bytes, sizeof(bytes), 0) > 0);
	CHECK(!nri_plugin_is_connected(w.plugin));
	nri_plugin_poll(w.plugin, &want);
	CHECK(want.timeout_ms > 30 * 60 * 1000);

	send_request(&w, "Synchronize", 3);
	run_until_readable(&w, w.conn);
	CHECK(nri_plugin_is_connected(w.plugin));
	nri_plugin_poll(w.plugin, &want);
	CHECK_INT(want.timeout_ms, -1);
}

TEST(resync_registers_again_and_synchronizes)
{
	CLEANUP(fixture_done) struct fixture w;

	fixture_init(&w);
	listen_again(&w);
	w.plugin = plugin_new(&w);
	serve_handshake(&w);
	nri_plugin_resync(w.plugin);
	CHECK(!nri_plugin_is_connected(w.plugin));
	auto_close(&w.conn);
	serve_handshake(&w);
	CHECK_UINT(w.n_syncs, 2);
	/* This runtime sent no NRI version. */
	CHECK(!nri_plugin_can_update(w.plugin));
	CHECK_INT(nri_plugin_update_cpu(w.plugin, "c", &(struct nri_cpu){ .cpus = "0" }),
		  -EOPNOTSUPP);
}

TEST(bytes_beyond_the_limit_close_the_connection)
{
	static const char frame[] = "\0\0\0\1\xff\xff\xff\xff";
	CLEANUP(fixture_done) struct fixture w;

	fixture_init(&w);
	listen_again(&w);
	w.plugin = plugin_new(&w);
	serve_handshake(&w);
	CHECK(send(w.conn, frame, sizeof(frame) - 1, 0) == sizeof(frame) - 1);
	run_until_readable(&w, w.conn);
	CHECK_UINT(w.n_disconnected, 1);
	CHECK_STR(w.why, "a frame of 4294967295 bytes, more than 4194314");
}

TEST(a_connection_closed_inside_a_frame_is_reported_as_such)
{
	CLEANUP(fixture_done) struct fixture w;

	fixture_init(&w);
	listen_again(&w);
	w.plugin = plugin_new(&w);
	serve_handshake(&w);
	CHECK(send(w.conn, "\0\0\0\1\0\0", 6, 0) == 6);
	auto_close(&w.conn);
	run_until_readable(&w, -1);
	CHECK_STR(w.why, "the runtime closed the connection inside a frame");
}

TEST(a_second_instance_with_the_same_lock_fails_with_ebusy)
{
	CLEANUP(fixture_done) struct fixture w;
	struct nri_plugin *second;

	fixture_init(&w);
	w.plugin = plugin_new(&w);
	CHECK(w.plugin != NULL);
	second = plugin_new(&w);
	CHECK(!second);
	CHECK_INT(errno, EBUSY);
	nri_plugin_free(w.plugin);
	w.plugin = plugin_new(&w);
	CHECK(w.plugin != NULL);
}

TEST(invalid_names_and_indices_are_refused)
{
	static const struct {
		const char *name, *index;
		bool ok;
	} rows[] = {
		{ "pinfold", "90", true }, { "a.B_c+d-1", "00", true }, { "", "90", false },
		{ "a b", "90", false },	   { "a/b", "90", false },	{ NULL, "90", false },
		{ "a", "9", false },	   { "a", "900", false },	{ "a", "9x", false },
		{ "a", NULL, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nri_plugin *p = nri_plugin_new(&(struct nri_options){
			.name = rows[i].name, .index = rows[i].index, .handlers = &handlers });

		TEST_ROW("%s %s", rows[i].name, rows[i].index);
		CHECK_INT(p != NULL, rows[i].ok);
		nri_plugin_free(p);
	}
}

TEST(a_plugin_started_by_the_runtime_uses_the_inherited_socket)
{
	CLEANUP(fixture_done) struct fixture w;
	char number[16], bytes[4096];
	int pair[2];
	ssize_t n;

	fixture_init(&w);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	(void)snprintf(number, sizeof(number), "%d", pair[1]);
	CHECK(setenv("NRI_PLUGIN_SOCKET", number, 1) == 0);
	CHECK(setenv("NRI_PLUGIN_NAME", "theirs", 1) == 0);
	CHECK(setenv("NRI_PLUGIN_IDX", "42", 1) == 0);
	w.plugin = plugin_new(&w);
	(void)unsetenv("NRI_PLUGIN_SOCKET");
	CHECK(w.plugin != NULL);
	CHECK(nri_plugin_dispatch(w.plugin, 0) == 0);
	n = recv(pair[0], bytes, sizeof(bytes), 0);
	CHECK(n > 0 && memmem(bytes, (size_t)n, "theirs", 6) && memmem(bytes, (size_t)n, "42", 2));
	(void)close(pair[0]);
	CHECK_INT(nri_plugin_run(w.plugin), 0);
}
