/* A parser by recursive descent with one word of lookahead, and the resolution of the result: each
 * term removes what it selects from the CPUs that are left, so that no two terms select the same
 * CPU. */

#include "topology_expr.h"

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

static const struct {
	struct str word;
	enum topology_level level;
} levels[] = {
	{ STR_INIT("numa"), TOPOLOGY_NUMA },
	{ STR_INIT("socket"), TOPOLOGY_SOCKET },
	{ STR_INIT("die"), TOPOLOGY_DIE },
	{ STR_INIT("l3"), TOPOLOGY_UNCORE },
};

static const struct {
	struct str word;
	enum expr_unit unit;
} units[] = {
	{ STR_INIT("core"), EXPR_CORES },  { STR_INIT("cores"), EXPR_CORES },
	{ STR_INIT("cpu"), EXPR_CPUS },	   { STR_INIT("cpus"), EXPR_CPUS },
	{ STR_INIT("thread"), EXPR_CPUS }, { STR_INIT("threads"), EXPR_CPUS },
};

bool topology_expr_looks_like(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((text.p[i] >= 'a' && text.p[i] <= 'z') || text.p[i] == '%')
			return true;
	return false;
}

/* The words of the text, one ahead. */
struct words {
	struct str rest;
	struct str word; /* empty at the end */
};

static void next_word(struct words *w)
{
	size_t n = 0;

	w->rest = str_trim(w->rest);
	while (n < w->rest.n && w->rest.p[n] != ' ' && w->rest.p[n] != '\t')
		n++;
	w->word = (struct str){ w->rest.p, n };
	w->rest = str_skip(w->rest, n);
}

static bool accept(struct words *w, struct str word)
{
	if (!str_eq(w->word, word))
		return false;
	next_word(w);
	return true;
}

static int unexpected_word(const struct words *w, const char *expected, struct err *err)
{
	return err_set(err, EINVAL, "%s where %s is expected",
		       w->word.n ? quote(w->word).text : "the text ends", expected);
}

static int parse_number(struct words *w, const char *what, unsigned *ret, struct err *err)
{
	uint64_t n;

	if (!str_to_u64(w->word, CPUSET_MAX, &n))
		return unexpected_word(w, what, err);
	*ret = (unsigned)n;
	next_word(w);
	return 0;
}

static int parse_level(struct words *w, enum topology_level *ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (accept(w, levels[i].word)) {
			*ret = levels[i].level;
			return 0;
		}
	}
	return unexpected_word(w, "numa, socket, die or l3", err);
}

static int parse_scope(struct words *w, struct expr_term *term, struct err *err)
{
	int r;

	if (!accept(w, STR("of")))
		return 0;
	term->scope = accept(w, STR("each")) ? EXPR_EACH : EXPR_ONE;
	r = parse_level(w, &term->level, err);
	if (r < 0 || term->scope == EXPR_EACH)
		return r;
	return parse_number(w, "a number of a node, socket, die or cache", &term->element, err);
}

static bool unit_from_word(struct str word, enum expr_unit *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (str_eq(word, units[i].word)) {
			*ret = units[i].unit;
			return true;
		}
	return false;
}

static int parse_percent(struct words *w, struct expr_term *term, struct err *err)
{
	struct str digits = { w->word.p, w->word.n - 1 };
	uint64_t n;

	if (!str_to_u64(digits, 100, &n) || !n)
		return err_set(err, EINVAL, "%s is not a percentage from 1%% to 100%%",
			       quote(w->word).text);
	term->unit = EXPR_PERCENT;
	term->n = (unsigned)n;
	next_word(w);
	return 0;
}

static int parse_count(struct words *w, struct expr_term *term, struct err *err)
{
	int r = parse_number(w, "a number of cores or cpus", &term->n, err);

	if (r < 0)
		return r;
	if (!term->n)
		return err_set(err, EINVAL, "the number must be at least 1");
	if (!unit_from_word(w->word, &term->unit))
		return unexpected_word(w, "cores or cpus", err);
	next_word(w);
	return 0;
}

