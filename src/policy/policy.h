#pragma once

/* Admission policies: what the webhook does, as far as CEL can express it, for the API server to
 * evaluate itself. A policy is a table of CEL texts (guard.c, workloads.c, node_policies.c); this
 * file turns tables into objects. Names, texts and limits in them are those of the C code. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

enum policy_mode {
	POLICY_MODE_WEBHOOK, /* the webhook mutates; policies only guard */
	POLICY_MODE_POLICY,  /* policies mutate, there is no webhook */
	POLICY_MODE_BOTH,    /* policies mutate first, the webhook gets what is left */
	POLICY_MODE__COUNT
};

struct policy_options {
	enum policy_mode mode;
	bool only_mutating; /* without the guard, which is always installed */
	bool legacy;	    /* the label of 2021 is a permission, too (D2) */
	bool refuse_nodes;  /* nodes without cores are refused instead of tainted */
	unsigned minor;	    /* of Kubernetes 1.x */
};

/* The first minor versions that have ValidatingAdmissionPolicy as v1, MutatingAdmissionPolicy as
 * v1beta1 (off by default), and as v1 and on. */
#define POLICY_MINOR_GUARD 30
#define POLICY_MINOR_BETA 34
#define POLICY_MINOR_MUTATING 36

/* A variable or a match condition. */
struct cel_text {
	const char *name;
	const char *text;
	const char *legacy_text; /* with the option `legacy`; NULL: the same */
};

struct policy_validation {
	const char *text;
	const char *message;	  /* a constant, or... */
	const char *message_text; /* ...an expression */
	const char *reason;	  /* NULL: Invalid */
};

struct policy_rule {
	const char *group, *version;
	const char *operations[3], *resources[4]; /* end at NULL */
};

#define POLICY_MAX_PARTS 24

struct policy {
	const char *name;
	const char *about; /* the comment in front of it */
	bool has_parameters;
	bool spares_own_namespaces; /* those of Pinfold (D18) */
	struct policy_rule rules[3];
	struct cel_text conditions[4];
	struct cel_text variables[POLICY_MAX_PARTS];
	struct policy_validation validations[POLICY_MAX_PARTS];
	const char *mutation;	/* a list of JSONPatch: a MutatingAdmissionPolicy */
	const char *actions[3]; /* of the binding of a validating policy */
};

/* Always installed. */
extern const struct policy policy_guard, policy_pods, policy_converted;
/* With the modes policy and both. */
extern const struct policy policy_workloads, policy_warnings;
extern const struct policy policy_nodes, policy_tainted_nodes, policy_cluster_flag;

/* -EINVAL when the version lacks what the mode needs. */
int policy_options_check(const struct policy_options *o, struct err *err);

/* Policies and their bindings, in the order in which they have to be created. */
int policy_objects(const struct policy_options *o, struct arena *a, yyjson_mut_doc **ret_doc,
		   yyjson_mut_val **ret, struct err *err);

/* The same as YAML, with comments. */
int policy_yaml(const struct policy_options *o, struct arena *a, struct str *ret, struct err *err);

const char *policy_mode_name(enum policy_mode mode);
