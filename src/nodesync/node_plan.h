#pragma once

/* What our Node object shall say, against what it says: resources, a condition, a taint. The
 * kubelet owns the object and now and then takes our resources away, so this is asked again after
 * every change. Pure: node_sync.h asks the API server and writes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;
struct ledger;

/* Our resources, in the order of node_resource_name(). */
enum node_resource {
	NODE_MANAGEMENT, /* every online CPU of the host, as the kubelet patch has it */
	NODE_SHARED,	 /* the pools: only where there are pools */
	NODE_GUARANTEED,
	NODE_RESOURCE__COUNT
};

const char *node_resource_name(enum node_resource r);

#define NODE_ABSENT INT64_C(-1) /* no such amount, or one that cannot be read */

/* Millicores; NODE_ABSENT: not ours to have. `pools` is false where somebody else hands out CPUs.
 */
struct node_amounts {
	int64_t milli[NODE_RESOURCE__COUNT];
};

void node_amounts_of(const struct ledger *l, bool pools, struct node_amounts *ret);

/* The condition. */
enum node_reason {
	NODE_PINNING,	    /* True: all is well */
	NODE_RUNTIME_LOST,  /* False: nobody asks us about containers */
	NODE_POOLS_REFUSED, /* False: pools as configured do not fit what runs; the old ones go on
			     */
	NODE_CGROUPS_FAIL,  /* False: control files cannot be written */
	NODE_AGENT_STOPPED, /* Unknown: on the way out */
	NODE_REASON__COUNT
};

const char *node_reason_name(enum node_reason r);   /* "Pinning" */
const char *node_reason_status(enum node_reason r); /* "True", "False", "Unknown" */

/* What is known for the choice. */
struct node_health {
	bool is_connected;	/* to the runtime, synchronised */
	bool pools_are_refused; /* the last configuration was not taken */
	bool writes_fail;	/* some cgroup could not be written lately */
};
enum node_reason node_reason_choose(const struct node_health *h);

enum node_taint {
	NODE_TAINT_LEAVE,
	NODE_TAINT_REMOVE,
	NODE_TAINT_PUT,
};

#define NODE_UNREADY_MS 15000 /* a runtime that restarts is back by then */

/* The taint goes when we are ready. With `taints_unready` it comes back when we have not been so
 * for a while. */
enum node_taint node_taint_choose(bool is_ready, uint64_t unready_ms, bool taints_unready);

struct node_desired {
	struct node_amounts amounts;
	enum node_reason reason;
	struct str message;
	enum node_taint taint;
	bool is_heartbeat_due; /* the condition is repeated, so that its age tells that we live */
	int64_t now_s;
};

/* What the last version of the object said, as far as it matters here. */
struct node_observed {
	bool exists;
	int64_t capacity[NODE_RESOURCE__COUNT], allocatable[NODE_RESOURCE__COUNT];
	char status[8], reason[64], message[512]; /* of our condition; "" when it has none */
	char since[40];				  /* its last transition, as written */
	int taint;				  /* index of ours; -1 */
	bool has_taints;
	char version[64], uid[64];
};

void node_observed_of(yyjson_val *node, struct node_observed *ret); /* NULL: it does not exist */

/* Each returns 1 with something to send, 0 when there is nothing to do. */

/* PATCH of the status, strategic merge: so the other conditions stay. */
int node_plan_status(const struct node_observed *observed, const struct node_desired *want,
		     struct arena *a, struct str *ret_body, struct err *err);

/* PATCH of the object, JSON Patch; it fails when somebody else changed the taints meanwhile. */
int node_plan_taint(const struct node_observed *observed, enum node_taint taint, struct arena *a,
		    struct str *ret_body, struct err *err);

/* The same, to take away all that is ours. */
int node_plan_removal(const struct node_observed *observed, struct arena *a, struct str *ret_body,
		      struct err *err);

/* A Node made before the kubelet's: what a kubelet puts into its own Node only when it creates it
 * is lost otherwise, so labels and taints can be told. */
struct node_registration {
	struct str name;
	const char *const *labels; /* "key=value" */
	size_t n_labels;
	const char *const *taints; /* "key[=value]:Effect" */
	size_t n_taints;
};

/* -EINVAL with a sentence for a label or taint that is none. */
int node_registration_check(const struct node_registration *b, struct err *err);
int node_plan_registration(const struct node_registration *b, const struct node_desired *want,
			   struct arena *a, struct str *ret_body, struct err *err);

/* What a kubelet would call this node: the host's name in small letters. -EINVAL when that is no
 * name for an object. */
int node_name_of(struct str host, struct arena *a, struct str *ret, struct err *err);

/* "/api/v1/nodes[/NAME[/PART]]" */
struct str node_path(struct str name, struct str part, struct arena *a);
