/* Lengths are in pixels of the view box. A box is drawn into a text of its own first, because its
 * height is known only then. */

#include "machine_picture.h"

#include <assert.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "markup.h"
#include "picture_style.h"

#define BOX_WIDTH 588 /* two of them side by side, or one that fits a small window */
#define BOX_GAP 12
#define BOX_PAD 12
#define CELL_WIDTH 28 /* eight cores of two fill a line */
#define CELL_HEIGHT 34
#define CELL_GAP 2
#define CORE_PAD 3
#define CORE_GAP 6
#define LINE 18
#define MARGIN 16
#define PAGE_WIDTH (2 * BOX_WIDTH + BOX_GAP + 2 * MARGIN)
#define LEGEND_CHARACTERS 78 /* of a line of half the width */

static const struct {
	const char *class;
	char letter;
} looks[] = {
	[PICTURE_MANAGEMENT] = { "m", 'm' }, [PICTURE_SHARED] = { "s", 's' },
	[PICTURE_IN_USE] = { "u", 'G' },     [PICTURE_FREE] = { "f", 'g' },
	[PICTURE_NO_POOL] = { "n", '\0' },
};
_Static_assert(ARRAY_LEN(looks) == PICTURE_LOOK__COUNT, "every look has a class");

struct str picture_key(size_t i, struct arena *a)
{
	char text[16];
	size_t n = sizeof(text);

	/* As columns of a spreadsheet: there is no digit zero. */
	for (i++; i; i = (i - 1) / 26)
		text[--n] = (char)('A' + (i - 1) % 26);
	return str_dup(a, (struct str){ text + n, sizeof(text) - n });
}

struct str picture_summary(const struct topology *t, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, str_count(a, t->level[TOPOLOGY_SOCKET].n, "socket", "sockets"));
	strbuf_printf(&b, ", " PRI_STR,
		      FMT_STR(str_count(a, t->n_nodes, "NUMA node", "NUMA nodes")));
	strbuf_printf(&b, ", " PRI_STR,
		      FMT_STR(str_count(a, t->level[TOPOLOGY_UNCORE].n, "L3 cache", "L3 caches")));
	strbuf_printf(&b, ", " PRI_STR,
		      FMT_STR(str_count(a, t->level[TOPOLOGY_CORE].n, "core", "cores")));
	strbuf_printf(&b, ", " PRI_STR, FMT_STR(str_count(a, t->n_cpus, "CPU", "CPUs")));
	return strbuf_str(&b);
}

static const struct picture_pool *pool_of(const struct machine_picture *m, unsigned cpu)
{
	for (size_t i = 0; i < m->n_pools; i++)
		if (cpuset_has(&m->pools[i].cpus, cpu))
			return &m->pools[i];
	return NULL;
}

/* m->n_owners: none. */
static size_t owner_of(const struct machine_picture *m, unsigned cpu)
{
	size_t i = 0;

	while (i < m->n_owners && !cpuset_has(&m->owners[i].cpus, cpu))
		i++;
	return i;
}

/* The text that a pointer over the CPU shows. */
static void add_cpu_title(struct strbuf *b, const struct machine_picture *m, unsigned cpu)
{
	const struct picture_pool *pool = pool_of(m, cpu);
	const size_t owner = owner_of(m, cpu);

	strbuf_printf(b, "<title>CPU %u: %s", cpu, pool ? pool->name : "in no pool");
	if (owner < m->n_owners) {
		strbuf_add(b, STR(", "));
		markup_text(b, m->owners[owner].pod);
		strbuf_addc(b, ' ');
		markup_text(b, m->owners[owner].container);
	}
	if (cpuset_has(&m->changed, cpu))
		strbuf_add(b, STR(", changes its pool"));
	strbuf_add(b, STR("</title>"));
}

