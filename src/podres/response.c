/* Merges the agent's snapshot into the kubelet's response: decodes it, replaces the CPU ids, adds
 * pods that only the agent knows, and encodes it again. All memory is in the caller's arena;
 * decoded messages point into the kubelet's bytes, which must live as long. The arena's limit is
 * the only thing that can make encoding fail. */

#include "response.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "podres_messages.h"

static int encode(const struct pb_message *m, const void *value, struct arena *a, struct str *ret,
		  struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, a);
	pb_encode(m, value, &b);
	if (b.failed)
		return err_set(err, ENOMEM, "the response needs more memory than allowed");
	*ret = strbuf_str(&b);
	return 0;
}

/* If memory runs out here, the arena stays failed and encode() reports it. */
static void set_cpu_ids(const struct cpuset *cpus, struct arena *a, int64_t **ret, size_t *ret_n)
{
	size_t n = 0;

	*ret_n = 0;
	if (!cpus)
		return;
	*ret = arena_array(a, int64_t, cpuset_count(cpus));
	if (!*ret)
		return;
	CPUSET_FOREACH (cpu, cpus)
		(*ret)[n++] = cpu;
	*ret_n = n;
}

static const struct podres_pod *find_pod(const struct podres_snapshot *s, const char *namespace,
					 const char *name)
{
	for (size_t i = 0; i < s->n_pods; i++)
		if (strcmp(s->pods[i].name, name) == 0 &&
		    strcmp(s->pods[i].namespace, namespace) == 0)
			return &s->pods[i];
	return NULL;
}

static const struct podres_container *find_container(const struct podres_pod *pod, const char *name)
{
	for (size_t i = 0; pod && i < pod->n_containers; i++)
		if (strcmp(pod->containers[i].name, name) == 0)
			return &pod->containers[i];
	return NULL;
}

static bool owns_cpus(const struct podres_pod *pod)
{
	for (size_t i = 0; i < pod->n_containers; i++)
		if (pod->containers[i].cpus)
			return true;
	return false;
}

/* Replaces the CPU ids that the kubelet reports for a pod. */
static void replace_cpu_ids(const struct podres_snapshot *s, struct podres_pod_resources *pod,
			    struct arena *a)
{
	const struct podres_pod *own_pod = find_pod(s, pod->namespace, pod->name);

	/* With the static policy the kubelet assigns the CPUs, and its ids are correct. */
	if (s->kubelet_manages)
		return;
	for (size_t i = 0; i < pod->n_containers; i++) {
		struct podres_container_resources *c = &pod->containers[i];
		const struct podres_container *known = find_container(own_pod, c->name);

		/* Also for containers that the agent does not know: an exclusive CPU is one in the
		 * ledger. */
		c->n_cpu_ids = 0;
		if (known)
			set_cpu_ids(known->cpus, a, &c->cpu_ids, &c->n_cpu_ids);
	}
}

static void fill_pod_resources(const struct podres_pod *pod, struct arena *a,
			       struct podres_pod_resources *ret)
{
	*ret = (struct podres_pod_resources){ .name = pod->name, .namespace = pod->namespace };
	ret->containers = arena_array(a, struct podres_container_resources, pod->n_containers);
	ret->n_containers = ret->containers ? pod->n_containers : 0;
	for (size_t i = 0; i < ret->n_containers; i++) {
		ret->containers[i].name = pod->containers[i].name;
		set_cpu_ids(pod->containers[i].cpus, a, &ret->containers[i].cpu_ids,
			    &ret->containers[i].n_cpu_ids);
	}
}

static bool is_listed(const struct podres_list_response *list, const struct podres_pod *pod)
{
	for (size_t i = 0; i < list->n_pods; i++)
		if (strcmp(list->pods[i].name, pod->name) == 0 &&
		    strcmp(list->pods[i].namespace, pod->namespace) == 0)
			return true;
	return false;
}

