/* Objects of all files are located first, because a namespace may be in another file than its pods,
 * and may come later. With --fix every change is a patch in the file of its object; files are
 * written only after all patches have been computed. The report is then about the results, so that
 * it contains what a fix uncovers, and the next run agrees with the exit status. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "admission/lint.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/sorted.h"
#include "command.h"
#include "diff.h"
#include "kube/label_query.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "lint_report.h"
#include "manifest_edit.h"
#include "manifest_paths.h"
#include "output.h"

struct lint_options {
	struct option_list files;
	struct option_list state;
	struct option_list namespaces;
	const char *type;
	const char *selector;
	const char *output;
	bool fix, diff;
};

#define AT(field) offsetof(struct lint_options, field)

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct lint_options, files),
	{ OPT_FLAG, 0, "fix", NULL, "add missing annotations to the files", NULL, AT(fix) },
	{ OPT_FLAG, 0, "diff", NULL, "print what --fix would change, and change no file", NULL,
	  AT(diff) },
	{ OPT_STRS, 'n', "namespace", "NAME", "only workloads of this namespace", NULL,
	  AT(namespaces) },
	{ OPT_STR, 'l', "selector", "QUERY",
	  "only workloads whose labels, or those of their pod template, match (app=web,tier!=db)",
	  NULL, AT(selector) },
	{ OPT_STR, 0, "type", "TYPE",
	  "the workload type that workloads should opt in to (default: management)", NULL,
	  AT(type) },
	{ OPT_STRS, 0, "state", "FILE", "Namespaces that are not among the manifests", NULL,
	  AT(state) },
	{ OPT_ENUM, 'o', "output", "FORMAT", "print json, yaml, sarif or a table (default: table)",
	  "json|yaml|sarif|table", AT(output) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold lint manifests/", "every problem, one per line" },
	{ "pinfold lint --diff -n kube-system manifests/",
	  "what --fix would add to workloads of kube-system" },
	{ "pinfold lint --fix manifests/", "add what is missing" },
	{ "pinfold lint -o sarif manifests/ >lint.sarif", "for code review tools" },
	{ 0 },
};

/* One object in one file. */
struct located {
	struct manifest_edit *edit;
	size_t doc;
	struct str base; /* JSON pointer from the document to the object */
	yyjson_val *object;
	bool is_fixed;
	bool checks_namespace; /* the first workload of its namespace and type */
};

/* Sorted by both, to find the first workload of each without comparing all with all. */
struct lint_key {
	struct str namespace, type;
	struct located *at;
};

struct linting {
	const struct lint_options *options;
	struct arena *a;
	struct str type;
	struct located *objects;
	size_t n_objects, cap_objects;
	struct lint_key *namespaces; /* Namespaces of the files and of the state, by name */
	size_t n_namespaces;
	struct manifest_list state;
	struct lint_report report;
	bool fixes; /* add what is missing instead of reporting */
	size_t n_workloads, n_selected;
};

static void locate(struct linting *l, struct manifest_edit *e)
{
	for (size_t i = 0; i < e->file.docs.n; i++) {
		struct object_iter it = object_iter(e->file.docs.items[i].root);
		yyjson_val *object;

		for (size_t at = 0; (object = object_next(&it)); at++) {
			l->objects = arena_reserve(l->a, l->objects, l->n_objects, &l->cap_objects,
						   sizeof(*l->objects));
			l->objects[l->n_objects++] = (struct located){
				.edit = e,
				.doc = i,
				.base = it.is_list ? str_printf(l->a, "/items/%zu", at) : STR(""),
				.object = object,
			};
		}
	}
}

/* Of equal keys the object that comes first, and those of files before those of the state, whose
 * `edit` is NULL. */
static int by_key(const void *a, const void *b)
{
	const struct lint_key *x = a, *y = b;
	int r = str_cmp(x->namespace, y->namespace);

	if (r == 0)
		r = str_cmp(x->type, y->type);
	if (r == 0)
		r = !x->at->edit - !y->at->edit;
	return r ? r : (x->at > y->at) - (x->at < y->at);
}

static void add_namespace(struct linting *l, struct located *at)
{
	if (str_eq(object_kind(at->object), STR("Namespace")))
		l->namespaces[l->n_namespaces++] =
			(struct lint_key){ object_name(at->object), STR(""), at };
}

