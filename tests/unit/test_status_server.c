#include "agent/status_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent_node.h"
#include "agentclient/status_client.h"
#include "oci/oci_hook.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define MANY ((size_t)300) /* more than four times the connections of an endpoint */

struct fixture {
	struct node node;
	struct loop loop;
	struct status_server server;
	char path[80];
	in_port_t port;
};

static void start(struct fixture *f)
{
	struct err err = { 0 };

	*f = (struct fixture){ 0 };
	node_init(&f->node, "0-1", "2-3", "4-7");
	(void)snprintf(f->path, sizeof(f->path), "%s/agent.sock", f->node.dir);
	CHECK_OK(loop_init(&f->loop, &err));
	CHECK_OK(status_server_init(&f->server, &f->loop, &f->node.manager, f->path, "127.0.0.1:0",
				    &err));
	f->port = (in_port_t)net_local_port(f->server.port.listener.fd);
}

static void end(struct fixture *f)
{
	status_server_done(&f->server);
	loop_done(&f->loop);
	node_done(&f->node);
}

static void turn(struct fixture *f, int times)
{
	while (times-- > 0)
		(void)uv_run(&f->loop.uv, UV_RUN_NOWAIT);
}

/* 127.0.0.0/8 has other clients, too. */
static int dial_port_from(const struct fixture *f, const char *source)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(f->port) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(inet_pton(AF_INET, source, &from.sin_addr) == 1);
	CHECK(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1);
	CHECK(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	return fd;
}

static int dial_socket(const struct fixture *f)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", f->path);
	CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	return fd;
}

/* The response to what was sent; "" when the server closes without one. Ends with the connection,
 * or after a second without a response. */
static struct str receive(struct fixture *f, int fd)
{
	size_t size = (size_t)64 << 10, n = 0;
	char *bytes = arena_alloc(&f->node.a, size, 1);

	for (int round = 0; round < 1000; round++) {
		ssize_t r = recv(fd, bytes + n, size - n, MSG_DONTWAIT);

		if (r == 0 || (r < 0 && errno != EAGAIN))
			break;
		n += r > 0 ? (size_t)r : 0;
		turn(f, 1);
		(void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1);
	}
	(void)close(fd);
	return (struct str){ bytes, n };
}

static struct str exchange(struct fixture *f, int fd, const char *request)
{
	CHECK_INT(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	return receive(f, fd);
}

static bool is_ok(struct str response)
{
	return str_starts(response, STR("HTTP/1.1 200 "));
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]);
}

TEST(attack_idle_connections_to_the_port_starve_probes_and_the_socket)
{
	int fds[MANY];
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < MANY; i++) {
		fds[i] = dial_port_from(&f, "127.0.0.2");
		turn(&f, 1);
	}
	CHECK(f.server.port.n <= SMALL_SERVER_MAX_CONNECTIONS);
	CHECK(is_ok(exchange(&f, dial_port_from(&f, "127.0.0.1"), GET("/healthz"))));
	CHECK(is_ok(exchange(&f, dial_socket(&f), GET("/status"))));
	close_all(fds, MANY);
	end(&f);
}

TEST(counters_of_cpus_are_served_without_those_of_interrupts)
{
	struct str response;
	struct fixture f;

	start(&f);
	response = exchange(&f, dial_port_from(&f, "127.0.0.1"), GET("/cpus"));
	CHECK(is_ok(response));
	CHECK(memmem(response.p, response.n, "\r\n\r\ncpu", 7));
	CHECK(!memmem(response.p, response.n, "cpu ", 4));
	CHECK(!memmem(response.p, response.n, "intr", 4));
	end(&f);
}

/* The attacker connects again and again while a slow client is in the middle of its request. */
TEST(attack_one_address_takes_the_connection_of_another)
{
	const char *request = GET("/healthz");
	int fds[MANY], slow;
	struct fixture f;

	start(&f);
	slow = dial_port_from(&f, "127.0.0.1");
	CHECK_INT(send(slow, request, 5, MSG_NOSIGNAL), 5);
	for (size_t i = 0; i < MANY; i++) {
		fds[i] = dial_port_from(&f, "127.0.0.2");
		turn(&f, 1);
	}
	CHECK(is_ok(exchange(&f, slow, request + 5)));
	close_all(fds, MANY);
	end(&f);
}

