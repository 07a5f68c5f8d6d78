#include "saved_bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "tar.h"

static int by_path(const void *x, const void *y)
{
	const struct bundle_file *a = x, *b = y;

	return str_cmp(a->path, b->path);
}

static bool is_bundle(yyjson_val *index)
{
	return str_eq(doc_str(doc_get(index, STR("kind"))), STR(BUNDLE_KIND)) &&
	       str_eq(doc_str(doc_get(index, STR("apiVersion"))), STR(BUNDLE_API));
}

bool saved_bundle_is_index(struct str text, struct arena *a)
{
	struct doc doc;

	return doc_parse(text, STR(BUNDLE_INDEX), NULL, a, &doc, NULL) == 0 && is_bundle(doc.root);
}

/* "pinfold-bundle-20261117/", which an archive has so that it is extracted to one directory. */
static struct str common_directory(const struct bundle_file *files, size_t n)
{
	const char *slash = n ? memchr(files[0].path.p, '/', files[0].path.n) : NULL;
	struct str directory = { 0 };

	if (!slash)
		return directory;
	directory = (struct str){ files[0].path.p, (size_t)(slash - files[0].path.p) + 1 };
	for (size_t i = 0; i < n; i++)
		if (!str_starts(files[i].path, directory))
			return (struct str){ 0 };
	return directory;
}

static int check_paths(const struct saved_bundle *b, struct err *err)
{
	for (size_t i = 0; i < b->n; i++) {
		if (!tar_name_is_safe(b->files[i].path))
			return err_set(err, EINVAL, PRI_STR ": refused because of a file named %s",
				       FMT_STR(b->name), quote(b->files[i].path).text);
		if (i && str_eq(b->files[i].path, b->files[i - 1].path))
			return err_set(err, EINVAL, PRI_STR ": %s occurs twice", FMT_STR(b->name),
				       quote(b->files[i].path).text);
	}
	return 0;
}

static int read_index(struct saved_bundle *b, struct arena *a, struct err *err)
{
	int64_t format = 0;
	int r = saved_bundle_doc(b, STR(BUNDLE_INDEX), a, &b->index, err);

	if (r == -ENOENT || (r >= 0 && !is_bundle(b->index.root)))
		return err_set(err, EINVAL,
			       PRI_STR ": not a support bundle: it has no " BUNDLE_INDEX
				       " of kind " BUNDLE_KIND,
			       FMT_STR(b->name));
	if (r < 0)
		return r;
	(void)doc_int(doc_get(b->index.root, STR("format")), &format);
	if (format != BUNDLE_FORMAT)
		return err_set(err, EINVAL,
			       PRI_STR ": the bundle has format %lld, and this program reads "
				       "format %d",
			       FMT_STR(b->name), (long long)format, BUNDLE_FORMAT);
	b->created = doc_str(doc_get(b->index.root, STR("created")));
	b->version = doc_str(doc_get(b->index.root, STR("version")));
	return 0;
}

int saved_bundle_open(struct bundle_file *files, size_t n, struct str name, struct arena *a,
		      struct saved_bundle *ret, struct err *err)
{
	const struct str directory = common_directory(files, n);
	struct saved_bundle b = { .name = name, .files = files, .n = n };
	int r;

	for (size_t i = 0; i < n; i++)
		files[i].path = str_skip(files[i].path, directory.n);
	if (n)
		qsort(files, n, sizeof(*files), by_path);
	r = check_paths(&b, err);
	if (r >= 0)
		r = read_index(&b, a, err);
	if (r >= 0)
		*ret = b;
	return r;
}

int saved_bundle_parse(struct str bytes, struct str name, struct arena *a, struct saved_bundle *ret,
		       struct err *err)
{
	struct bundle_file *files;
	struct tar_list list;
	int r;

