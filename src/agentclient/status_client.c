/* A minimal HTTP client for one server, the agent: it sends Content-Length and "Connection: close",
 * never chunks, so a response ends with the connection. */

#include "status_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "base/unix_socket.h"
#include "run_dir.h"

#define TIMEOUT_S 5 /* an agent that hangs must not block the creation of containers for longer */

/* The value of Content-Length, as the agent writes it. An agent that is killed leaves the beginning
 * of a response. */
static bool has_whole_body(struct str head, size_t n)
{
	const struct str key = STR("Content-Length: ");
	struct str_split lines = str_split(head);
	struct str line;
	uint64_t want;

	while (str_next(&lines, '\n', &line))
		if (str_starts(line, key))
			return str_to_u64(str_trim(str_skip(line, key.n)), SIZE_MAX, &want) &&
			       n == want;
	return false;
}

static int find_body(struct str response, struct str *ret, struct err *err)
{
	const char *end = response.n ? memmem(response.p, response.n, "\r\n\r\n", 4) : NULL;
	struct str body;

	if (end) {
		body = str_skip(response, (size_t)(end - response.p) + 4);
		if (has_whole_body((struct str){ response.p, (size_t)(end - response.p) + 1 },
				   body.n)) {
			*ret = body;
			return 0;
		}
	}
	return err_set(err, EBADMSG, "the agent's response is truncated");
}

int status_client_body(struct str response, struct str *ret, struct err *err)
{
	const struct str refusal = STR("HTTP/1.1 409 ");
	struct str body = { 0 };
	int r = find_body(response, &body, err);

	if (r < 0)
		return r;
	/* The agent decided: its reason is the error. Any other status means that it did not. */
	if (str_starts(response, refusal)) {
		body = str_trim(body);
		return err_set(err, ENOSPC, PRI_STR, FMT_STR(body));
	}
	if (!str_starts(response, STR("HTTP/1.1 200 "))) {
		struct str_split lines = str_split(response);
		struct str first = STR("");

		(void)str_next(&lines, '\r', &first);
		return err_set(err, EBADMSG, "the agent responded with %s", quote(first).text);
	}
	*ret = body;
	return 0;
}

static int send_request(const char *path, struct str request, struct arena *a, struct str *ret,
			struct err *err)
{
	AUTO_CLOSE int fd = unix_socket_connect(path, TIMEOUT_S);

	if (fd < 0)
		return err_set(err, -fd, "%s: %s", path, strerror(-fd));
	/* A request is one line and fits into an empty socket buffer: a part is a failure. */
	if (send(fd, request.p, request.n, MSG_NOSIGNAL) != (ssize_t)request.n)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return file_read_fd(fd, path, DOC_MAX_SIZE, a, ret, err);
}

int status_client_request(const char *run_dir, const char *method, struct str target,
			  struct arena *a, struct str *ret, struct err *err)
{
	const char *path = str_cstr(a, str_printf(a, "%s/" AGENT_SOCKET, run_dir));
	struct str response, request;
	int r;

	request = str_printf(a, "%s " PRI_STR " HTTP/1.1\r\nHost: agent\r\n\r\n", method,
			     FMT_STR(target));
	r = send_request(path, request, a, &response, err);
	if (r < 0)
		return r;
	return status_client_body(response, ret, err);
}

int status_client_read(const char *run_dir, struct arena *a, struct agent_status *ret,
		       struct err *err)
{
	const char *socket_path = str_cstr(a, str_printf(a, "%s/" AGENT_SOCKET, run_dir));
	const char *file = str_cstr(a, str_printf(a, "%s/" AGENT_STATUS_FILE, run_dir));
	struct agent_status status = { .is_running = true, .from = socket_path };
	struct str text;
	int r;

	r = status_client_request(run_dir, "GET", STR("/status"), a, &text, err);
	/* No socket, or a socket that a killed agent left: no agent runs. Other failures, such as a
	 * timeout, are errors, because the file of a running agent may be out of date. */
	if (r == -ENOENT || r == -ECONNREFUSED) {
		status.is_running = false;
		status.from = file;
		r = file_read_at(AT_FDCWD, file, DOC_MAX_SIZE, a, &text, err);
		if (r == -ENOENT)
			return err_set(err, ENOENT,
				       "no agent is running, and there is no status file in %s",
				       run_dir);
	}
	if (r == 0)
		r = doc_parse(text, str_from(status.from), NULL, a, &status.doc, err);
	if (r == 0)
		*ret = status;
	return r;
}
