#pragma once

/* The rules of admission, in the order a pod meets them. Each decision leaves a chain of them:
 * what was looked at and what came of it. Audit annotations carry the name of the one that decided,
 * `explain` prints the whole chain, metrics count by it. */

#include "base/str.h"

enum admission_rule {
	RULE_SCOPE,
	RULE_OBJECT,
	RULE_STATIC,
	RULE_TARGET,
	RULE_SYNCED,
	RULE_INFRASTRUCTURE,
	RULE_TOPOLOGY,
	RULE_PARTITIONING,
	RULE_SINGLE_NODE,
	RULE_NAMESPACE,
	RULE_PERMISSION,
	RULE_TYPE_ALLOWED,
	RULE_EFFECT,
	RULE_POD_LEVEL,
	RULE_QUANTITY,
	RULE_GUARANTEED,
	RULE_QOS_CHANGE,
	RULE_CONVERT,
	RULE_POOL_GATE,
	RULE_POOL_NODES,
	RULE_POOLS,
	RULE_AGENT,
	RULE_RESOURCES_ANNOTATION,
	RULE_UNTARGETED,
	RULE_UPDATE,
	RULE_RESIZE,
	RULE_TURN_OFF,
	RULE_NODE,
	RULE__COUNT
};

enum rule_verdict {
	VERDICT_GO_ON,	/* holds, the next rule is asked */
	VERDICT_LEAVE,	/* nothing for us to do */
	VERDICT_STRIP,	/* the workload annotations are removed, the rest stays */
	VERDICT_CHANGE, /* the object is changed */
	VERDICT_REFUSE,
	VERDICT__COUNT
};

struct rule_step {
	enum admission_rule rule;
	enum rule_verdict verdict;
	struct str seen; /* what the rule looked at */
};

const char *rule_name(enum admission_rule rule);     /* "guaranteed": for audits and metrics */
const char *rule_question(enum admission_rule rule); /* for people */
const char *rule_advice(enum admission_rule rule); /* what to change; NULL when there is nothing */
const char *verdict_name(enum rule_verdict verdict);
