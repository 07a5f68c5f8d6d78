/* Each object is migrated by itself; a List is patched item by item, below /items/N. All files are
 * read and patched before the first one is written. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admission/legacy.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "codec/problems.h"
#include "command.h"
#include "diff.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "manifest_edit.h"
#include "manifest_paths.h"
#include "output.h"
#include "profile/install_config.h"
#include "profile/manifests.h"
#include "profile/settings_migration.h"

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

/* Profiles that an install-config becomes, and where they are written. */
struct new_profiles {
	struct str text; /* "" when there are none */
	const char *path;
	bool in_place; /* otherwise they are printed */
};

struct migrating {
	const struct migrate_options *o;
	struct arena *a;
	struct manifest_edits edits;
	struct manifest_list profiles; /* that exist already */
	struct new_profiles new;
};

static void print_notes(const struct manifest_edit *e, const struct doc *doc, yyjson_val *object,
			const struct str *notes, size_t n)
{
	struct doc_pos pos = doc_position(doc, object);

	for (size_t i = 0; i < n; i++)
		(void)fprintf(stderr, "%s:%u:%u: note: " PRI_STR "\n", manifest_edit_name(e),
			      pos.line, pos.column, FMT_STR(notes[i]));
}

/* The installer reads one document, so the profiles get a file of their own, beside it. */
static const char *profiles_path(const struct manifest_edit *e, struct arena *a)
{
	const char *slash = strrchr(e->file.path, '/');
	int n = slash ? (int)(slash - e->file.path) + 1 : 0;

	return str_printf(a, "%.*s" SETTINGS_MIGRATION_FILE, n, e->file.path).p;
}

static int migrate_settings(struct migrating *g, const struct manifest_edit *e,
			    const struct doc *doc, yyjson_val *object, struct err *err)
{
	struct settings_migration settings;
	struct install_config install;
	struct problem_list p;

	if (!manifest_is_install_config(object))
		return 0;
	problem_list_init(&p, g->a);
	install_config_read((struct manifest){ doc, object }, g->a, &install, &p);
	if (p.n_errors) {
		struct str text = problem_list_format(&p, g->a);

		(void)fwrite(text.p, 1, text.n, stderr);
		return err_set(err, EINVAL, "%s: not migrated", manifest_edit_name(e));
	}
	settings_migrate(&install, &g->profiles, g->a, &settings);
	print_notes(e, doc, object, settings.notes, settings.n_notes);
	if (settings.profiles.n)
		g->new = (struct new_profiles){ settings.profiles, profiles_path(e, g->a),
						g->o->in_place && !manifest_edit_is_stdin(e) };
	return 0;
}

static int migrate_object(struct migrating *g, struct manifest_edit *e, size_t doc,
			  yyjson_val *object, struct str base, struct err *err)
{
	struct migration m;

	if (!legacy_migrate(object, g->a, &m))
		return err_set(err, ENOMEM, "not enough memory");
	legacy_note_remaining(&m, object);
	append(&e->patches[doc], &m.patch, base);
	print_notes(e, &e->file.docs.items[doc], object, m.notes, m.n_notes);
	return migrate_settings(g, e, &e->file.docs.items[doc], object, err);
}

static int migrate_file(struct migrating *g, struct manifest_edit *e, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < e->file.docs.n && r >= 0; i++) {
		struct object_iter it = object_iter(e->file.docs.items[i].root);
		yyjson_val *object;

		for (size_t at = 0; r >= 0 && (object = object_next(&it)); at++)
			r = migrate_object(
				g, e, i, object,
				it.is_list ? str_printf(g->a, "/items/%zu", at) : STR(""), err);
	}
	return r;
}

static void find_profiles(struct migrating *g)
{
	for (size_t i = 0; i < g->edits.n; i++) {
		const struct doc_list *docs = &g->edits.items[i].file.docs;

		for (size_t k = 0; k < docs->n; k++) {
			struct object_iter it = object_iter(docs->items[k].root);
			yyjson_val *object;

			while ((object = object_next(&it)))
				if (str_eq(object_kind(object), STR(NAME_PROFILE_KIND)))
					manifest_list_add(&g->profiles, g->a,
							  (struct manifest){ &docs->items[k],
									     object });
		}
	}
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

/* Before the first file is written: a file of the user is not replaced. */
static int check_new(const struct migrating *g, struct err *err)
{
	if (!g->new.text.n || !g->new.in_place || access(g->new.path, F_OK) != 0)
		return 0;
	return err_set(err, EEXIST, "%s exists: the profiles would replace it", g->new.path);
}

static int write_new(const struct migrating *g, struct err *err)
{
	if (!g->new.text.n)
		return 0;
	if (g->o->output && strcmp(g->o->output, "diff") == 0)
		return output_text(
			diff_unified(STR(""), g->new.text, "/dev/null", g->new.path, g->a), err);
	if (!g->new.in_place)
		return output_text(str_printf(g->a, "---\n" PRI_STR, FMT_STR(g->new.text)), err);
	(void)fprintf(stderr, "%s: note: created, with the CPUs of workloadSettings\n",
		      g->new.path);
	return file_create_at(AT_FDCWD, g->new.path, g->new.text, 0644, err);
}

static int write_all(const struct migrating *g, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < g->edits.n; i++) {
		/* Several files are printed as one YAML stream. */
		if (i && !g->o->in_place && !g->o->output)
			r = output_text(STR("---\n"), err);
		if (r >= 0)
			r = write_result(g->o, &g->edits.items[i], g->a, err);
	}
	return r < 0 ? r : write_new(g, err);
}

static size_t count_changed(const struct manifest_edits *edits)
{
	size_t n = 0;

	for (size_t i = 0; i < edits->n; i++)
		n += manifest_edit_is_changed(&edits->items[i]);
	return n;
}

static int run(struct invocation *inv, struct err *err)
{
	struct migrating g = { .o = inv->options, .a = inv->arena };
	struct option_list paths = manifest_paths(inv, &g.o->files);
	int r;

	if (!paths.n)
		return err_set(err, EINVAL,
			       "no file or directory given (see pinfold migrate --help)");
	r = manifest_edits_load(&paths, g.a, &g.edits, err);
	if (r < 0)
		return r;
	find_profiles(&g);
	for (size_t i = 0; r >= 0 && i < g.edits.n; i++)
		r = migrate_file(&g, &g.edits.items[i], err);
	if (r >= 0)
		r = manifest_edits_apply(&g.edits, g.a, err);
	if (r >= 0)
		r = check_new(&g, err);
	if (r >= 0)
		r = write_all(&g, err);
	if (r < 0)
		return r;
	if (g.o->in_place)
		command_success(inv,
				"%zu of %zu files changed; next: pinfold lint shows what is left",
				count_changed(&g.edits), g.edits.n);
	return EXIT_YES;
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
		 "fields;\n"
		 "the CPUs of workloadSettings become PerformanceProfiles in\n"
		 "workload-partitioning-profiles.yaml beside the install-config. Notes name what "
		 "is not\n"
		 "migrated. Directories are read recursively. Files without these names are not "
		 "changed. "
		 "Comments\n"
		 "stay; a file that cannot be edited in place is rewritten without them, with a "
		 "message.",
	.options = options,
	.options_size = sizeof(struct migrate_options),
	.examples = examples,
	.reports_success = true,
	.run = run,
};