static int parse_part(struct words *w, struct expr_term *term, struct err *err)
{
	if (accept(w, STR("all"))) {
		term->unit = EXPR_ALL;
		return 0;
	}
	if (str_ends(w->word, STR("%")))
		return parse_percent(w, term, err);
	term->from_end = str_eq(w->word, STR("last"));
	if (term->from_end || str_eq(w->word, STR("first")))
		next_word(w);
	return parse_count(w, term, err);
}

/* "2" is a CPU list and "2 cores" an amount: only the word after the number decides. */
static bool begins_part(const struct words *w)
{
	struct words ahead = *w;
	enum expr_unit unit;

	next_word(&ahead);
	return str_eq(w->word, STR("all")) || str_eq(w->word, STR("first")) ||
	       str_eq(w->word, STR("last")) || str_ends(w->word, STR("%")) ||
	       unit_from_word(ahead.word, &unit);
}

static int parse_term(struct words *w, struct expr_term *term, struct err *err)
{
	int r;

	if (accept(w, STR("rest"))) {
		term->unit = EXPR_REST;
		return 0;
	}
	if (begins_part(w)) {
		r = parse_part(w, term, err);
		return r < 0 ? r : parse_scope(w, term, err);
	}
	if (!w->word.n || topology_expr_looks_like(w->word))
		return unexpected_word(w, "a CPU list, first, last, all, rest or a percentage",
				       err);
	term->unit = EXPR_LIST;
	r = cpuset_parse(w->word, &term->list, err);
	next_word(w);
	return r;
}

int topology_expr_parse(struct str text, struct arena *a, struct topology_expr *ret,
			struct err *err)
{
	struct topology_expr e = { arena_array(a, struct expr_term, TOPOLOGY_EXPR_MAX_TERMS), 0 };
	struct words w = { .rest = text };

	next_word(&w);
	do {
		const char *start = w.word.p;
		int r;

		if (e.n == TOPOLOGY_EXPR_MAX_TERMS)
			return err_set(err, EINVAL, "more than %d terms", TOPOLOGY_EXPR_MAX_TERMS);
		r = parse_term(&w, &e.terms[e.n], err);
		if (r < 0)
			return r;
		/* The parser is one word ahead, so the term ends before the current word. */
		e.terms[e.n].text = str_trim((struct str){
			start, (size_t)((w.word.n ? w.word.p : text.p + text.n) - start) });
		e.n++;
	} while (accept(&w, STR("and")));
	if (w.word.n)
		return err_set(err, EINVAL, "%s is not expected here", quote(w.word).text);
	*ret = e;
	return 0;
}

bool topology_expr_has_rest(const struct topology_expr *e)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->terms[i].unit == EXPR_REST)
			return true;
	return false;
}

struct selection {
	const struct topology *t;
	struct cpuset left;	/* CPUs that are in no set and that no earlier term selected */
	struct cpuset selected; /* by all terms so far */
};

static void select_cpus(struct selection *s, const struct cpuset *cpus)
{
	cpuset_union(&s->selected, cpus);
	cpuset_minus(&s->left, cpus);
}

static unsigned lowest_or_highest(const struct cpuset *cpus, bool highest)
{
	return highest ? cpuset_last(cpus) : cpuset_first(cpus);
}

/* The next core of `within` whose CPUs are all left; false when there is none. Cores that are
 * skipped are removed from `within` too, so that the next call does not check them again. */
static bool select_next_core(struct selection *s, struct cpuset *within, bool from_end)
{
	for (;;) {
		unsigned cpu = lowest_or_highest(within, from_end);
		struct cpuset core = { 0 };

		if (cpu == CPUSET_NONE)
			return false;
		topology_add_element(s->t, TOPOLOGY_CORE, topology_index(s->t, TOPOLOGY_CORE, cpu),
				     &core);
		cpuset_minus(within, &core);
		if (cpuset_is_subset(&core, &s->left)) {
			select_cpus(s, &core);
			return true;
		}
	}
}

static int too_few(const struct expr_term *term, const char *where, struct err *err)
{
	return err_set(err, ERANGE, "%s: not enough free CPUs %s", quote(term->text).text, where);
}

