#include "files_record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/doc.h"
#include "files_apply.h"

#define VERSION 1

static const char *const class_names[HOST_FILE_CLASS__COUNT] = {
	[HOST_FILE_QUIET] = "nothing",
	[HOST_FILE_KUBELET] = "kubelet",
	[HOST_FILE_RUNTIME] = "runtime",
	[HOST_FILE_BOOT] = "boot",
};

void files_record_init(struct files_record *r, struct str boot_id, struct arena *a)
{
	*r = (struct files_record){ .a = a, .boot_id = boot_id };
}

void files_record_add(struct files_record *r, struct file_original original)
{
	r->items = arena_reserve(r->a, r->items, r->n, &r->cap, sizeof(*r->items));
	r->items[r->n++] = original;
	r->is_changed = true;
}

const struct file_original *files_record_find(const struct files_record *r, struct str path)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->items[i].path, path))
			return &r->items[i];
	return NULL;
}

void files_record_forget(struct files_record *r, struct str path)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!str_eq(r->items[i].path, path))
			r->items[kept++] = r->items[i];
	r->is_changed |= kept != r->n;
	r->n = kept;
}

/* --- codec --- */

static void put_files(const struct files_record *r, yyjson_mut_doc *m, yyjson_mut_val *root,
		      struct arena *a)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("files"));

	for (size_t i = 0; i < r->n; i++) {
		const struct file_original *f = &r->items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("path"), f->path);
		doc_put_str(m, v, STR("class"), str_from(class_names[f->class]));
		if (!f->existed)
			continue;
		doc_put_int(m, v, STR("mode"), f->mode);
		doc_put_str(m, v, STR("content"), base64_encode(f->bytes, a));
	}
}

int files_record_encode(const struct files_record *r, struct arena *a, struct str *ret,
			struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	doc_put_int(m, root, STR("version"), VERSION);
	doc_put_str(m, root, STR("bootId"), r->boot_id);
	put_files(r, m, root, a);
	for (size_t i = 0; i < HOST_FILE_CLASS__COUNT; i++) {
		yyjson_mut_val *v;

		if (!r->owed[i].unit.n)
			continue;
		v = doc_put_obj(m, root, str_printf(a, "%sRestart", class_names[i]));
		doc_put_str(m, v, STR("unit"), r->owed[i].unit);
		doc_put_str(m, v, STR("invocation"), r->owed[i].invocation);
	}
	doc_put_str(m, root, STR("rebootOwed"), r->reboot_owed);
	doc_put_str(m, root, STR("bootLoaderArguments"), r->loader_args);
	doc_put_str(m, root, STR("bootLoaderBootId"), r->loader_boot);
	doc_put_str(m, root, STR("systemdCalls"), r->systemd_owed);
	return doc_write(root, false, a, ret, err);
}

static int get_file(const struct doc *doc, yyjson_val *v, struct files_record *r, struct err *err)
{
	struct file_original f = { .path = doc_str(doc_get(v, STR("path"))) };
	const struct str class = doc_str(doc_get(v, STR("class")));
	yyjson_val *content = doc_get(v, STR("content"));
	int64_t mode = 0;
	size_t i = 0;

	if (!str_starts(f.path, STR("/")) || str_has(f.path, STR("/../")) ||
	    memchr(f.path.p, 0, f.path.n))
		return doc_err(err, doc, v, "\"path\" is no absolute path");
	while (i < HOST_FILE_CLASS__COUNT && !str_eq(class, str_from(class_names[i])))
		i++;
	if (i == HOST_FILE_CLASS__COUNT)
		return doc_err(err, doc, v, "\"class\" is unknown");
	f.class = (enum host_file_class)i;
	f.existed = content != NULL;
	if (content && (!doc_int(doc_get(v, STR("mode")), &mode) || mode < 0 || mode > 07777 ||
			base64_decode(doc_str(content), r->a, &f.bytes, NULL) < 0))
		return doc_err(err, doc, v, "\"mode\" or \"content\" is damaged");
	f.mode = (unsigned)mode;
	files_record_add(r, f);
	return 0;
}

static void get_owed(const struct doc *doc, struct files_record *r)
{
	for (size_t i = 0; i < HOST_FILE_CLASS__COUNT; i++) {
		yyjson_val *v = doc_get(doc->root, str_printf(r->a, "%sRestart", class_names[i]));

		r->owed[i].unit = doc_str(doc_get(v, STR("unit")));
		r->owed[i].invocation = doc_str(doc_get(v, STR("invocation")));
	}
}

int files_record_decode(struct str text, struct str boot_id, struct arena *a,
			struct files_record *ret, struct err *err)
{
	int64_t version;
	struct doc doc;
	yyjson_val *v;
	int r;

	files_record_init(ret, boot_id, a);
	r = doc_parse(text, STR(FILES_RECORD), NULL, a, &doc, err);
	if (r < 0)
		return r;
	if (!doc_int(doc_get(doc.root, STR("version")), &version) || version != VERSION)
		return doc_err(err, &doc, doc.root, "not a record of version %d", VERSION);
	DOC_EACH_ITEM (doc_get(doc.root, STR("files")), v) {
		r = get_file(&doc, v, ret, err);
		if (r < 0)
			return r;
	}
	if (str_eq(doc_str(doc_get(doc.root, STR("bootId"))), boot_id))
		get_owed(&doc, ret);
	ret->reboot_owed = doc_str(doc_get(doc.root, STR("rebootOwed")));
	ret->loader_args = doc_str(doc_get(doc.root, STR("bootLoaderArguments")));
	ret->loader_boot = doc_str(doc_get(doc.root, STR("bootLoaderBootId")));
	ret->systemd_owed = doc_str(doc_get(doc.root, STR("systemdCalls")));
	if (!files_are_calls(ret->systemd_owed))
		return doc_err(err, &doc, doc.root, "\"systemdCalls\" is damaged");
	ret->is_changed = false;
	return 0;
}

/* --- file --- */

static const char *path_in(const char *state_dir, struct arena *a)
{
	return str_cstr(a, str_printf(a, "%s/" FILES_RECORD, state_dir));
}

int files_record_load(const char *state_dir, struct str boot_id, struct arena *a,
		      struct files_record *ret, struct err *err)
{
	const char *path = path_in(state_dir, a);
	struct str text;
	int r;

	files_record_init(ret, boot_id, a);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = file_read_at(AT_FDCWD, path, FILES_RECORD_MAX, a, &text, err);
	return r < 0 ? r : files_record_decode(text, boot_id, a, ret, err);
}

static bool is_empty(const struct files_record *r)
{
	for (size_t i = 0; i < HOST_FILE_CLASS__COUNT; i++)
		if (r->owed[i].unit.n)
			return false;
	return !r->n && !r->reboot_owed.n && !r->loader_args.n && !r->systemd_owed.n;
}

int files_record_save(struct files_record *r, const char *state_dir, struct err *err)
{
	const char *path = path_in(state_dir, r->a);
	struct str text;
	int result;

	if (!r->is_changed)
		return 0;
	if (is_empty(r)) {
		if (unlink(path) < 0 && errno != ENOENT)
			return err_set(err, errno, "remove %s: %s", path, strerror(errno));
		r->is_changed = false;
		return 0;
	}
	result = files_record_encode(r, r->a, &text, err);
	if (result == 0)
		result = file_replace_at(AT_FDCWD, path, text, 0600, err);
	if (result == 0)
		r->is_changed = false;
	return result;
}
