/* Pods come and go: a pod takes its requests on the node, and its exclusive CPUs from the node's
 * ledger. A ledger that refuses sends the pod back, as the agent does at the creation of a
 * container: the scheduler does not know NUMA nodes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "sim.h"

static struct ledger *ledger_of(struct sim *s, uint32_t node)
{
	struct sim_node *n = &s->nodes[node];
	const struct sim_machine *m = s->shapes[n->shape].machine;

	if (!m || !m->has_pools || n->ledger)
		return n->ledger;
	n->ledger = malloc(sizeof(*n->ledger));
	if (!n->ledger)
		abort();
	*n->ledger = m->empty; /* nothing is assigned, so nothing is shared */
	return n->ledger;
}

struct uid {
	char text[16];
};

static struct str uid_of(uint32_t pod, struct uid *buffer)
{
	(void)snprintf(buffer->text, sizeof(buffer->text), "%u", pod);
	return str_from(buffer->text);
}

/* 0, or the refusal. All containers or none. */
static int assign(struct sim *s, uint32_t pod, uint32_t node, struct sim_class *c)
{
	struct ledger *l = c->n_cpus ? ledger_of(s, node) : NULL;
	struct ledger_grant grant;
	struct err err = { 0 };
	struct uid buffer = { 0 };
	struct ledger_request request = {
		.pod_uid = uid_of(pod, &buffer),
		.pod_namespace = c->namespace,
		.pod_name = c->name,
		.pod = { .members = c->members, .n = c->n_members, .reserves = true },
	};
	int r = 0;

	for (size_t i = 0; l && r >= 0 && i < c->n_members; i++) {
		request.container = c->members[i].container;
		request.demand = c->members[i].demand;
		if (demand_cpus(&request.demand))
			r = ledger_allocate(l, &request, &grant, &err);
	}
	if (r >= 0)
		return 0;
	(void)ledger_release_pod(l, request.pod_uid, NULL);
	c->refusal = r;
	memcpy(c->why_refused, err.msg, sizeof(c->why_refused));
	return r;
}

static void count(struct sim *s, const struct sim_class *c, struct sim_node *n, int sign)
{
	for (size_t i = 0; i < c->n_asked; i++) {
		const size_t r = c->asked[i];
		const int64_t amount = sign * c->request.amounts.of[r];

		n->used.of[r] += amount;
		if (r == SIM_CORES ||
		    (r >= SIM_NAMED && sim_resource_is_cores(s->resources.names[r])))
			n->cores += amount;
	}
	n->scored_cpu += sign * c->request.scored_cpu;
	n->scored_memory += sign * c->request.scored_memory;
	n->n_pods += (uint32_t)sign;
	if (n->cores > n->peak_cores)
		n->peak_cores = n->cores;
}

static void run_on(struct sim *s, uint32_t pod, uint32_t node)
{
	struct sim_pod *p = &s->pods[pod];
	struct sim_class *c = &s->classes[p->class];

	if (assign(s, pod, node, c) < 0) {
		p->state = SIM_POD_REFUSED;
		c->n_refused++;
		return;
	}
	count(s, c, &s->nodes[node], 1);
	p->state = SIM_POD_RUNNING;
	p->node = node;
	c->n_running++;
	if (p->is_bound)
		return;
	s->running =
		arena_reserve(s->a, s->running, s->n_running, &s->cap_running, sizeof(*s->running));
	p->place = (uint32_t)s->n_running;
	s->running[s->n_running++] = pod;
}

static void wait_for_place(struct sim *s, uint32_t pod)
{
	struct sim_class *c = &s->classes[s->pods[pod].class];

	s->pods[pod].place = SIM_NONE;
	if (c->last == SIM_NONE)
		c->first = pod;
	else
		s->pods[c->last].place = pod;
	c->last = pod;
	c->n_pending++;
	s->n_pending++;
}

static uint32_t add_pod(struct sim *s, uint32_t class, bool is_bound)
{
	s->pods = arena_reserve(s->a, s->pods, s->n_pods, &s->cap_pods, sizeof(*s->pods));
	s->pods[s->n_pods] = (struct sim_pod){ .class = class,
					       .node = SIM_NONE,
					       .place = SIM_NONE,
					       .state = SIM_POD_PENDING,
					       .is_bound = is_bound };
	s->classes[class].n_arrived++;
	return (uint32_t)s->n_pods++;
}

