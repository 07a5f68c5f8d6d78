#include "bundle_build.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "tar.h"

void bundle_build_init(struct bundle_build *b, size_t max_bytes, struct arena *a)
{
	*b = (struct bundle_build){ .a = a, .max_bytes = max_bytes };
}

void bundle_build_leave_out(struct bundle_build *b, struct str what, struct str why)
{
	b->omissions = arena_reserve(b->a, b->omissions, b->n_omissions, &b->cap_omissions,
				     sizeof(*b->omissions));
	b->omissions[b->n_omissions++] = (struct bundle_omission){ what, why };
}

void bundle_build_source(struct bundle_build *b, struct str source)
{
	b->sources = arena_one_more(b->a, b->sources, b->n_sources, sizeof(*b->sources));
	b->sources[b->n_sources++] = source;
}

static void add_file(struct bundle_build *b, struct str path, struct str bytes)
{
	b->files = arena_reserve(b->a, b->files, b->n, &b->cap, sizeof(*b->files));
	b->files[b->n++] = (struct bundle_file){ path, bytes };
	b->used_bytes += bytes.n;
}

bool bundle_build_add(struct bundle_build *b, struct str path, struct str bytes)
{
	if (bytes.n > BUNDLE_MAX_FILE || b->used_bytes + bytes.n > b->max_bytes) {
		bundle_build_leave_out(
			b, path,
			bytes.n > BUNDLE_MAX_FILE ?
				str_printf(b->a, "%zu bytes: a file has at most %zu", bytes.n,
					   BUNDLE_MAX_FILE) :
				str_printf(b->a,
					   "%zu bytes: the bundle has reached its size (%zu bytes)",
					   bytes.n, b->max_bytes));
		return false;
	}
	add_file(b, path, bytes);
	return true;
}

bool bundle_build_add_doc(struct bundle_build *b, struct str path, yyjson_mut_val *v)
{
	struct str text;
	struct err err;

	if (doc_write(v, true, b->a, &text, &err) < 0) {
		bundle_build_leave_out(b, path, str_dup(b->a, str_from(err.msg)));
		return false;
	}
	return bundle_build_add(b, path, str_printf(b->a, PRI_STR "\n", FMT_STR(text)));
}

struct str bundle_path_part(struct str name, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (str_is_alnum(c) || c == '-' || c == '_' || (c == '.' && i > 0))
			strbuf_addc(&b, c);
		else
			strbuf_printf(&b, "%%%02X", (unsigned char)c);
	}
	return b.n ? strbuf_str(&b) : STR("unnamed");
}

static struct str time_text(int64_t now_s, struct arena *a)
{
	const time_t now = (time_t)now_s;
	struct tm tm;

	(void)gmtime_r(&now, &tm);
	return str_printf(a, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
			  tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static yyjson_mut_val *index_of(const struct bundle_build *b, struct str version, int64_t now_s,
				yyjson_mut_doc *m)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list, *item;

	doc_put_str(m, root, STR("apiVersion"), STR(BUNDLE_API));
	doc_put_str(m, root, STR("kind"), STR(BUNDLE_KIND));
	doc_put_int(m, root, STR("format"), BUNDLE_FORMAT);
	doc_put_str(m, root, STR("created"), time_text(now_s, b->a));
	doc_put_str(m, root, STR("version"), version);
	list = doc_put_arr(m, root, STR("sources"));
	for (size_t i = 0; i < b->n_sources; i++)
		yyjson_mut_arr_append(list, doc_new_str(m, b->sources[i]));
	list = doc_put_arr(m, root, STR("files"));
	for (size_t i = 0; i < b->n; i++) {
		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_str(m, item, STR("path"), b->files[i].path);
		doc_put_int(m, item, STR("bytes"), (int64_t)b->files[i].bytes.n);
	}
	list = doc_put_arr(m, root, STR("leftOut"));
	for (size_t i = 0; i < b->n_omissions; i++) {
		item = yyjson_mut_arr_add_obj(m, list);
		doc_put_str(m, item, STR("what"), b->omissions[i].what);
		doc_put_str(m, item, STR("why"), b->omissions[i].why);
	}
	return root;
}

int bundle_build_finish(struct bundle_build *b, struct str version, int64_t now_s, struct err *err)
{
	struct str text;
	int r = doc_write(index_of(b, version, now_s, doc_build(b->a)), true, b->a, &text, err);

	if (r >= 0) /* also into a full bundle: what is left out must be known */
		add_file(b, STR(BUNDLE_INDEX), str_printf(b->a, PRI_STR "\n", FMT_STR(text)));
	return r;
}

struct str bundle_build_tar(const struct bundle_build *b, struct str directory, int64_t now_s,
			    struct arena *a)
{
	struct strbuf out;

	strbuf_init(&out, a);
	/* The index first: a reader of a stream knows at once what it is. */
	for (size_t i = b->n; i-- > 0;)
		tar_add(&out,
			&(struct tar_member){ str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(directory),
							 FMT_STR(b->files[i].path)),
					      b->files[i].bytes },
			now_s);
	tar_end(&out);
	return strbuf_str(&out);
}

static int write_one(const struct bundle_build *b, int fd, const struct bundle_file *f,
		     struct err *err)
{
	const char *path = str_cstr(b->a, f->path), *slash = strrchr(path, '/');
	int r = 0;

	if (slash)
		r = file_mkdirs_at(fd, str_cstr(b->a, (struct str){ path, (size_t)(slash - path) }),
				   0700, err);
	return r < 0 ? r : file_create_at(fd, path, f->bytes, 0600, err);
}

int bundle_build_write(const struct bundle_build *b, const char *directory, struct err *err)
{
	AUTO_CLOSE int fd = -1;
	int r = 0;

	if (mkdir(directory, 0700) < 0)
		return err_set(err, errno, "create %s: %s", directory, strerror(errno));
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "open %s: %s", directory, strerror(errno));
	for (size_t i = 0; i < b->n && r >= 0; i++)
		r = write_one(b, fd, &b->files[i], err);
	return r;
}
