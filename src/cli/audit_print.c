/* The table shows only the beginning of a long list; documents have all of it. */

#include "audit_print.h"

#include "base/arena.h"
#include "cgroup/audit.h"
#include "command.h"
#include "output.h"

/* Hosts whose services are not restricted to the management CPUs have hundreds. */
#define FOREIGN_SHOWN 10

static struct str findings_table(const struct audit *t, struct arena *a)
{
	struct table table;

	table_init(&table, 6, a);
	table_add(&table, (struct str[]){ STR("NAMESPACE"), STR("POD"), STR("CONTAINER"),
					  STR("CHECK"), STR("EXPECTED"), STR("ACTUAL") });
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		table_add(&table, (struct str[]){ table_or_dash(f->name.namespace),
						  table_or_dash(f->name.pod),
						  table_or_dash(f->name.container),
						  str_from(f->check), f->expected, f->actual });
	}
	return table_format(&table);
}

static struct str audit_table(const struct audit *t, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	if (t->n_findings > 0)
		strbuf_add(&b, findings_table(t, a));
	for (size_t i = 0; i < t->n_foreign && i < FOREIGN_SHOWN; i++) {
		const struct foreign_process *s = &t->foreign_processes[i];

		strbuf_printf(&b,
			      "foreign process: " PRI_STR " (pid %d) may run on CPUs " PRI_STR
			      " of " PRI_STR "/" PRI_STR "/" PRI_STR "\n",
			      FMT_STR(s->name), s->pid, FMT_STR(s->cpus),
			      FMT_STR(s->owner.namespace), FMT_STR(s->owner.pod),
			      FMT_STR(s->owner.container));
	}
	if (t->n_foreign > FOREIGN_SHOWN)
		strbuf_printf(&b, "%zu more foreign processes, listed by -o json\n",
			      t->n_foreign - FOREIGN_SHOWN);
	strbuf_printf(
		&b,
		"%zu containers checked, %zu findings, %zu foreign processes on exclusive CPUs\n",
		t->n_containers, t->n_findings, t->n_foreign);
	return strbuf_str(&b);
}

static void put_subject(yyjson_mut_doc *m, yyjson_mut_val *o, const struct audit_subject *s)
{
	doc_put_str(m, o, STR("namespace"), s->namespace);
	doc_put_str(m, o, STR("pod"), s->pod);
	doc_put_str(m, o, STR("container"), s->container);
}

static yyjson_mut_val *audit_document(const struct audit *t, yyjson_mut_doc *m)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list, *item;

	doc_put_int(m, root, STR("containers"), (int64_t)t->n_containers);
	list = doc_put_arr(m, root, STR("findings"));
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct finding *f = &t->findings[i];

		item = yyjson_mut_arr_add_obj(m, list);
		put_subject(m, item, &f->name);
		doc_put_str(m, item, STR("check"), str_from(f->check));
		doc_put_str(m, item, STR("expected"), f->expected);
		doc_put_str(m, item, STR("actual"), f->actual);
	}
	list = doc_put_arr(m, root, STR("foreignProcesses"));
	for (size_t i = 0; i < t->n_foreign; i++) {
		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_int(m, item, STR("pid"), t->foreign_processes[i].pid);
		doc_put_str(m, item, STR("name"), t->foreign_processes[i].name);
		doc_put_str(m, item, STR("cpus"), t->foreign_processes[i].cpus);
		put_subject(m, doc_put_obj(m, item, STR("owner")), &t->foreign_processes[i].owner);
	}
	return root;
}

int audit_print(const struct audit *t, const struct audit_format *form, struct arena *a,
		struct err *err)
{
	const enum output_format format = output_format_of(form->output);
	int r;

	r = format == OUTPUT_TABLE ? output_text(audit_table(t, a), err) :
				     output_doc(audit_document(t, doc_build(a)), format, a, err);
	if (r < 0)
		return r;
	return t->n_findings > 0 || (form->strict && t->n_foreign > 0) ? EXIT_FINDING : EXIT_YES;
}
