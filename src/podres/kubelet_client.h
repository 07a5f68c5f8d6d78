#pragma once

/* The kubelet's own PodResources socket, asked on behalf of our clients: one short connection per
 * question, on the agent's loop, with a time limit. Nothing here waits. */

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
	KUBELET_ABSENT, /* there is no socket, or nobody listens on it */
	KUBELET_FAILED, /* it is there, and did not answer: see code and why */
};

struct kubelet_result {
	enum kubelet_outcome outcome;
	struct str messages[KUBELET_QUERY__COUNT]; /* of those that were asked */
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
	int32_t calls[KUBELET_QUERY__COUNT]; /* 0: not asked, or answered */
	struct buffer responses[KUBELET_QUERY__COUNT];
	bool is_busy;
	bool is_closing;
	enum kubelet_outcome outcome; /* of the question that is ending */
	enum grpc_code code;
	struct err why;
	unsigned asked; /* bits */
};

/* `path` is the caller's. */
void kubelet_client_init(struct kubelet_client *k, struct loop *loop, const char *path,
			 kubelet_fn on_result);
void kubelet_client_done(
	struct kubelet_client *k); /* its memory must stay until the loop is done */

/* Asks (bits: 1 << KUBELET_LIST...); on_result comes once, never in here. One at a time. */
void kubelet_client_request(struct kubelet_client *k, unsigned questions);
