/* A file is edited as text where possible and rewritten from its documents otherwise. Either way
 * the result must parse to what the patches say; edit_in_place() checks it. */

#include "manifest_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "yaml_edit.h"

int manifest_edits_load(const struct option_list *paths, struct arena *a,
			struct manifest_edits *ret, struct err *err)
{
	struct manifest_files files;
	struct manifest_edits edits;
	int r = manifest_load(paths, a, NULL, &files, err);

	if (r < 0)
		return r;
	edits = (struct manifest_edits){ arena_array(a, struct manifest_edit, files.n + 1),
					 files.n };
	for (size_t i = 0; i < files.n; i++) {
		struct manifest_edit *e = &edits.items[i];
		struct str text = str_trim(files.items[i].text);

		e->file = files.items[i];
		/* JSON stays JSON; a YAML file in flow style becomes JSON, too, which YAML reads.
		 */
		e->is_json = text.n && (text.p[0] == '{' || text.p[0] == '[');
		e->patches = arena_array(a, struct patch, e->file.docs.n + 1);
		for (size_t k = 0; k < e->file.docs.n; k++)
			if (!patch_init(&e->patches[k], a))
				return err_set(err, ENOMEM, "not enough memory");
	}
	*ret = edits;
	return 0;
}

bool manifest_edit_is_stdin(const struct manifest_edit *e)
{
	return strcmp(e->file.path, "-") == 0;
}

const char *manifest_edit_name(const struct manifest_edit *e)
{
	return manifest_edit_is_stdin(e) ? "<stdin>" : e->file.path;
}

bool manifest_edit_is_changed(const struct manifest_edit *e)
{
	for (size_t i = 0; i < e->file.docs.n; i++)
		if (!patch_is_empty(&e->patches[i]))
			return true;
	return false;
}

static int patched_docs(const struct manifest_edit *e, struct arena *a, yyjson_val ***ret,
			struct err *err)
{
	yyjson_val **docs = arena_array(a, yyjson_val *, e->file.docs.n + 1);
	int r = 0;

	for (size_t i = 0; i < e->file.docs.n && r >= 0; i++)
		r = patch_apply(&e->patches[i], e->file.docs.items[i].root, a, &docs[i], err);
	*ret = docs;
	return r;
}

/* False when the edited text would not parse to exactly what the patches say. */
static bool edit_in_place(const struct manifest_edit *e, yyjson_val **want, struct arena *a,
			  struct str *ret)
{
	struct doc_list got;
	struct str text;

	if (!yaml_edit_text(e->file.text, &e->file.docs, e->patches, a, &text) ||
	    manifest_parse(text, STR(""), a, &got, NULL) < 0 || got.n != e->file.docs.n)
		return false;
	for (size_t i = 0; i < got.n; i++)
		if (!yyjson_equals(got.items[i].root, want[i]))
			return false;
	*ret = text;
	return true;
}

static int write_all(const struct manifest_edit *e, yyjson_val **docs, struct arena *a,
		     struct str *ret, struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < e->file.docs.n; i++) {
		struct str text;
		int r = e->is_json ? doc_write_val(docs[i], true, a, &text, err) :
				     yaml_write_val(docs[i], a, &text, err);

		if (r < 0)
			return r;
		if (i)
			strbuf_add(&b, STR("---\n"));
		strbuf_add(&b, text);
		if (e->is_json)
			strbuf_addc(&b, '\n');
	}
	*ret = strbuf_str(&b);
	return 0;
}

static int edit_apply(struct manifest_edit *e, struct arena *a, struct err *err)
{
	yyjson_val **docs;
	int r;

	e->result = e->file.text;
	if (!manifest_edit_is_changed(e))
		return 0;
	r = patched_docs(e, a, &docs, err);
	/* JSON has no comments, and its positions are not exact. */
	if (r < 0 || (!e->file.docs.items[0].text.n && edit_in_place(e, docs, a, &e->result)))
		return r;
	e->is_rewritten = true;
	return write_all(e, docs, a, &e->result, err);
}

int manifest_edits_apply(struct manifest_edits *edits, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < edits->n; i++)
		if (edit_apply(&edits->items[i], a, err) < 0)
			return err_wrap(err, "%s", manifest_edit_name(&edits->items[i]));
	return 0;
}

int manifest_edits_reload(const struct manifest_edits *edits, struct arena *a,
			  struct manifest_edits *ret, struct err *err)
{
	struct manifest_edits again = { arena_array(a, struct manifest_edit, edits->n + 1),
					edits->n };

	for (size_t i = 0; i < edits->n; i++) {
		struct manifest_edit *e = &again.items[i];
		int r;

		*e = edits->items[i];
		e->file.text = e->result;
		r = manifest_parse(e->result, str_from(manifest_edit_name(e)), a, &e->file.docs,
				   err);
		if (r < 0)
			return r;
	}
	*ret = again;
	return 0;
}

int manifest_edit_write(const struct manifest_edit *e, struct err *err)
{
	struct stat st;

	/* The new file gets the mode of the old one, because it replaces it by a rename. */
	if (stat(e->file.path, &st) != 0)
		return err_set(err, errno, "%s: %s", e->file.path, strerror(errno));
	return file_replace_at(AT_FDCWD, e->file.path, e->result, st.st_mode & 07777, err);
}
