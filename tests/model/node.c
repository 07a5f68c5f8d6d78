#include "node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/str.h"
#include "cgroup/audit.h"
#include "cpu/topology_read.h"
#include "pin/resize.h"
#include "seeded.h"
#include "wrap.h"

static struct node *present; /* for the callback of the world */

static const char *const per_container[] = { "create",	       "make cgroup of", "start",
					     "post-start",     "exit of",	 "remove pod of",
					     "apply update of" };

void node_print_step(const struct node_step *s, char *to, size_t size)
{
	static const char *const rest[] = { "tick",	   "crash",	 "boot agent",
					    "synchronize", "disconnect", "change permission" };
	static const char *const faults[] = { "", ", crash at write", ", fail write" };
	char what[64];

	if (s->action < ACT_RESIZE)
		(void)snprintf(what, sizeof(what), "%s c%d",
			       per_container[s->action / WORLD_CONTAINERS],
			       s->action % WORLD_CONTAINERS);
	else if (s->action < ACT_TICK)
		(void)snprintf(what, sizeof(what), "resize to pools %d", s->action - ACT_RESIZE);
	else
		(void)snprintf(what, sizeof(what), "%s", rest[s->action - ACT_TICK]);
	if (s->fault == FAULT_NONE)
		(void)snprintf(to, size, "%s", what);
	else
		(void)snprintf(to, size, "%s%s %d", what, faults[s->fault], s->fault_at);
}

/* --- invariants --- */

static void violate(struct node *n, const char *what, const char *detail)
{
	if (n->violation)
		return;
	n->violation = what;
	(void)snprintf(n->detail, sizeof(n->detail), "%s", detail);
}

/* What is true between any two writes. */
static void check_instant(struct node *n)
{
	const struct world *w = &world_run.world;
	char detail[64];

	for (int i = 0; i < WORLD_CONTAINERS && !w->is_degraded; i++) {
		const struct world_container *c = &w->containers[i];

		if (!world_runs(c) || !c->is_settled || !c->owned)
			continue;
		(void)snprintf(detail, sizeof(detail), "c%d owns %#x, cpuset %#x", i, c->owned,
			       world_cpus(c));
		if (world_cpus(c) != c->owned)
			violate(n, "exclusive CPUs changed under a running container", detail);
		for (int k = 0; k < WORLD_CONTAINERS; k++) {
			const struct world_container *other = &w->containers[k];

			(void)snprintf(detail, sizeof(detail), "c%d owns %#x, c%d has %#x", i,
				       c->owned, k, world_cpus(other));
			if (k != i && world_runs(other) && other->is_settled &&
			    world_cpus(other) & c->owned)
				violate(n, "another container may run on an exclusive CPU", detail);
		}
	}
}

static void on_world_write(struct world_run *run)
{
	(void)run;
	check_instant(present);
}

static void check_ledger(struct node *n)
{
	struct err err = { 0 };

	if (n->state != AGENT_DOWN && ledger_check(&n->ledger, &err) < 0)
		violate(n, "ledger invariant", err.msg);
}

/* --- the agent --- */

static enum permission permission(const void *data, struct str namespace, struct str type)
{
	(void)data;
	(void)type;
	(void)namespace;
	return seeded_bug == BUG_ANY_PERMISSION ? PERMISSION_GRANTED :
						  (enum permission)world_run.world.permission;
}

static void agent_end(struct node *n)
{
	if (n->state == AGENT_DOWN)
		return;
	manager_done(&n->manager);
	ledger_done(&n->ledger);
	store_done(&n->store);
	n->state = AGENT_DOWN;
}

/* As config_watch.c does it. */
static void read_pools(struct node *n)
{
	const struct pool_config *pools = &n->pools[world_run.world.pools];

	if (pool_config_eq(pools, &n->ledger.now.config)) {
		n->manager.status.resize = (struct resize_report){ 0 };
		ledger_withhold(&n->ledger, NULL);
		return;
	}
	(void)resize_apply(&n->manager, pools, &n->manager.status.resize);
}

static void agent_boot(struct node *n)
{
	const struct store_settings settings = { .path = "ledger",
						 .boot_id = "boot",
						 .topology = &n->topology,
						 .config = &n->pools[world_run.world.pools] };
	struct store_report report;

	if (store_open(&n->store, &n->ledger, &settings, &report, NULL) < 0)
		return;
	if (report.outcome == STORE_CORRUPT)
		violate(n, "the agent cannot read its own state", report.why.msg);
	manager_init(&n->manager, &n->ledger, &n->cgroups);
	n->manager.rules.permission = permission;
	n->state = AGENT_STARTED;
	read_pools(n);
}