/* `within` has only CPUs that are left; for cores, all siblings must be left as well. */
static int select_count(struct selection *s, const struct expr_term *term, struct cpuset within,
			const char *where, struct err *err)
{
	for (unsigned i = 0; i < term->n; i++) {
		struct cpuset one = { 0 };
		unsigned cpu;

		if (term->unit == EXPR_CORES) {
			if (!select_next_core(s, &within, term->from_end))
				return too_few(term, where, err);
			continue;
		}
		cpu = lowest_or_highest(&within, term->from_end);
		if (cpu == CPUSET_NONE)
			return too_few(term, where, err);
		cpuset_add(&one, cpu);
		cpuset_minus(&within, &one);
		select_cpus(s, &one);
	}
	return 0;
}

/* One core of each NUMA node in turn until the share is reached. It is a share of all CPUs in the
 * scope, not of those that are left, so that the result does not depend on the other sets. */
static int select_percent(struct selection *s, const struct expr_term *term,
			  const struct cpuset *scope, const char *where, struct err *err)
{
	unsigned want = (cpuset_count(scope) * term->n + 99) / 100, got = 0;
	unsigned n_nodes = s->t->level[TOPOLOGY_NUMA].n;
	unsigned n_exhausted = 0; /* nodes in a row without a core that is left */

	for (unsigned i = 0; got < want; i = (i + 1) % n_nodes) {
		unsigned before = cpuset_count(&s->selected);
		struct cpuset within = { 0 };

		topology_add_element(s->t, TOPOLOGY_NUMA, i, &within);
		cpuset_intersect(&within, scope);
		cpuset_intersect(&within, &s->left);
		n_exhausted = select_next_core(s, &within, false) ? 0 : n_exhausted + 1;
		if (n_exhausted == n_nodes)
			return too_few(term, where, err);
		got += cpuset_count(&s->selected) - before;
	}
	return 0;
}

static int select_within(struct selection *s, const struct expr_term *term,
			 const struct cpuset *scope, const char *where, struct err *err)
{
	struct cpuset within = *scope;

	if (term->unit == EXPR_PERCENT)
		return select_percent(s, term, scope, where, err);
	cpuset_intersect(&within, &s->left);
	if (term->unit == EXPR_ALL) {
		select_cpus(s, &within);
		return 0;
	}
	return select_count(s, term, within, where, err);
}

static const char *level_word(enum topology_level level)
{
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (levels[i].level == level)
			return levels[i].word.p;
	return "";
}

static int select_in_element(struct selection *s, const struct expr_term *term, unsigned element,
			     struct err *err)
{
	struct cpuset scope = { 0 };
	char where[64];

	topology_add_element(s->t, term->level, element, &scope);
	(void)snprintf(where, sizeof(where), "in %s %u", level_word(term->level),
		       s->t->level[term->level].ids[element]);
	return select_within(s, term, &scope, where, err);
}

static int select_term(struct selection *s, const struct expr_term *term, struct err *err)
{
	unsigned element;
	int r = 0;

	if (term->scope == EXPR_MACHINE)
		return select_within(s, term, &s->t->online, "on this machine", err);
	if (term->scope == EXPR_ONE) {
		if (!topology_find(s->t, term->level, term->element, &element))
			return err_set(err, ERANGE, "%s: this machine has no %s %u",
				       quote(term->text).text, level_word(term->level),
				       term->element);
		return select_in_element(s, term, element, err);
	}
	for (unsigned i = 0; i < s->t->level[term->level].n && r == 0; i++)
		r = select_in_element(s, term, i, err);
	return r;
}

int topology_expr_resolve(const struct topology_expr *e, const struct topology *t,
			  const struct cpuset *from, struct cpuset *ret, struct err *err)
{
	struct selection s = { .t = t, .left = *from };

	for (size_t i = 0; i < e->n; i++) {
		const struct expr_term *term = &e->terms[i];
		int r = 0;

		/* Also CPUs that are missing here or in another set: check.c reports them by
		 * number, which is more helpful than a term that selects fewer CPUs. */
		if (term->unit == EXPR_LIST)
			select_cpus(&s, &term->list);
		else if (term->unit != EXPR_REST)
			r = select_term(&s, term, err);
		if (r < 0)
			return r;
	}
	/* Last, wherever it is written: "rest and first 2 cores" still gets its cores. */
	if (topology_expr_has_rest(e)) {
		struct cpuset rest = s.left;

		cpuset_intersect(&rest, &t->online);
		select_cpus(&s, &rest);
	}
	*ret = s.selected;
	return 0;
}
