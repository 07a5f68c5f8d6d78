/* The search for the best combination of NUMA nodes: combinations of k nodes, and for each the
 * subset that gives the remainder. Recursion depth is at most DISTRIBUTE_MAX_NODES. */

#include "pick_distribute.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct distribute_search {
	const struct distribute_request *rq;
	unsigned k;
	double mean; /* of the CPUs left per node: the same for every distribution of n */
	unsigned budget;
	bool done;

	unsigned n_candidates;
	uint8_t candidate[DISTRIBUTE_MAX_NODES];
	/* top[i][q]: the most CPUs that q of the candidates from i on can give */
	unsigned top[DISTRIBUTE_MAX_NODES + 1][DISTRIBUTE_MAX_NODES + 1];

	/* The current combination. */
	uint8_t chosen[DISTRIBUTE_MAX_NODES];
	unsigned left[DISTRIBUTE_MAX_NODES]; /* after equal shares, of all nodes */
	unsigned share, rest;
	unsigned n_givers; /* nodes that still have a group after equal shares */
	uint8_t giver[DISTRIBUTE_MAX_NODES];
	uint8_t subset[DISTRIBUTE_MAX_NODES];
	double balance; /* the best of this combination, with: */
	unsigned n_remainder;
	uint8_t remainder[DISTRIBUTE_MAX_NODES];

	/* The best combination. */
	bool found;
	bool in_one_socket;
	double best;
	struct distribute_plan plan;
};

static unsigned whole_groups(unsigned cpus, unsigned group)
{
	return cpus / group * group;
}

static double round3(double x)
{
	return round(x * 1000) / 1000;
}

/* The standard deviation of the CPUs left on the nodes, rounded to three decimals as the kubelet
 * does: ties depend on it. */
static double balance_of(const struct distribute_search *s, const unsigned *left)
{
	const unsigned n = s->rq->n_nodes;
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += (left[i] - s->mean) * (left[i] - s->mean);
	return round3(sqrt(sum / n));
}

/* Distributes `rest` in rounds: each member that still has a group gives one, until none is needed.
 * Rounds in which all members give are done at once. False when the members have too few.
 * The remainder is not divided but dealt in rounds, because a node may run out of groups before the
 * others. */
static bool deal(unsigned *left, const uint8_t *members, unsigned n, unsigned rest, unsigned group)
{
	while (rest) {
		unsigned able = 0, least = UINT32_MAX, rounds;

		for (unsigned i = 0; i < n; i++) {
			const unsigned has = left[members[i]] / group;

			able += has > 0;
			if (has && has < least)
				least = has;
		}
		if (!able)
			return false;
		rounds = rest / group / able < least ? rest / group / able : least;
		for (unsigned i = 0; i < n && rest; i++) {
			if (left[members[i]] < group)
				continue;
			left[members[i]] -= group * (rounds ? rounds : 1);
			rest -= group * (rounds ? rounds : 1);
		}
	}
	return true;
}

static void try_subset(struct distribute_search *s, unsigned n)
{
	unsigned left[DISTRIBUTE_MAX_NODES];
	double balance;

	/* Out of budget, the best result so far is used: a good distribution now is better than the
	 * best one after seconds. */
	if (!s->budget) {
		s->done = true;
		return;
	}
	s->budget--;
	memcpy(left, s->left, s->rq->n_nodes * sizeof(*left));
	if (!deal(left, s->subset, n, s->rest, s->rq->group))
		return;
	balance = balance_of(s, left);
	if (balance < s->balance) {
		s->balance = balance;
		s->n_remainder = n;
		memcpy(s->remainder, s->subset, n);
	}
}

/* All subsets of n givers in lexicographic order; `depth` are chosen, the next comes from `start`
 * on. A giver that has as many CPUs left as an earlier one leads to the same results, and ties keep
 * the first: it is skipped. */
static void each_subset(struct distribute_search *s, unsigned n, unsigned depth, unsigned start)
{
	if (depth == n) {
		try_subset(s, n);
		return;
	}
	for (unsigned i = start; i + (n - depth) <= s->n_givers && !s->done; i++) {
		bool repeated = false;

		for (unsigned j = start; j < i && !repeated; j++)
			repeated = s->left[s->giver[j]] == s->left[s->giver[i]];
		if (repeated)
			continue;
		s->subset[depth] = s->giver[i];
		each_subset(s, n, depth + 1, i + 1);
	}
}

static unsigned share_of(const struct distribute_search *s)
{
	const struct distribute_request *rq = s->rq;
	unsigned share = whole_groups(rq->n / s->k, rq->group);

	/* With align-by-socket the share shrinks to the node that has least: staying in one socket
	 * counts more than equal shares. */
	for (unsigned i = 0; rq->align_by_socket && i < s->k; i++) {
		const unsigned groups = whole_groups(rq->free[s->chosen[i]], rq->group);

		if (groups < share)
			share = groups;
	}
	return share;
}

static bool is_in_one_socket(const struct distribute_search *s)
{
	const uint16_t first = s->rq->socket[s->chosen[0]];

	for (unsigned i = 1; i < s->k; i++)
		if (s->rq->socket[s->chosen[i]] != first)
			return false;
	return first != DISTRIBUTE_MANY_SOCKETS;
}

