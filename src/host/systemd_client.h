#pragma once

/* Calls of systemd's own interface (org.freedesktop.systemd1.Manager): AllowedCPUs= of units at run
 * time, so that systemd keeps it when it reloads or starts units, and starts of units. One
 * connection for a batch of calls, on a loop. Uses the socket /run/systemd/private, which exists on
 * every host with systemd, otherwise the system bus. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cpu/cpuset.h"
#include "net/loop.h"

enum systemd_method {
	SYSTEMD_RELOAD, /* systemd reads its configuration again; no unit */
	SYSTEMD_SET_CPUS,
	SYSTEMD_START, /* answered when the job is queued, like the next two */
	SYSTEMD_RESTART,
	SYSTEMD_TRY_RESTART, /* if it runs */
	SYSTEMD_REBOOT,	     /* the unit is reboot.target; no other job can cancel it */
	SYSTEMD_ENABLE,
	SYSTEMD_DISABLE,
};

struct systemd_call {
	const char *unit;
	const struct cpuset *cpus; /* of SYSTEMD_SET_CPUS, the caller's; NULL: no restriction */
	enum systemd_method method;
	bool is_answered;
	struct err err; /* of this call */
};

struct systemd_client;
typedef void (*systemd_done_fn)(struct systemd_client *c);

enum systemd_state {
	SYSTEMD_IDLE,
	SYSTEMD_CONNECTING,
	SYSTEMD_AUTH,
	SYSTEMD_CALLING,
	SYSTEMD_CLOSING
};

struct systemd_client {
	struct loop *loop;
	const char *root; /* below which the sockets are: "/" or "/host" */
	enum systemd_state state;
	bool is_bus;	   /* the system bus, not systemd's own socket, */
	int private_error; /* which could not be reached */
	struct stream stream;
	struct timer timeout;
	uint64_t timeout_ms; /* of a batch; 60 s unless the owner changes it */
	struct buffer input;
	struct systemd_call *calls; /* of the owner, valid until on_done */
	size_t n, n_answered;
	struct err err; /* of the connection; code 0 when all calls were answered */
	systemd_done_fn on_done;
};

void systemd_client_init(struct systemd_client *c, struct loop *loop, const char *root,
			 systemd_done_fn on_done);

/* Only while idle. on_done is called later, once, and may start the next batch. */
void systemd_client_start(struct systemd_client *c, struct systemd_call *calls, size_t n);

bool systemd_client_is_idle(const struct systemd_client *c);

/* Ends without on_done. Memory stays until the loop is done. */
void systemd_client_close(struct systemd_client *c);
