/* Names, ids and comparisons of local containers. */

#include "local.h"

#include "base/arena.h"
#include "base/macro.h"
#include "pool/ledger.h"

static const char *const mode_names[] = {
	[LOCAL_CGROUP_V1] = "cgroup v1",
	[LOCAL_CGROUP_V2] = "cgroup v2",
	[LOCAL_AFFINITY] = "affinity only",
};
_Static_assert(ARRAY_LEN(mode_names) == LOCAL_MODE__COUNT, "every mode has a name");

static const char *const state_names[] = {
	[LOCAL_NOT_STARTED] = "not started", [LOCAL_RUNNING] = "running",
	[LOCAL_FINISHED] = "finished",	     [LOCAL_FAILED] = "failed",
	[LOCAL_STOPPING] = "stopping",
};
_Static_assert(ARRAY_LEN(state_names) == LOCAL_STATE__COUNT, "every state has a name");

const char *local_state_name(enum local_state state)
{
	return state_names[state];
}

const char *local_mode_name(enum local_mode mode)
{
	return mode_names[mode];
}

bool local_name_is_valid(struct str name, size_t max)
{
	if (!name.n || name.n > max || name.p[0] == '.')
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if ((c < 'a' || c > 'z') && !str_is_digit(c) && c != '-' && c != '.')
			return false;
	}
	return true;
}

bool local_container_names_are_valid(const struct local_container *c)
{
	return local_name_is_valid(c->namespace, LOCAL_LABEL_MAX) &&
	       local_name_is_valid(c->pod, LOCAL_POD_MAX) &&
	       local_name_is_valid(c->name, LOCAL_LABEL_MAX);
}

bool local_container_may_run(const struct local_container *containers,
			     const enum local_state *states, size_t i)
{
	/* Containers of a pod are listed in the order in which they start: init containers first. A
	 * stopping one is no longer in the plan, so nothing waits for it. */
	for (size_t k = 0; k < i; k++)
		if (local_container_same_pod(&containers[k], &containers[i]) &&
		    containers[k].kind == CONTAINER_INIT && states[k] != LOCAL_FINISHED &&
		    states[k] != LOCAL_STOPPING)
			return false;
	return true;
}

struct str local_container_id(const struct local_container *c, struct arena *a)
{
	return str_printf(a, PRI_STR "/" PRI_STR "/" PRI_STR, FMT_STR(c->namespace),
			  FMT_STR(c->pod), FMT_STR(c->name));
}

bool local_container_same_pod(const struct local_container *a, const struct local_container *b)
{
	return str_eq(a->namespace, b->namespace) && str_eq(a->pod, b->pod);
}

bool local_container_same(const struct local_container *a, const struct local_container *b)
{
	return local_container_same_pod(a, b) && str_eq(a->name, b->name);
}

static struct str *copy_strings(const struct str *items, size_t n, struct arena *a)
{
	struct str *copy = arena_array(a, struct str, n);

	for (size_t i = 0; i < n; i++)
		copy[i] = str_dup(a, items[i]);
	return copy;
}

struct local_container *local_container_copy(const struct local_container *c, struct arena *a)
{
	struct local_container *copy = arena_new(a, struct local_container);

	*copy = *c;
	copy->namespace = str_dup(a, c->namespace);
	copy->pod = str_dup(a, c->pod);
	copy->name = str_dup(a, c->name);
	copy->workdir = str_dup(a, c->workdir);
	copy->type = str_dup(a, c->type);
	copy->argv = copy_strings(c->argv, c->n_argv, a);
	copy->env = copy_strings(c->env, c->n_env, a);
	return copy;
}

static bool same_strings(const struct str *a, size_t n, const struct str *b, size_t m)
{
	if (n != m)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!str_eq(a[i], b[i]))
			return false;
	return true;
}

/* Not compared: CPU settings, which can be changed while the process runs, and restart policy and
 * grace period, which have no effect before it ends. */
bool local_container_same_command(const struct local_container *a, const struct local_container *b)
{
	return same_strings(a->argv, a->n_argv, b->argv, b->n_argv) &&
	       same_strings(a->env, a->n_env, b->env, b->n_env) && str_eq(a->workdir, b->workdir) &&
	       a->kind == b->kind;
}

void local_container_set_cpus(struct local_container *c, const struct ledger *l)
{
	struct cpuset cpus;

	(void)ledger_cpus(l, c->pool, &cpus);
	if (c->pool == POOL_MANAGEMENT)
		pool_config_type_cpus(&l->now.config, c->type, &cpus, &cpus);
	c->settings.cpus = cpus;
}
