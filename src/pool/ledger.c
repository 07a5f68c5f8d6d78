/* The ledger's data and its transactions. Assignments are sorted pointers: lookups are binary
 * searches, the assignments of a pod are adjacent, and the file is written in the same order. Every
 * change is noted in a journal, so that a transaction whose write fails is undone completely. */

#include "ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/sorted.h"
#include "cpu/topology.h"
#include "ledger_private.h"

/* A heap array that grows by doubling; the ledger outlives any arena. Aborts without memory. */
static void *grow(void *items, size_t *cap, size_t size)
{
	*cap = *cap ? *cap * 2 : 16;
	items = reallocarray(items, *cap, size);
	if (!items)
		abort();
	return items;
}

/* CPUs per core that a request must be a multiple of. With offline siblings the kubelet's average
 * would be below the real width, and two containers could share a core. */
static unsigned group_of(const struct ledger_frame *f)
{
	const struct topology *t = f->topology;
	unsigned widest = 1;

	/* Classic mode follows the kubelet, which uses the average of the machine. */
	if (f->config.is_classic && cpuset_is_empty(&t->offline))
		return topology_average(t, TOPOLOGY_CORE);
	CPUSET_FOREACH (cpu, &f->sets.guaranteed) {
		unsigned core = topology_index(t, TOPOLOGY_CORE, cpu);

		if (core != TOPOLOGY_NO_INDEX && topology_size(t, TOPOLOGY_CORE, core) > widest)
			widest = topology_size(t, TOPOLOGY_CORE, core);
	}
	return widest;
}

/* CPUs of the pool that are not part of a whole core of it: the core is shared with another pool,
 * or a sibling is offline. */
static void split_of(const struct ledger_frame *f, struct cpuset *ret)
{
	const struct topology *t = f->topology;
	struct cpuset pool = f->sets.guaranteed;

	cpuset_intersect(&pool, &t->online);
	if (f->config.is_classic) {
		topology_whole(t, TOPOLOGY_CORE, &f->config.reserved, ret);
		cpuset_intersect(ret, &pool);
		if (cpuset_is_empty(&t->offline))
			return;
	} else {
		topology_split(t, TOPOLOGY_CORE, &pool, ret);
	}
	CPUSET_FOREACH (cpu, &pool)
		if (topology_size(t, TOPOLOGY_CORE, topology_index(t, TOPOLOGY_CORE, cpu)) <
		    f->sets.group)
			cpuset_add(ret, cpu);
}

void ledger_compute(struct ledger_frame *f)
{
	f->topology_hash = topology_hash(f->topology);
	f->config_hash = pool_config_hash(&f->config);
	pool_config_shared(&f->config, f->topology, &f->sets.shared);
	pool_config_guaranteed(&f->config, f->topology, &f->sets.guaranteed);
	if (f->config.is_classic && cpuset_is_empty(&f->config.guaranteed)) {
		/* A CPU that was removed from the machine still belongs to its owner. */
		cpuset_union(&f->sets.guaranteed, &f->sets.held);
		cpuset_minus(&f->sets.guaranteed, &f->config.reserved);
	}
	f->sets.group = group_of(f);
	split_of(f, &f->sets.split);
}

int ledger_init(struct ledger *l, const struct topology *t, const struct pool_config *c,
		struct err *err)
{
	int r;

	r = pool_config_check(c, t, err);
	if (r < 0)
		return r;
	*l = (struct ledger){ .now = { .topology = t, .config = *c } };
	ledger_compute(&l->now);
	return 0;
}

void ledger_done(struct ledger *l)
{
	if (l->in_transaction)
		ledger_rollback(l);
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	free(l->journal);
	*l = (struct ledger){ 0 };
}

static int compare_assignment(const void *item, const void *key)
{
	const struct assignment *const *a = item;

	return assignment_cmp(*a, key);
}

size_t ledger_position(const struct ledger *l, struct str pod_uid, struct str container)
{
	const struct assignment key = { .pod_uid = pod_uid, .container = container };

	/* sizeof(void *): the items are pointers. */
	return sorted_position(l->items, l->n, sizeof(void *), &key, compare_assignment);
}

/* One allocation per assignment: its strings follow the struct. */
static struct assignment *assignment_new(const struct assignment *from)
{
	CLEANUP(arena_done) struct arena arena;
	struct assignment *a, whole = *from;
	struct str *texts[] = { &whole.pod_uid, &whole.pod_namespace, &whole.pod_name,
				&whole.container, &whole.encoded };
	size_t size = sizeof(whole);
	char *next;

	/* Each assignment is encoded once, here: a write then only joins texts, however many there
	 * are. */
	arena_init(&arena, 0);
	whole.encoded = STR("");
	(void)assignment_encode(from, &arena, &whole.encoded,
				NULL); /* the write reports a failure */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		size += texts[i]->n;
	a = malloc(size);
	if (!a)
		abort();
	next = (char *)(a + 1);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i]->n)
			memcpy(next, texts[i]->p, texts[i]->n);
		texts[i]->p = next;
		next += texts[i]->n;
	}
	*a = whole;
	return a;
}

static void insert(struct ledger *l, struct assignment *a)
{
	size_t at = ledger_position(l, a->pod_uid, a->container);

	if (l->n == l->cap)
		l->items = grow(l->items, &l->cap, sizeof(struct assignment *));
	memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof(struct assignment *));
	l->items[at] = a;
	l->n++;
	/* Only grows. ledger_check() walks this many words of every assignment. */
	while (l->n_words < CPUSET_WORDS && cpuset_next(&a->cpus, l->n_words * 64) != CPUSET_NONE)
		l->n_words++;
}