static void keep_best(struct distribute_search *s)
{
	const bool aligns = s->rq->align_by_socket;
	const bool in_one_socket = aligns && is_in_one_socket(s);
	bool better = !s->found || s->balance < s->best;

	/* A combination within one socket wins over any balance; the balance decides among equals.
	 */
	if (aligns && s->found && in_one_socket != s->in_one_socket)
		better = in_one_socket;
	if (!better)
		return;
	s->found = true;
	s->best = s->balance;
	s->in_one_socket = in_one_socket;
	s->plan = (struct distribute_plan){ .share = s->share,
					    .n_nodes = s->k,
					    .n_remainder = s->n_remainder };
	memcpy(s->plan.nodes, s->chosen, s->k);
	memcpy(s->plan.remainder, s->remainder, s->n_remainder);
	if (s->best == 0 && (!aligns || in_one_socket))
		s->done = true; /* no combination can be better */
}

static void try_combination(struct distribute_search *s)
{
	s->share = share_of(s);
	s->rest = s->rq->n - s->share * s->k;
	memcpy(s->left, s->rq->free, s->rq->n_nodes * sizeof(*s->left));
	s->n_givers = 0;
	for (unsigned i = 0; i < s->k; i++) {
		s->left[s->chosen[i]] -= s->share;
		if (s->left[s->chosen[i]] >= s->rq->group)
			s->giver[s->n_givers++] = s->chosen[i];
	}
	s->balance = DBL_MAX;
	s->n_remainder = 0;
	if (!s->rest)
		s->balance = balance_of(s, s->left);
	/* Larger subsets first: of equal balances the first one found is kept. */
	for (unsigned n = s->n_givers; s->rest && n >= 1; n--)
		each_subset(s, n, 0, 0);
	if (s->balance < DBL_MAX)
		keep_best(s);
}

/* Equal nodes give equal results, and ties keep the first. */
static bool are_alike(const struct distribute_search *s, unsigned a, unsigned b)
{
	const struct distribute_request *rq = s->rq;

	return rq->free[a] == rq->free[b] &&
	       (!rq->align_by_socket || rq->socket[a] == rq->socket[b]);
}

/* All combinations of k candidates, as each_subset; `sum` is what the chosen ones can give. */
static void each_combination(struct distribute_search *s, unsigned depth, unsigned start,
			     unsigned sum)
{
	const unsigned missing = s->k - depth;

	if (!missing) {
		try_combination(s);
		return;
	}
	for (unsigned i = start; i + missing <= s->n_candidates && !s->done; i++) {
		const unsigned node = s->candidate[i];
		const unsigned with = sum + whole_groups(s->rq->free[node], s->rq->group);
		bool repeated = false;

		for (unsigned j = start; j < i && !repeated; j++)
			repeated = are_alike(s, s->candidate[j], node);
		/* The bound prunes: even the best nodes that are left cannot reach the request with
		 * this one. */
		if (repeated || with + s->top[i + 1][missing - 1] < s->rq->n)
			continue;
		s->chosen[depth] = (uint8_t)node;
		each_combination(s, depth + 1, i + 1, with);
	}
}

/* Nodes that can give an equal share. With align_by_socket a share may shrink to what a node has,
 * so every node is a candidate. */
static void find_candidates(struct distribute_search *s)
{
	const struct distribute_request *rq = s->rq;
	const unsigned share = rq->align_by_socket ? 0 : whole_groups(rq->n / s->k, rq->group);

	for (unsigned i = 0; i < rq->n_nodes; i++)
		if (rq->free[i] >= share)
			s->candidate[s->n_candidates++] = (uint8_t)i;
}

/* Filled from the end, so that the list of what later candidates can give only grows by one item
 * that is inserted in order. */
static void fill_tops(struct distribute_search *s)
{
	unsigned falling[DISTRIBUTE_MAX_NODES]; /* what candidates from i on can give, sorted */
	unsigned n = 0;

	memset(s->top[s->n_candidates], 0, sizeof(s->top[0]));
	for (unsigned i = s->n_candidates; i-- > 0;) {
		const unsigned gives = whole_groups(s->rq->free[s->candidate[i]], s->rq->group);
		unsigned at = n++;

		for (; at && falling[at - 1] < gives; at--)
			falling[at] = falling[at - 1];
		falling[at] = gives;
		s->top[i][0] = 0;
		for (unsigned q = 0; q < n; q++)
			s->top[i][q + 1] = s->top[i][q] + falling[q];
	}
}

bool distribute_over(const struct distribute_request *request, unsigned k,
		     struct distribute_plan *ret)
{
	struct distribute_search s = { .rq = request, .k = k, .budget = DISTRIBUTE_BUDGET };
	double total = 0;

	assert(k > 0 && request->group > 0);
	for (unsigned i = 0; i < request->n_nodes; i++)
		total += request->free[i];
	/* Rounded here too: without it some ties are decided otherwise. */
	s.mean = round3((total - request->n) / request->n_nodes);
	find_candidates(&s);
	if (s.n_candidates < k)
		return false;
	fill_tops(&s);
	each_combination(&s, 0, 0, 0);
	if (s.found)
		*ret = s.plan;
	return s.found;
}
