/* The checks that need the state of the containers; all others are in cgroup/audit.h. */

#include "local_audit.h"

#include "base/arena.h"

static struct audit_container audit_container(const struct local_container *c)
{
	return (struct audit_container){
		.name = { c->namespace, c->pod, c->name },
		.settings = c->settings,
		.is_exclusive = c->is_exclusive,
		/* Its CPUs are also those of later containers of its pod, which is no overlap
		 * (docs/reference/cpu-manager.md#init-container-reuse). */
		.hands_on = c->kind == CONTAINER_INIT,
	};
}

struct audit local_audit(const struct local_audit_input *in, struct arena *a)
{
	struct audit_container *containers = arena_array(a, struct audit_container, in->n);
	struct audit t;

	audit_init(&t, a);
	for (size_t i = 0; i < in->n; i++) {
		const enum local_state state = in->states[i];

		containers[i] = audit_container(&in->containers[i]);
		/* Waiting for an init container is not a finding. */
		if (!in->snapshots[i].is_there &&
		    (state == LOCAL_NOT_STARTED || state == LOCAL_RUNNING) &&
		    local_container_may_run(in->containers, in->states, i))
			audit_add(&t, &containers[i].name, "not-running", STR("running"),
				  STR("no process"));
		if (state == LOCAL_FAILED)
			audit_add(&t, &containers[i].name, "failed", STR("running"),
				  STR("finished with an error"));
	}
	/* In affinity mode the version has no effect: the snapshots have no cgroup. */
	audit_run(&t, &(struct audit_input){ .version = in->mode == LOCAL_CGROUP_V2 ? CGROUP_V2 :
										      CGROUP_V1,
					     .containers = containers,
					     .snapshots = in->snapshots,
					     .n = in->n,
					     .machine = in->machine });
	audit_require_containers(&t, in->n);
	return t;
}
