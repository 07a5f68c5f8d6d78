/* Responses of a kubelet and requests of clients: the result can be decoded, and its CPU ids are
 * the agent's. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "podres/podres_messages.h"
#include "podres/response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(struct str encoded, struct arena *a)
{
	struct podres_list_response list = { 0 };

	if (pb_decode(&podres_list_response_message, encoded, a, &list, NULL) < 0)
		abort();
	for (size_t i = 0; i < list.n_pods; i++)
		for (size_t k = 0; k < list.pods[i].n_containers; k++) {
			const struct podres_container_resources *c = &list.pods[i].containers[k];

			if (c->n_cpu_ids > 1 || (c->n_cpu_ids == 1 && c->cpu_ids[0] != 3))
				abort();
		}
}

static void check_allocatable(struct str encoded, struct arena *a)
{
	struct podres_allocatable_response all = { 0 };

	if (pb_decode(&podres_allocatable_response_message, encoded, a, &all, NULL) < 0)
		abort();
	for (size_t i = 0; i < all.n_cpu_ids; i++)
		if (all.cpu_ids[i] != 3)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str bytes = { (const char *)data, size };
	CLEANUP(arena_done) struct arena a;
	struct cpuset three = { 0 };
	struct podres_container container = { "front", &three };
	const struct podres_pod pod = { "shop", "web", &container, 1 };
	struct podres_snapshot s = { .pods = &pod, .n_pods = 1 };
	struct str out;

	cpuset_add(&three, 3);
	s.allocatable = three;
	arena_init(&a, (size_t)8 << 20);
	if (podres_list(&s, &bytes, &a, &out, NULL) == 0 && !a.failed)
		check_list(out, &a);
	if (podres_allocatable(&s, &bytes, &a, &out, NULL) == 0 && !a.failed)
		check_allocatable(out, &a);
	s.kubelet_manages = true;
	if (podres_allocatable(&s, &bytes, &a, &out, NULL) == 0 && !a.failed)
		check_allocatable(out, &a);
	(void)podres_get(&s, bytes, NULL, &a, &out, NULL);
	return 0;
}
