#include "bundle_load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/walk.h"
#include "tar.h"

struct directory_load {
	struct arena *a;
	size_t prefix; /* length of the directory's path and a slash */
	size_t used_bytes;
	struct bundle_file *files;
	size_t n, cap;
};

static bool has_index(const char *path)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	return file_read_at(AT_FDCWD, str_printf(&a, "%s/" BUNDLE_INDEX, path).p, BUNDLE_MAX_FILE,
			    &a, &text, NULL) == 0 &&
	       saved_bundle_is_index(text, &a);
}

bool bundle_at(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char block[TAR_BLOCK];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return has_index(path);
	if (!S_ISREG(st.st_mode)) /* what a pipe has can be read only once */
		return false;
	n = pread(fd, block, sizeof(block), 0);
	/* A compressed one is recognised for the sake of the message. */
	return (n == sizeof(block) && tar_is((struct str){ block, sizeof(block) })) ||
	       (n >= 2 && memcmp(block, "\037\213", 2) == 0);
}

static int load_one(void *data, const char *path, struct err *err)
{
	struct directory_load *l = data;
	struct bundle_file f = { .path = str_from(path + l->prefix) };
	struct stat st;
	int r;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (l->n == TAR_MAX_MEMBERS || l->used_bytes + (size_t)st.st_size > BUNDLE_MAX_BYTES)
		return err_set(err, EFBIG, "the bundle has more than %zu MiB or %d files",
			       BUNDLE_MAX_BYTES >> 20, TAR_MAX_MEMBERS);
	r = file_read_at(AT_FDCWD, path, BUNDLE_MAX_BYTES, l->a, &f.bytes, err);
	if (r < 0)
		return r;
	l->used_bytes += f.bytes.n;
	l->files = arena_reserve(l->a, l->files, l->n, &l->cap, sizeof(f));
	l->files[l->n++] = f;
	return 0;
}

int bundle_load(const char *path, struct arena *a, struct saved_bundle *ret, struct err *err)
{
	const bool ends_in_slash = str_ends(str_from(path), STR("/"));
	struct directory_load l = { .a = a, .prefix = strlen(path) + !ends_in_slash };
	struct str bytes = { 0 };
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		r = walk_files(&(struct walk){ .a = a, .visit = load_one, .data = &l }, path, err);
		return r < 0 ? r : saved_bundle_open(l.files, l.n, str_from(path), a, ret, err);
	}
	r = file_read_at(AT_FDCWD, path, BUNDLE_MAX_BYTES, a, &bytes, err);
	return r < 0 ? r : saved_bundle_parse(bytes, str_from(path), a, ret, err);
}