static int read_list(const struct str *kubelet, struct arena *a, struct podres_list_response *ret,
		     struct err *err)
{
	int r;

	*ret = (struct podres_list_response){ 0 };
	if (!kubelet)
		return 0;
	r = pb_decode(&podres_list_response_message, *kubelet, a, ret, err);
	return r < 0 ? err_wrap(err, "the kubelet's response") : 0;
}

static int merge_lists(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		       struct podres_list_response *ret, struct err *err)
{
	struct podres_list_response theirs;
	int r;

	r = read_list(kubelet, a, &theirs, err);
	if (r < 0)
		return r;
	/* Space for all pods of both, so the list does not grow below. */
	ret->pods = arena_array(a, struct podres_pod_resources, theirs.n_pods + s->n_pods);
	if (!ret->pods)
		return err_set(err, ENOMEM, "the response needs more memory than allowed");
	ret->n_pods = theirs.n_pods;
	for (size_t i = 0; i < theirs.n_pods; i++) {
		ret->pods[i] = theirs.pods[i];
		replace_cpu_ids(s, &ret->pods[i], a);
	}
	/* A finished pod keeps its CPUs until its sandbox is removed: a reader that computes free
	 * CPUs must see it. */
	for (size_t i = 0; i < s->n_pods; i++)
		if (!kubelet || (owns_cpus(&s->pods[i]) && !is_listed(&theirs, &s->pods[i])))
			fill_pod_resources(&s->pods[i], a, &ret->pods[ret->n_pods++]);
	return 0;
}

int podres_list(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		struct str *ret, struct err *err)
{
	struct podres_list_response list;
	int r = merge_lists(s, kubelet, a, &list, err);

	return r < 0 ? r : encode(&podres_list_response_message, &list, a, ret, err);
}

int podres_get(const struct podres_snapshot *s, struct str request, const struct str *kubelet,
	       struct arena *a, struct str *ret, struct err *err)
{
	struct podres_list_response list = { 0 };
	struct podres_get_request want;
	int r;

	pb_clear(&podres_get_request_message, &want);
	r = pb_decode(&podres_get_request_message, request, a, &want, err);
	if (r == 0)
		r = merge_lists(s, kubelet, a, &list, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n_pods; i++) {
		const struct podres_get_response response = { &list.pods[i] };

		if (strcmp(list.pods[i].name, want.name) == 0 &&
		    strcmp(list.pods[i].namespace, want.namespace) == 0)
			return encode(&podres_get_response_message, &response, a, ret, err);
	}
	/* The kubelet's text, cut so that both names fit into struct err. */
	return err_set(err, ENOENT, "pod %.63s in namespace %.63s not found", want.name,
		       want.namespace);
}

int podres_allocatable(const struct podres_snapshot *s, const struct str *kubelet, struct arena *a,
		       struct str *ret, struct err *err)
{
	struct podres_allocatable_response response = { 0 };
	struct cpuset theirs = { 0 };
	int r;

	if (kubelet) {
		r = pb_decode(&podres_allocatable_response_message, *kubelet, a, &response, err);
		if (r < 0)
			return err_wrap(err, "the kubelet's response");
	}
	if (!kubelet || !s->kubelet_manages) {
		set_cpu_ids(&s->allocatable, a, &response.cpu_ids, &response.n_cpu_ids);
	} else {
		for (size_t i = 0; i < response.n_cpu_ids; i++)
			if (response.cpu_ids[i] >= 0 && response.cpu_ids[i] < CPUSET_MAX)
				cpuset_add(&theirs, (unsigned)response.cpu_ids[i]);
		/* Without CPUs that standalone containers own: the kubelet does not know these
		 * containers. */
		cpuset_intersect(&theirs, &s->allocatable);
		set_cpu_ids(&theirs, a, &response.cpu_ids, &response.n_cpu_ids);
	}
	return encode(&podres_allocatable_response_message, &response, a, ret, err);
}
