/* From the manager's state to what the Node should say. Called once a second and after each change
 * of the Node, so the text must not contain anything that changes all the time: every difference is
 * a write. */

#include "node_desired.h"

#include <time.h>

#include "base/arena.h"
#include "pin/manager.h"

#define WRITE_FAILURE_MS 60000 /* how long a failed cgroup write shows in the condition */

static struct str message_of(const struct manager *m, enum node_reason reason, struct arena *a)
{
	struct cpuset management, shared, guaranteed;

	switch (reason) {
	case NODE_RUNTIME_LOST:
		return m->runtime.problem[0] ?
			       str_printf(a, "not connected to the container runtime: %s",
					  m->runtime.problem) :
			       STR("not connected to the container runtime yet");
	case NODE_POOLS_REFUSED:
		return STR("the configured pools conflict with running containers; the previous "
			   "pools stay in effect");
	case NODE_CGROUPS_FAIL:
		return STR("cgroup control files could not be written; see the agent's log");
	case NODE_AGENT_STOPPED:
		return STR("the agent was stopped; running containers keep their CPUs, new ones "
			   "are not pinned");
	case NODE_PINNING:
	case NODE_REASON__COUNT:
		break;
	}
	(void)ledger_cpus(m->ledger, POOL_MANAGEMENT, &management);
	if (m->ledger->now.config.is_classic || m->kubelet_manages)
		return str_printf(a, "%s: management CPUs " PRI_STR, m->runtime.name,
				  FMT_STR(cpuset_format(&management, a)));
	(void)ledger_cpus(m->ledger, POOL_SHARED, &shared);
	(void)ledger_cpus(m->ledger, POOL_GUARANTEED, &guaranteed);
	return str_printf(
		a, "%s: management CPUs " PRI_STR ", shared " PRI_STR ", guaranteed " PRI_STR,
		m->runtime.name, FMT_STR(cpuset_format(&management, a)),
		FMT_STR(cpuset_format(&shared, a)), FMT_STR(cpuset_format(&guaranteed, a)));
}

struct node_desired node_desired_read(struct node_desired_source *s, uint64_t now_ms,
				      bool is_leaving, struct arena *a)
{
	const size_t max_message = sizeof(((struct node_observed *)0)->message) - 1;
	const struct manager *m = s->manager;
	struct node_desired want = { .now_s = (int64_t)time(NULL) };
	struct node_health health;

	/* The counter never decreases: a difference means new failures since the last call. */
	if (m->counters.write_failures != s->write_failures) {
		s->write_failures = m->counters.write_failures;
		s->write_failed_ms = now_ms;
	}
	if (m->runtime.is_connected)
		s->unready_since_ms = 0;
	else if (!s->unready_since_ms)
		s->unready_since_ms = now_ms;
	/* Refused, deferred and failed follow RESIZE_DONE in the enum. */
	health = (struct node_health){
		.is_connected = m->runtime.is_connected,
		.pools_are_refused = m->status.resize.state > RESIZE_DONE,
		.writes_fail = s->write_failed_ms && now_ms - s->write_failed_ms < WRITE_FAILURE_MS,
	};
	want.reason = is_leaving ? NODE_AGENT_STOPPED : node_reason_choose(&health);
	want.taint = node_taint_choose(m->runtime.is_connected,
				       s->unready_since_ms ? now_ms - s->unready_since_ms : 0,
				       s->taints_unready);
	node_amounts_of(m->ledger, !m->kubelet_manages, &want.amounts);
	want.message = message_of(m, want.reason, a);
	if (want.message.n > max_message) /* the observed message is cut there: compare equal */
		want.message.n = max_message;
	return want;
}