static void subject_init(struct node *n, int i)
{
	const struct world_container *w = &world_run.world.containers[i];
	const enum kind kind = n->scenario->kinds[i];
	const uint64_t milli = kind == KIND_ONE_CPU ? 1000 : kind == KIND_TWO_CPUS ? 2000 : 0;
	struct subject *s = &n->subjects[i];

	*s = (struct subject){ 0 };
	(void)snprintf(s->id, sizeof(s->id), "c%d", i);
	(void)snprintf(s->uid, sizeof(s->uid), "u%d-%d", i, w->starts_left);
	(void)snprintf(s->cgroup_parent, sizeof(s->cgroup_parent), "/kubepods/%spod-c%d",
		       milli ? "" : "burstable/", i);
	(void)snprintf(s->cgroups_path, sizeof(s->cgroups_path), "/kubepods/%spod-c%d/c%d",
		       milli ? "" : "burstable/", i, i);
	s->pod_linux =
		(struct nri_pod_linux){ .cgroup_parent = s->cgroup_parent, .cgroups_path = "" };
	s->pod = (struct nri_pod){ .id = s->uid,
				   .name = s->id,
				   .uid = s->uid,
				   .pod_namespace = "ns",
				   .annotations = s->annotations,
				   .on_linux = &s->pod_linux };
	s->cpu = (struct nri_cpu){ .has_shares = true,
				   .shares = milli ? milli * 1024 / 1000 : 2,
				   .has_quota = milli > 0,
				   .quota_us = (int64_t)milli * 100,
				   .has_period = true,
				   .period_us = 100000,
				   .cpus = "",
				   .mems = "" };
	if (kind == KIND_MANAGEMENT) {
		s->annotations[0] =
			(struct nri_pair){ "target.workload.openshift.io/management", "{}" };
		s->annotations[1] = (struct nri_pair){ "resources.workload.openshift.io/c",
						       "{\"cpushares\":20}" };
		s->pod.n_annotations = 2;
	}
	s->resources.cpu = &s->cpu;
	s->on_linux = (struct nri_container_linux){ .resources = &s->resources,
						    .cgroups_path = s->cgroups_path };
	s->container =
		(struct nri_container){ .id = s->id,
					.pod_id = s->uid,
					.name = "c",
					.state = w->life == LIFE_EXITED ? NRI_STOPPED : NRI_RUNNING,
					.on_linux = &s->on_linux };
}

static uint8_t mask_of(const char *list)
{
	struct cpuset s = { 0 };
	struct err err = { 0 };

	if (!list || !*list)
		return 0;
	world_require(cpuset_parse(str_from(list), &s, &err) == 0);
	return (uint8_t)s.w[0];
}

/* --- replies: what the runtime learns, as masks --- */

struct nri_reply {
	uint8_t adjustment;
	uint8_t updates[WORLD_CONTAINERS];
};

WRAP(nri_adjust_cpu);
WRAP(nri_update_cpu);
WRAP(nri_refuse);

void __wrap_nri_adjust_cpu(struct nri_reply *reply, const struct nri_cpu *cpu)
{
	reply->adjustment = mask_of(cpu->cpus);
}

void __wrap_nri_update_cpu(struct nri_reply *reply, const char *id, const struct nri_cpu *cpu,
			   bool may_fail)
{
	(void)may_fail;
	reply->updates[world_index(id)] = mask_of(cpu->cpus);
}

int __wrap_nri_refuse(struct nri_reply *reply, const char *format, ...)
{
	(void)reply;
	(void)format;
	return -EPERM;
}

static bool send_event(struct node *n, int i, enum nri_event event)
{
	struct nri_reply reply = { 0 };
	int r;

	if (n->state != AGENT_CONNECTED)
		return true;
	subject_init(n, i);
	r = manager_handlers.event(&n->manager, event, &n->subjects[i].pod,
				   event == NRI_REMOVE_POD ? NULL : &n->subjects[i].container,
				   &reply);
	return r >= 0 || world_run.is_dead;
}

/* From the registry: what the agent has promised to a container. */
static void learn_promise(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];
	const struct container_entry *entry =
		registry_find(&n->manager.registry, n->subjects[i].id);

	/* A shared container whose CPUs changed after the reply gets the new ones when it starts.
	 * Until then nothing is promised; if it starts without the agent, the next synchronization
	 * moves it. */
	c->is_settled = entry && (entry->is_exclusive || world_runs(c));
	c->owned = entry && entry->is_exclusive ? (uint8_t)entry->settings->cpus.w[0] : 0;
}

