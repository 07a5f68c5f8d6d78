#pragma once

/* A request as the decisions see it, and their result: allowed, or refused with the text that the
 * API server would use, a patch, warnings, and the chain of rules that led there. Audit annotations
 * carry the name of the rule that decided, `pinfold explain` prints the whole chain, metrics count
 * by rule. Data and the functions that fill it; no decision is made here. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "kube/patch.h"

struct arena;

/* In the order in which a pod passes them. */
enum admission_rule {
	RULE_SCOPE,
	RULE_OBJECT,
	RULE_EXEMPT,
	RULE_STATIC,
	RULE_TARGET,
	RULE_SYNCED,
	RULE_INFRASTRUCTURE,
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
	RULE_CORES,
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
	RULE_TURN_ON,
	RULE_PROFILE,
	RULE_PROFILE_CONFLICT,
	RULE_NODE,
	RULE__COUNT
};

enum rule_verdict {
	VERDICT_GO_ON,	/* the rule holds, the next one is checked */
	VERDICT_LEAVE,	/* the object stays unchanged */
	VERDICT_STRIP,	/* the workload annotations are removed, the rest stays */
	VERDICT_CHANGE, /* the object is changed */
	VERDICT_REFUSE,
	VERDICT__COUNT
};

struct rule_step {
	enum admission_rule rule;
	enum rule_verdict verdict;
	struct str seen; /* the value that the rule checked */
};

const char *rule_name(enum admission_rule rule);     /* "guaranteed": for audits and metrics */
const char *rule_question(enum admission_rule rule); /* for `pinfold explain` */
const char *rule_advice(enum admission_rule rule); /* what to change; NULL when there is nothing */

/* The rule that wrote a warning annotation; RULE__COUNT when it is unknown. */
enum admission_rule rule_of_warning(struct str text);
const char *verdict_name(enum rule_verdict verdict);

enum admission_operation {
	OPERATION_CREATE,
	OPERATION_UPDATE,
	OPERATION_DELETE,
	OPERATION_OTHER,
};

struct admission_request {
	enum admission_operation operation;
	struct str group, resource, subresource;
	struct str namespace; /* of the request; when empty, that of the object */
	bool by_node;	      /* the user is a member of system:nodes (D9) */
	yyjson_val *object, *old_object;
};

#define RESULT_MAX_WARNINGS 8
#define RESULT_MAX_STEPS 32

struct admission_result {
	bool allowed;
	unsigned code;	    /* HTTP status, when refused */
	const char *reason; /* "Forbidden"... */
	struct str message;
	struct patch patch; /* empty when refused */
	struct str warnings[RESULT_MAX_WARNINGS];
	size_t n_warnings;
	struct rule_step steps[RESULT_MAX_STEPS];
	size_t n_steps;
	enum admission_rule rule; /* the one that decided */
	bool is_static;		  /* a static pod: when refused, the manifest runs unchanged */
};

/* Starts as allowed and unchanged. False when memory ran out. */
bool result_init(struct admission_result *r, struct arena *a);

void result_step(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		 struct str seen);
void result_warn(struct admission_result *r, struct str text);

/* What becomes of the object, as a sentence without a full stop. */
struct str admission_result_text(const struct admission_result *r, struct arena *a);

/* What to change for another result; NULL when there is nothing. */
const char *admission_result_advice(const struct admission_result *r);

/* The step that decides: later steps do not change result.rule. */
void result_decide(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		   struct str seen);

/* The object, as messages name it. */
struct subject {
	const char *resource; /* "pods" */
	const char *kind;     /* "Pod" */
	struct str name;
	struct str generate_name;
};

struct subject subject_of(yyjson_val *object, const char *resource, const char *kind);

/* 403: `pods "x" is forbidden: <text>`. */
void result_forbid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		   struct str text);

/* Errors of fields, each "field: Invalid value: ...: detail". Equal ones are listed once. */
struct field_errors {
	struct arena *a;
	struct str *items;
	size_t n, cap;
};

void field_errors_init(struct field_errors *p, struct arena *a);
void field_errors_add(struct field_errors *p, struct str text);
void field_errors_invalid(struct field_errors *p, struct str field, struct str value,
			  struct str detail);

/* 422: `Pod "x" is invalid: <problem>`, several in brackets. */
void result_invalid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		    const struct field_errors *p);

/* Any other status. */
void result_refuse(struct admission_result *r, enum admission_rule rule, unsigned code,
		   const char *reason, struct str message);

/* A string map as the API server prints it in messages: compact, sorted, HTML escaped. With
 * `quantities`, values are printed as canonical quantities. */
struct str print_map(yyjson_val *map, bool quantities, struct arena *a);

/* In double quotes, with Go's escapes. */
struct str print_quoted(struct str s, struct arena *a);
