/* The scheduler: the filters and scores of kube-scheduler that decide about a pod without affinity
 * to other pods (D50). Filters: node unschedulable, taints, node selector and required node
 * affinity, resources. Scores: least allocated and balanced allocation, over CPU and memory. As
 * there, a search ends after a share of the nodes was found to fit, begins where the last one
 * ended, and the best node is drawn among those with the same score. */

#include <stdlib.h>

#include "base/arena.h"
#include "sim.h"

#define SCORE_MAX 100
#define SHARE_FROM_NODES 100 /* smaller clusters are searched completely */

/* How many nodes that fit are enough. */
static size_t enough_nodes(size_t n_nodes)
{
	size_t percent = n_nodes / 125 < 45 ? 50 - n_nodes / 125 : 5;
	size_t n = n_nodes * percent / 100;

	if (n_nodes < SHARE_FROM_NODES)
		return n_nodes;
	return n < SHARE_FROM_NODES ? SHARE_FROM_NODES : n;
}

static bool fits(const struct sim_class *c, const struct sim_amounts *allocatable,
		 const struct sim_amounts *used)
{
	for (size_t i = 0; i < c->n_asked; i++) {
		const size_t r = c->asked[i];

		if (used->of[r] + c->request.amounts.of[r] > allocatable->of[r])
			return false;
	}
	return true;
}

bool sim_fits(const struct sim *s, const struct sim_class *c, uint32_t node)
{
	const struct sim_node *n = &s->nodes[node];

	return c->obstacles[n->shape] == SIM_NO_OBSTACLE &&
	       fits(c, &s->shapes[n->shape].allocatable, &n->used);
}

static int64_t least_allocated(int64_t used, int64_t of)
{
	return used > of ? 0 : (of - used) * SCORE_MAX / of;
}

static double share(int64_t used, int64_t of)
{
	return used > of ? 1 : (double)used / (double)of;
}

static int64_t balance(const struct sim_amounts *of, int64_t cpu, int64_t memory)
{
	double difference = share(cpu, of->of[SIM_CPU]) - share(memory, of->of[SIM_MEMORY]);

	return (int64_t)((1 - (difference < 0 ? -difference : difference) / 2) * SCORE_MAX);
}

/* The score of a node with both resources; others have no scores to compare. */
static int64_t score(const struct sim_class *c, const struct sim_amounts *of,
		     const struct sim_node *n)
{
	int64_t cpu, memory, sum;

	if (!of->of[SIM_CPU] || !of->of[SIM_MEMORY])
		return 0;
	cpu = n->scored_cpu + c->request.scored_cpu;
	memory = n->scored_memory + c->request.scored_memory;
	sum = (least_allocated(cpu, of->of[SIM_CPU]) +
	       least_allocated(memory, of->of[SIM_MEMORY])) /
	      2;
	if (!c->is_scored_by_balance)
		return sum;
	cpu = n->used.of[SIM_CPU];
	memory = n->used.of[SIM_MEMORY];
	/* How much the pod improves the balance. */
	return sum + SCORE_MAX / 2 +
	       (SCORE_MAX / 2 +
		balance(of, cpu + c->request.amounts.of[SIM_CPU],
			memory + c->request.amounts.of[SIM_MEMORY]) -
		balance(of, cpu, memory)) /
		       2;
}

/* The best node so far, and how many were as good. */
struct choice {
	uint32_t node;
	int64_t score;
	uint64_t n_equal;
};

static void consider(struct sim *s, struct choice *best, uint32_t node, int64_t node_score)
{
	if (best->node != SIM_NONE && node_score < best->score)
		return;
	if (best->node == SIM_NONE || node_score > best->score)
		*best = (struct choice){ node, node_score, 1 };
	else if (sim_random(s, ++best->n_equal) == 0)
		best->node = node;
}

uint32_t sim_schedule(struct sim *s, const struct sim_class *c)
{
	size_t enough = enough_nodes(s->n_nodes), found = 0, seen = 0;
	struct choice best = { .node = SIM_NONE };
	uint32_t node = s->start;

	for (; seen < s->n_nodes && found < enough; seen++) {
		const struct sim_node *n = &s->nodes[node];
		const struct sim_amounts *of = &s->shapes[n->shape].allocatable;

		if (c->obstacles[n->shape] == SIM_NO_OBSTACLE && fits(c, of, &n->used)) {
			consider(s, &best, node, score(c, of, n));
			found++;
		}
		node = node + 1 < s->n_nodes ? node + 1 : 0;
	}
	s->start = node;
	return best.node;
}

/* --- why a pod waits --- */

struct reasons {
	size_t by_obstacle[SIM_OBSTACLE__COUNT];
	size_t by_resource[SIM_RESOURCES_MAX];
};

static struct reasons count_reasons(const struct sim *s, const struct sim_class *c)
{
	struct reasons r = { 0 };

	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct sim_node *n = &s->nodes[i];
		const struct sim_amounts *of = &s->shapes[n->shape].allocatable;

		r.by_obstacle[c->obstacles[n->shape]]++;
		for (size_t j = 0; c->obstacles[n->shape] == SIM_NO_OBSTACLE && j < c->n_asked;
		     j++) {
			const size_t k = c->asked[j];

			r.by_resource[k] += n->used.of[k] + c->request.amounts.of[k] > of->of[k];
		}
	}
	return r;
}

static const char *const obstacle_texts[] = {
	[SIM_UNSCHEDULABLE] = "node(s) were unschedulable",
	[SIM_TAINTED] = "node(s) had untolerated taint(s)",
	[SIM_NOT_SELECTED] = "node(s) didn't match Pod's node affinity/selector",
};

struct str sim_why_pending(const struct sim *s, const struct sim_class *c, struct arena *a)
{
	const struct reasons r = count_reasons(s, c);
	struct str texts[SIM_OBSTACLE__COUNT + SIM_RESOURCES_MAX];
	struct strbuf b;
	size_t n = 0;

	for (size_t i = SIM_NO_OBSTACLE + 1; i < SIM_OBSTACLE__COUNT; i++)
		if (r.by_obstacle[i])
			texts[n++] = str_printf(a, "%zu %s", r.by_obstacle[i], obstacle_texts[i]);
	for (size_t i = 0; i < s->resources.n; i++)
		if (r.by_resource[i] && i == SIM_PODS)
			texts[n++] = str_printf(a, "%zu Too many pods", r.by_resource[i]);
		else if (r.by_resource[i])
			texts[n++] = str_printf(a, "%zu Insufficient " PRI_STR, r.by_resource[i],
						FMT_STR(s->resources.names[i]));
	qsort(texts, n, sizeof(*texts), str_order);
	strbuf_init(&b, a);
	strbuf_printf(&b, "0/%zu nodes are available:", s->n_nodes);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s " PRI_STR, i ? "," : "", FMT_STR(texts[i]));
	strbuf_addc(&b, '.');
	return strbuf_str(&b);
}