static void index_namespaces(struct linting *l)
{
	struct located *state = arena_array(l->a, struct located, l->state.n + 1);

	l->namespaces = arena_array(l->a, struct lint_key, l->n_objects + l->state.n + 1);
	l->n_namespaces = 0;
	for (size_t i = 0; i < l->n_objects; i++)
		add_namespace(l, &l->objects[i]);
	for (size_t i = 0; i < l->state.n; i++) {
		state[i].object = l->state.items[i].object;
		add_namespace(l, &state[i]);
	}
	if (l->n_namespaces)
		qsort(l->namespaces, l->n_namespaces, sizeof(*l->namespaces), by_key);
}

static int compare_namespace(const void *item, const void *name)
{
	const struct lint_key *named = item;
	const struct str *key = name;

	return str_cmp(named->namespace, *key);
}

/* The first of this name; NULL when it is not known. */
static struct located *find_namespace(const struct linting *l, struct str name)
{
	const struct lint_key *all = l->namespaces;
	const size_t at =
		sorted_position(all, l->n_namespaces, sizeof(*all), &name, compare_namespace);

	return at < l->n_namespaces && str_eq(all[at].namespace, name) ? all[at].at : NULL;
}

/* Adds `key: value` to the annotations of the metadata at `base`/metadata. */
static void fix_annotation(struct linting *l, const struct located *at, struct str base,
			   struct str key, struct str value)
{
	struct patch *p = &at->edit->patches[at->doc];
	yyjson_val *root = at->edit->file.docs.items[at->doc].root;
	struct str meta = patch_path(l->a, base, STR("metadata"));
	struct str annotations = patch_path(l->a, meta, STR("annotations"));
	yyjson_val *old = doc_find(root, str_cstr(l->a, annotations));
	yyjson_mut_val *map = yyjson_mut_obj(p->doc), *outer = yyjson_mut_obj(p->doc);

	/* A patch may not add a member below a parent that does not exist, so the highest missing
	 * parent is added with everything below it. */
	if (yyjson_is_obj(old)) {
		struct str path = patch_path(l->a, annotations, key);

		patch_put(p, path, doc_get(old, key) != NULL, doc_new_str(p->doc, value));
		return;
	}
	doc_put_str(p->doc, map, key, value);
	if (old) {
		patch_replace(p, annotations, map);
	} else if (yyjson_is_obj(doc_find(root, str_cstr(l->a, meta)))) {
		patch_add(p, annotations, map);
	} else {
		doc_put(p->doc, outer, STR("annotations"), map);
		patch_add(p, meta, outer);
	}
}

static void fix_target(struct linting *l, const struct located *at)
{
	struct pod pod;

	if (!pod_from_object(at->object, &pod))
		return;
	fix_annotation(l, at, str_printf(l->a, PRI_STR "%s", FMT_STR(at->base), pod.prefix),
		       str_printf(l->a, NAME_TARGET_PREFIX PRI_STR, FMT_STR(l->type)),
		       STR(NAME_TARGET_VALUE));
}

/* One type at a time: a second one is reported afterwards. A Namespace of the state is no file to
 * fix, and the finding is then about the workload. */
static void fix_permission(struct linting *l, struct located *at, struct str type)
{
	struct namespace_permission facts = namespace_permission_of(at->object);
	struct str value = type;

	if (at->is_fixed || !str_eq(object_kind(at->object), STR("Namespace")))
		return;
	at->is_fixed = true;

	if (facts.has_allowed && facts.allowed.n)
		value = str_printf(l->a, PRI_STR "," PRI_STR, FMT_STR(facts.allowed),
				   FMT_STR(type));
	fix_annotation(l, at, at->base, STR(NAME_ALLOWED), value);
}

static void report(struct linting *l, struct located *at, const struct lint_findings *f,
		   struct str type)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct lint_finding *finding = &f->items[i];
		const struct doc *doc = &at->edit->file.docs.items[at->doc];

		if (!l->fixes)
			lint_report_add(&l->report, doc, finding);
		else if (finding->rule == LINT_TARGET)
			fix_target(l, at);
		else if (finding->rule == LINT_PERMISSION)
			fix_permission(l, at, type);
	}
}

/* --- selection --- */

static bool is_ignored(yyjson_val *annotations)
{
	return str_eq(doc_str(doc_get(annotations, STR(NAME_LINT))), STR(NAME_LINT_IGNORE));
}