static void add_cpu(struct strbuf *b, const struct machine_picture *m, unsigned cpu, unsigned x,
		    unsigned y)
{
	const struct picture_pool *pool = pool_of(m, cpu);
	const enum picture_look look = pool ? pool->look : PICTURE_NO_POOL;
	const size_t owner = owner_of(m, cpu);
	const bool has_key = owner < m->n_owners || looks[look].letter;

	strbuf_printf(b, "<g class=\"cpu %s\">", looks[look].class);
	add_cpu_title(b, m, cpu);
	strbuf_printf(b, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"3\"/>", x, y,
		      CELL_WIDTH, CELL_HEIGHT);
	if (cpuset_has(&m->changed, cpu))
		strbuf_printf(b,
			      "<rect class=\"xo\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" "
			      "rx=\"3\"/><path class=\"x\" d=\"M%u %uh-9l9 9z\"/>",
			      x, y, CELL_WIDTH, CELL_HEIGHT, x + CELL_WIDTH, y);
	strbuf_printf(b, "<text x=\"%u\" y=\"%u\">%u</text>", x + CELL_WIDTH / 2,
		      y + (has_key ? 15 : 21), cpu);
	if (has_key) {
		strbuf_printf(b, "<text class=\"k\" x=\"%u\" y=\"%u\">", x + CELL_WIDTH / 2,
			      y + 28);
		if (owner < m->n_owners)
			strbuf_add(b, picture_key(owner, b->a));
		else
			strbuf_addc(b, looks[look].letter);
		strbuf_add(b, STR("</text>"));
	}
	strbuf_add(b, STR("</g>\n"));
}

/* The next free place in a box. */
struct flow {
	unsigned x, y;	   /* of the box */
	unsigned at, line; /* the next core */
};

static unsigned count_in(const struct topology *t, unsigned core, const struct cpuset *box)
{
	return topology_count_in(t, TOPOLOGY_CORE, core, box);
}

static void add_core(struct strbuf *b, const struct machine_picture *m, unsigned core,
		     const struct cpuset *box, struct flow *f)
{
	const struct topology_elements *e = &m->topology->level[TOPOLOGY_CORE];
	const unsigned n = count_in(m->topology, core, box);
	const unsigned width = n * CELL_WIDTH + (n - 1) * CELL_GAP + 2 * CORE_PAD;
	const struct topology_cpu *first = topology_cpu_find(m->topology, e->cpus[e->first[core]]);
	unsigned x;

	if (f->at != f->x + BOX_PAD && f->at + width > f->x + BOX_WIDTH - BOX_PAD) {
		f->at = f->x + BOX_PAD;
		f->line += CELL_HEIGHT + 2 * CORE_PAD + CORE_GAP;
	}
	strbuf_printf(b,
		      "<rect class=\"core%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%d\" "
		      "rx=\"5\"/>\n",
		      first->core_type == CORE_TYPE_EFFICIENCY ? " e" : "", f->at, f->line, width,
		      CELL_HEIGHT + 2 * CORE_PAD);
	x = f->at + CORE_PAD;
	for (unsigned i = e->first[core]; i < e->first[core + 1]; i++) {
		if (!cpuset_has(box, e->cpus[i]))
			continue;
		add_cpu(b, m, e->cpus[i], x, f->line + CORE_PAD);
		x += CELL_WIDTH + CELL_GAP;
	}
	f->at += width + CORE_GAP;
}

static void add_cache(struct strbuf *b, const struct machine_picture *m, unsigned cache,
		      const struct cpuset *box, struct flow *f)
{
	const struct topology *t = m->topology;

	strbuf_printf(b, "<text class=\"mute\" x=\"%u\" y=\"%u\">L3 %u, CPUs ", f->x + BOX_PAD,
		      f->line + 12, t->level[TOPOLOGY_UNCORE].ids[cache]);
	markup_cut(b, cpuset_format(box, b->a), 60);
	strbuf_add(b, STR("</text>\n"));
	f->line += LINE;
	f->at = f->x + BOX_PAD;
	for (unsigned core = 0; core < t->level[TOPOLOGY_CORE].n; core++)
		if (count_in(t, core, box))
			add_core(b, m, core, box, f);
	f->line += CELL_HEIGHT + 2 * CORE_PAD + CORE_GAP;
}

