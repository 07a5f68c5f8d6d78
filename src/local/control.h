#pragma once

/* One question, one answer, between a command and the supervisor: a unix socket in the run
 * directory. Messages are whole (SOCK_SEQPACKET), so there is no framing to get wrong. */

#include <stddef.h>

#include "base/str.h"

struct arena;
struct err;

#define CONTROL_MAX ((size_t)64 << 10)

/* Whether a socket in there has a name that the kernel takes. */
int control_check(const char *run_dir, struct err *err);

/* Listens; a stale socket of a supervisor that is gone is replaced. */
int control_listen(const char *run_dir, int *ret_fd, struct err *err);

/* The file itself, when the supervisor ends. */
void control_unlink(const char *run_dir);

/* Takes one question from a waiting client; *ret_client is to be answered and closed. */
int control_accept(int fd, char buf[CONTROL_MAX], struct str *ret_question, int *ret_client);

/* The answer: an exit status and what to print. Closes the client. */
void control_respond(int client, int status, struct str text);

/* Asks and waits. -ECONNREFUSED or -ENOENT when no supervisor runs here. */
int control_request(const char *run_dir, struct str question, struct arena *a, int *ret_status,
		    struct str *ret_text, struct err *err);
