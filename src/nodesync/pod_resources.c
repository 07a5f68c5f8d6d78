/* Builds a list of pods from two sources: the registry (what the runtime reports) and the ledger
 * (who owns CPUs). CPU sets point into the ledger, names of the registry into the registry; names
 * of the ledger are copied, because they have no NUL. The registry is read first, so its entry
 * wins.
 */

#include "pod_resources.h"

#include <string.h>

#include "base/arena.h"
#include "oci/oci_record.h"
#include "pin/manager.h"

/* `pods` has room for every pod of the registry and of the ledger. */
struct pod_list {
	struct arena *a;
	struct podres_pod *pods;
	size_t n_pods;
};

static struct podres_pod *put_pod(struct pod_list *l, const char *namespace, const char *name)
{
	struct podres_pod *p;

	/* The API identifies pods by name, without UIDs: while a pod is replaced by one of the same
	 * name, both are one entry. Backwards, because containers of a pod mostly follow it. */
	for (size_t i = l->n_pods; i-- > 0;)
		if (strcmp(l->pods[i].name, name) == 0 &&
		    strcmp(l->pods[i].namespace, namespace) == 0)
			return &l->pods[i];
	p = &l->pods[l->n_pods++];
	p->namespace = namespace;
	p->name = name;
	return p;
}

static void put_container(struct pod_list *l, struct podres_pod *p, const char *name,
			  const struct cpuset *cpus)
{
	for (size_t i = 0; i < p->n_containers; i++)
		if (strcmp(p->containers[i].name, name) == 0)
			return;
	p->containers =
		arena_one_more(l->a, p->containers, p->n_containers, sizeof(*p->containers));
	p->containers[p->n_containers++] = (struct podres_container){ name, cpus };
}

static void add_containers(struct pod_list *l, const struct manager *m)
{
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];
		const struct assignment *own =
			ledger_find(m->ledger, str_from(c->pod->uid), str_from(c->name));

		if (registry_is_standalone(str_from(c->pod->uid)) ||
		    (own && own->kind == CONTAINER_INIT))
			continue;
		put_container(l, put_pod(l, c->pod->namespace, c->pod->name), c->name,
			      own ? &own->cpus : NULL);
	}
}

/* A container that is being created or restarted has no registry entry, but owns its CPUs. */
static void add_assignments(struct pod_list *l, const struct manager *m)
{
	const struct assignment *own;

	LEDGER_EACH(m->ledger, i, own)
	{
		struct podres_pod *p;

		/* Init containers that are not restartable are not listed
		 * (docs/reference/podresources.md#semantics). */
		if (own->kind == CONTAINER_INIT || own->pod_name.n == 0 ||
		    registry_is_standalone(own->pod_uid))
			continue;
		p = put_pod(l, str_cstr(l->a, own->pod_namespace), str_cstr(l->a, own->pod_name));
		put_container(l, p, str_cstr(l->a, own->container), &own->cpus);
	}
}

/* CPUs of standalone containers are neither allocatable nor allocated for the cluster. They are not
 * listed as pods: the scheduler plugin compares the pods by a fingerprint (fingerprint.h). */
static void read_allocatable(const struct manager *m, struct cpuset *ret)
{
	const struct assignment *own;

	(void)ledger_cpus(m->ledger, POOL_GUARANTEED, ret);
	LEDGER_EACH(m->ledger, i, own)
	if (registry_is_standalone(own->pod_uid))
		cpuset_minus(ret, &own->cpus);
}

void pod_resources_snapshot(void *manager, struct arena *a, struct podres_snapshot *ret)
{
	const struct manager *m = manager;
	struct pod_list l = { .a = a };

	/* Each pod of the registry and each assignment adds at most one. */
	l.pods = arena_array(a, struct podres_pod, m->registry.n_pods + m->ledger->n);
	for (size_t i = 0; i < m->registry.n_pods; i++)
		if (!registry_is_standalone(str_from(m->registry.pods[i]->uid)))
			(void)put_pod(&l, m->registry.pods[i]->namespace,
				      m->registry.pods[i]->name);
	add_containers(&l, m);
	add_assignments(&l, m);
	*ret = (struct podres_snapshot){ .pods = l.pods,
					 .n_pods = l.n_pods,
					 .kubelet_manages = m->kubelet_manages };
	read_allocatable(m, &ret->allocatable);
}
