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

enum kubelet_question { KUBELET_LIST, KUBELET_ALLOCATABLE, KUBELET__QUESTIONS };

enum kubelet_outcome {
	KUBELET_ANSWERED,
	KUBELET_ABSENT, /* there is no socket, or nobody listens on it */
	KUBELET_FAILED, /* it is there, and did not answer: see code and why */
};

struct kubelet_result {
	enum kubelet_outcome outcome;
	struct str messages[KUBELET__QUESTIONS]; /* of those that were asked */
	enum grpc_code code;
	struct str why;
};

struct kubelet;
typedef void (*kubelet_fn)(struct kubelet *k, const struct kubelet_result *result);

struct kubelet {
	struct loop *loop;
	const char *path;
	kubelet_fn on_result;
	struct timer deadline;
	struct stream stream;
	struct grpc *grpc;
	int32_t calls[KUBELET__QUESTIONS]; /* 0: not asked, or answered */
	struct buffer answers[KUBELET__QUESTIONS];
	bool is_busy;
	bool is_closing;
	enum kubelet_outcome outcome; /* of the question that is ending */
	enum grpc_code code;
	struct err why;
	unsigned asked; /* bits */
};

/* `path` is the caller's. */
void kubelet_init(struct kubelet *k, struct loop *loop, const char *path, kubelet_fn on_result);
void kubelet_done(struct kubelet *k); /* its memory must stay until the loop is done */

/* Asks (bits: 1 << KUBELET_LIST...); on_result comes once, never in here. One at a time. */
void kubelet_ask(struct kubelet *k, unsigned questions);