/* --- actions --- */

static void act_create(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];
	struct nri_reply reply = { 0 };
	bool is_refused = false;

	if (c->life == LIFE_EXITED)
		(void)send_event(n, i, NRI_REMOVE_CONTAINER);
	if (c->life == LIFE_ABSENT) /* a new pod; a restarted container keeps its pod */
		c->starts_left--;
	c->life = LIFE_REPLIED;
	c->is_settled = false;
	if (n->state == AGENT_CONNECTED) {
		subject_init(n, i);
		is_refused = manager_handlers.create_container(&n->manager, &n->subjects[i].pod,
							       &n->subjects[i].container,
							       &reply) < 0;
		if (!world_run.is_dead && !is_refused)
			learn_promise(n, i);
	}
	/* When the agent ends before its reply, the runtime goes on without an adjustment. */
	c->replied = world_run.is_dead ? 0 : reply.adjustment;
	if (is_refused && !world_run.is_dead)
		c->life = LIFE_EXITED;
}

static void act_make(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];

	c->life = LIFE_CREATED;
	c->cpus = c->replied;
	c->replied = 0;
	c->weight = cgroup_weight_from_shares(2);
	c->quota_us = CGROUP_UNLIMITED;
	(void)send_event(n, i, NRI_POST_CREATE_CONTAINER);
	if (n->state == AGENT_CONNECTED && !world_run.is_dead)
		learn_promise(n, i);
}

static void act_start(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];

	if (!send_event(n, i, NRI_START_CONTAINER)) {
		c->life = LIFE_EXITED;
		return;
	}
	c->life = LIFE_STARTED;
	if (n->state == AGENT_CONNECTED && !world_run.is_dead)
		learn_promise(n, i);
}

static void act_post_start(struct node *n, int i)
{
	world_run.world.containers[i].life = LIFE_RUNNING;
	(void)send_event(n, i, NRI_POST_START_CONTAINER);
	if (n->state == AGENT_CONNECTED && !world_run.is_dead)
		learn_promise(n, i);
}

static void act_exit(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];

	(void)n;
	c->life = LIFE_EXITED;
	c->cpus = c->update = c->owned = 0;
	c->was_written = false;
}

static void act_remove(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];
	const uint8_t starts_left = c->starts_left;

	/* The runtime sends the events first; the kubelet removes the pod's cgroup afterwards. */
	(void)send_event(n, i, NRI_REMOVE_CONTAINER);
	(void)send_event(n, i, NRI_REMOVE_POD);
	*c = (struct world_container){ .starts_left = starts_left };
}

static void act_update(struct node *n, int i)
{
	struct world_container *c = &world_run.world.containers[i];

	(void)n;
	c->cpus = c->update;
	c->update = 0;
	c->was_written = true;
}

static void act_resize(struct node *n, int to)
{
	world_run.world.pools = (uint8_t)to;
	world_run.world.resizes_left--;
	if (n->state != AGENT_DOWN)
		read_pools(n);
	if (n->state != AGENT_DOWN)
		manager_flush(&n->manager);
}

static void act_tick(struct node *n)
{
	manager_reconcile(&n->manager, (size_t)2 * WORLD_CONTAINERS);
	manager_flush(&n->manager);
	if (n->manager.status.resize.state == RESIZE_DEFERRED)
		read_pools(n);
}

static void act_sync(struct node *n)
{
	struct nri_pod pods[WORLD_CONTAINERS];
	struct nri_container containers[WORLD_CONTAINERS];
	struct nri_inventory all = { .pods = pods, .containers = containers };
	struct nri_reply reply = { 0 };

	for (int i = 0; i < WORLD_CONTAINERS; i++) {
		const struct world_container *c = &world_run.world.containers[i];

		if (c->life == LIFE_ABSENT)
			continue;
		subject_init(n, i);
		pods[all.n_pods++] = n->subjects[i].pod;
		if (c->life != LIFE_REPLIED) /* being created: in no list */
			containers[all.n_containers++] = n->subjects[i].container;
	}
	world_require(manager_handlers.synchronize(&n->manager, &all, &reply) >= 0);
	for (int i = 0; i < WORLD_CONTAINERS && !world_run.is_dead; i++)
		world_run.world.containers[i].update = reply.updates[i];
	n->state = AGENT_CONNECTED;
	for (int i = 0; i < WORLD_CONTAINERS && !world_run.is_dead; i++)
		if (world_has_cgroup(&world_run.world.containers[i]))
			learn_promise(n, i);
	manager_flush(&n->manager);
}