/* One byte before each deadline would hold a connection for ever, if bytes extended it. */
TEST(attack_a_request_that_is_sent_slowly_keeps_its_connection)
{
	struct fixture f;
	int fd;

	start(&f);
	f.server.port.request_ms = 2000; /* 30 s would take the test too long */
	fd = dial_port_from(&f, "127.0.0.1");
	for (int i = 0; i < 30; i++) { /* 3 s; the limit is 2 s */
		(void)send(fd, "G", 1, MSG_NOSIGNAL);
		(void)poll(NULL, 0, 100);
		turn(&f, 2);
	}
	CHECK_UINT(f.server.port.n, 0);
	(void)close(fd);
	end(&f);
}

TEST(more_clients_of_the_socket_than_connections_wait_for_their_turn)
{
	int fds[SMALL_SERVER_MAX_CONNECTIONS + 20];
	struct fixture f;

	start(&f);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fds[i] = dial_socket(&f);
		turn(&f, 1);
	}
	CHECK_UINT(f.server.socket.n, SMALL_SERVER_MAX_CONNECTIONS);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		CHECK(is_ok(exchange(&f, fds[i], GET("/healthz"))));
	end(&f);
}

/* Names of pods are for root: the port has no authentication. */
TEST(attack_the_names_of_pods_are_read_over_the_port)
{
	static const struct {
		const char *request;
		const char *socket, *port; /* start of the response */
	} rows[] = {
		{ GET("/status"), "HTTP/1.1 200 ", "HTTP/1.1 403 " },
		{ GET("/metrics"), "HTTP/1.1 200 ", "HTTP/1.1 200 " },
		{ GET("/cpus"), "HTTP/1.1 200 ", "HTTP/1.1 200 " },
		{ GET("/healthz"), "HTTP/1.1 200 ", "HTTP/1.1 200 " },
		{ GET("/readyz"), "HTTP/1.1 503 ", "HTTP/1.1 503 " },
		{ GET("/status?x"), "HTTP/1.1 200 ",
		  "HTTP/1.1 403 " }, /* a query changes nothing */
		{ "POST /status HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ", "HTTP/1.1 405 " },
		{ "POST /oci/a HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "HTTP/1.1 405 " },
		{ GET("/oci/a"), "HTTP/1.1 404 ", "HTTP/1.1 404 " },
	};
	const char *secret = "secret-pod";
	struct fixture f;

	start(&f);
	(void)registry_put_pod(
		&f.node.manager.registry,
		&(struct nri_pod){
			.id = "p", .name = secret, .pod_namespace = "tenant", .uid = "uid-p" },
		&f.node.a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str response = exchange(&f, dial_socket(&f), rows[i].request);

		TEST_ROW("%s", rows[i].request);
		CHECK(str_starts(response, str_from(rows[i].socket)));
		CHECK(i > 0 || str_has(response, str_from(secret)));
		response = exchange(&f, dial_port_from(&f, "127.0.0.1"), rows[i].request);
		CHECK(str_starts(response, str_from(rows[i].port)));
		CHECK(!str_has(response, str_from(secret)));
	}
	end(&f);
}

/* In a directory that others may enter, with a mode that someone changed. */
TEST(attack_another_user_connects_to_the_socket)
{
	struct fixture f;
	int status = -1;
	pid_t child;

	if (geteuid() != 0)
		TEST_SKIP("only root can become another user");
	start(&f);
	CHECK(chmod(f.node.dir, 0755) == 0 && chmod(f.path, 0666) == 0);
	child = fork();
	if (child == 0) {
		const char *request = GET("/status");
		char byte;
		int fd;

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		fd = dial_socket(&f);
		(void)send(fd, request, strlen(request), MSG_NOSIGNAL);
		_exit(recv(fd, &byte, 1, 0) > 0); /* 0: closed without a response */
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		turn(&f, 1);
		(void)poll(NULL, 0, 1);
	}
	CHECK_INT(status, 0);
	end(&f);
}

/* --- clients --- */

TEST(a_response_of_an_agent_that_was_killed_is_no_success)
{
	static const struct {
		const char *response;
		int want;
		const char *text; /* the body, or the error */
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 0, "{}" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", EBADMSG,
		  "the agent's response is truncated" },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", EBADMSG,
		  "the agent's response is truncated" },
		{ "HTTP/1.1 200 OK\r\nContent-Le", EBADMSG, "the agent's response is truncated" },
		{ "HTTP/1.1 200 OK\r\n\r\n{}", EBADMSG, "the agent's response is truncated" },
		{ "", EBADMSG, "the agent's response is truncated" },
		{ "HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\n\r\nno\n", ENOSPC, "no" },
		{ "HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\n\r\nn", EBADMSG,
		  "the agent's response is truncated" },
		{ "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", EBADMSG,
		  "the agent responded with \"HTTP/1.1 404 Not Found\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };
		struct str body = { 0 };

		TEST_ROW("%s", rows[i].response);
		CHECK_INT(status_client_body(str_from(rows[i].response), &body, &err),
			  -rows[i].want);
		CHECK_STR(rows[i].want ? str_from(err.msg) : body, rows[i].text);
	}
}