static struct assignment *take_out(struct ledger *l, size_t at)
{
	struct assignment *a = l->items[at];

	l->n--;
	memmove(l->items + at, l->items + at + 1, (l->n - at) * sizeof(struct assignment *));
	return a;
}

static void note(struct ledger *l, struct assignment *a, bool is_removal)
{
	if (l->n_journal == l->cap_journal)
		l->journal = grow(l->journal, &l->cap_journal, sizeof(*l->journal));
	l->journal[l->n_journal++] = (struct ledger_change){ a, is_removal };
}

void ledger_add(struct ledger *l, const struct ledger_request *request, const struct cpuset *cpus)
{
	struct assignment *a = assignment_new(&(struct assignment){
		.pod_uid = request->pod_uid,
		.pod_namespace = request->pod_namespace,
		.pod_name = request->pod_name,
		.container = request->container,
		.kind = request->demand.kind,
		.cpus = *cpus,
	});

	assert(l->in_transaction);
	insert(l, a);
	note(l, a, false);
	cpuset_union(&l->now.sets.held, cpus);
}

void ledger_remove(struct ledger *l, size_t index)
{
	struct assignment *a = take_out(l, index);
	size_t first, n;

	assert(l->in_transaction);
	/* The assignment is not freed before the commit: a rollback inserts it again. */
	note(l, a, true);
	cpuset_minus(&l->now.sets.held, &a->cpus);
	/* Other containers of the pod keep the init container CPUs that they share with it. */
	first = ledger_find_pod(l, a->pod_uid, &n);
	for (size_t i = first; i < first + n; i++)
		cpuset_union(&l->now.sets.held, &l->items[i]->cpus);
}

/* Unlike ledger_remove(), this leaves no trace in the journal. */
void ledger_undo(struct ledger *l)
{
	struct ledger_change last = l->journal[l->n_journal - 1];

	assert(l->in_transaction && !last.is_removal);
	ledger_remove(l, ledger_position(l, last.assignment->pod_uid, last.assignment->container));
	l->n_journal -= 2;
	free(last.assignment);
}

void ledger_begin(struct ledger *l)
{
	assert(!l->in_transaction);
	l->in_transaction = true;
	l->held_before = l->now.sets.held;
	l->n_journal = 0;
}

/* Most transactions change assignments only. A frame is 16 KiB and not copied for them. */
static void save_frame(struct ledger *l)
{
	if (l->before)
		return;
	l->before = malloc(sizeof(*l->before));
	if (!l->before)
		abort();
	*l->before = l->now;
}

static void end_transaction(struct ledger *l)
{
	free(l->before);
	l->before = NULL;
	l->n_journal = 0;
	l->in_transaction = false;
}

void ledger_rollback(struct ledger *l)
{
	assert(l->in_transaction);
	/* Newest first: a container that was removed and added again in one transaction must not be
	 * found twice. */
	while (l->n_journal) {
		struct ledger_change c = l->journal[--l->n_journal];

		if (c.is_removal)
			insert(l, c.assignment);
		else
			free(take_out(l, ledger_position(l, c.assignment->pod_uid,
							 c.assignment->container)));
	}
	/* Restores the derived sets too. They are values, so nothing has to be recomputed. */
	if (l->before)
		l->now = *l->before;
	l->now.sets.held = l->held_before;
	end_transaction(l);
}

static int make_durable(struct ledger *l, struct err *err)
{
	int r;

	/* Nothing to write: releasing an unknown pod, for example, costs no fsync. */
	if (!l->n_journal && !l->before)
		return 0;
	r = ledger_check(l, err);
	if (r < 0)
		return err_wrap(err, "ledger");
	/* The last step that can fail. After it the change is on disk, and only then do callers
	 * hand out CPUs. */
	return l->persist ? l->persist(l, l->persist_data, err) : 0;
}

int ledger_commit(struct ledger *l, struct err *err)
{
	int r;

	assert(l->in_transaction);
	r = make_durable(l, err);
	if (r < 0) {
		ledger_rollback(l);
		return r;
	}
	for (size_t i = 0; i < l->n_journal; i++)
		if (l->journal[i].is_removal)
			free(l->journal[i].assignment);
	end_transaction(l);
	return 0;
}

bool ledger_enter(struct ledger *l)
{
	if (l->in_transaction)
		return false;
	ledger_begin(l);
	return true;
}

int ledger_leave(struct ledger *l, bool entered, int r, struct err *err)
{
	int committed;

	if (!entered)
		return r;
	if (r < 0) {
		ledger_rollback(l);
		return r;
	}
	committed = ledger_commit(l, err);
	return committed < 0 ? committed : r;
}

void ledger_set_frame(struct ledger *l, const struct topology *t, const struct pool_config *c)
{
	assert(l->in_transaction);
	save_frame(l);
	l->now.topology = t;
	l->now.config = *c;
	ledger_compute(&l->now);
}

void ledger_to_state(const struct ledger *l, struct ledger_state *ret)
{
	*ret = (struct ledger_state){
		.config_hash = l->now.config_hash,
		.topology_hash = l->now.topology_hash,
		.config = &l->now.config,
		.entries = l->items,
		.n_entries = l->n,
	};
}

int ledger_load(struct ledger *l, struct assignment *const *entries, size_t n, struct err *err)
{
	bool entered = ledger_enter(l);
	int r;

	save_frame(l);
	for (size_t i = 0; i < n; i++) {
		struct assignment *a = assignment_new(entries[i]);

		insert(l, a);
		note(l, a, false);
		cpuset_union(&l->now.sets.held, &a->cpus);
	}
	ledger_compute(&l->now);
	r = ledger_check(l, err);
	return ledger_leave(l, entered, r, err);
}
