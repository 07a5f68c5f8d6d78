/* Sockets and timers around a session: connect, read and write without blocking, reconnect with
 * backoff, and a lock file that admits one instance. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "nri.h"
#include "session.h"

#define READ_BYTES 16384
#define READS_PER_DISPATCH 128 /* then return to the caller's event loop */

/* The runtime accepts plugins one after the other and waits up to 5 s for each: the handshake may
 * have to wait for several others (docs/reference/nri.md#connection). */
#define HANDSHAKE_MS 20000

/* containerd synchronizes a plugin when no container is being stopped, and that may take the whole
 * grace period of a pod. Plugins wait in a queue: one that connects again is the last of it
 * (docs/reference/nri.md#handshake). */
#define SYNCHRONIZE_MS (3600 * 1000)

/* A missing socket is cheap to check often; a runtime that refuses the plugin is retried slowly. */
#define PAUSE_FIRST_MS 50
#define PAUSE_ABSENT_MAX_MS 1000
#define PAUSE_REFUSED_MAX_MS 10000

struct nri_plugin {
	struct session session;
	const struct nri_handlers *handlers;
	void *user;
	char *name, *index, *socket_path;
	uint32_t events;
	int lock_fd;
	int wake_fd; /* nri_plugin_stop() may run in a signal handler: it writes here */
	volatile sig_atomic_t is_stopped;
	bool was_launched; /* by the runtime: it gave us the connection, and there is no second */

	int fd; /* -1 while waiting for the next attempt */
	uint64_t retry_ms, begun_ms;
	unsigned n_failures;
	struct err problem;
};

/* Monotonic: setting the clock must neither delay a retry nor end a handshake. */
static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool name_and_index_are_valid(const char *name, const char *index)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.+-";

	return *name && strspn(name, allowed) == strlen(name) && strlen(index) == 2 &&
	       strspn(index, "0123456789") == 2;
}

/* Two connected instances make every request fail, because both set the same fields
 * (docs/reference/nri.md#replies). */
static int lock_file(const char *path)
{
	int fd;

	if (!path)
		return -1;
	/* flock() and not the existence of the file: the kernel releases the lock when the process
	 * dies. */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const int code = errno == EWOULDBLOCK ? EBUSY : errno;

		(void)close(fd);
		errno = code;
		return -1;
	}
	return fd;
}

/* A plugin in /opt/nri/plugins gets its connection and its name from the runtime
 * (docs/reference/nri.md#connection). */
static bool adopt_launch_environment(struct nri_plugin *p)
{
	const char *fd = getenv("NRI_PLUGIN_SOCKET");
	const char *name = getenv("NRI_PLUGIN_NAME");
	const char *index = getenv("NRI_PLUGIN_IDX");
	uint64_t n;

	if (!fd || !str_to_u64(str_from(fd), INT32_MAX, &n) || fcntl((int)n, F_GETFD) < 0)
		return false;
	p->fd = (int)n;
	(void)fcntl(p->fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(p->fd, F_SETFL, fcntl(p->fd, F_GETFL) | O_NONBLOCK);
	p->was_launched = true;
	p->name = strdup(name ? name : "");
	p->index = strdup(index ? index : "");
	return true;
}

static void begin_session(struct nri_plugin *p)
{
	p->begun_ms = now_ms();
	session_start(&p->session);
}

struct nri_plugin *nri_plugin_new(const struct nri_options *options)
{
	struct nri_plugin *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	/* nri_plugin_free() runs also on a plugin that is only partly set up, and 0 is a valid
	 * descriptor. */
	p->fd = p->lock_fd = p->wake_fd = -1;
	p->handlers = options->handlers;
	p->user = options->user;
	session_init(&p->session, options->handlers, options->user);
	if (!adopt_launch_environment(p)) {
		p->name = strdup(options->name ? options->name : "");
		p->index = strdup(options->index ? options->index : "");
	}
	p->socket_path = strdup(options->socket_path ? options->socket_path : NRI_DEFAULT_SOCKET);
	if (!p->name || !p->index || !p->socket_path)
		goto failed;
	/* Set here because the check itself sets no errno, and nri_plugin_free() preserves it. */
	errno = EINVAL;
	if (!name_and_index_are_valid(p->name, p->index))
		goto failed;
	p->lock_fd = lock_file(options->lock_path);
	if (options->lock_path && p->lock_fd < 0)
		goto failed;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		goto failed;
	p->session.name = p->name;
	p->session.index = p->index;
	p->session.events = options->events;
	(void)err_set(&p->problem, ENOTCONN, "not connected yet");
	if (p->was_launched)
		begin_session(p);
	return p;

failed:
	nri_plugin_free(p);
	return NULL;
}

void nri_plugin_free(struct nri_plugin *p)
{
	const int code = errno;

	if (!p)
		return;
	session_done(&p->session);
	if (p->fd >= 0)
		(void)close(p->fd);
	if (p->wake_fd >= 0)
		(void)close(p->wake_fd);
	if (p->lock_fd >= 0)
		(void)close(
			p->lock_fd); /* not unlinked: another instance may just have opened it */
	free(p->name);
	free(p->index);
	free(p->socket_path);
	free(p);
	errno = code;
}

/* Exponential backoff from PAUSE_FIRST_MS on, with 25 % jitter. */
static uint64_t pause_ms(unsigned n_failures, uint64_t max_ms)
{
	uint64_t pause = PAUSE_FIRST_MS;
	uint16_t jitter = 0;

	while (n_failures-- > 0 && pause < max_ms)
		pause *= 2;
	if (pause > max_ms)
		pause = max_ms;
	if (getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK) < 0)
		jitter = 0; /* early in a boot there is no entropy yet: go without */
	return pause * 3 / 4 + pause / 2 * jitter / UINT16_MAX;
}