	if (bytes.n >= 2 && memcmp(bytes.p, "\037\213", 2) == 0)
		return err_set(err, EINVAL,
			       PRI_STR ": the bundle is compressed: decompress it with gunzip",
			       FMT_STR(name));
	r = tar_parse(bytes, name, a, &list, err);
	if (r < 0)
		return r;
	files = arena_array(a, struct bundle_file, list.n + 1);
	if (!files)
		return err_set(err, ENOMEM, PRI_STR ": out of memory", FMT_STR(name));
	for (size_t i = 0; i < list.n; i++)
		files[i] = (struct bundle_file){ list.items[i].name, list.items[i].bytes };
	return saved_bundle_open(files, list.n, name, a, ret, err);
}

const struct bundle_file *saved_bundle_find(const struct saved_bundle *b, struct str path)
{
	const struct bundle_file key = { .path = path };

	return b->n ? bsearch(&key, b->files, b->n, sizeof(key), by_path) : NULL;
}

struct str saved_bundle_position(const struct saved_bundle *b, struct str path, struct arena *a)
{
	return str_printf(a, PRI_STR ":" PRI_STR, FMT_STR(b->name), FMT_STR(path));
}

int saved_bundle_doc(const struct saved_bundle *b, struct str path, struct arena *a,
		     struct doc *ret, struct err *err)
{
	const struct bundle_file *f = saved_bundle_find(b, path);

	if (!f)
		return err_set(err, ENOENT, PRI_STR ": the bundle has no " PRI_STR,
			       FMT_STR(b->name), FMT_STR(path));
	return doc_parse(f->bytes, saved_bundle_position(b, path, a), NULL, a, ret, err);
}

int saved_bundle_each_object(const struct saved_bundle *b, struct arena *a, bundle_object_fn visit,
			     void *context, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < b->n && r >= 0; i++) {
		yyjson_val *object;
		struct doc doc;

		if (!str_starts(b->files[i].path, STR(BUNDLE_OBJECTS)))
			continue;
		r = saved_bundle_doc(b, b->files[i].path, a, &doc, err);
		if (r < 0)
			return r;
		DOC_EACH_ITEM (doc_get(doc.root, STR("items")), object) {
			r = visit(context, object, err);
			if (r < 0)
				break;
		}
	}
	return r;
}

/* The directory below nodes/ that a file is in; "": none. */
static struct str node_of(struct str path)
{
	const char *slash;

	if (!str_starts(path, STR(BUNDLE_NODES)))
		return STR("");
	path = str_skip(path, sizeof(BUNDLE_NODES) - 1);
	slash = memchr(path.p, '/', path.n);
	return slash ? (struct str){ path.p, (size_t)(slash - path.p) } : STR("");
}

void saved_bundle_nodes(const struct saved_bundle *b, struct arena *a, struct str **ret,
			size_t *ret_n)
{
	struct str *names = arena_array(a, struct str, b->n + 1);
	size_t n = 0;

	/* Sorted by path, so the files of a node are adjacent. */
	for (size_t i = 0; i < b->n; i++) {
		const struct str node = node_of(b->files[i].path);

		if (node.n && (!n || !str_eq(names[n - 1], node)))
			names[n++] = node;
	}
	*ret = names;
	*ret_n = n;
}

int saved_bundle_node(const struct saved_bundle *b, const char *wanted, struct arena *a,
		      struct str *ret, struct err *err)
{
	struct str *names;
	size_t n;

	saved_bundle_nodes(b, a, &names, &n);
	if (!n)
		return err_set(err, ENOENT,
			       PRI_STR ": the bundle has no data of a node's agent (run pinfold "
				       "bundle on the node)",
			       FMT_STR(b->name));
	if (!wanted && n == 1) {
		*ret = names[0];
		return 0;
	}
	if (!wanted)
		return err_set(err, EINVAL,
			       PRI_STR ": the bundle has data of %zu nodes: select one with --node",
			       FMT_STR(b->name), n);
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], str_from(wanted))) {
			*ret = names[i];
			return 0;
		}
	return err_set(err, ENOENT, PRI_STR ": the bundle has no data of node %s", FMT_STR(b->name),
		       quote(str_from(wanted)).text);
}

struct str saved_bundle_node_path(struct str node, const char *file, struct arena *a)
{
	return str_printf(a, BUNDLE_NODES PRI_STR "/%s", FMT_STR(node), file);
}
