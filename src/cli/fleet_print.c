/* The table shows the first rows of what a large fleet has many of; the document has all. */

#include "fleet_print.h"

#include <stdlib.h>

#include "base/arena.h"

#define ROWS 20

struct totals {
	size_t n_nodes, n_read, n_findings, n_notes, n_waiting, n_with_findings;
	size_t faults[FAULT__COUNT], fault_clusters[FAULT__COUNT];
	size_t effects[FLEET_EFFECT__COUNT], effect_clusters[FLEET_EFFECT__COUNT];
};

static struct totals totals_of(const struct fleet *f)
{
	struct totals t = { 0 };

	for (size_t i = 0; i < f->n_clusters; i++) {
		const struct fleet_cluster *c = &f->clusters[i];

		t.n_read += !c->problem.n;
		t.n_nodes += c->n_nodes;
		t.n_findings += c->n_findings;
		t.n_notes += c->n_notes;
		t.n_waiting += c->n_waiting;
		t.n_with_findings += c->n_findings > 0;
		for (size_t j = 0; j < FAULT__COUNT; j++) {
			t.faults[j] += c->faults[j];
			t.fault_clusters[j] += c->faults[j] > 0;
		}
		for (size_t j = 0; j < FLEET_EFFECT__COUNT; j++) {
			t.effects[j] += c->effects[j];
			t.effect_clusters[j] += c->effects[j] > 0;
		}
	}
	return t;
}

/* The most common first, within an attribute. */
static int by_use(const void *x, const void *y)
{
	const struct fleet_value *a = *(const struct fleet_value *const *)x;
	const struct fleet_value *b = *(const struct fleet_value *const *)y;

	if (a->attribute != b->attribute)
		return a->attribute < b->attribute ? -1 : 1;
	if (a->n_clusters != b->n_clusters)
		return a->n_clusters > b->n_clusters ? -1 : 1;
	return str_cmp(a->text, b->text);
}

static const struct fleet_value **sorted_values(const struct fleet *f, struct arena *a)
{
	const struct fleet_value **values =
		arena_array(a, const struct fleet_value *, f->n_values + 1);

	for (size_t i = 0; i < f->n_values; i++)
		values[i] = &f->values[i];
	if (f->n_values)
		qsort(values, f->n_values, sizeof(const struct fleet_value *), by_use);
	return values;
}

static struct str number(size_t n, struct arena *a)
{
	return str_printf(a, "%zu", n);
}

/* Names the rows that are left out. */
static void add_rest(struct strbuf *b, size_t n, size_t shown)
{
	if (n > shown)
		strbuf_printf(b, "... and %zu more (--all)\n", n - shown);
}

static void add_values(struct strbuf *b, const struct fleet *f, bool all)
{
	const struct str heading[] = { STR("WHAT"), STR("VALUE"), STR("CLUSTERS"), STR("NODES") };
	const struct fleet_value **values = sorted_values(f, b->a);
	size_t of_attribute = 0, left_out = 0;
	struct table t;

	table_init(&t, 4, b->a);
	table_add(&t, heading);
	for (size_t i = 0; i < f->n_values; i++) {
		const struct fleet_value *v = values[i];
		const struct str cells[] = { str_from(fleet_attribute_name(v->attribute)), v->text,
					     number(v->n_clusters, b->a),
					     number(v->n_nodes, b->a) };

		of_attribute = i && values[i - 1]->attribute == v->attribute ? of_attribute + 1 : 0;
		if (all || of_attribute < ROWS)
			table_add(&t, cells);
		else
			left_out++;
	}
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
	add_rest(b, left_out, 0);
}

static void add_faults(struct strbuf *b, const struct fleet *f, const struct totals *totals)
{
	const struct str heading[] = { STR("FINDING"), STR("NODES"), STR("CLUSTERS"),
				       STR("EXAMPLE") };
	struct table t;

	if (!totals->n_findings)
		return;
	table_init(&t, 4, b->a);
	table_add(&t, heading);
	for (size_t i = 0; i < FAULT__COUNT; i++) {
		const struct fleet_example *e = &f->examples[i];
		const struct str cells[] = {
			str_from(node_fault_name((enum node_fault)i)),
			number(totals->faults[i], b->a),
			number(totals->fault_clusters[i], b->a),
			str_printf(b->a, PRI_STR "/" PRI_STR ": " PRI_STR, FMT_STR(e->cluster),
				   FMT_STR(e->node), FMT_STR(e->text)),
		};

		if (totals->faults[i])
			table_add(&t, cells);
	}
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
}

static void add_outliers(struct strbuf *b, const struct fleet *f, bool all)
{
	const struct str heading[] = { STR("OUTLIER"), STR("WHAT"), STR("VALUE"), STR("USUAL") };
	struct fleet_outlier *outliers;
	const size_t n = fleet_outliers(f, b->a, &outliers);
	const size_t shown = all || n < ROWS ? n : ROWS;
	struct table t;

	if (!n)
		return;
	table_init(&t, 4, b->a);
	table_add(&t, heading);
	for (size_t i = 0; i < shown; i++) {
		const struct str cells[] = { outliers[i].cluster->name,
					     str_from(fleet_attribute_name(
						     outliers[i].value->attribute)),
					     outliers[i].value->text, outliers[i].usual->text };

		table_add(&t, cells);
	}
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
	add_rest(b, n, shown);
}

