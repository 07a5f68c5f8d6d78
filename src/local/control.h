#pragma once

/* Requests from a command to the supervisor, one request and one response per connection, over a
 * Unix socket in the run directory. SOCK_SEQPACKET keeps message boundaries, so there is no
 * framing. */

#include <stddef.h>

#include "base/str.h"

struct arena;
struct err;

#define CONTROL_MAX ((size_t)64 << 10)

/* Fails when the path of the socket is too long for the kernel. */
int control_check(const char *run_dir, struct err *err);

/* A socket of mode 0600. Replaces a stale one; the caller holds the lock of the run directory. */
int control_listen(const char *run_dir, int *ret_fd, struct err *err);

void control_unlink(const char *run_dir);

/* Accepts one client and reads its request; the caller passes *ret_client to control_respond().
 * -EPERM for a client of another user than this one or root, which gets no response. */
int control_accept(int fd, char buf[CONTROL_MAX], struct str *ret_request, int *ret_client);

/* Sends an exit status and the text to print, then closes the client. */
void control_respond(int client, int status, struct str text);

/* Sends a request and waits for the response. -ECONNREFUSED or -ENOENT without a supervisor. */
int control_request(const char *run_dir, struct str request, struct arena *a, int *ret_status,
		    struct str *ret_text, struct err *err);
