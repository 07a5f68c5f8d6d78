#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "manifests.h"
#include "yaml_edit.h"

static bool looks_like_json(struct str text)
{
	struct str t = str_trim(text);

	return t.n && (t.p[0] == '{' || t.p[0] == '[');
}

static int read_file(const char *path, struct arena *a, struct source_list *list, struct err *err)
{
	struct source s = { .path = path };
	bool is_stdin = strcmp(path, "-") == 0;
	int r;

	r = is_stdin ? file_read_fd(STDIN_FILENO, "<stdin>", DOC_MAX_SIZE, a, &s.text, err) :
		       file_read_at(AT_FDCWD, path, DOC_MAX_SIZE, a, &s.text, err);
	if (r >= 0)
		r = yaml_parse(s.text, str_from(is_stdin ? "<stdin>" : path), NULL, a, &s.docs,
			       err);
	if (r < 0)
		return r;
	s.is_json = looks_like_json(s.text);
	s.patches = arena_array(a, struct patch, s.docs.n + 1);
	for (size_t i = 0; i < s.docs.n; i++)
		if (!patch_init(&s.patches[i], a))
			return err_set(err, ENOMEM, "not enough memory");
	list->items = arena_reserve(a, list->items, list->n, &list->cap, sizeof(s));
	list->items[list->n++] = s;
	return 0;
}

struct reading {
	struct arena *a;
	struct source_list list;
};

static int visit(void *data, const char *path, struct err *err)
{
	struct reading *to = data;

	return read_file(path, to->a, &to->list, err);
}

int sources_read(const struct option_list *paths, struct arena *a, struct source_list *ret,
		 struct err *err)
{
	struct reading to = { .a = a };
	int r = 0;

	for (size_t i = 0; i < paths->n && r >= 0; i++)
		r = manifests_walk(paths->items[i], a, visit, &to, err);
	if (r < 0)
		return r;
	*ret = to.list;
	return 0;
}

bool source_is_changed(const struct source *s)
{
	for (size_t i = 0; i < s->docs.n; i++)
		if (!patch_is_empty(&s->patches[i]))
			return true;
	return false;
}

static int patched_docs(const struct source *s, struct arena *a, yyjson_val ***ret, struct err *err)
{
	yyjson_val **docs = arena_array(a, yyjson_val *, s->docs.n + 1);
	int r = 0;

	for (size_t i = 0; i < s->docs.n && r >= 0; i++)
		r = patch_apply(&s->patches[i], s->docs.items[i].root, a, &docs[i], err);
	*ret = docs;
	return r;
}

/* The splice must mean exactly what the patches say; otherwise it is not used. */
static bool spliced(const struct source *s, yyjson_val **want, struct arena *a, struct str *ret)
{
	struct doc_list got;
	struct str text;

	if (!yaml_edit_text(s->text, &s->docs, s->patches, a, &text) ||
	    yaml_parse(text, STR(""), NULL, a, &got, NULL) < 0 || got.n != s->docs.n)
		return false;
	for (size_t i = 0; i < got.n; i++)
		if (!yyjson_equals(got.items[i].root, want[i]))
			return false;
	*ret = text;
	return true;
}

static int written_anew(const struct source *s, yyjson_val **docs, struct arena *a, struct str *ret,
			struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < s->docs.n; i++) {
		struct str text;
		int r = s->is_json ? doc_write_val(docs[i], true, a, &text, err) :
				     yaml_write_val(docs[i], a, &text, err);

		if (r < 0)
			return r;
		if (i)
			strbuf_add(&b, STR("---\n"));
		strbuf_add(&b, text);
		if (s->is_json)
			strbuf_addc(&b, '\n');
	}
	*ret = strbuf_str(&b);
	return 0;
}

int source_text(const struct source *s, struct arena *a, struct str *ret, bool *ret_is_anew,
		struct err *err)
{
	yyjson_val **docs;
	int r;

	*ret_is_anew = false;
	*ret = s->text;
	if (!source_is_changed(s))
		return 0;
	r = patched_docs(s, a, &docs, err);
	if (r < 0 || (!s->is_json && spliced(s, docs, a, ret)))
		return r;
	*ret_is_anew = true;
	return written_anew(s, docs, a, ret, err);
}

int source_write(const struct source *s, struct str text, struct err *err)
{
	struct stat st;

	if (stat(s->path, &st) != 0)
		return err_set(err, errno, "%s: %s", s->path, strerror(errno));
	return file_replace_at(AT_FDCWD, s->path, text, st.st_mode & 07777, err);
}