/* --- OCI hooks --- */

static int run_hook(const struct fixture *f, struct arena *a, bool allows_unpinned,
		    struct oci_hook_result *ret, struct err *err)
{
	const struct oci_hook_config config = {
		.pools = { .pools_file = "/nonexistent", .marker_file = "/nonexistent" },
		.run_dir = f->node.dir,
		.cgroup_root = f->node.dir,
		.topology = "pack:1 core:4 pu:2",
		.proc = "/proc",
		.allows_unpinned = allows_unpinned,
	};

	return oci_hook_run(&config, OCI_PRECREATE, STR("{\"linux\":{\"cgroupsPath\":\"/x/web\"}}"),
			    a, ret, err);
}

/* The hook has no pools: only the agent knows them, from its flags. */
TEST(attack_a_container_starts_unpinned_while_the_agent_does_not_respond)
{
	struct oci_hook_result result = { 0 };
	struct err err = { 0 };
	struct fixture f;
	pid_t child;
	int fd;

	start(&f);
	status_server_done(&f.server);
	turn(&f, 3);
	/* An agent that accepts and closes, as one without free connections did. */
	fd = net_listen_unix(f.path, 8, &err);
	CHECK(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0);
	child = fork();
	if (child == 0)
		for (;;)
			(void)close(accept(fd, NULL, NULL));
	CHECK_INT(run_hook(&f, &f.node.a, false, &result, &err), -EHOSTDOWN);
	CHECK(str_starts(str_from(err.msg), STR("the agent does not respond: ")));
	CHECK(!result.is_ignored);
	CHECK_OK(run_hook(&f, &f.node.a, true, &result, &err));
	CHECK(result.is_ignored);
	CHECK_STR(result.text, "the agent does not respond, container not placed");
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)close(fd);
	loop_done(&f.loop);
	node_done(&f.node);
}

/* A killed agent leaves its socket: it starts again soon. */
TEST(attack_a_container_starts_unpinned_while_the_agent_restarts)
{
	struct oci_hook_result result = { 0 };
	struct err err = { 0 };
	struct fixture f;

	start(&f);
	status_server_done(&f.server);
	turn(&f, 3);
	CHECK_OK(run_hook(&f, &f.node.a, false, &result, &err));
	CHECK(result.is_ignored); /* no socket: the machine is not partitioned */
	(void)close(net_listen_unix(f.path, 8, &err));
	CHECK_INT(run_hook(&f, &f.node.a, false, &result, &err), -EHOSTDOWN);
	loop_done(&f.loop);
	node_done(&f.node);
}
