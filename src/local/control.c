/* A request is one message of text ("down", "apply", "apply DIR"); the response is one message, a
 * digit with the exit status of the command (D20) and the text to print. */

#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/peer.h"

#define CONTROL_FILE "control.sock"
#define CONTROL_BACKLOG 8

static int socket_address(const char *run_dir, struct sockaddr_un *ret, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CONTROL_FILE, run_dir);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: name too long for a socket", run_dir);
	*ret = address;
	return 0;
}

static int set_socket_error(struct err *err, const char *verb, const struct sockaddr_un *address)
{
	int code = errno;

	return err_set(err, code, "%s %s: %s", verb, address->sun_path, strerror(code));
}

int control_check(const char *run_dir, struct err *err)
{
	struct sockaddr_un address;

	return socket_address(run_dir, &address, err);
}

int control_listen(const char *run_dir, int *ret_fd, struct err *err)
{
	struct sockaddr_un address;
	int fd, r;

	r = socket_address(run_dir, &address, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return set_socket_error(err, "socket", &address);
	/* Stale: this process holds the lock of the run directory. */
	(void)unlink(address.sun_path);
	/* A request starts programs as this user. The mode must not depend on the umask, and is set
	 * before listen(): until then connect() fails. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(address.sun_path, 0600) < 0 || listen(fd, CONTROL_BACKLOG) < 0) {
		r = set_socket_error(err, "listen on", &address);
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

void control_unlink(const char *run_dir)
{
	struct sockaddr_un address;

	if (socket_address(run_dir, &address, NULL) >= 0)
		(void)unlink(address.sun_path);
}

int control_accept(int fd, char buf[CONTROL_MAX], struct str *ret_request, int *ret_client)
{
	struct timeval limit = { .tv_sec = 1 }; /* a silent client must not block the supervisor */
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (client < 0)
		return -errno;
	if (!peer_is_trusted(client)) { /* before recv(): another user must not make it wait */
		(void)close(client);
		return -EPERM;
	}
	(void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	n = recv(client, buf, CONTROL_MAX, 0);
	if (n <= 0) { /* 0: the client closed without a request */
		(void)close(client);
		return n < 0 ? -errno : -EPIPE;
	}
	*ret_request = (struct str){ buf, (size_t)n };
	*ret_client = client;
	return 0;
}

void control_respond(int client, int status, struct str text)
{
	char digit = (char)('0' + status);
	struct iovec parts[2] = { { &digit, 1 }, { NULL, text.n } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_LEN(parts) };

	memcpy(&parts[1].iov_base, &text.p, sizeof(text.p)); /* sendmsg only reads it */
	/* The client's buffer has this size, and SOCK_SEQPACKET discards what does not fit. */
	if (text.n > CONTROL_MAX - 1)
		parts[1].iov_len = CONTROL_MAX - 1;
	(void)sendmsg(client, &message, MSG_NOSIGNAL);
	(void)close(client);
}

int control_request(const char *run_dir, struct str request, struct arena *a, int *ret_status,
		    struct str *ret_text, struct err *err)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	char *buf = arena_alloc(a, CONTROL_MAX, 1);
	ssize_t n;
	int r;

	r = socket_address(run_dir, &address, err);
	if (r < 0)
		return r;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return set_socket_error(err, "connect to", &address);
	/* EPIPE: it has closed the connection already, as it does for other users. */
	if (send(fd, request.p, request.n, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		return set_socket_error(err, "send to", &address);
	/* Without a timeout: the response follows when removed containers have ended, which takes
	 * up to their grace period. When the supervisor ends, the kernel closes the connection. */
	n = recv(fd, buf, CONTROL_MAX, 0);
	if (n < 1)
		return err_set(err, EPIPE,
			       "%s: the supervisor closed the connection without a response",
			       run_dir);
	*ret_status = buf[0] - '0';
	*ret_text = (struct str){ buf + 1, (size_t)n - 1 };
	return 0;
}
