/* Boxes of ASCII characters. Widths are counted in columns, not bytes: colours take none. */

#include "topology_draw.h"

#include <string.h>

#include "base/arena.h"
#include "cpu/topology.h"
#include "output.h"

#define MAX_MATRIX 16 /* nodes whose distances fit on a line */

struct canvas {
	const struct topology *t;
	const struct topology_drawing *how;
	struct arena *a;
	struct strbuf out;
};

static const char *plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

/* Items between commas after a label of `column` columns, continued on the next line where they do
 * not fit. */
static void draw_list(struct canvas *c, size_t column, struct str items)
{
	struct str_split split = str_split(items);
	struct str item;

	while (str_next(&split, ',', &item)) {
		const size_t n = item.n + !split.ended;

		if (column + n > c->how->width && column > 2) {
			strbuf_add(&c->out, STR("\n  "));
			column = 2;
		}
		strbuf_printf(&c->out, PRI_STR "%s", FMT_STR(item), split.ended ? "\n" : ",");
		column += n;
	}
}

static void draw_summary(struct canvas *c)
{
	const struct topology *t = c->t;
	const unsigned sockets = t->level[TOPOLOGY_SOCKET].n, dies = t->level[TOPOLOGY_DIE].n;
	const unsigned caches = t->level[TOPOLOGY_UNCORE].n, cores = t->level[TOPOLOGY_CORE].n;
	struct strbuf b;

	strbuf_init(&b, c->a);
	strbuf_printf(&b, "%u socket%s, ", sockets, plural(sockets));
	/* Usually each socket is one die, and the number adds nothing. */
	if (dies != sockets)
		strbuf_printf(&b, "%u dies, ", dies);
	strbuf_printf(&b, "%u NUMA node%s, %u L3 cache%s, %u core%s, %u CPU%s", t->n_nodes,
		      plural(t->n_nodes), caches, plural(caches), cores, plural(cores), t->n_cpus,
		      plural(t->n_cpus));
	draw_list(c, 0, strbuf_str(&b));
}

static const struct topology_pool *pool_of(const struct canvas *c, unsigned cpu)
{
	for (size_t i = 0; i < c->how->n_pools; i++)
		if (cpuset_has(&c->how->pools[i].cpus, cpu))
			return &c->how->pools[i];
	return NULL;
}

static void draw_thread(struct canvas *c, struct strbuf *cell, unsigned cpu)
{
	const struct topology_pool *pool = pool_of(c, cpu);

	if (pool && c->how->colour)
		strbuf_printf(cell, "\033[%sm%u\033[0m", pool->colour, cpu);
	else
		strbuf_printf(cell, "%u", cpu);
	if (pool && !c->how->colour)
		strbuf_addc(cell, pool->letter);
}

/* "GG", a letter per thread: the CPUs of a core that lie in this box. */
static struct str draw_letters(struct canvas *c, unsigned core, const struct cpuset *box)
{
	const struct topology_elements *e = &c->t->level[TOPOLOGY_CORE];
	struct strbuf cell;

	strbuf_init(&cell, c->a);
	for (unsigned i = e->first[core]; i < e->first[core + 1]; i++) {
		const struct topology_pool *pool = pool_of(c, e->cpus[i]);

		if (!cpuset_has(box, e->cpus[i]))
			continue;
		if (pool && c->how->colour)
			strbuf_printf(&cell, "\033[%sm%c\033[0m", pool->colour, pool->letter);
		else
			strbuf_addc(&cell, pool ? pool->letter : '.');
	}
	return strbuf_str(&cell);
}

/* "[0 40]", or "(16)" for an efficiency core: the CPUs of a core that lie in this box. */
static struct str draw_core(struct canvas *c, unsigned core, const struct cpuset *box)
{
	const struct topology_elements *e = &c->t->level[TOPOLOGY_CORE];
	const struct topology_cpu *first_cpu = topology_cpu_find(c->t, e->cpus[e->first[core]]);
	const bool efficient = first_cpu->core_type == CORE_TYPE_EFFICIENCY;
	struct strbuf cell;
	bool first = true;

	strbuf_init(&cell, c->a);
	strbuf_addc(&cell, efficient ? '(' : '[');
	for (unsigned i = e->first[core]; i < e->first[core + 1]; i++) {
		if (!cpuset_has(box, e->cpus[i]))
			continue;
		if (!first)
			strbuf_addc(&cell, ' ');
		draw_thread(c, &cell, e->cpus[i]);
		first = false;
	}
	strbuf_addc(&cell, efficient ? ')' : ']');
	return strbuf_str(&cell);
}

static void draw_line(struct canvas *c, struct str text)
{
	const size_t width = text_width(text);

	strbuf_printf(&c->out, "| " PRI_STR "%*s |\n", FMT_STR(text),
		      width < c->how->width - 4 ? (int)(c->how->width - 4 - width) : 0, "");
}

