/* One request at a time; pods that come meanwhile share the next one. */

#include "device_watch.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "cpu/topology.h"

static bool is_of(const struct device_nodes *d, const struct nri_pod *pod)
{
	return strcmp(d->pod, pod->name) == 0 && strcmp(d->namespace, pod->pod_namespace) == 0;
}

static bool is_needed(const struct device_watch *w)
{
	const struct ledger_frame *f = &w->manager->ledger->now;

	return w->is_on && !w->manager->kubelet_manages && f->topology->n_nodes > 1 &&
	       f->config.topology.policy != HINT_POLICY_NONE;
}

static void on_expected(void *data, const struct nri_pod *pod)
{
	struct device_watch *w = data;

	if (!is_needed(w))
		return;
	/* An earlier pod may have had the same name, and other devices. */
	for (size_t i = w->n; i-- > 0;)
		if (is_of(&w->items[i], pod))
			w->items[i] = w->items[--w->n];
	w->is_stale = w->kubelet.is_busy;
	if (!w->kubelet.is_busy)
		kubelet_client_request(&w->kubelet, 1u << KUBELET_LIST);
}

static uint64_t nodes_of(const void *data, const struct nri_pod *pod, const char *container)
{
	const struct device_watch *w = data;
	uint64_t mask = 0;

	for (size_t i = 0; i < w->n; i++)
		if (is_of(&w->items[i], pod) &&
		    (!container || strcmp(w->items[i].container, container) == 0))
			mask |= w->items[i].mask;
	return mask;
}

void device_watch_read(struct device_watch *w, struct str list_response)
{
	struct device_nodes *items = NULL;
	struct err err = { 0 };
	struct arena a;
	size_t n = 0;

	arena_init(&a, 0);
	if (device_nodes_read(list_response, &a, &items, &n, &err) < 0) {
		log_warning("cannot read the devices of pods, placing containers without",
			    LOG_ERR(&err));
		arena_done(&a);
		return;
	}
	arena_done(&w->arena);
	w->arena = a;
	w->items = items;
	w->n = n;
}

static void on_result(struct kubelet_client *k, const struct kubelet_result *result)
{
	struct device_watch *w = container_of(k, struct device_watch, kubelet);
	const bool fails = result->outcome == KUBELET_FAILED;

	if (result->outcome == KUBELET_RESPONDED)
		device_watch_read(w, result->messages[KUBELET_LIST]);
	else if (fails && !w->is_failing)
		log_warning("cannot read the devices of pods, placing containers without",
			    LOG_STR("reason", result->why));
	w->is_failing = fails;
	if (w->is_stale) {
		w->is_stale = false;
		kubelet_client_request(&w->kubelet, 1u << KUBELET_LIST);
	}
}

void device_watch_init(struct device_watch *w, struct loop *loop, const char *path,
		       struct manager *m)
{
	*w = (struct device_watch){ .manager = m, .is_on = path && *path };
	arena_init(&w->arena, 0);
	if (!w->is_on)
		return;
	kubelet_client_init(&w->kubelet, loop, path, on_result);
	m->devices = (struct manager_devices){ on_expected, nodes_of, w };
}

void device_watch_done(struct device_watch *w)
{
	if (w->is_on)
		kubelet_client_done(&w->kubelet);
	w->manager->devices = (struct manager_devices){ 0 };
	arena_done(&w->arena);
}
