/* Objects of all files are located first, because a namespace may be in another file than its pods,
 * and may come later. With --fix every change is a patch in the file of its object; files are
 * written only after all patches have been computed. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admission/admission.h"
#include "admission/lint.h"
#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "lint_report.h"
#include "manifest_edit.h"
#include "manifest_paths.h"
#include "output.h"

struct lint_options {
	struct option_list files;
	struct option_list state;
	const char *type;
	const char *output;
	bool fix;
};

#define AT(field) offsetof(struct lint_options, field)

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct lint_options, files),
	{ OPT_FLAG, 0, "fix", NULL, "add missing annotations to the files", NULL, AT(fix) },
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
};

struct linting {
	const struct lint_options *options;
	struct arena *a;
	struct str type;
	struct located *objects;
	size_t n_objects, cap_objects;
	struct manifest_list state;
	struct lint_report report;
	size_t n_fixed;
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

static bool is_namespace(yyjson_val *object, struct str name)
{
	return str_eq(object_kind(object), STR("Namespace")) && str_eq(object_name(object), name);
}

static struct located *find_namespace(struct linting *l, struct str name)
{
	for (size_t i = 0; i < l->n_objects; i++)
		if (is_namespace(l->objects[i].object, name))
			return &l->objects[i];
	return NULL;
}

static yyjson_val *find_in_state(const struct linting *l, struct str name)
{
	for (size_t i = 0; i < l->state.n; i++)
		if (is_namespace(l->state.items[i].object, name))
			return l->state.items[i].object;
	return NULL;
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
	l->n_fixed++;
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

static void fix_permission(struct linting *l, const struct located *at, struct str type)
{
	struct namespace_permission facts = namespace_permission_of(at->object);
	struct str value = type;

	if (facts.has_allowed && facts.allowed.n)
		value = str_printf(l->a, PRI_STR "," PRI_STR, FMT_STR(facts.allowed),
				   FMT_STR(type));
	fix_annotation(l, at, at->base, STR(NAME_ALLOWED), value);
}

/* With --fix, what can be added is added and not reported. */
static void report(struct linting *l, const struct located *at, const struct lint_findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct lint_finding *finding = &f->items[i];
		const struct doc *doc = &at->edit->file.docs.items[at->doc];

		if (l->options->fix && finding->rule == LINT_TARGET)
			fix_target(l, at);
		else if (l->options->fix && finding->rule == LINT_PERMISSION)
			fix_permission(l, at, l->type);
		else
			lint_report_add(&l->report, doc, finding);
	}
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

/* True unless an earlier workload of the same type was in this namespace, which is checked once. */
static bool is_first_of_namespace(const struct linting *l, size_t index, struct str name,
				  struct str type)
{
	for (size_t i = 0; i < index; i++) {
		struct pod pod;

		if (pod_from_object(l->objects[i].object, &pod) &&
		    str_eq(pod_namespace(&pod), name) && str_eq(type_of(l, &pod), type))
			return false;
	}
	return true;
}

static void lint_one(struct linting *l, size_t index)
{
	const struct located *at = &l->objects[index], *namespace;
	struct lint_findings f;
	struct pod pod;
	struct str name, type;

	if (!pod_from_object(at->object, &pod))
		return;
	lint_findings_init(&f, l->a);
	lint_pod(at->object, l->type, &f);
	report(l, at, &f);

	name = pod_namespace(&pod);
	type = type_of(l, &pod);
	if (!type.n || !is_first_of_namespace(l, index, name, type))
		return;
	lint_findings_init(&f, l->a);
	namespace = find_namespace(l, name);
	lint_namespace(namespace ? namespace->object : find_in_state(l, name), at->object, name,
		       type, &f);
	/* A namespace that is in no file is reported at the workload that needs it. */
	report(l, namespace ? namespace : at, &f);
}

static int write_fixes(struct linting *l, struct manifest_edits *edits, struct err *err)
{
	int r = manifest_edits_apply(edits, l->a, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < edits->n; i++) {
		struct manifest_edit *e = &edits->items[i];

		if (!manifest_edit_is_changed(e))
			continue;
		r = manifest_edit_is_stdin(e) ? output_text(e->result, err) :
						manifest_edit_write(e, err);
		if (r < 0)
			return r;
		(void)fprintf(stderr, "%s: fixed%s\n", manifest_edit_name(e),
			      e->is_rewritten ? ", rewritten without its comments" : "");
	}
	return 0;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct lint_options *o = inv->options;
	struct linting l = { .options = o, .a = inv->arena };
	struct manifest_edits edits;
	struct manifest_files state;
	struct option_list paths;
	int r;

	paths = manifest_paths(inv, &o->files);
	if (!paths.n)
		return err_set(err, EINVAL, "no file or directory given (see pinfold lint --help)");
	l.type = o->type ? str_from(o->type) : STR(NAME_TYPE_MANAGEMENT);
	lint_report_init(&l.report, l.a);
	r = manifest_edits_load(&paths, l.a, &edits, err);
	if (r >= 0)
		r = manifest_load(&o->state, l.a, NULL, &state, err);
	if (r < 0)
		return r;
	l.state = manifest_files_objects(&state, l.a);
	for (size_t i = 0; i < edits.n; i++)
		locate(&l, &edits.items[i]);
	for (size_t i = 0; i < l.n_objects; i++)
		lint_one(&l, i);
	if (o->fix)
		r = write_fixes(&l, &edits, err);
	if (r >= 0)
		r = lint_report_print(&l.report, o->output, err);
	if (r < 0)
		return r;
	return lint_report_is_bad(&l.report) ? EXIT_FINDING : EXIT_YES;
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
		 "The exit status is 1 when there are errors or warnings; notes do not count.\n"
		 "--fix adds annotations, keeps comments, and reports all other problems.",
	.options = options,
	.options_size = sizeof(struct lint_options),
	.examples = examples,
	.run = run,
};