static bool is_in_namespaces(const struct option_list *list, struct str name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(str_from(list->items[i]), name))
			return true;
	return list->n == 0;
}

/* `pod` is NULL for a custom resource. */
static bool is_selected(const struct linting *l, yyjson_val *object, const struct pod *pod)
{
	const struct located *namespace;
	yyjson_val *meta = doc_get(object, STR("metadata"));
	struct str name = doc_str(doc_get(meta, STR("namespace")));

	name = name.n ? name : STR("default");
	namespace = find_namespace(l, name);
	return is_in_namespaces(&l->options->namespaces, name) &&
	       label_query_matches(str_from(l->options->selector), doc_get(meta, STR("labels")),
				   pod ? doc_get(pod->meta, STR("labels")) : NULL) &&
	       !is_ignored(doc_get(meta, STR("annotations"))) &&
	       !(pod && is_ignored(pod_annotations(pod))) &&
	       !(namespace && is_ignored(object_annotations(namespace->object)));
}

/* The type that a pod opts in to, or else the one that it should. */
static struct str type_of(const struct linting *l, const struct pod *pod)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (pod_annotations(pod), key, value)
		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)))
			return str_skip(doc_str(key), strlen(NAME_TARGET_PREFIX));
	(void)value;
	return l->type;
}

/* The permission of a namespace is checked once for each type. */
static void choose_first(struct linting *l)
{
	struct lint_key *keys = arena_array(l->a, struct lint_key, l->n_objects + 1);
	size_t n = 0;

	for (size_t i = 0; i < l->n_objects; i++) {
		struct located *at = &l->objects[i];
		struct pod pod;

		if (pod_from_object(at->object, &pod) && is_selected(l, at->object, &pod))
			keys[n++] = (struct lint_key){ pod_namespace(&pod), type_of(l, &pod), at };
	}
	if (n)
		qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 0; i < n; i++)
		keys[i].at->checks_namespace = keys[i].type.n &&
					       (i == 0 ||
						!str_eq(keys[i].namespace, keys[i - 1].namespace) ||
						!str_eq(keys[i].type, keys[i - 1].type));
}

static void lint_workload(struct linting *l, struct located *at, const struct pod *pod)
{
	struct located *namespace;
	struct lint_findings f;
	struct str name, type;

	lint_findings_init(&f, l->a);
	lint_pod(at->object, l->type, &f);
	report(l, at, &f, l->type);

	name = pod_namespace(pod);
	type = type_of(l, pod);
	if (!at->checks_namespace)
		return;
	lint_findings_init(&f, l->a);
	namespace = find_namespace(l, name);
	lint_namespace(namespace ? namespace->object : NULL, at->object, name, type, &f);
	/* A namespace that is in no file is reported at the workload that needs it. */
	report(l, namespace && namespace->edit ? namespace : at, &f, type);
}

static void lint_one(struct linting *l, struct located *at)
{
	struct lint_findings f;
	struct pod pod;

	if (pod_from_object(at->object, &pod)) {
		l->n_workloads++;
		if (is_selected(l, at->object, &pod)) {
			l->n_selected++;
			lint_workload(l, at, &pod);
		}
	} else if (is_selected(l, at->object, NULL)) {
		lint_findings_init(&f, l->a);
		lint_custom(at->object, &f);
		report(l, at, &f, l->type);
	}
}

static void lint_files(struct linting *l, struct manifest_edits *edits, bool fixes)
{
	l->fixes = fixes;
	l->n_objects = l->n_workloads = l->n_selected = 0;
	for (size_t i = 0; i < edits->n; i++)
		locate(l, &edits->items[i]);
	index_namespaces(l);
	choose_first(l);
	for (size_t i = 0; i < l->n_objects; i++)
		lint_one(l, &l->objects[i]);
}

static int write_file(const struct linting *l, const struct manifest_edit *e, struct err *err)
{
	const char *lost = e->is_rewritten ? ", rewritten without its comments" : "";
	int r;

	if (l->options->diff) {
		if (*lost)
			(void)fprintf(stderr, "%s: note%s\n", manifest_edit_name(e), lost);
		return output_text(diff_unified(e->file.text, e->result, manifest_edit_name(e),
						manifest_edit_name(e), l->a),
				   err);
	}
	r = manifest_edit_is_stdin(e) ? output_text(e->result, err) : manifest_edit_write(e, err);
	if (r >= 0)
		(void)fprintf(stderr, "%s: fixed%s\n", manifest_edit_name(e), lost);
	return r;
}

