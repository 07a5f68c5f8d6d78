/* The table shows foreign processes as groups with their remedy; documents also list each. */

#include "audit_print.h"

#include "base/arena.h"
#include "cgroup/audit.h"
#include "cgroup/foreign.h"
#include "codec/doc.h"
#include "command.h"
#include "output.h"

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

static void add_groups(struct strbuf *b, const struct audit *t, const struct audit_format *form,
		       struct arena *a)
{
	struct foreign_group *groups;
	size_t n;

	foreign_groups(t, &form->host, a, &groups, &n);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(b,
			      "foreign: " PRI_STR ": " PRI_STR " (" PRI_STR
			      ") may run on exclusive CPUs " PRI_STR "\n  remedy: " PRI_STR "\n",
			      FMT_STR(groups[i].name),
			      FMT_STR(str_count(a, groups[i].n, "process", "processes")),
			      FMT_STR(groups[i].names), FMT_STR(cpuset_format(&groups[i].cpus, a)),
			      FMT_STR(groups[i].remedy));
}

static struct str audit_table(const struct audit *t, const struct audit_format *form,
			      struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	if (t->n_findings > 0)
		strbuf_add(&b, findings_table(t, a));
	add_groups(&b, t, form, a);
	strbuf_printf(&b, PRI_STR " checked, " PRI_STR ", " PRI_STR " on exclusive CPUs\n",
		      FMT_STR(str_count(a, t->n_containers, "container", "containers")),
		      FMT_STR(str_count(a, t->n_findings, "finding", "findings")),
		      FMT_STR(str_count(a, t->n_foreign, "foreign process", "foreign processes")));
	return strbuf_str(&b);
}

static void put_subject(yyjson_mut_doc *m, yyjson_mut_val *o, const struct audit_subject *s)
{
	doc_put_str(m, o, STR("namespace"), s->namespace);
	doc_put_str(m, o, STR("pod"), s->pod);
	doc_put_str(m, o, STR("container"), s->container);
}

static void put_foreign(yyjson_mut_doc *m, yyjson_mut_val *root, const struct audit *t,
			const struct audit_format *form, struct arena *a)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("foreignProcesses")), *item;
	struct foreign_group *groups;
	size_t n;

	for (size_t i = 0; i < t->n_foreign; i++) {
		const struct foreign_process *p = &t->foreign_processes[i];

		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_int(m, item, STR("pid"), p->pid);
		doc_put_str(m, item, STR("name"), p->name);
		doc_put_str(m, item, STR("cgroup"), p->cgroup);
		doc_put_str(m, item, STR("cpus"), cpuset_format(&p->cpus, a));
		put_subject(m, doc_put_obj(m, item, STR("owner")), &p->owner);
	}
	list = doc_put_arr(m, root, STR("foreignGroups"));
	foreign_groups(t, &form->host, a, &groups, &n);
	for (size_t i = 0; i < n; i++) {
		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_str(m, item, STR("name"), groups[i].name);
		doc_put_int(m, item, STR("processes"), (int64_t)groups[i].n);
		doc_put_str(m, item, STR("cpus"), cpuset_format(&groups[i].cpus, a));
		doc_put_str(m, item, STR("remedy"), groups[i].remedy);
	}
}

yyjson_mut_val *audit_document(const struct audit *t, const struct audit_format *form,
			       yyjson_mut_doc *m, struct arena *a)
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
	put_foreign(m, root, t, form, a);
	return root;
}

static struct audit_subject read_subject(yyjson_val *v)
{
	return (struct audit_subject){ .namespace = doc_str(doc_get(v, STR("namespace"))),
				       .pod = doc_str(doc_get(v, STR("pod"))),
				       .container = doc_str(doc_get(v, STR("container"))) };
}

static int read_foreign(const struct doc *doc, yyjson_val *v, struct foreign_process *ret,
			struct err *err)
{
	struct err why = { 0 };
	int64_t pid = 0;

	(void)doc_int(doc_get(v, STR("pid")), &pid);
	*ret = (struct foreign_process){ .pid = (int)pid,
					 .name = doc_str(doc_get(v, STR("name"))),
					 .cgroup = doc_str(doc_get(v, STR("cgroup"))),
					 .owner = read_subject(doc_get(v, STR("owner"))) };
	if (cpuset_parse(doc_str(doc_get(v, STR("cpus"))), &ret->cpus, &why) < 0)
		return doc_err(err, doc, v, "%s", why.msg);
	return 0;
}

int audit_from_doc(const struct doc *doc, struct arena *a, struct audit *ret, struct err *err)
{
	yyjson_val *list = doc_get(doc->root, STR("findings")), *item;
	int64_t n = 0;
	int r = 0;

	audit_init(ret, a);
	if (!list || !doc_int(doc_get(doc->root, STR("containers")), &n) || n < 0)
		return doc_err(err, doc, doc->root, "not a result of pinfold verify");
	ret->n_containers = (size_t)n;
	DOC_EACH_ITEM (list, item) {
		const struct audit_subject name = read_subject(item);

		audit_add(ret, &name, str_cstr(a, doc_str(doc_get(item, STR("check")))),
			  doc_str(doc_get(item, STR("expected"))),
			  doc_str(doc_get(item, STR("actual"))));
	}
	list = doc_get(doc->root, STR("foreignProcesses"));
	ret->foreign_processes = arena_array(a, struct foreign_process, yyjson_arr_size(list) + 1);
	DOC_EACH_ITEM (list, item) {
		r = read_foreign(doc, item, &ret->foreign_processes[ret->n_foreign++], err);
		if (r < 0)
			break;
	}
	return r;
}

int audit_print(const struct audit *t, const struct audit_format *form, struct arena *a,
		struct err *err)
{
	const enum output_format format = output_format_of(form->output);
	int r;

	r = format == OUTPUT_TABLE ?
		    output_readable(audit_table(t, form, a), err) :
		    output_doc(audit_document(t, form, doc_build(a), a), format, a, err);
	if (r < 0)
		return r;
	return t->n_findings > 0 || (form->strict && t->n_foreign > 0) ? EXIT_FINDING : EXIT_YES;
}
