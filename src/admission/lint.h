#pragma once

/* Checks manifests before they reach a cluster: workloads that did not opt in, namespaces that do
 * not allow them, pods that admission would skip or refuse, and settings that harm latency. Pure:
 * it gets objects and returns findings; reading files and fixing them is cli/cmd_lint.c. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct admission_state;
struct arena;
struct namespace_permission;

enum lint_rule {
	LINT_TARGET,	 /* no target annotation */
	LINT_PERMISSION, /* namespace that does not allow the type */
	LINT_NAMESPACE,	 /* namespace not among the manifests */
	LINT_BAD_TARGET,
	LINT_GUARANTEED,
	LINT_QOS_CHANGE,
	LINT_POD_LEVEL,
	LINT_QUANTITY,
	LINT_HAND_WRITTEN, /* what only admission may write */
	LINT_EXEC_PROBE,
	LINT_LEGACY,
	LINT_CUSTOM, /* a custom resource whose pods are not checked */
	LINT__COUNT
};

enum lint_level { LINT_NOTE, LINT_WARNING, LINT_ERROR, LINT_LEVEL__COUNT };

const char *lint_rule_name(enum lint_rule rule);
const char *lint_rule_text(enum lint_rule rule); /* one sentence */
enum lint_level lint_rule_level(enum lint_rule rule);
const char *lint_level_name(enum lint_level level);

struct lint_finding {
	enum lint_rule rule;
	yyjson_val *at; /* nearest value in the document */
	struct str text;
	const char *advice; /* may be NULL */
};

struct lint_findings {
	struct lint_finding *items;
	size_t n, cap;
	struct arena *a;
};

void lint_findings_init(struct lint_findings *f, struct arena *a);

/* One pod or workload. `type` is the workload type it should opt in to. */
void lint_pod(yyjson_val *object, struct str type, struct lint_findings *f);

/* A custom resource that creates pods, as far as that shows: it contains a pod template, or its
 * kind is known. Its pods are not among the manifests. */
void lint_custom(yyjson_val *object, struct lint_findings *f);

/* The namespace of workloads of `type`; `object` is NULL when it is not known, and the finding is
 * about `workload`. */
void lint_namespace(yyjson_val *object, yyjson_val *workload, struct str name, struct str type,
		    struct lint_findings *f);
