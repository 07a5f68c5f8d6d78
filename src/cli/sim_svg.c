/* The picture of a simulation: for each pool of nodes what is requested of what there is, the
 * exclusive CPUs, and how full the nodes are. No script and no external reference. */

#include <inttypes.h>

#include "base/arena.h"
#include "picture/markup.h"
#include "sim_print.h"

#define WIDTH 760
#define LEFT 170
#define BAR 440
#define ROW 22

struct drawing {
	struct strbuf b;
	unsigned y;
};

static void add_text(struct drawing *d, unsigned x, const char *class, struct str text)
{
	strbuf_printf(&d->b, "<text x=\"%u\" y=\"%u\" class=\"%s\">", x, d->y + 14, class);
	markup_text(&d->b, text);
	strbuf_add(&d->b, STR("</text>\n"));
}

static void add_box(struct drawing *d, double x, double width, const char *class)
{
	strbuf_printf(&d->b,
		      "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" class=\"%s\"/>\n", x,
		      d->y + 3, width, (unsigned)ROW - 6, class);
}

static double width_of(int64_t part, int64_t of)
{
	const double share = of ? (double)part / (double)of : 0;

	return BAR * (share > 1 ? 1 : share);
}

static void add_bar(struct drawing *d, struct str label, int64_t used, int64_t of)
{
	struct arena *a = d->b.a;

	if (!of)
		return;
	add_text(d, 10, "label", label);
	add_box(d, LEFT, BAR, "free");
	add_box(d, LEFT, width_of(used, of), used > of ? "over" : "used");
	add_text(d, LEFT + BAR + 10, "label",
		 str_printf(a, "%.0f%% of %" PRId64, (double)used * 100 / (double)of, of));
	d->y += ROW;
}

static void add_exclusive(struct drawing *d, const struct sim_pool *p)
{
	const double assigned = width_of(p->assigned_cpus, p->guaranteed_cpus);

	if (!p->guaranteed_cpus)
		return;
	add_text(d, 10, "label", STR("exclusive CPUs"));
	add_box(d, LEFT, BAR, "free");
	add_box(d, LEFT, assigned, "used");
	add_box(d, LEFT + assigned, width_of(p->broken_cpus, p->guaranteed_cpus), "split");
	add_text(d, LEFT + BAR + 10, "label",
		 str_printf(d->b.a, "%u of %u, %u on split cores", p->assigned_cpus,
			    p->guaranteed_cpus, p->broken_cpus));
	d->y += ROW;
}

static void add_pool(struct drawing *d, const struct sim *s, const struct sim_pool *p)
{
	add_text(d, 10, "pool",
		 str_printf(d->b.a, PRI_STR ": %zu nodes, %zu pods", FMT_STR(p->name), p->n_nodes,
			    p->n_pods));
	d->y += ROW;
	for (size_t i = 0; i < s->resources.n; i++)
		if (i != SIM_PODS && (i < SIM_NAMED || p->used.of[i]))
			add_bar(d, i == SIM_CPU ? STR("cpu (millicores)") : s->resources.names[i],
				p->used.of[i], p->allocatable.of[i]);
	add_exclusive(d, p);
	if (p->management_cpus)
		add_bar(d, STR("management peak (m)"), p->peak_milli,
			1000 * (int64_t)p->management_cpus);
	d->y += ROW / 2;
}

static void add_histogram(struct drawing *d, const struct sim_report *r, size_t n_nodes)
{
	add_text(d, 10, "pool", STR("nodes by the share of their CPU that is requested"));
	d->y += ROW;
	for (size_t i = 0; i < SIM_HISTOGRAM; i++) {
		add_text(d, 10, "label",
			 str_printf(d->b.a, "%zu-%zu%%", i * 100 / SIM_HISTOGRAM,
				    (i + 1) * 100 / SIM_HISTOGRAM));
		add_box(d, LEFT, width_of((int64_t)r->histogram[i], (int64_t)n_nodes), "used");
		add_text(d, LEFT + BAR + 10, "label", str_printf(d->b.a, "%zu", r->histogram[i]));
		d->y += ROW;
	}
	d->y += ROW;
}

static void add_run(struct drawing *d, const struct sim_run *run)
{
	const struct sim_report *r = &run->report;

	if (run->name.n) {
		add_text(d, 10, "title", str_printf(d->b.a, "with " PRI_STR, FMT_STR(run->name)));
		d->y += ROW;
	}
	add_text(d, 10, "title",
		 str_printf(d->b.a, "%zu pods: %zu run, %zu left over, %zu refused, %zu denied",
			    r->n_pods, r->n_running, r->n_pending, r->n_refused, r->n_denied));
	d->y += ROW + ROW / 2;
	for (size_t i = 0; i < r->n_pools; i++)
		add_pool(d, &run->sim, &r->pools[i]);
	add_histogram(d, r, run->sim.n_nodes);
}

struct str sim_print_svg(const struct sim_run *runs, size_t n, struct arena *a)
{
	struct drawing d = { .y = 10 };
	struct strbuf whole;

	strbuf_init(&d.b, a);
	for (size_t i = 0; i < n; i++)
		add_run(&d, &runs[i]);
	strbuf_init(&whole, a);
	strbuf_printf(&whole,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		      "viewBox=\"0 0 %d %u\" role=\"img\">\n<title>pinfold sim</title>\n<style>"
		      "text{font:13px sans-serif;fill:#222}.title{font-weight:bold;font-size:15px}"
		      ".pool{font-weight:bold}.free{fill:#e4e7ea}.used{fill:#3b7dbb}"
		      ".over{fill:#c0392b}.split{fill:#e0a030}</style>\n"
		      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		      WIDTH + 60, d.y, WIDTH + 60, d.y);
	strbuf_add(&whole, strbuf_str(&d.b));
	strbuf_add(&whole, STR("</svg>\n"));
	return strbuf_str(&whole);
}