/* The runtime holds a lock until it has applied the updates of a synchronization: no other call
 * comes in between. */
static bool runtime_is_busy(void)
{
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_run.world.containers[i].update)
			return true;
	return false;
}

static bool may_act_on(const struct world_container *c, int what)
{
	switch (what) {
	case 0:
		return !runtime_is_busy() &&
		       ((c->life == LIFE_ABSENT && c->starts_left > 0) || c->life == LIFE_EXITED);
	case 1:
		return !runtime_is_busy() && c->life == LIFE_REPLIED;
	case 2:
		return !runtime_is_busy() && c->life == LIFE_CREATED;
	case 3:
		return !runtime_is_busy() && c->life == LIFE_STARTED;
	case 4:
		return c->life == LIFE_RUNNING;
	case 5:
		return !runtime_is_busy() && c->life == LIFE_EXITED;
	default:
		return c->update && world_has_cgroup(c);
	}
}

bool node_may_act(const struct node *n, uint8_t action)
{
	const struct world *w = &world_run.world;

	if (action < ACT_RESIZE)
		return may_act_on(&w->containers[action % WORLD_CONTAINERS],
				  action / WORLD_CONTAINERS);
	if (action < ACT_TICK)
		return w->resizes_left > 0 && action - ACT_RESIZE != w->pools &&
		       n->scenario->pools[action - ACT_RESIZE].reserved;
	switch (action) {
	case ACT_TICK:
		return n->state == AGENT_CONNECTED;
	case ACT_CRASH:
		return n->state != AGENT_DOWN && w->crashes_left > 0;
	case ACT_BOOT:
		return n->state == AGENT_DOWN;
	case ACT_SYNC:
		return n->state == AGENT_STARTED && !runtime_is_busy();
	case ACT_DISCONNECT:
		return n->state == AGENT_CONNECTED && w->changes_left > 0 && !runtime_is_busy();
	default:
		return w->changes_left > 0 && n->scenario->kinds[1] == KIND_MANAGEMENT;
	}
}

static void act_on(struct node *n, int what, int i)
{
	static void (*const acts[])(struct node *, int) = { act_create,	    act_make, act_start,
							    act_post_start, act_exit, act_remove,
							    act_update };

	acts[what](n, i);
	if (n->state == AGENT_CONNECTED)
		manager_flush(&n->manager);
}

/* A change of permission makes the agent register with the runtime again. */
static void disconnect(struct node *n, bool changes_permission)
{
	world_run.world.changes_left--;
	if (changes_permission)
		world_run.world.permission = world_run.world.permission == PERMISSION_GRANTED ?
						     PERMISSION_DENIED :
						     PERMISSION_GRANTED;
	if (n->state == AGENT_CONNECTED)
		n->state = AGENT_STARTED;
}

static void act(struct node *n, uint8_t action)
{
	if (action < ACT_RESIZE) {
		act_on(n, action / WORLD_CONTAINERS, action % WORLD_CONTAINERS);
		return;
	}
	if (action < ACT_TICK) {
		act_resize(n, action - ACT_RESIZE);
		return;
	}
	switch (action) {
	case ACT_TICK:
		act_tick(n);
		break;
	case ACT_CRASH:
		world_run.world.crashes_left--;
		agent_end(n);
		break;
	case ACT_BOOT:
		agent_boot(n);
		break;
	case ACT_SYNC:
		act_sync(n);
		break;
	default:
		disconnect(n, action == ACT_PERMISSION);
		break;
	}
}

unsigned node_perform(struct node *n, const struct node_step *s)
{
	struct world *w = &world_run.world;

	world_begin((enum fault)s->fault, s->fault_at);
	act(n, s->action);
	if (s->fault == FAULT_CRASH) {
		w->crashes_left--;
		world_run.is_dead = true;
		agent_end(n);
	}
	if (s->fault == FAULT_FAIL) {
		w->faults_left--;
		w->is_degraded = true;
	}
	if ((s->action == ACT_TICK || s->action == ACT_SYNC) && s->fault == FAULT_NONE)
		w->is_degraded = false;
	world_run.is_dead = false;
	world_run.fault = FAULT_NONE;
	arena_reset(&n->a);
	check_instant(n);
	check_ledger(n);
	return world_run.n_writes;
}