static struct str node_title(const struct topology *t, uint32_t id, const struct cpuset *cpus,
			     struct arena *a)
{
	const struct topology_elements *sockets = &t->level[TOPOLOGY_SOCKET];
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "NUMA node %u", id);
	for (unsigned i = 0; i < sockets->n; i++)
		if (topology_count_in(t, TOPOLOGY_SOCKET, i, cpus))
			strbuf_printf(&b, ", socket %u", sockets->ids[i]);
	if (cpuset_is_empty(cpus))
		strbuf_add(&b, STR(", memory only"));
	else
		strbuf_printf(&b, ", " PRI_STR,
			      FMT_STR(str_count(a, cpuset_count(cpus), "CPU", "CPUs")));
	return strbuf_str(&b);
}

static void node_cpus(const struct topology *t, uint32_t id, struct cpuset *ret)
{
	unsigned node;

	*ret = (struct cpuset){ 0 };
	if (topology_find(t, TOPOLOGY_NUMA, id, &node))
		topology_add_element(t, TOPOLOGY_NUMA, node, ret);
}

/* Returns the height. */
static unsigned add_node(struct strbuf *b, const struct machine_picture *m, uint32_t id, unsigned x,
			 unsigned y)
{
	const struct topology *t = m->topology;
	struct flow f = { x, y, x + BOX_PAD, y + BOX_PAD + LINE };
	struct strbuf inside;
	struct cpuset cpus;
	unsigned height;

	node_cpus(t, id, &cpus);
	strbuf_init(&inside, b->a);
	for (unsigned i = 0; i < t->level[TOPOLOGY_UNCORE].n; i++) {
		struct cpuset in_cache = { 0 };

		topology_add_element(t, TOPOLOGY_UNCORE, i, &in_cache);
		cpuset_intersect(&in_cache, &cpus);
		if (!cpuset_is_empty(&in_cache))
			add_cache(&inside, m, i, &in_cache, &f);
	}
	height = f.line + BOX_PAD - CORE_GAP - y;
	strbuf_printf(b,
		      "<rect class=\"box\" x=\"%u.5\" y=\"%u.5\" width=\"%d\" height=\"%u\" "
		      "rx=\"8\"/>\n<text class=\"b\" x=\"%u\" y=\"%u\">",
		      x, y, BOX_WIDTH - 1, height, x + BOX_PAD, y + BOX_PAD + 10);
	markup_text(b, node_title(t, id, &cpus, b->a));
	strbuf_add(b, STR("</text>\n"));
	strbuf_add(b, strbuf_str(&inside));
	return height + 1;
}

/* What the picture shows, in words: for screen readers. */
static void add_description(struct strbuf *b, const struct machine_picture *m)
{
	markup_text(b, picture_summary(m->topology, b->a));
	for (size_t i = 0; i < m->n_pools; i++)
		if (!cpuset_is_empty(&m->pools[i].cpus))
			strbuf_printf(b, "; %s: " PRI_STR, m->pools[i].name,
				      FMT_STR(cpuset_format(&m->pools[i].cpus, b->a)));
	for (size_t i = 0; i < m->n_owners; i++) {
		strbuf_add(b, STR("; "));
		markup_text(b, m->owners[i].pod);
		strbuf_addc(b, ' ');
		markup_text(b, m->owners[i].container);
		strbuf_printf(b, ": " PRI_STR, FMT_STR(cpuset_format(&m->owners[i].cpus, b->a)));
	}
}

/* --- a document of its own --- */

static void add_swatch(struct strbuf *b, const char *class, struct str letter, unsigned x,
		       unsigned y)
{
	strbuf_printf(b,
		      "<g class=\"cpu %s\"><rect x=\"%u\" y=\"%u\" width=\"24\" height=\"18\" "
		      "rx=\"3\"/><text class=\"k\" x=\"%u\" y=\"%u\">" PRI_STR "</text></g>",
		      class, x, y, x + 12, y + 13, FMT_STR(letter));
}

