#pragma once

/* Pods as views of a document: the pod itself, or the template in a workload that creates pods.
 * Nothing is copied or changed; a view is valid as long as its document. It knows the structure
 * of a Kubernetes pod, not the rules of workload partitioning. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "quantity.h"

struct err;

struct pod {
	yyjson_val *meta;	 /* of the pod or the template; may be NULL */
	yyjson_val *spec;	 /* may be NULL: the API server refuses such a pod */
	yyjson_val *object_meta; /* of the given object, with name and namespace */
	struct str kind;	 /* "Pod", "Deployment"... */
	const char *prefix; /* JSON pointer from the object to the pod: "" or "/spec/template" */
};

/* False when the object is neither a pod nor a workload that creates pods. */
bool pod_from_object(yyjson_val *object, struct pod *ret);

/* A pod of an API server's list, whose items have no kind. */
struct pod pod_from_list_item(yyjson_val *object);

struct str pod_name(const struct pod *pod);	 /* the object's name, or its generateName */
struct str pod_namespace(const struct pod *pod); /* "default" when none is given */
yyjson_val *pod_annotations(const struct pod *pod);
struct str pod_annotation(const struct pod *pod, struct str key); /* "" when absent */

/* The objects of a document: the items of a List (a kind that ends in "List"), or the object
 * itself. */
struct object_iter {
	yyjson_val *single; /* NULL once it was returned, or for a list */
	yyjson_arr_iter items;
	bool is_list;
};
struct object_iter object_iter(yyjson_val *root);
yyjson_val *object_next(struct object_iter *it);
struct str object_kind(yyjson_val *object);
struct str object_api(yyjson_val *object); /* apiVersion */
struct str object_name(yyjson_val *object);
yyjson_val *object_annotations(yyjson_val *object);
yyjson_val *object_condition(yyjson_val *object, struct str type); /* in its status, or NULL */

enum container_kind {
	CONTAINER_INIT,
	CONTAINER_SIDECAR, /* an init container with restartPolicy Always */
	CONTAINER_APP,
	CONTAINER_EPHEMERAL,
	CONTAINER__COUNT
};

const char *container_kind_name(enum container_kind kind); /* "init", "sidecar", "app"... */

struct container {
	yyjson_val *v;
	struct str name;
	enum container_kind kind;
	yyjson_val *requests, *limits; /* objects, or NULL */
	const char *list;	       /* "initContainers", "containers", "ephemeralContainers" */
	size_t index;		       /* in that list */
};

/* Init containers including sidecars, then app containers, then ephemeral ones if requested.
 * Items that are not objects are skipped, but counted in `index`. */
struct container_iter {
	const struct pod *pod;
	yyjson_arr_iter items;
	size_t list, n_lists;
	size_t index;
};
struct container_iter container_iter(const struct pod *pod, bool with_ephemeral);
bool container_next(struct container_iter *it, struct container *ret);

/* A quantity in a resource list. Returns 1 and sets *ret when it exists, 0 when it is absent or
 * null (which the API server reads as zero and stores as "0"), -EINVAL or -ERANGE when it is
 * unreadable. */
int resource_get(yyjson_val *list, struct str name, struct quantity *ret, struct err *err);
