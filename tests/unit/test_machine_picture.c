/* The geometry of pictures: every CPU is drawn once, inside its box, and no two on top of each
 * other. Golden cases and a browser show how it looks. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "cpu/topology_read.h"
#include "picture/html_page.h"
#include "picture/machine_picture.h"
#include "test.h"

static const char *const machines[] = {
	"core:1 pu:1",
	"pack:1 core:4 pu:2",
	"numa:2 pack:1 l3:1 core:8 pu:2",
	"pack:2 numa:2 l3:4 core:8 pu:2",
	"numa:1 l3:1 core:3 pu:4",
	"pack:3 l3:1 core:5 pu:1",
	"pack:2 numa:4 l3:4 core:16 pu:1",
};

struct box {
	unsigned x, y, width, height;
};

/* The attributes of the first element after `at` that begins with `element`. */
static const char *next_box(const char *at, const char *element, struct box *ret)
{
	const char *found = strstr(at, element);

	if (!found)
		return NULL;
	CHECK(sscanf(strstr(found, "x=\""), "x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"", &ret->x,
		     &ret->y, &ret->width, &ret->height) == 4);
	return found + strlen(element);
}

static bool overlap(const struct box *a, const struct box *b)
{
	return a->x < b->x + b->width && b->x < a->x + a->width && a->y < b->y + b->height &&
	       b->y < a->y + a->height;
}

static const char *draw(const char *from, struct arena *a, struct topology *t)
{
	struct machine_picture m = { .topology = t };
	struct err err = { 0 };

	CHECK_OK(topology_parse(str_from(from), STR("t"), a, t, &err));
	return str_cstr(a, picture_svg(STR("title"), &m, 1, a));
}

TEST(every_cpu_is_drawn_once_and_inside_the_picture)
{
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		CLEANUP(arena_done) struct arena a;
		struct box *cells;
		struct topology t;
		const char *svg, *at;
		unsigned width, height;
		size_t n = 0;

		arena_init(&a, 0);
		TEST_ROW("%s", machines[i]);
		svg = draw(machines[i], &a, &t);
		cells = arena_array(&a, struct box, t.n_cpus + 1);
		CHECK(sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %u %u\"", &width, &height) ==
		      2);
		for (at = svg;
		     n <= t.n_cpus && (at = next_box(at, "<g class=\"cpu n\">", &cells[n]));)
			n++;
		CHECK_UINT(n, t.n_cpus);
		for (size_t k = 0; k < n; k++) {
			CHECK(cells[k].x + cells[k].width <= width);
			CHECK(cells[k].y + cells[k].height <= height);
			for (size_t j = 0; j < k; j++)
				CHECK(!overlap(&cells[k], &cells[j]));
		}
		for (unsigned cpu = 0; cpu < t.n_cpus; cpu++)
			CHECK(strstr(svg, str_printf(&a, "<title>CPU %u: in no pool</title>",
						     t.cpus[cpu].cpu)
						  .p));
	}
}

TEST(numa_nodes_do_not_overlap_and_contain_their_cores)
{
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		CLEANUP(arena_done) struct arena a;
		struct box boxes[16], core;
		struct topology t;
		const char *svg, *at;
		size_t n = 0;

		arena_init(&a, 0);
		TEST_ROW("%s", machines[i]);
		svg = draw(machines[i], &a, &t);
		/* The positions have a fraction, which is of no interest here. */
		for (at = svg; (at = strstr(at, "<rect class=\"box\"")); at++, n++)
			CHECK(sscanf(at,
				     "<rect class=\"box\" x=\"%u.5\" y=\"%u.5\" width=\"%u\" "
				     "height=\"%u\"",
				     &boxes[n].x, &boxes[n].y, &boxes[n].width,
				     &boxes[n].height) == 4);
		CHECK_UINT(n, t.n_nodes);
		for (size_t k = 0; k < n; k++)
			for (size_t j = 0; j < k; j++)
				CHECK(!overlap(&boxes[k], &boxes[j]));
		for (at = svg; (at = next_box(at, "<rect class=\"core\"", &core));) {
			size_t inside = 0;

			for (size_t k = 0; k < n; k++)
				inside += core.x > boxes[k].x && core.y > boxes[k].y &&
					  core.x + core.width < boxes[k].x + boxes[k].width &&
					  core.y + core.height < boxes[k].y + boxes[k].height;
			CHECK_UINT(inside, 1);
		}
	}
}

TEST(keys_are_those_of_columns)
{
	static const struct {
		size_t i;
		const char *key;
	} rows[] = { { 0, "A" },   { 25, "Z" },	  { 26, "AA" },	 { 51, "AZ" },
		     { 52, "BA" }, { 701, "ZZ" }, { 702, "AAA" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		CHECK_STR(picture_key(rows[i].i, &a), rows[i].key);
	}
}

TEST(pools_differ_by_class_letter_and_owner)
{
	CLEANUP(arena_done) struct arena a;
	struct picture_pool pools[] = { { .name = "management", .look = PICTURE_MANAGEMENT },
					{ .name = "shared", .look = PICTURE_SHARED },
					{ .name = "in use", .look = PICTURE_IN_USE },
					{ .name = "free", .look = PICTURE_FREE } };
	struct picture_owner owner = { .pod = STR("n/<b>"), .container = STR("\"c\"") };
	struct machine_picture m = {
		.pools = pools, .n_pools = 4, .owners = &owner, .n_owners = 1
	};
	struct topology t;
	struct err err = { 0 };
	struct str svg;

	arena_init(&a, 0);
	CHECK_OK(topology_parse(STR("core:4 pu:1"), STR("t"), &a, &t, &err));
	for (unsigned i = 0; i < 4; i++)
		cpuset_add(&pools[i].cpus, i);
	cpuset_add(&owner.cpus, 2);
	m.topology = &t;
	cpuset_add(&m.changed, 1);
	svg = picture_svg(STR("a <title>"), &m, 1, &a);
	CHECK(str_has(svg, STR("<title>CPU 0: management</title>")));
	CHECK(str_has(svg, STR("<title>CPU 1: shared, changes its pool</title>")));
	CHECK(str_has(svg, STR("<title>CPU 2: in use, n/&lt;b&gt; &quot;c&quot;</title>")));
	CHECK(str_has(svg, STR("<title id=\"title\">a &lt;title&gt;</title>")));
	CHECK(!str_has(svg, STR("<b>")));
	CHECK(str_has(svg, STR("class=\"cpu m\"")) && str_has(svg, STR("class=\"cpu s\"")) &&
	      str_has(svg, STR("class=\"cpu u\"")) && str_has(svg, STR("class=\"cpu f\"")));
	CHECK(str_has(svg, STR(">A</text>")) && str_has(svg, STR(">m</text>")));
}

TEST(a_page_has_no_place_for_scripts)
{
	static const char *const headings[] = { "<i>", "b" };
	CLEANUP(arena_done) struct arena a;
	struct page_table t;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	page_begin(&b, STR("</title><script>"));
	t = page_table_begin(&b, STR("\"><script>"), headings, 2);
	page_table_row(&t, PAGE_BAD, (struct str[]){ STR("<script>"), STR("x") });
	page_table_end(&t);
	page_folded(&b, STR("<script>"), STR("</pre><script>"));
	page_verdict(&b, PAGE_OK, STR("<script>"));
	page_end(&b);
	CHECK(!str_has(strbuf_str(&b), STR("<script")));
	CHECK(str_has(strbuf_str(&b), STR("default-src 'none'")));
	CHECK(str_has(strbuf_str(&b), STR("<td class=\"bad w\">&lt;script&gt;</td>")));
}
