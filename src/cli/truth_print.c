#include "truth_print.h"

#include "base/arena.h"
#include "cgroup/truth.h"
#include "command.h"
#include "output.h"

/* Where a host's own services are not kept off, there are hundreds. */
#define STRANGERS_SHOWN 10

static struct str findings_table(const struct truth *t, struct arena *a)
{
	struct table table;

	table_init(&table, 6, a);
	table_add(&table, (struct str[]){ STR("NAMESPACE"), STR("POD"), STR("CONTAINER"),
					  STR("WHAT"), STR("WANT"), STR("GOT") });
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		table_add(&table, (struct str[]){ table_or_dash(f->name.namespace),
						  table_or_dash(f->name.pod),
						  table_or_dash(f->name.container),
						  str_from(f->what), f->want, f->got });
	}
	return table_format(&table);
}

static struct str text_of(const struct truth *t, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	if (t->n_findings > 0)
		strbuf_add(&b, findings_table(t, a));
	for (size_t i = 0; i < t->n_strangers && i < STRANGERS_SHOWN; i++) {
		const struct stranger *s = &t->strangers[i];

		strbuf_printf(&b,
			      "stranger: " PRI_STR " (process %d) may run on " PRI_STR
			      ", which belong to " PRI_STR "\n",
			      FMT_STR(s->name), s->pid, FMT_STR(s->cpus), FMT_STR(s->owner));
	}
	if (t->n_strangers > STRANGERS_SHOWN)
		strbuf_printf(&b, "and %zu more processes, which -o json names\n",
			      t->n_strangers - STRANGERS_SHOWN);
	strbuf_printf(&b,
		      "%zu containers looked at, %zu findings, %zu strangers on exclusive CPUs\n",
		      t->n_containers, t->n_findings, t->n_strangers);
	return strbuf_str(&b);
}

static yyjson_mut_val *doc_of(const struct truth *t, yyjson_mut_doc *m)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list, *item;

	doc_put_int(m, root, STR("containers"), (int64_t)t->n_containers);
	list = doc_put_arr(m, root, STR("findings"));
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_str(m, item, STR("namespace"), f->name.namespace);
		doc_put_str(m, item, STR("pod"), f->name.pod);
		doc_put_str(m, item, STR("container"), f->name.container);
		doc_put_str(m, item, STR("what"), str_from(f->what));
		doc_put_str(m, item, STR("want"), f->want);
		doc_put_str(m, item, STR("got"), f->got);
	}
	list = doc_put_arr(m, root, STR("strangers"));
	for (size_t i = 0; i < t->n_strangers; i++) {
		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_int(m, item, STR("pid"), t->strangers[i].pid);
		doc_put_str(m, item, STR("name"), t->strangers[i].name);
		doc_put_str(m, item, STR("cpus"), t->strangers[i].cpus);
		doc_put_str(m, item, STR("owner"), t->strangers[i].owner);
	}
	return root;
}

int truth_print(const struct truth *t, const struct truth_form *form, struct arena *a,
		struct err *err)
{
	const enum output_format format = output_format_of(form->output);
	int r;

	r = format == OUTPUT_TABLE ? output_text(text_of(t, a), err) :
				     output_doc(doc_of(t, doc_build(a)), format, a, err);
	if (r < 0)
		return r;
	return t->n_findings > 0 || (form->strict && t->n_strangers > 0) ? EXIT_FINDING : EXIT_YES;
}