/* Adds what is missing. *edits are the results afterwards. */
static int fix(struct linting *l, struct manifest_edits *edits, struct err *err)
{
	int r;

	lint_files(l, edits, true);
	r = manifest_edits_apply(edits, l->a, err);
	for (size_t i = 0; r >= 0 && i < edits->n; i++)
		if (manifest_edit_is_changed(&edits->items[i]))
			r = write_file(l, &edits->items[i], err);
	return r < 0 ? r : manifest_edits_reload(edits, l->a, edits, err);
}

/* Standard output is the diff, or the fixed file of standard input: then the report is on standard
 * error. */
static int print_report(const struct linting *l, const struct manifest_edits *edits,
			struct err *err)
{
	const struct lint_options *o = l->options;
	bool is_taken = o->diff;

	for (size_t i = 0; i < edits->n; i++)
		is_taken |= o->fix && manifest_edit_is_stdin(&edits->items[i]);
	return lint_report_print(&l->report, o->output, is_taken ? stderr : stdout, err);
}

static int load(struct linting *l, struct invocation *inv, struct manifest_edits *ret,
		struct err *err)
{
	const struct lint_options *o = l->options;
	struct option_list paths = manifest_paths(inv, &o->files);
	struct manifest_files state;
	int r;

	if (!paths.n)
		return err_set(err, EINVAL, "no file or directory given (see pinfold lint --help)");
	r = label_query_check(str_from(o->selector), err);
	if (r >= 0)
		r = manifest_edits_load(&paths, l->a, ret, err);
	if (r >= 0)
		r = manifest_load(&o->state, l->a, NULL, &state, err);
	if (r >= 0)
		l->state = manifest_files_objects(&state, l->a);
	return r;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct lint_options *o = inv->options;
	struct linting l = { .options = o, .a = inv->arena };
	struct manifest_edits edits;
	bool would_change = false;
	int r;

	l.type = o->type ? str_from(o->type) : STR(NAME_TYPE_MANAGEMENT);
	lint_report_init(&l.report, l.a);
	r = load(&l, inv, &edits, err);
	if (r >= 0 && (o->fix || o->diff))
		r = fix(&l, &edits, err);
	if (r < 0)
		return r;
	for (size_t i = 0; o->diff && i < edits.n; i++)
		would_change |= manifest_edit_is_changed(&edits.items[i]);
	lint_files(&l, &edits, false);
	if (l.n_workloads && !l.n_selected)
		(void)fputs("note: no workload is selected, nothing was checked\n", stderr);
	r = print_report(&l, &edits, err);
	if (r < 0)
		return r;
	if (!would_change && !lint_report_is_bad(&l.report) && l.n_selected)
		command_success(inv,
				"%zu %s checked, no errors; next: pinfold admit -o diff shows what "
				"admission changes",
				l.n_selected, l.n_selected == 1 ? "workload" : "workloads");
	return would_change || lint_report_is_bad(&l.report) ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_lint = {
	.name = "lint",
	.group = COMMAND_TOOL,
	.summary = "find workloads that should be partitioned but are not",
	.operands = "[PATH...]",
	.about = "Reads manifests (files, or directories of *.yaml, *.yml, *.json) and reports\n"
		 "workloads without the opt-in annotation, namespaces that do not allow it, pods "
		 "that\n"
		 "admission would skip or refuse (Guaranteed, CPU only, pod-level resources),\n"
		 "annotations and resources that only admission may write, exec probes in "
		 "containers\n"
		 "with exclusive CPUs, and names of the 2021 design.\n"
		 "Every workload counts as one of the platform, except those that -n and -l leave "
		 "out and\n"
		 "those with the annotation " NAME_LINT ": " NAME_LINT_IGNORE
		 ", on the workload, its pod\n"
		 "template or its namespace. Custom resources that create pods are named in a "
		 "note.\n"
		 "The exit status is 1 when there are errors or warnings; notes do not count.\n"
		 "--fix adds annotations and reports what remains, and what it uncovered. Comments "
		 "stay;\n"
		 "a file that cannot be edited in place is rewritten without them, with a "
		 "message.\n"
		 "--diff prints the changes instead, and its exit status is 1 when there are any.",
	.options = options,
	.options_size = sizeof(struct lint_options),
	.examples = examples,
	.reports_success = true,
	.run = run,
};
