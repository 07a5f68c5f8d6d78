/* The I/O in front of kube/manifest.c. All texts and documents go into the caller's arena, because
 * objects point into the text of their file. */

#include "manifest_load.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/walk.h"
#include "bundle_load.h"
#include "codec/problems.h"
#include "tar.h"

struct loading {
	struct arena *a;
	struct problem_list *problems; /* NULL: the first problem fails the load */
	struct manifest_files files;
};

/* The mount of a ConfigMap holds its files twice: as links, and in hidden directories. */
static bool is_manifest_name(struct str name, bool is_directory)
{
	return !str_starts(name, STR(".")) &&
	       (is_directory || str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) ||
		str_ends(name, STR(".json")));
}

static int load_text(struct loading *l, struct manifest_file file, struct str name, struct err *err)
{
	struct manifest_files *files = &l->files;
	/* A separate error: with a problem list the load continues, and *err must not be set by a
	 * load that succeeds. */
	struct err why;
	int r;

	r = manifest_parse(file.text, name, l->a, &file.docs, l->problems ? &why : err);
	if (r < 0 && l->problems) {
		problem_from_err(l->problems, &why);
		return 0;
	}
	if (r < 0)
		return r;
	files->items = arena_reserve(l->a, files->items, files->n, &files->cap, sizeof(file));
	files->items[files->n++] = file;
	return 0;
}

/* The objects of the cluster that a support bundle has; its other files are not manifests. */
static int load_bundle(struct loading *l, const char *path, const struct saved_bundle *b,
		       struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < b->n && r >= 0; i++)
		if (str_starts(b->files[i].path, STR(BUNDLE_OBJECTS)))
			r = load_text(l, (struct manifest_file){ path, b->files[i].bytes, { 0 } },
				      saved_bundle_position(b, b->files[i].path, l->a), err);
	return r;
}

static int load_file(void *data, const char *path, struct err *err)
{
	struct loading *l = data;
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "<stdin>" : path;
	struct manifest_file file = { .path = path };
	struct saved_bundle bundle;
	int r;

	r = is_stdin ? file_read_fd(STDIN_FILENO, name, MANIFEST_MAX_BYTES, l->a, &file.text, err) :
		       file_read_at(AT_FDCWD, path, MANIFEST_MAX_BYTES, l->a, &file.text, err);
	if (r < 0)
		return r;
	if (!tar_is(file.text))
		return load_text(l, file, str_from(name), err);
	r = saved_bundle_parse(file.text, str_from(name), l->a, &bundle, err);
	return r < 0 ? r : load_bundle(l, path, &bundle, err);
}

static int load_path(struct loading *l, const char *path, struct err *err)
{
	const struct walk w = {
		.a = l->a, .is_wanted = is_manifest_name, .visit = load_file, .data = l
	};
	struct saved_bundle bundle;
	int r;

	if (strcmp(path, "-") == 0)
		return load_file(l, path, err);
	if (!bundle_at(path))
		return walk_files(&w, path, err);
	r = bundle_load(path, l->a, &bundle, err);
	return r < 0 ? r : load_bundle(l, path, &bundle, err);
}

int manifest_load(const struct option_list *paths, struct arena *a, struct problem_list *p,
		  struct manifest_files *ret, struct err *err)
{
	struct loading l = { .a = a, .problems = p };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < paths->n; i++)
		r = load_path(&l, paths->items[i], err);
	if (r >= 0)
		*ret = l.files;
	return r;
}

struct manifest_list manifest_files_objects(const struct manifest_files *files, struct arena *a)
{
	struct manifest_list list = { 0 };

	for (size_t i = 0; i < files->n; i++)
		manifest_list_add_docs(&list, a, &files->items[i].docs);
	return list;
}