static void add_plan(struct strbuf *b, const struct fleet *f, const struct totals *totals)
{
	const struct str heading[] = { STR("PLANNED"), STR("NODES"), STR("CLUSTERS") };
	struct table t;

	if (!f->plan)
		return;
	table_init(&t, 3, b->a);
	table_add(&t, heading);
	for (size_t i = 0; i < FLEET_EFFECT__COUNT; i++) {
		const struct str cells[] = { str_from(fleet_effect_name((enum fleet_effect)i)),
					     number(totals->effects[i], b->a),
					     number(totals->effect_clusters[i], b->a) };

		table_add(&t, cells);
	}
	strbuf_addc(b, '\n');
	strbuf_add(b, table_format(&t));
	if (f->invalid.n)
		strbuf_printf(b, "invalid: " PRI_STR "\n", FMT_STR(f->invalid));
}

static void add_unreadable(struct strbuf *b, const struct fleet *f)
{
	for (size_t i = 0; i < f->n_clusters; i++)
		if (f->clusters[i].problem.n)
			strbuf_printf(b, "not read: " PRI_STR ": " PRI_STR "\n",
				      FMT_STR(f->clusters[i].name),
				      FMT_STR(f->clusters[i].problem));
}

struct str fleet_print_table(const struct fleet *f, bool all, struct arena *a)
{
	const struct totals t = totals_of(f);
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(
		&b,
		"%zu clusters, %zu not read, %zu nodes; %zu findings in %zu clusters, %zu notes; "
		"%zu nodes wait for a reboot\n",
		f->n_clusters, f->n_clusters - t.n_read, t.n_nodes, t.n_findings, t.n_with_findings,
		t.n_notes, t.n_waiting);
	add_unreadable(&b, f);
	if (f->n_values)
		add_values(&b, f, all);
	add_faults(&b, f, &t);
	add_outliers(&b, f, all);
	add_plan(&b, f, &t);
	return strbuf_str(&b);
}

/* --- document --- */

static void put_cluster(yyjson_mut_doc *m, yyjson_mut_val *list, const struct fleet *f,
			const struct fleet_cluster *c)
{
	yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list), *part;

	doc_put_str(m, v, STR("name"), c->name);
	if (c->problem.n) {
		doc_put_str(m, v, STR("notRead"), c->problem);
		return;
	}
	doc_put_int(m, v, STR("nodes"), c->n_nodes);
	doc_put_int(m, v, STR("notes"), c->n_notes);
	doc_put_int(m, v, STR("nodesWaitingForReboot"), c->n_waiting);
	part = doc_put_obj(m, v, STR("findings"));
	for (size_t i = 0; i < FAULT__COUNT; i++)
		if (c->faults[i])
			doc_put_int(m, part, str_from(node_fault_name((enum node_fault)i)),
				    c->faults[i]);
	if (!f->plan)
		return;
	part = doc_put_obj(m, v, STR("planned"));
	for (size_t i = 0; i < FLEET_EFFECT__COUNT; i++)
		if (c->effects[i])
			doc_put_int(m, part, str_from(fleet_effect_name((enum fleet_effect)i)),
				    c->effects[i]);
}

static void put_values(yyjson_mut_doc *m, yyjson_mut_val *root, const struct fleet *f,
		       struct arena *a)
{
	const struct fleet_value **values = sorted_values(f, a);
	yyjson_mut_val *list = doc_put_arr(m, root, STR("values"));

	for (size_t i = 0; i < f->n_values; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("what"),
			    str_from(fleet_attribute_name(values[i]->attribute)));
		doc_put_str(m, v, STR("value"), values[i]->text);
		doc_put_int(m, v, STR("clusters"), (int64_t)values[i]->n_clusters);
		doc_put_int(m, v, STR("nodes"), (int64_t)values[i]->n_nodes);
	}
}

static void put_outliers(yyjson_mut_doc *m, yyjson_mut_val *root, const struct fleet *f,
			 struct arena *a)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("outliers"));
	struct fleet_outlier *outliers;
	const size_t n = fleet_outliers(f, a, &outliers);

	for (size_t i = 0; i < n; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("cluster"), outliers[i].cluster->name);
		doc_put_str(m, v, STR("what"),
			    str_from(fleet_attribute_name(outliers[i].value->attribute)));
		doc_put_str(m, v, STR("value"), outliers[i].value->text);
		doc_put_str(m, v, STR("usual"), outliers[i].usual->text);
	}
}

yyjson_mut_val *fleet_print_doc(const struct fleet *f, yyjson_mut_doc *m, struct arena *a)
{
	const struct totals t = totals_of(f);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;

	doc_put_int(m, root, STR("clusters"), (int64_t)f->n_clusters);
	doc_put_int(m, root, STR("notRead"), (int64_t)(f->n_clusters - t.n_read));
	doc_put_int(m, root, STR("nodes"), (int64_t)t.n_nodes);
	doc_put_int(m, root, STR("findings"), (int64_t)t.n_findings);
	doc_put_int(m, root, STR("notes"), (int64_t)t.n_notes);
	doc_put_int(m, root, STR("nodesWaitingForReboot"), (int64_t)t.n_waiting);
	if (f->plan) {
		yyjson_mut_val *v = doc_put_obj(m, root, STR("planned"));

		for (size_t i = 0; i < FLEET_EFFECT__COUNT; i++)
			doc_put_int(m, v, str_from(fleet_effect_name((enum fleet_effect)i)),
				    (int64_t)t.effects[i]);
		if (f->invalid.n)
			doc_put_str(m, root, STR("whyInvalid"), f->invalid);
	}
	put_values(m, root, f, a);
	put_outliers(m, root, f, a);
	list = doc_put_arr(m, root, STR("items"));
	for (size_t i = 0; i < f->n_clusters; i++)
		put_cluster(m, list, f, &f->clusters[i]);
	return root;
}