static void add_swatch_row(struct strbuf *b, const char *class, struct str letter, struct str text,
			   struct flow *f)
{
	add_swatch(b, class, letter, f->x, f->line);
	strbuf_printf(b, "<text x=\"%u\" y=\"%u\">", f->x + 32, f->line + 14);
	markup_cut(b, text, LEGEND_CHARACTERS);
	strbuf_add(b, STR("</text>\n"));
	f->line += 24;
}

static struct str letter_text(enum picture_look look, struct arena *a)
{
	return looks[look].letter ? str_printf(a, "%c", looks[look].letter) : STR("");
}

static struct str owner_text(const struct picture_owner *o, struct arena *a)
{
	return str_printf(a, PRI_STR " " PRI_STR ": " PRI_STR, FMT_STR(o->pod),
			  FMT_STR(o->container), FMT_STR(cpuset_format(&o->cpus, a)));
}

/* Pools on the left, owners on the right. Returns the bottom. */
static unsigned add_legend(struct strbuf *b, const struct machine_picture *m, unsigned y)
{
	struct flow left = { .x = MARGIN, .line = y };
	struct flow right = { .x = MARGIN + BOX_WIDTH + BOX_GAP, .line = y };

	for (size_t i = 0; i < m->n_pools; i++) {
		const struct picture_pool *p = &m->pools[i];

		if (!cpuset_is_empty(&p->cpus))
			add_swatch_row(b, looks[p->look].class, letter_text(p->look, b->a),
				       str_printf(b->a, "%s: " PRI_STR, p->name,
						  FMT_STR(cpuset_format(&p->cpus, b->a))),
				       &left);
	}
	for (size_t i = 0; i < m->n_owners; i++)
		add_swatch_row(b, "u", picture_key(i, b->a), owner_text(&m->owners[i], b->a),
			       &right);
	if (!cpuset_is_empty(&m->changed)) {
		strbuf_printf(b,
			      "<path class=\"x\" d=\"M%u %uh-12l12 12z\"/><text x=\"%u\" "
			      "y=\"%u\">changes its pool</text>\n",
			      left.x + 18, left.line + 3, left.x + 32, left.line + 14);
		left.line += 24;
	}
	return left.line > right.line ? left.line : right.line;
}

/* Two NUMA nodes to a row. Returns the bottom. */
static unsigned add_machine(struct strbuf *b, const struct machine_picture *m, unsigned y)
{
	const struct topology *t = m->topology;
	unsigned row = 0;

	if (m->heading.n) {
		strbuf_printf(b, "<text class=\"h\" x=\"%d\" y=\"%u\">", MARGIN, y + 12);
		markup_cut(b, m->heading, 130);
		strbuf_add(b, STR("</text>\n"));
		y += 24;
	}
	strbuf_printf(b, "<text class=\"mute\" x=\"%d\" y=\"%u\">" PRI_STR "</text>\n", MARGIN,
		      y + 10, FMT_STR(picture_summary(t, b->a)));
	y += 20;
	for (unsigned i = 0; i < t->n_nodes; i++) {
		const unsigned height =
			add_node(b, m, t->nodes[i], MARGIN + i % 2 * (BOX_WIDTH + BOX_GAP), y);

		row = height > row ? height : row;
		if (i % 2 || i + 1 == t->n_nodes) {
			y += row + BOX_GAP;
			row = 0;
		}
	}
	return add_legend(b, m, y) + MARGIN;
}

struct str picture_svg(struct str title, const struct machine_picture *machines, size_t n,
		       struct arena *a)
{
	struct strbuf b, body;
	unsigned y = MARGIN;

