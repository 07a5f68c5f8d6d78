#pragma once

/* The running dashboard, shared by the files that act: dashboard.c (life) and routes.c (requests).
 */

#include "dashboard.h"
#include "net/loop.h"
#include "net/small_server.h"
#include "requests.h"
#include "shown_state.h"
#include "source_cluster.h"
#include "source_machine.h"
#include "use_meter.h"
#include "user_access.h"

struct dashboard {
	const struct dashboard_config *config;
	struct shown_state state;
	struct request_rules rules;
	struct arena arena; /* of the configuration */
	struct loop loop;
	struct small_server http;
	struct signal_source terminate, interrupt;
	struct timer tick;
	uint64_t ticks;
	struct source_cluster cluster;
	struct use_meter use;	   /* of the nodes of a cluster */
	struct user_access access; /* only with user_tokens */
	struct source_machine machine;
	char user_agent[64];
};

/* The handler of small_server. */
void dashboard_handle(const struct small_request *request, struct small_response *ret,
		      void *context);

/* source_pod_fn: the rest of a response that waited for the API server. */
void dashboard_on_pod(void *context, uint64_t connection, yyjson_val *object,
		      const struct err *err);

/* Of user_access: the rest of a response that waited for a review. */
void dashboard_on_review(void *context, uint64_t connection, const struct err *why);
