#pragma once

/* A runtime for one plugin, over a Unix socket, for programs that run the agent as a process;
 * nri_runtime.h does the same without a socket. A failure ends the program. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "nri/runtime_peer.h"

static inline void runtime_peer_require(int r, const struct err *err)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "runtime: %s\n", err->msg);
	exit(2);
}

static inline uint64_t runtime_peer_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the time until the response. */
static inline uint64_t runtime_peer_time_call(struct runtime_peer *p, const char *method,
					      struct str payload, struct ttrpc_response *ret)
{
	const uint64_t began_ns = runtime_peer_now_ns();
	struct err err = { 0 };

	runtime_peer_require(runtime_peer_call(p, method, payload, ret, &err), &err);
	return runtime_peer_now_ns() - began_ns;
}

static inline int runtime_peer_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct err err = { 0 };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		exit(2);
	memcpy(address.sun_path, path, strlen(path) + 1);
	(void)unlink(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 1) < 0)
		runtime_peer_require(err_set(&err, errno, "%s: %s", path, strerror(errno)), &err);
	return fd;
}

/* Accepts, registers and configures the plugin; Synchronize is next. */
static inline void runtime_peer_accept(struct runtime_peer *p, int listener, const char *runtime)
{
	const struct nri_runtime about = { .name = runtime,
					   .version = "1",
					   .registration_timeout_ms = 5000,
					   .request_timeout_ms = 2000 };
	struct ttrpc_response response;
	struct nri_register name;
	struct err err = { 0 };

	runtime_peer_init(p, accept(listener, NULL, NULL));
	runtime_peer_require(runtime_peer_register(p, &name, &err), &err);
	(void)runtime_peer_time_call(
		p, "Configure", runtime_peer_encode(p, &nri_runtime_message, &about), &response);
}
