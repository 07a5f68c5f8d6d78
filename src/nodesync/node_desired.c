/* What the Node shall say at this moment, from what the Manager knows. */

#include <time.h>

#include "node_sync.h"
#include "pin/manager.h"

#define HEARTBEAT_MS 300000 /* as often as a kubelet whose node does not change */
#define TROUBLE_MS 60000    /* the condition remembers failed writes so long */

static void note_trouble(struct node_sync *l)
{
	const struct manager *m = l->manager;

	if (m->counters.write_failures != l->write_failures) {
		l->write_failures = m->counters.write_failures;
		l->writes_failed_ms = loop_now_ms(l->loop);
	}
	if (m->is_connected)
		l->unready_ms = 0;
	else if (!l->unready_ms)
		l->unready_ms = loop_now_ms(l->loop);
}

static struct str message_of(const struct node_sync *l, enum node_reason reason, struct arena *a)
{
	const struct manager *m = l->manager;
	struct cpuset shared, guaranteed;

	switch (reason) {
	case NODE_RUNTIME_LOST:
		return m->problem[0] ? str_printf(a, "no container runtime: %s", m->problem) :
				       STR("no container runtime yet");
	case NODE_POOLS_REFUSED:
		return STR("the configured pools do not fit what runs; the old ones go on");
	case NODE_CGROUPS_FAIL:
		return STR("control files of cgroups could not be written; see the agent's log");
	case NODE_AGENT_STOPPED:
		return STR("the agent was stopped; containers keep their CPUs, new ones get none");
	case NODE_PINNING:
	case NODE_REASON__COUNT:
		break;
	}
	if (m->ledger->now.config.is_classic || m->kubelet_manages)
		return str_printf(a, "%s: reserved CPUs %s", m->runtime_name, m->reserved);
	(void)ledger_cpus(m->ledger, POOL_SHARED, &shared);
	(void)ledger_cpus(m->ledger, POOL_GUARANTEED, &guaranteed);
	return str_printf(a, "%s: reserved CPUs %s, shared " PRI_STR ", guaranteed " PRI_STR,
			  m->runtime_name, m->reserved, FMT_STR(cpuset_format(&shared, a)),
			  FMT_STR(cpuset_format(&guaranteed, a)));
}

static void cut_message(struct node_desired *want)
{
	const size_t max = sizeof(((struct node_observed *)0)->message) - 1;

	if (want->message.n > max)
		want->message.n = max; /* so that what comes back compares equal */
}

struct node_desired node_sync_desired(struct node_sync *l, struct arena *a)
{
	const struct manager *m = l->manager;
	struct node_health health;
	struct node_desired want;
	uint64_t unready_ms;

	note_trouble(l);
	unready_ms = l->unready_ms ? loop_now_ms(l->loop) - l->unready_ms : 0;
	health = (struct node_health){
		.is_connected = m->is_connected,
		.pools_are_refused = m->resize.state > RESIZE_DONE,
		.writes_fail = l->writes_failed_ms &&
			       loop_now_ms(l->loop) - l->writes_failed_ms < TROUBLE_MS,
	};
	want = (struct node_desired){
		.reason = l->is_leaving ? NODE_AGENT_STOPPED : node_reason_choose(&health),
		.taint = node_taint_choose(m->is_connected, unready_ms, l->config.taints_unready),
		.is_heartbeat_due = !l->heartbeat_ms ||
				    loop_now_ms(l->loop) - l->heartbeat_ms >= HEARTBEAT_MS,
		.now_s = (int64_t)time(NULL),
	};
	node_amounts_of(m->ledger, !m->kubelet_manages, &want.amounts);
	want.message = message_of(l, want.reason, a);
	cut_message(&want);
	return want;
}
