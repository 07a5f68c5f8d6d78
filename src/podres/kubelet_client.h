#pragma once

/* A client of the kubelet's PodResources socket: one short connection per request, on the agent's
 * loop, with a deadline. Nothing here blocks. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/buffer.h"
#include "net/loop.h"
#include "rpc/grpc.h"

#define KUBELET_DEADLINE_MS 5000

enum kubelet_query { KUBELET_LIST, KUBELET_ALLOCATABLE, KUBELET_QUERY__COUNT };

enum kubelet_outcome {
	KUBELET_RESPONDED,
	KUBELET_ABSENT, /* there is no socket, or nothing listens on it */
	KUBELET_FAILED, /* see code and why */
};

struct kubelet_result {
	enum kubelet_outcome outcome;
	struct str messages[KUBELET_QUERY__COUNT]; /* of the requested queries */
	enum grpc_code code;
	struct str why;
};

struct kubelet_client;
typedef void (*kubelet_fn)(struct kubelet_client *k, const struct kubelet_result *result);

struct kubelet_client {
	struct loop *loop;
	const char *path;
	kubelet_fn on_result;
	struct timer deadline;
	struct stream stream;
	struct grpc *grpc;
	int32_t calls[KUBELET_QUERY__COUNT]; /* 0: not requested, or complete */
	struct buffer responses[KUBELET_QUERY__COUNT];
	bool is_busy;
	bool is_closing;
	enum kubelet_outcome outcome; /* of the request that is ending */
	enum grpc_code code;
	struct err why;
	unsigned queries; /* bits: 1 << KUBELET_LIST... */
};

/* `path` must outlive it. */
void kubelet_client_init(struct kubelet_client *k, struct loop *loop, const char *path,
			 kubelet_fn on_result);
void kubelet_client_done(struct kubelet_client *k); /* its memory stays until the loop is done */

/* `queries` has the bits 1 << KUBELET_LIST... on_result is called once, after this returned. One
 * request at a time. */
void kubelet_client_request(struct kubelet_client *k, unsigned queries);