uint32_t sim_arrive(struct sim *s, uint32_t class)
{
	const uint32_t pod = add_pod(s, class, false);
	struct sim_class *c = &s->classes[class];
	uint32_t node = SIM_NONE;

	if (c->admission == SIM_DENIED) {
		s->pods[pod].state = SIM_POD_DENIED;
		return pod;
	}
	if (!c->obstacles)
		sim_class_match(s, c);
	/* Nodes only fill up until a pod leaves: what did not fit then does not fit now. */
	if (!c->is_stuck)
		node = sim_schedule(s, c);
	c->is_stuck = node == SIM_NONE;
	if (node == SIM_NONE)
		wait_for_place(s, pod);
	else
		run_on(s, pod, node);
	return pod;
}

uint32_t sim_arrive_on(struct sim *s, uint32_t class, uint32_t node, bool runs)
{
	const uint32_t pod = add_pod(s, class, true);
	struct sim_class *c = &s->classes[class];

	if (c->admission == SIM_DENIED) {
		s->pods[pod].state = SIM_POD_DENIED;
		return pod;
	}
	if (!c->obstacles && !runs)
		sim_class_match(s, c);
	if (runs || sim_fits(s, c, node))
		run_on(s, pod, node);
	else
		c->n_pending++; /* counted, and not tried again */
	return pod;
}

/* The class whose oldest pending pod fits on the node and waits longest. */
static struct sim_class *next_for(struct sim *s, uint32_t node)
{
	struct sim_class *best = NULL;

	for (size_t i = 0; i < s->n_classes; i++) {
		struct sim_class *c = &s->classes[i];

		if (c->first != SIM_NONE && (!best || c->first < best->first) &&
		    sim_fits(s, c, node))
			best = c;
	}
	return best;
}

/* Only this node has changed, so pods that wait fit there or nowhere. One that the node refuses
 * frees its place for the next, which may be refused, too. */
static void fill(struct sim *s, uint32_t node)
{
	struct sim_class *c;

	while (s->n_pending && (c = next_for(s, node))) {
		const uint32_t pod = c->first;

		c->first = s->pods[pod].place;
		if (c->first == SIM_NONE)
			c->last = SIM_NONE;
		c->n_pending--;
		s->n_pending--;
		run_on(s, pod, node);
	}
}

static void stop_running(struct sim *s, uint32_t pod)
{
	struct sim_pod *p = &s->pods[pod];
	struct sim_class *c = &s->classes[p->class];
	struct uid buffer = { 0 };

	if (s->nodes[p->node].ledger)
		(void)ledger_release_pod(s->nodes[p->node].ledger, uid_of(pod, &buffer), NULL);
	count(s, c, &s->nodes[p->node], -1);
	c->n_running--;
	if (p->is_bound)
		return;
	s->running[p->place] = s->running[--s->n_running];
	s->pods[s->running[p->place]].place = p->place;
}

static void stop_waiting(struct sim *s, uint32_t pod)
{
	struct sim_class *c = &s->classes[s->pods[pod].class];
	uint32_t *link = &c->first, before = SIM_NONE;

	while (*link != pod) {
		before = *link;
		link = &s->pods[*link].place;
	}
	*link = s->pods[pod].place;
	if (c->last == pod)
		c->last = before;
	c->n_pending--;
	s->n_pending--;
}

void sim_leave(struct sim *s, uint32_t pod)
{
	struct sim_pod *p = &s->pods[pod];
	struct sim_class *c = &s->classes[p->class];
	const uint32_t node = p->node;

	if (p->state == SIM_POD_RUNNING)
		stop_running(s, pod);
	else if (p->state == SIM_POD_PENDING && !p->is_bound)
		stop_waiting(s, pod);
	else
		return;
	p->state = SIM_POD_LEFT;
	p->node = SIM_NONE;
	c->n_left++;
	if (node == SIM_NONE)
		return;
	fill(s, node);
	for (size_t i = 0; i < s->n_classes; i++)
		s->classes[i].is_stuck = s->classes[i].first != SIM_NONE;
}

void sim_churn(struct sim *s, size_t count)
{
	const size_t n_first = s->n_pods;

	for (size_t i = 0; i < count && n_first; i++) {
		uint32_t like;

		if (s->n_running)
			sim_leave(s, s->running[sim_random(s, s->n_running)]);
		like = (uint32_t)sim_random(s, n_first);
		if (!s->pods[like].is_bound)
			(void)sim_arrive(s, s->pods[like].class);
	}
}