	strbuf_init(&body, a);
	for (size_t i = 0; i < n; i++)
		y = add_machine(&body, &machines[i], y);
	strbuf_init(&b, a);
	strbuf_printf(&b,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
		      "width=\"%d\" height=\"%u\" role=\"img\" aria-labelledby=\"title desc\">\n"
		      "<title id=\"title\">",
		      PAGE_WIDTH, y, PAGE_WIDTH, y);
	markup_text(&b, title);
	strbuf_add(&b, STR("</title>\n<desc id=\"desc\">"));
	for (size_t i = 0; i < n; i++) {
		strbuf_add(&b, i ? STR(". ") : STR(""));
		add_description(&b, &machines[i]);
	}
	strbuf_printf(&b, "</desc>\n<style>\n%s%s</style>\n%s", picture_colours, picture_rules,
		      picture_patterns);
	strbuf_printf(&b, "<rect class=\"bg\" width=\"%d\" height=\"%u\"/>\n", PAGE_WIDTH, y);
	strbuf_add(&b, strbuf_str(&body));
	strbuf_add(&b, STR("</svg>\n"));
	return strbuf_str(&b);
}

/* --- a part of a page --- */

static void add_panel(struct strbuf *b, const struct machine_picture *m, uint32_t id)
{
	struct strbuf body;
	struct cpuset cpus;
	unsigned height;

	strbuf_init(&body, b->a);
	height = add_node(&body, m, id, 0, 0);
	node_cpus(m->topology, id, &cpus);
	strbuf_printf(b, "<svg viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"", BOX_WIDTH,
		      height + 1);
	markup_text(b, node_title(m->topology, id, &cpus, b->a));
	strbuf_add(b, STR("\">\n"));
	strbuf_add(b, strbuf_str(&body));
	strbuf_add(b, STR("</svg>\n"));
}

void picture_figure(struct strbuf *b, const struct machine_picture *m, unsigned number)
{
	strbuf_printf(b, "<figure aria-labelledby=\"figure-%u\">\n<figcaption id=\"figure-%u\">",
		      number, number);
	markup_text(b, m->heading);
	strbuf_printf(b,
		      "%s" PRI_STR "</figcaption>\n<div class=\"panels\" tabindex=\"0\" "
		      "role=\"group\" aria-labelledby=\"figure-%u\">\n",
		      m->heading.n ? ": " : "", FMT_STR(picture_summary(m->topology, b->a)),
		      number);
	for (unsigned i = 0; i < m->topology->n_nodes; i++)
		add_panel(b, m, m->topology->nodes[i]);
	strbuf_add(b, STR("</div>\n"));
	picture_legend(b, m);
	strbuf_add(b, STR("</figure>\n"));
}

static void add_item(struct strbuf *b, const char *class, struct str letter, struct str text)
{
	strbuf_add(b, STR("<li><svg viewBox=\"0 0 24 22\" aria-hidden=\"true\">"));
	add_swatch(b, class, letter, 0, 2);
	strbuf_add(b, STR("</svg><span>"));
	markup_text(b, text);
	strbuf_add(b, STR("</span></li>\n"));
}

void picture_legend(struct strbuf *b, const struct machine_picture *m)
{
	strbuf_add(b, STR("<ul class=\"legend\">\n"));
	for (size_t i = 0; i < m->n_pools; i++) {
		const struct picture_pool *p = &m->pools[i];

		if (!cpuset_is_empty(&p->cpus))
			add_item(b, looks[p->look].class, letter_text(p->look, b->a),
				 str_printf(b->a, "%s: " PRI_STR, p->name,
					    FMT_STR(cpuset_format(&p->cpus, b->a))));
	}
	for (size_t i = 0; i < m->n_owners; i++)
		add_item(b, "u", picture_key(i, b->a), owner_text(&m->owners[i], b->a));
	if (!cpuset_is_empty(&m->changed))
		strbuf_printf(
			b,
			"<li><svg viewBox=\"0 0 24 22\" aria-hidden=\"true\"><path "
			"class=\"x\" d=\"M18 4h-12l12 12z\"/></svg><span>changes its pool: " PRI_STR
			"</span></li>\n",
			FMT_STR(cpuset_format(&m->changed, b->a)));
	strbuf_add(b, STR("</ul>\n"));
}