/* --- states --- */

void node_start(struct node *n)
{
	const uint8_t starts = n->scenario->budget.containers[0].starts_left;

	agent_end(n);
	memset(&world_run.world, 0, sizeof(world_run.world));
	world_run.world = n->scenario->budget;
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		world_run.world.containers[i].starts_left =
			n->scenario->kinds[i] == KIND_NONE ? 0 : starts;
	world_run.on_write = on_world_write;
	world_run.world.permission = PERMISSION_GRANTED;
	n->violation = NULL;
	present = n;
	agent_boot(n);
	world_require(n->state == AGENT_STARTED);
	act_sync(n);
}

static void parse_pools(const struct pools_text *text, bool defers, struct pool_config *ret)
{
	struct err err = { 0 };

	pool_config_init(ret);
	ret->is_classic = !text->shared;
	ret->defers_resize = defers;
	world_require(cpuset_parse(str_from(text->reserved), &ret->reserved, &err) == 0);
	if (text->shared)
		world_require(cpuset_parse(str_from(text->shared), &ret->shared, &err) == 0);
	if (text->guaranteed)
		world_require(cpuset_parse(str_from(text->guaranteed), &ret->guaranteed, &err) ==
			      0);
}

void node_init(struct node *n, const struct scenario *s)
{
	struct err err = { 0 };

	*n = (struct node){ .scenario = s };
	arena_init(&n->a, 0);
	arena_init(&n->keep, 0);
	world_require(topology_parse_synthetic(STR("pack:1 core:4 pu:1"), &n->keep, &n->topology,
					       &err) == 0);
	for (size_t i = 0; i < MAX_POOLS && s->pools[i].reserved; i++)
		parse_pools(&s->pools[i], s->defers, &n->pools[i]);
	n->cgroups = (struct cgroup_fs){ .version = CGROUP_V2, .cpu_fd = -1, .cpuset_fd = -1 };
}

void node_done(struct node *n)
{
	agent_end(n);
	arena_done(&n->keep);
	arena_done(&n->a);
}

/* The agent's memory as far as it influences what it does. */
static uint64_t hash_agent(struct node *n, uint64_t seed)
{
	struct strbuf b;

	if (n->state == AGENT_DOWN)
		return seed;
	strbuf_init(&b, &n->a);
	strbuf_printf(&b, "%d %d %" PRIx64 " ", (int)n->state, (int)n->manager.status.resize.state,
		      n->ledger.withheld.w[0]);
	for (size_t i = 0; i < n->ledger.n; i++)
		strbuf_printf(&b, PRI_STR " %" PRIx64 " ", FMT_STR(n->ledger.items[i]->pod_uid),
			      n->ledger.items[i]->cpus.w[0]);
	strbuf_printf(&b, "%" PRIx64 " %" PRIx64 " %" PRIx64 " ",
		      n->ledger.now.config.reserved.w[0], n->ledger.now.config.shared.w[0],
		      n->ledger.now.config.guaranteed.w[0]);
	for (size_t i = 0; i < n->manager.registry.n_containers; i++) {
		const struct container_entry *c = n->manager.registry.containers[i];

		strbuf_printf(&b, "%s %d%d%d%d %" PRIx64 " ", c->id, (int)c->pool, c->is_exclusive,
			      c->keeps_cpus, c->is_started, c->settings->cpus.w[0]);
	}
	for (size_t i = 0; i < n->manager.registry.n_pods; i++) {
		const struct pod_entry *p = n->manager.registry.pods[i];

		strbuf_printf(&b, "%s %d%d%d ", p->id, p->was_seen, p->lift_quota, p->needs_write);
	}
	return xxh64(strbuf_str(&b), seed);
}

uint64_t node_hash(struct node *n)
{
	const struct str bytes = { (const char *)&world_run.world, sizeof(world_run.world) };
	const uint64_t hash = hash_agent(n, xxh64(bytes, 0));

	arena_reset(&n->a);
	return hash;
}

/* --- quiet states --- */

