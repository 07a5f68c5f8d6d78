#pragma once

/* What is wrong with a cluster, from objects of its API server. Pure; cluster_read.h fetches the
 * objects. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/doc.h"
#include "preflight.h"

/* The objects that are read: constant and path. */
#define PREFLIGHT_OBJECTS(X)                                                                       \
	X(VERSION, "/version")                                                                     \
	X(CRDS, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")                         \
	X(POLICIES, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")           \
	X(BINDINGS, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings")     \
	X(INFRASTRUCTURE, "/apis/config.openshift.io/v1/infrastructures/cluster")                  \
	X(MUTATING, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/pinfold") \
	X(VALIDATING,                                                                              \
	  "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/pinfold")         \
	X(DEPLOYMENT, "/apis/apps/v1/namespaces/pinfold/deployments/pinfold-webhook")              \
	X(OPERATOR, "/apis/apps/v1/namespaces/pinfold/deployments/pinfold-operator")               \
	X(SECRET, "/api/v1/namespaces/pinfold/secrets/pinfold-webhook-tls")                        \
	X(DAEMONSET, "/apis/apps/v1/namespaces/pinfold-agent/daemonsets/pinfold-agent")            \
	X(NODES, "/api/v1/nodes")                                                                  \
	X(PARTITIONS, "/apis/pinfold.io/v1alpha1/nodepartitions")

#define PREFLIGHT_OBJECT_CONSTANT(name, path) PREFLIGHT_##name##_OBJECT,
enum preflight_object { PREFLIGHT_OBJECTS(PREFLIGHT_OBJECT_CONSTANT) PREFLIGHT_OBJECT__COUNT };

const char *preflight_object_path(enum preflight_object object);

struct object_fact {
	yyjson_val *object; /* NULL: see the error */
	struct err err;
};

/* An attempt to reach a webhook: directly, or with a pod that is not stored. */
struct webhook_attempt {
	bool is_made;
	bool is_answered;
	struct err err; /* why it was not made, or not answered */
};

struct cluster_facts {
	struct object_fact objects[PREFLIGHT_OBJECT__COUNT];
	struct webhook_attempt direct; /* TLS with the caBundle; only for webhooks with a URL */
	struct webhook_attempt pod;    /* through the API server; answered: the pod was changed */
	struct str version;	       /* of this program */
	int64_t now_s;
};

void preflight_cluster(const struct cluster_facts *f, struct preflight_report *r);

/* Parts of it. */
void preflight_pods(yyjson_val *deployment, enum preflight_check check, const char *name,
		    struct preflight_report *r);
void preflight_webhook(const struct cluster_facts *f, struct preflight_report *r);
void preflight_nodes(const struct cluster_facts *f, struct preflight_report *r);

/* The pod of the attempt, and whether the API server's response shows that the webhook saw it. */
struct str preflight_pod(void);
bool preflight_pod_was_seen(yyjson_val *response);