static void disconnect(struct nri_plugin *p, const struct err *why, uint64_t max_ms)
{
	if (p->fd >= 0)
		(void)close(p->fd);
	p->fd = -1;
	/* The runtime had accepted the plugin and most likely restarts: begin with the short pause.
	 */
	if (p->session.is_synced)
		p->n_failures = 0;
	p->session.is_synced = false;
	p->retry_ms = now_ms() + pause_ms(p->n_failures, max_ms);
	if (p->n_failures < 16)
		p->n_failures++;
	/* Reported once, not at every attempt. */
	if (p->handlers->disconnected && strcmp(p->problem.msg, why->msg) != 0)
		p->handlers->disconnected(p->user, why->msg);
	p->problem = *why;
}

static void try_connect(struct nri_plugin *p)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct err err = { 0 };
	int fd;

	if (strlen(p->socket_path) >= sizeof(address.sun_path)) {
		(void)err_set(&err, ENAMETOOLONG, "%s: name too long for a socket", p->socket_path);
		disconnect(p, &err, PAUSE_REFUSED_MAX_MS);
		return;
	}
	memcpy(address.sun_path, p->socket_path, strlen(p->socket_path) + 1);
	/* On a Unix socket connect() never stays in progress: it succeeds, or fails at once, with
	 * EAGAIN when the runtime's queue is full. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)err_set(&err, errno, "connect to %s: %s", p->socket_path, strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		disconnect(p, &err, PAUSE_ABSENT_MAX_MS);
		return;
	}
	p->fd = fd;
	begin_session(p);
}

static int send_pending(struct nri_plugin *p, struct err *err)
{
	for (;;) {
		const struct str rest = session_pending(&p->session);
		ssize_t n;

		if (rest.n == 0)
			return 0;
		/* A library must not let the whole program die of SIGPIPE. */
		n = send(p->fd, rest.p, rest.n, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return err_set(err, errno, "send: %s", strerror(errno));
		session_sent(&p->session, (size_t)n);
	}
}