static void audit_node(struct node *n)
{
	struct audit_container containers[WORLD_CONTAINERS] = { 0 };
	struct cgroup_snapshot snapshots[WORLD_CONTAINERS] = { 0 };
	struct audit_input in = { .version = CGROUP_V2,
				  .containers = containers,
				  .snapshots = snapshots,
				  .n = WORLD_CONTAINERS };
	struct audit audit;
	struct cpuset management, shared;
	char text[256];
	bool has_shared;

	(void)ledger_cpus(&n->ledger, POOL_MANAGEMENT, &management);
	has_shared = ledger_cpus(&n->ledger, POOL_SHARED, &shared);
	for (int i = 0; i < WORLD_CONTAINERS; i++) {
		const struct world_container *w = &world_run.world.containers[i];
		const struct container_entry *entry;
		struct process *process = arena_array(&n->a, struct process, 1);
		const bool is_management = n->scenario->kinds[i] == KIND_MANAGEMENT;

		if (!world_runs(w))
			continue;
		subject_init(n, i);
		entry = registry_find(&n->manager.registry, n->subjects[i].id);
		if (!entry) {
			violate(n, "a running container is not known to the agent", "");
			return;
		}
		containers[i] = (struct audit_container){
			.name = { STR("ns"), str_from(n->subjects[i].id), STR("c") },
			.settings = *entry->settings,
			.is_exclusive = entry->is_exclusive,
		};
		snapshots[i] = (struct cgroup_snapshot){ .is_there = true, .has_cgroup = true };
		(void)cgroup_read(&n->cgroups, n->subjects[i].cgroups_path, CGROUP_ALL,
				  &snapshots[i].cgroup, NULL);
		*process =
			(struct process){ .pid = i + 1,
					  .affinities = arena_array(&n->a, struct proc_affinity, 1),
					  .n_affinities = 1 };
		process->affinities[0] = (struct proc_affinity){
			.tid = i + 1, .n_threads = 1, .allowed = snapshots[i].cgroup.effective
		};
		snapshots[i].processes = (struct processes){ process, 1, 1 };
		/* A shared pool without a CPU uses the management CPUs, in classic mode. */
		if (has_shared && world_cpus(w) & management.w[0] &&
		    (!is_management || world_run.world.permission != PERMISSION_GRANTED))
			violate(n, "on management CPUs without permission", n->subjects[i].id);
		if (is_management && world_run.world.permission == PERMISSION_GRANTED &&
		    world_cpus(w) & ~management.w[0])
			violate(n, "management container on other CPUs", n->subjects[i].id);
	}
	audit_init(&audit, &n->a);
	audit_run(&audit, &in);
	if (audit.n_findings > 0) {
		const struct finding *f = &audit.findings[0];

		(void)snprintf(text, sizeof(text),
			       PRI_STR ": %s: expected " PRI_STR ", found " PRI_STR,
			       FMT_STR(f->name.pod), f->check, FMT_STR(f->expected),
			       FMT_STR(f->actual));
		violate(n, "verify finds a difference", text);
	}
}

static void check_all_free(struct node *n)
{
	struct cpuset free_cpus, guaranteed;
	char text[64];

	for (int i = 0; i < WORLD_CONTAINERS; i++) {
		struct world_container *c = &world_run.world.containers[i];

		if (c->life == LIFE_ABSENT)
			continue;
		act_exit(n, i);
		act_remove(n, i);
	}
	act_tick(n);
	ledger_free(&n->ledger, &free_cpus);
	(void)ledger_cpus(&n->ledger, POOL_GUARANTEED, &guaranteed);
	(void)snprintf(text, sizeof(text), "%zu assignments, %#" PRIx64 " of %#" PRIx64 " free",
		       n->ledger.n, free_cpus.w[0], guaranteed.w[0]);
	if (n->ledger.n > 0 || !cpuset_eq(&free_cpus, &guaranteed))
		violate(n, "CPUs of removed pods are not free", text);
}

void node_check_quiet(struct node *n)
{
	world_begin(FAULT_NONE, 0);
	if (n->state == AGENT_DOWN)
		agent_boot(n);
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_run.world.containers[i].update &&
		    world_has_cgroup(&world_run.world.containers[i]))
			act_update(n, i);
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		world_run.world.containers[i].update = 0;
	if (n->state == AGENT_STARTED)
		act_sync(n);
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_run.world.containers[i].update)
			act_update(n, i);
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_run.world.containers[i].life == LIFE_STARTED)
			act_post_start(n, i);
	act_tick(n);
	act_tick(n);
	world_run.world.is_degraded = false;
	for (int i = 0; i < WORLD_CONTAINERS; i++)
		if (world_has_cgroup(&world_run.world.containers[i])) {
			subject_init(n, i);
			learn_promise(n, i);
		}
	check_instant(n);
	check_ledger(n);
	audit_node(n);
	check_all_free(n);
	arena_reset(&n->a);
}
