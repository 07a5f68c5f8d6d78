#pragma once

/* Compares what the agent's Node says with what it should say (resources, a condition, a taint) and
 * builds the request bodies that remove the difference. The kubelet owns the object and sets
 * extended resources to zero when it registers again, so the comparison is repeated after every
 * change. Pure: node_writer.h sends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct err;
struct ledger;

/* The extended resources that the agent maintains. */
enum node_resource {
	NODE_MANAGEMENT, /* every online CPU of the host, as with OpenShift's kubelet */
	NODE_SHARED,	 /* this and the next only in pools mode */
	NODE_GUARANTEED,
	NODE_RESOURCE__COUNT
};

#define NODE_ABSENT INT64_C(-1) /* no such amount, or an unreadable one */

#define NODE_TYPES_MAX 16 /* also counts types that were configured earlier */

/* Millicores; NODE_ABSENT: the Node must not have the resource. Zeroed before it is filled in: it
 * is compared as bytes. */
struct node_amounts {
	int64_t milli[NODE_RESOURCE__COUNT];
	/* Workload types other than management; each has as many cores. */
	char types[POOL_TYPES_MAX][WORKLOAD_TYPE_MAX + 1];
	size_t n_types;
};

/* The cores of such a type on the Node. */
struct node_type_cores {
	char type[WORKLOAD_TYPE_MAX + 1];
	int64_t capacity, allocatable;
};

/* `pools` is false where the kubelet assigns CPUs. */
void node_amounts_of(const struct ledger *l, bool pools, struct node_amounts *ret);

/* The condition. */
enum node_reason {
	NODE_PINNING,	    /* True */
	NODE_RUNTIME_LOST,  /* False: no connection to the runtime */
	NODE_POOLS_REFUSED, /* False: the configured pools conflict with running containers */
	NODE_CGROUPS_FAIL,  /* False: cgroup control files cannot be written */
	NODE_AGENT_STOPPED, /* Unknown */
	NODE_REASON__COUNT
};

const char *node_reason_name(enum node_reason r);   /* "Pinning" */
const char *node_reason_status(enum node_reason r); /* "True", "False", "Unknown" */

struct node_health {
	bool is_connected;	/* to the runtime, and synchronized */
	bool pools_are_refused; /* the last resize was refused or is deferred */
	bool writes_fail;	/* a cgroup write failed within the last minute */
};
enum node_reason node_reason_choose(const struct node_health *h);

enum node_taint {
	NODE_TAINT_LEAVE,
	NODE_TAINT_REMOVE,
	NODE_TAINT_PUT,
};

#define NODE_UNREADY_MS 15000 /* a restart of the runtime takes less */

/* The taint is removed when the agent is ready. With `taints_unready` it is added again after the
 * agent was not ready for NODE_UNREADY_MS. */
enum node_taint node_taint_choose(bool is_ready, uint64_t unready_ms, bool taints_unready);

struct node_desired {
	struct node_amounts amounts;
	enum node_reason reason;
	struct str message;
	enum node_taint taint;
	bool is_undecided;     /* the pools may be about to change: nothing is patched */
	bool is_heartbeat_due; /* the condition is written again, to show that the agent runs */
	int64_t now_s;
};

/* The relevant fields of the last version of the object. */
struct node_observed {
	bool exists;
	int64_t capacity[NODE_RESOURCE__COUNT], allocatable[NODE_RESOURCE__COUNT];
	struct node_type_cores types[NODE_TYPES_MAX]; /* every <type>.workload.openshift.io/cores */
	size_t n_types;
	char status[8], reason[64], message[512]; /* of the condition; "": none */
	char since[40];				  /* lastTransitionTime */
	int taint;				  /* index of the agent's taint; -1: none */
	bool has_taints;
	char version[64], uid[64];
};

void node_observed_of(yyjson_val *node, struct node_observed *ret); /* NULL: it does not exist */

/* Whether the capacity is what it should be. */
bool node_has_capacity(const struct node_observed *observed, const struct node_amounts *want);

/* Each returns 1 with a body to send, 0 when there is nothing to do. */

/* PATCH of the status. Strategic merge keeps the other conditions. */
int node_plan_status(const struct node_observed *observed, const struct node_desired *want,
		     struct arena *a, struct str *ret_body, struct err *err);

/* JSON Patch of the object; a `test` operation makes it fail if the taints were changed meanwhile.
 */
int node_plan_taint(const struct node_observed *observed, enum node_taint taint, struct arena *a,
		    struct str *ret_body, struct err *err);

/* PATCH of the status that removes the resources and the condition. */
int node_plan_removal(const struct node_observed *observed, struct arena *a, struct str *ret_body,
		      struct err *err);

/* A Node that is created before the kubelet registers it. A kubelet sets --node-labels and
 * --register-with-taints only on a Node that it creates, so they are given here instead. */
struct node_registration {
	struct str name;
	const char *const *labels; /* "key=value" */
	size_t n_labels;
	const char *const *taints; /* "key[=value]:Effect" */
	size_t n_taints;
};

/* -EINVAL for an invalid label or taint. */
int node_registration_check(const struct node_registration *b, struct err *err);
int node_plan_registration(const struct node_registration *b, const struct node_desired *want,
			   struct arena *a, struct str *ret_body, struct err *err);

/* The name a kubelet gives its Node: the host name in lower case. -EINVAL when that is no valid
 * object name. */
int node_name_of(struct str host, struct arena *a, struct str *ret, struct err *err);

/* "/api/v1/nodes[/NAME[/PART]]" */
struct str node_path(struct str name, struct str part, struct arena *a);