static int receive(struct nri_plugin *p, struct err *err)
{
	char bytes[READ_BYTES];

	for (int i = 0; i < READS_PER_DISPATCH; i++) {
		const ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return err_set(err, errno, "receive: %s", strerror(errno));
		if (n == 0)
			return err_set(err, ECONNRESET, "the runtime closed the connection%s",
				       mux_is_inside(&p->session.mux) ? " inside a frame" : "");
		/* Responses are sent after each read: the runtime waits for them, and holds a lock
		 * meanwhile (docs/reference/nri.md#locking). */
		r = session_feed(&p->session, (struct str){ bytes, (size_t)n }, err);
		if (r == 0)
			r = send_pending(p, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint64_t handshake_ms(const struct nri_plugin *p)
{
	return p->session.is_configured ? SYNCHRONIZE_MS : HANDSHAKE_MS;
}

int nri_plugin_dispatch(struct nri_plugin *p, short revents)
{
	struct err err = { 0 };
	int r = 0;

	if (p->fd < 0) {
		if (p->was_launched)
			return -ESHUTDOWN;
		if (now_ms() < p->retry_ms)
			return 0;
		try_connect(p);
		if (p->fd < 0)
			return 0;
	}
	/* Also on POLLHUP: the runtime's last requests may still be in the socket's buffer. */
	if (revents & (POLLIN | POLLHUP | POLLERR))
		r = receive(p, &err);
	if (r == 0)
		r = send_pending(p, &err);
	if (r == 0 && !p->session.is_synced && now_ms() >= p->begun_ms + handshake_ms(p))
		r = err_set(&err, ETIMEDOUT,
			    "the runtime did not finish the handshake within %" PRIu64 " s",
			    handshake_ms(p) / 1000);
	if (r < 0) {
		disconnect(p, &err, PAUSE_REFUSED_MAX_MS);
		return p->was_launched ? -ESHUTDOWN : 0;
	}
	if (p->session.is_synced) {
		p->n_failures = 0;
		p->problem = (struct err){ 0 };
	}
	return 0;
}

void nri_plugin_poll(struct nri_plugin *p, struct nri_poll *ret)
{
	const uint64_t now = now_ms();
	uint64_t until = 0;

	*ret = (struct nri_poll){ .fd = p->fd, .events = POLLIN, .timeout_ms = -1 };
	if (p->fd < 0)
		until = p->retry_ms;
	else if (!p->session.is_synced)
		until = p->begun_ms + handshake_ms(p);
	if (p->fd >= 0 && session_pending(&p->session).n > 0)
		/* Only with bytes to send: a socket is nearly always writable, and poll would
		 * return at once. */
		ret->events |= POLLOUT;
	if (until || p->fd < 0)
		ret->timeout_ms = until > now ? (int)(until - now) : 0;
}

int nri_plugin_run(struct nri_plugin *p)
{
	while (!p->is_stopped) {
		struct nri_poll want;
		struct pollfd fds[2];
		int r;

		nri_plugin_poll(p, &want);
		fds[0] = (struct pollfd){ .fd = p->wake_fd, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = want.fd, .events = want.events };
		r = poll(fds, 2, want.timeout_ms);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		r = nri_plugin_dispatch(p, fds[1].revents);
		if (r < 0)
			return r == -ESHUTDOWN ? 0 : r;
	}
	return 0;
}

void nri_plugin_stop(struct nri_plugin *p)
{
	const uint64_t one = 1;
	const int code = errno;

	/* The flag first: run() checks it after the wakeup. The eventfd is never read, so it also
	 * wakes a run() that enters poll() only now. */
	p->is_stopped = 1;
	while (write(p->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = code;
}

bool nri_plugin_is_connected(const struct nri_plugin *p)
{
	return p->fd >= 0 && p->session.is_synced;
}

const char *nri_plugin_problem(const struct nri_plugin *p)
{
	return nri_plugin_is_connected(p) ? "" : p->problem.msg;
}

void nri_plugin_resync(struct nri_plugin *p)
{
	struct err why = { 0 };

	if (p->was_launched || p->fd < 0)
		return;
	(void)err_set(&why, ECONNRESET, "registering again");
	p->n_failures = 0;
	disconnect(p, &why, PAUSE_ABSENT_MAX_MS);
	/* No pause: nothing failed. */
	p->retry_ms = now_ms();
}

bool nri_plugin_can_update(const struct nri_plugin *p)
{
	return nri_plugin_is_connected(p) && p->session.can_update;
}

int nri_plugin_update_cpu(struct nri_plugin *p, const char *container_id, const struct nri_cpu *cpu)
{
	struct err err = { 0 };
	int r;

	if (!nri_plugin_is_connected(p))
		return -ENOTCONN;
	if (!p->session.can_update)
		return -EOPNOTSUPP;
	r = session_update(&p->session, container_id, cpu);
	if (r == 0)
		r = send_pending(p, &err);
	if (r < 0)
		disconnect(p, &err, PAUSE_REFUSED_MAX_MS);
	return r;
}

const char *nri_find(const struct nri_pair *pairs, size_t n, const char *key)
{
	/* From the end: with duplicate keys the last one counts, as in a Go map
	 * (docs/reference/nri.md#malformed-input). */
	while (n-- > 0)
		if (strcmp(pairs[n].key, key) == 0)
			return pairs[n].value;
	return NULL;
}

const char *nri_pod_cgroup_parent(const struct nri_pod *pod)
{
	return pod->on_linux ? pod->on_linux->cgroup_parent : "";
}

const char *nri_pod_cgroups_path(const struct nri_pod *pod)
{
	return pod->on_linux ? pod->on_linux->cgroups_path : "";
}

const char *nri_container_cgroups_path(const struct nri_container *c)
{
	return c->on_linux ? c->on_linux->cgroups_path : "";
}

const struct nri_cpu *nri_container_cpu(const struct nri_container *c)
{
	static const struct nri_cpu nothing = { .cpus = "", .mems = "" };

	if (!c->on_linux || !c->on_linux->resources || !c->on_linux->resources->cpu)
		return &nothing;
	return c->on_linux->resources->cpu;
}
