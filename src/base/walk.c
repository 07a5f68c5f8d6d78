/* Recursive visit of directories in a fixed order: the output of a command must not depend on the
 * order in which the file system lists names. */

#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "arena.h"
#include "err.h"
#include "file.h"

/* Bounds the recursion. Links to directories are not followed, so there are no endless loops. */
#define WALK_MAX_DEPTH 32

static int walk_path(const struct walk *w, const char *path, unsigned depth, struct err *err);

static bool is_wanted(const struct walk *w, const char *path, unsigned depth, bool is_directory)
{
	return !depth || !w->is_wanted ||
	       w->is_wanted(str_from(strrchr(path, '/') + 1), is_directory);
}

static int walk_directory(const struct walk *w, const char *path, unsigned depth, struct err *err)
{
	const char *slash = str_ends(str_from(path), STR("/")) ? "" : "/";
	struct str *names;
	size_t n;
	int r;

	if (depth == WALK_MAX_DEPTH)
		return err_set(err, ELOOP, "%s: directories are nested too deeply", path);
	r = file_list_at(AT_FDCWD, path, w->a, &names, &n, err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct str below = str_printf(w->a, "%s%s" PRI_STR, path, slash, FMT_STR(names[i]));

		r = walk_path(w, str_cstr(w->a, below), depth + 1, err);
	}
	return r;
}

static int walk_path(const struct walk *w, const char *path, unsigned depth, struct err *err)
{
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	/* Broken links are skipped like links to directories: Emacs locks files with them. */
	if (S_ISLNK(st.st_mode) && (stat(path, &st) < 0 || S_ISDIR(st.st_mode)))
		return 0;
	if (!is_wanted(w, path, depth, S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISDIR(st.st_mode))
		return walk_directory(w, path, depth, err);
	/* A path that the user named is visited whatever it is: it may be a pipe (/dev/stdin). */
	if (S_ISREG(st.st_mode) || !depth)
		return w->visit(w->data, path, err);
	return 0;
}

int walk_files(const struct walk *w, const char *path, struct err *err)
{
	return walk_path(w, path, 0, err);
}
