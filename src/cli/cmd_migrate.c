/* Each object is migrated by itself; a List is patched item by item, below /items/N. All files are
 * read and patched before the first one is written. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admission/legacy.h"
#include "base/arena.h"
#include "base/err.h"
#include "command.h"
#include "diff.h"
#include "kube/pod.h"
#include "manifest_edit.h"
#include "manifest_paths.h"
#include "output.h"

struct migrate_options {
	struct option_list files;
	const char *output;
	bool in_place;
};

static const struct option_desc options[] = {
	MANIFESTS_OPTION(struct migrate_options, files),
	{ OPT_FLAG, 'i', "in-place", NULL, "rewrite the files instead of printing", NULL,
	  offsetof(struct migrate_options, in_place) },
	{ OPT_ENUM, 'o', "output", "FORMAT", "print the files (text, default) or a diff",
	  "text|diff", offsetof(struct migrate_options, output) },
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold migrate -o diff manifests/", "what would change" },
	{ "pinfold migrate -i manifests/ install-config.yaml", "rewrite the files" },
	{ 0 },
};

/* Appends one patch to another, below `base`. */
static void append(struct patch *to, const struct patch *from, struct str base)
{
	yyjson_mut_val *op;

	DOC_EACH_BUILT_ITEM (from->ops, op) {
		yyjson_mut_val *copy = yyjson_mut_val_mut_copy(to->doc, op);
		struct str path = doc_mut_str(yyjson_mut_obj_get(op, "path"));

		doc_put_str(to->doc, copy, STR("path"),
			    str_printf(to->arena, PRI_STR PRI_STR, FMT_STR(base), FMT_STR(path)));
		yyjson_mut_arr_append(to->ops, copy);
	}
}

static int migrate_file(struct manifest_edit *e, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < e->file.docs.n; i++) {
		struct object_iter it = object_iter(e->file.docs.items[i].root);
		yyjson_val *object;

		for (size_t at = 0; (object = object_next(&it)); at++) {
			struct doc_pos pos = doc_position(&e->file.docs.items[i], object);
			struct migration m;

			if (!legacy_migrate(object, a, &m))
				return err_set(err, ENOMEM, "not enough memory");
			append(&e->patches[i], &m.patch,
			       it.is_list ? str_printf(a, "/items/%zu", at) : STR(""));
			for (size_t k = 0; k < m.n_notes; k++)
				(void)fprintf(stderr, "%s:%u:%u: note: " PRI_STR "\n",
					      manifest_edit_name(e), pos.line, pos.column,
					      FMT_STR(m.notes[k]));
		}
	}
	return 0;
}

static int write_result(const struct migrate_options *o, const struct manifest_edit *e,
			struct arena *a, struct err *err)
{
	if (e->is_rewritten)
		(void)fprintf(stderr, "%s: note: rewritten without its comments\n",
			      manifest_edit_name(e));
	if (o->output && strcmp(o->output, "diff") == 0)
		return output_text(diff_unified(e->file.text, e->result, manifest_edit_name(e),
						"migrated", a),
				   err);
	/* Unchanged files are printed as well, so that the output is complete. */
	if (!o->in_place || manifest_edit_is_stdin(e))
		return output_text(e->result, err);
	return manifest_edit_is_changed(e) ? manifest_edit_write(e, err) : 0;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct migrate_options *o = inv->options;
	struct manifest_edits edits;
	struct option_list paths;
	int r;

	paths = manifest_paths(inv, &o->files);
	if (!paths.n)
		return err_set(err, EINVAL,
			       "no file or directory given (see pinfold migrate --help)");
	r = manifest_edits_load(&paths, inv->arena, &edits, err);
	for (size_t i = 0; r >= 0 && i < edits.n; i++)
		r = migrate_file(&edits.items[i], inv->arena, err);
	if (r >= 0)
		r = manifest_edits_apply(&edits, inv->arena, err);
	for (size_t i = 0; r >= 0 && i < edits.n; i++) {
		/* Several files are printed as one YAML stream. */
		if (i && !o->in_place && !o->output)
			r = output_text(STR("---\n"), err);
		if (r >= 0)
			r = write_result(o, &edits.items[i], inv->arena, err);
	}
	return r < 0 ? r : EXIT_YES;
}

const struct command cmd_migrate = {
	.name = "migrate",
	.group = COMMAND_TOOL,
	.summary = "rewrite manifests of the 2021 design to the current names",
	.operands = "[PATH...]",
	.about = "The 2021 design of workload partitioning used labels on pods and namespaces,\n"
		 "cpu.workload.openshift.io/ resources and annotations, and workloadSettings in "
		 "the\n"
		 "install-config. This command rewrites them to the current annotations and "
		 "fields.\n"
		 "Directories are read recursively. Files without these names are not changed. "
		 "Comments\n"
		 "stay; a file that cannot be edited in place is rewritten without them, with a "
		 "message.",
	.options = options,
	.options_size = sizeof(struct migrate_options),
	.examples = examples,
	.run = run,
};
