#include "verify.h"

#include "base/arena.h"

static struct truth_container wanted(const struct local_container *c)
{
	return (struct truth_container){
		.name = { c->namespace, c->pod, c->name },
		.want = { .cpus = c->cpus,
			  .shares = c->shares,
			  .has_quota = true,
			  .quota_us = c->quota_us,
			  .period_us = c->period_us },
		.is_exclusive = c->is_exclusive,
		.hands_on = c->kind == CONTAINER_INIT,
	};
}

/* A container waits for the init containers before it; that is no finding. */
static bool must_run(const struct verify_input *in, size_t i)
{
	return (in->states[i] == LOCAL_WAITING || in->states[i] == LOCAL_STARTED) &&
	       local_container_may_run(in->containers, in->states, i);
}

struct truth local_verify(const struct verify_input *in, struct arena *a)
{
	struct truth_container *containers = arena_array(a, struct truth_container, in->n);
	struct truth t;

	truth_init(&t, a);
	for (size_t i = 0; i < in->n; i++) {
		containers[i] = wanted(&in->containers[i]);
		if (!in->sights[i].is_there && must_run(in, i))
			truth_add(&t, &containers[i].name, "not-running", STR("running"),
				  STR("no process"));
		if (in->states[i] == LOCAL_FAILED)
			truth_add(&t, &containers[i].name, "failed", STR("running"),
				  STR("ended, and is not started again"));
	}
	truth_judge(&t, &(struct truth_input){ .version = in->mode == LOCAL_CGROUP_V2 ? CGROUP_V2 :
											CGROUP_V1,
					       .containers = containers,
					       .sights = in->sights,
					       .n = in->n,
					       .machine = in->machine });
	return t;
}
