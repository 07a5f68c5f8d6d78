/* Listening sockets: addresses, binding, and accepting on a loop. Accepted descriptors go to the
 * owner, which wraps them into a stream. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "loop.h"

#define LISTEN_BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */
#define ACCEPT_BATCH                                                                               \
	16 /* per turn of the loop, so that many new connections leave time for requests */
#define ACCEPT_PAUSE_MS 100

static bool split_host_port(struct str text, struct str *ret_host, uint64_t *ret_port)
{
	size_t colon = text.n;

	while (colon && text.p[colon - 1] != ':')
		colon--;
	if (!colon || !str_to_u64(str_skip(text, colon), 65535, ret_port))
		return false;
	*ret_host = (struct str){ text.p, colon - 1 };
	if (str_starts(*ret_host, STR("[")) && str_ends(*ret_host, STR("]")))
		*ret_host = (struct str){ text.p + 1, colon - 3 };
	else if (str_has(*ret_host, STR(":")))
		return false; /* an IPv6 address without brackets is ambiguous */
	return true;
}

int net_address_parse(struct str text, struct sockaddr_storage *ret, struct err *err)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in4 = { .sin_family = AF_INET };
	char name[INET6_ADDRSTRLEN] = { 0 };
	struct str host;
	uint64_t port;

	if (!split_host_port(text, &host, &port))
		return err_set(err, EINVAL, "%s is not HOST:PORT", quote(text).text);
	in4.sin_port = in6.sin6_port = htons((uint16_t)port);
	if (host.n < sizeof(name))
		memcpy(name, host.p, host.n);
	*ret = (struct sockaddr_storage){ 0 };
	if (host.n && inet_pton(AF_INET, name, &in4.sin_addr) == 1)
		memcpy(ret, &in4, sizeof(in4));
	else if (!host.n || inet_pton(AF_INET6, name, &in6.sin6_addr) == 1)
		memcpy(ret, &in6, sizeof(in6)); /* without a host: any address, also IPv4 */
	else
		return err_set(err, EINVAL, "%s: the host is not an IP address", quote(text).text);
	return 0;
}

static socklen_t address_size(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					     sizeof(struct sockaddr_in);
}

int net_listen(const struct sockaddr_storage *addr, bool reuse_port, struct err *err)
{
	const int on = 1, off = 0;
	int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int saved;

	if (fd < 0)
		return err_set(err, errno, "cannot create a socket: %s", strerror(errno));
	/* Otherwise a restart could not bind while connections of the old process are in
	 * TIME_WAIT. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* One socket for both families, whatever net.ipv6.bindv6only says. */
	if (addr->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
		goto fail;
	if (bind(fd, (const struct sockaddr *)addr, address_size(addr)) < 0)
		goto fail;
	if (listen(fd, LISTEN_BACKLOG) < 0)
		goto fail;
	return fd;
fail:
	saved = errno;
	(void)close(fd);
	return err_set(err, saved, "cannot listen: %s", strerror(saved));
}

int net_listen_unix(const char *path, int backlog, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: socket path is too long", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, errno, "socket: %s", strerror(errno));
	(void)unlink(path); /* a socket file stays after its process; bind() would fail */
	/* chmod() comes before listen(): until then connect() fails, so no other user can connect
	 * with the mode that the umask gave. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0600) < 0 ||
	    listen(fd, backlog) < 0) {
		const int code = errno;

		(void)close(fd);
		return err_set(err, code, "%s: %s", path, strerror(code));
	}
	return fd;
}

unsigned net_local_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} addr = { 0 };
	socklen_t size = sizeof(addr);

	if (getsockname(fd, &addr.any, &size) < 0)
		return 0;
	return ntohs(addr.any.sa_family == AF_INET6 ? addr.in6.sin6_port : addr.in4.sin_port);
}

static void on_pause_end(struct timer *t)
{
	struct listener *l = container_of(t, struct listener, retry);

	/* The owner may have paused it meanwhile for its own reason. */
	if (!l->paused)
		listener_resume(l);
}

/* Out of descriptors or memory: the connection stays in the backlog until the retry. Polling a
 * listener that stays readable would take the CPU from the connections that could end. */
static void pause_after_error(struct listener *l, int error)
{
	(void)uv_poll_stop(&l->uv);
	timer_start(&l->retry, ACCEPT_PAUSE_MS, 0);
	l->on_error(l, error);
}

static void on_acceptable(uv_poll_t *uv, int status, int events)
{
	struct listener *l = container_of(uv, struct listener, uv);

	(void)events;
	if (status < 0)
		return;
	for (int i = 0; i < ACCEPT_BATCH && !l->paused; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			l->on_accept(l, fd);
		else if (errno == EAGAIN)
			return;
		/* ECONNABORTED: the client gave up while it was in the backlog. */
		else if (errno != ECONNABORTED && errno != EINTR)
			return pause_after_error(l, -errno);
	}
}

int listener_init(struct listener *l, struct loop *loop, int fd, listener_accept_fn on_accept,
		  listener_error_fn on_error, struct err *err)
{
	int r;

	*l = (struct listener){ .fd = fd, .on_accept = on_accept, .on_error = on_error };
	r = uv_poll_init(&loop->uv, &l->uv, fd);
	if (r < 0)
		return err_set(err, -r, "cannot watch the listening socket: %s", uv_strerror(r));
	timer_init(&l->retry, loop, on_pause_end);
	listener_resume(l);
	return 0;
}

void listener_pause(struct listener *l)
{
	l->paused = true;
	(void)uv_poll_stop(&l->uv);
}

void listener_resume(struct listener *l)
{
	l->paused = false;
	(void)uv_poll_start(&l->uv, UV_READABLE, on_acceptable);
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct listener *l = container_of((uv_poll_t *)handle, struct listener, uv);

	/* uv_close() of a poll handle leaves the descriptor open. */
	(void)close(l->fd);
}

void listener_close(struct listener *l)
{
	l->paused = true;
	timer_close(&l->retry, NULL);
	uv_close((uv_handle_t *)&l->uv, on_listener_closed);
}
