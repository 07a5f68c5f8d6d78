/* Field numbers of api.proto (docs/reference/podresources.md#messages): of a container only its
 * devices, of a device only its nodes. */

#include "device_nodes.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "rpc/pb.h"

struct numa_node {
	int64_t id;
};

struct numa_topology {
	struct numa_node *nodes;
	size_t n;
};

struct container_device {
	struct numa_topology *topology; /* NULL when the plugin reports none */
};

struct device_container {
	const char *name;
	struct container_device *devices;
	size_t n;
};

struct device_pod {
	const char *name, *namespace;
	struct device_container *containers;
	size_t n;
};

struct device_list {
	struct device_pod *pods;
	size_t n;
};

/* clang-format off */
static const struct pb_field node_fields[] = {
	PB_FIELD(struct numa_node, 1, PB_INT64, id),
};
static const struct pb_message node_message = PB_TABLE(struct numa_node, node_fields);

static const struct pb_field topology_fields[] = {
	PB_LIST(struct numa_topology, 1, nodes, n, &node_message),
};
static const struct pb_message topology_message = PB_TABLE(struct numa_topology, topology_fields);

static const struct pb_field device_fields[] = {
	PB_SUB(struct container_device, 3, topology, &topology_message),
};
static const struct pb_message device_message = PB_TABLE(struct container_device, device_fields);

static const struct pb_field container_fields[] = {
	PB_FIELD(struct device_container, 1, PB_STRING, name),
	PB_LIST(struct device_container, 2, devices, n, &device_message),
};
static const struct pb_message container_message =
	PB_TABLE(struct device_container, container_fields);

static const struct pb_field pod_fields[] = {
	PB_FIELD(struct device_pod, 1, PB_STRING, name),
	PB_FIELD(struct device_pod, 2, PB_STRING, namespace),
	PB_LIST(struct device_pod, 3, containers, n, &container_message),
};
static const struct pb_message pod_message = PB_TABLE(struct device_pod, pod_fields);

static const struct pb_field list_fields[] = {
	PB_LIST(struct device_list, 1, pods, n, &pod_message),
};
static const struct pb_message list_message = PB_TABLE(struct device_list, list_fields);
/* clang-format on */

static uint64_t mask_of(const struct device_container *c)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct numa_topology *t = c->devices[i].topology;

		for (size_t k = 0; t && k < t->n; k++)
			if (t->nodes[k].id >= 0 && t->nodes[k].id < 64)
				mask |= UINT64_C(1) << t->nodes[k].id;
	}
	return mask;
}

int device_nodes_read(struct str list_response, struct arena *a, struct device_nodes **ret,
		      size_t *ret_n, struct err *err)
{
	struct device_nodes *items = NULL;
	struct device_list list = { 0 };
	size_t n = 0, cap = 0;
	int r;

	r = pb_decode(&list_message, list_response, a, &list, err);
	if (r < 0)
		return err_wrap(err, "the kubelet's PodResources");
	for (size_t i = 0; i < list.n; i++)
		for (size_t k = 0; k < list.pods[i].n; k++) {
			const struct device_container *c = &list.pods[i].containers[k];
			const uint64_t mask = mask_of(c);

			if (!mask)
				continue;
			items = arena_reserve(a, items, n, &cap, sizeof(*items));
			if (!items)
				return err_set(err, ENOMEM, "PodResources: not enough memory");
			items[n++] = (struct device_nodes){ list.pods[i].namespace,
							    list.pods[i].name, c->name, mask };
		}
	*ret = items;
	*ret_n = n;
	return 0;
}