/* Cores of one cache in this node, as many to a line as fit. */
static void draw_cache(struct canvas *c, unsigned cache, const struct cpuset *cpus)
{
	const uint32_t id = c->t->level[TOPOLOGY_UNCORE].ids[cache];
	struct str label = str_printf(c->a, "L3 %-4u", id);
	struct strbuf line;

	if (c->how->letters)
		label = str_printf(c->a, "L3 %-4u %-20.*s", id, FMT_STR(cpuset_format(cpus, c->a)));

	strbuf_init(&line, c->a);
	strbuf_add(&line, label);
	for (unsigned core = 0; core < c->t->level[TOPOLOGY_CORE].n; core++) {
		struct str cell = c->how->letters ? draw_letters(c, core, cpus) :
						    draw_core(c, core, cpus);

		if (cell.n == (c->how->letters ? 0 : 2)) /* no CPU, so at most two brackets */
			continue;
		if (text_width(strbuf_str(&line)) + 1 + text_width(cell) > c->how->width - 4) {
			draw_line(c, strbuf_str(&line));
			strbuf_init(&line, c->a);
			strbuf_printf(&line, "%*s", (int)label.n, "");
		}
		strbuf_addc(&line, ' ');
		strbuf_add(&line, cell);
	}
	draw_line(c, strbuf_str(&line));
}

static void draw_border(struct canvas *c, struct str title)
{
	strbuf_add(&c->out, STR("+-"));
	if (title.n)
		strbuf_printf(&c->out, " " PRI_STR " ", FMT_STR(title));
	for (size_t i = 2 + (title.n ? title.n + 2 : 0); i < c->how->width - 1; i++)
		strbuf_addc(&c->out, '-');
	strbuf_add(&c->out, STR("+\n"));
}

static struct str node_title(struct canvas *c, uint32_t id, const struct cpuset *cpus)
{
	const struct topology_elements *sockets = &c->t->level[TOPOLOGY_SOCKET];
	const unsigned n = cpuset_count(cpus);
	struct strbuf b;

	strbuf_init(&b, c->a);
	strbuf_printf(&b, "NUMA %u", id);
	for (unsigned i = 0; i < sockets->n; i++) {
		struct cpuset both = { 0 };

		topology_add_element(c->t, TOPOLOGY_SOCKET, i, &both);
		if (cpuset_intersects(&both, cpus))
			strbuf_printf(&b, ", socket %u", sockets->ids[i]);
	}
	if (n)
		strbuf_printf(&b, ", %u CPU%s", n, plural(n));
	else
		strbuf_add(&b, STR(", memory only"));
	return strbuf_str(&b);
}

/* Nodes with memory only are in no element of the level, but have a distance. */
static void draw_node(struct canvas *c, uint32_t id)
{
	struct cpuset cpus = { 0 };
	unsigned node;

	if (topology_find(c->t, TOPOLOGY_NUMA, id, &node))
		topology_add_element(c->t, TOPOLOGY_NUMA, node, &cpus);
	draw_border(c, node_title(c, id, &cpus));
	for (unsigned i = 0; i < c->t->level[TOPOLOGY_UNCORE].n; i++) {
		struct cpuset in_cache = { 0 };

		topology_add_element(c->t, TOPOLOGY_UNCORE, i, &in_cache);
		cpuset_intersect(&in_cache, &cpus);
		if (!cpuset_is_empty(&in_cache))
			draw_cache(c, i, &in_cache);
	}
	draw_border(c, (struct str){ 0 });
}

static void draw_set(struct canvas *c, const char *name, const struct cpuset *set)
{
	if (cpuset_is_empty(set))
		return;
	strbuf_printf(&c->out, "%s: ", name);
	draw_list(c, strlen(name) + 2, cpuset_format(set, c->a));
}

static void draw_pools(struct canvas *c)
{
	for (size_t i = 0; i < c->how->n_pools; i++) {
		const struct topology_pool *p = &c->how->pools[i];
		struct str label;

		if (cpuset_is_empty(&p->cpus))
			continue;
		if (c->how->colour)
			label = str_printf(c->a, "\033[%sm%s\033[0m: ", p->colour, p->name);
		else
			label = str_printf(c->a, "%s (%c): ", p->name, p->letter);
		strbuf_add(&c->out, label);
		draw_list(c, text_width(label), cpuset_format(&p->cpus, c->a));
	}
}

static void draw_distances(struct canvas *c)
{
	const struct topology *t = c->t;

	if (!t->distances || t->n_nodes < 2 || t->n_nodes > MAX_MATRIX)
		return;
	strbuf_add(&c->out, STR("distances"));
	for (unsigned i = 0; i < t->n_nodes; i++)
		strbuf_printf(&c->out, " %3u", t->nodes[i]);
	for (unsigned i = 0; i < t->n_nodes; i++) {
		strbuf_printf(&c->out, "\n%9u", t->nodes[i]);
		for (unsigned j = 0; j < t->n_nodes; j++)
			strbuf_printf(&c->out, " %3u", t->distances[(size_t)i * t->n_nodes + j]);
	}
	strbuf_addc(&c->out, '\n');
}

static bool has_efficiency_cores(const struct topology *t)
{
	for (unsigned i = 0; i < t->n_cpus; i++)
		if (t->cpus[i].core_type == CORE_TYPE_EFFICIENCY)
			return true;
	return false;
}

struct str topology_draw(const struct topology *t, const struct topology_drawing *how,
			 struct arena *a)
{
	struct canvas c = { .t = t, .how = how, .a = a };

	strbuf_init(&c.out, a);
	draw_summary(&c);
	for (unsigned i = 0; i < t->n_nodes; i++)
		draw_node(&c, t->nodes[i]);
	if (has_efficiency_cores(t))
		strbuf_add(&c.out, STR("[ ] performance core, ( ) efficiency core\n"));
	draw_pools(&c);
	draw_set(&c, "offline", &t->offline);
	draw_set(&c, "isolated from the scheduler", &t->isolated);
	draw_distances(&c);
	return strbuf_str(&c.out);
}
