#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "codec/doc.h"
#include "profile/manifests.h"

#define INPUT_MAX_DEPTH 32

static int read_file(struct manifests *ms, const char *path, struct problem_list *p,
		     struct err *err)
{
	struct str text;
	int r = file_read_at(AT_FDCWD, path, DOC_MAX_SIZE, ms->a, &text, err);

	if (r < 0)
		return r;
	manifests_add(ms, text, str_from(path), p);
	return 0;
}

static int read_path(struct manifests *ms, const char *path, unsigned depth, struct problem_list *p,
		     struct err *err);

static int read_dir(struct manifests *ms, const char *path, unsigned depth, struct problem_list *p,
		    struct err *err)
{
	size_t n, length = strlen(path);
	struct str *names;
	int r;

	if (depth > INPUT_MAX_DEPTH)
		return err_set(err, ELOOP, "%s: too many directories deep", path);
	r = file_list_at(AT_FDCWD, path, ms->a, &names, &n, err);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct str child = str_printf(ms->a, "%s%s" PRI_STR, path,
					      length && path[length - 1] == '/' ? "" : "/",
					      FMT_STR(names[i]));

		r = read_path(ms, str_cstr(ms->a, child), depth + 1, p, err);
	}
	return r;
}

static int read_path(struct manifests *ms, const char *path, unsigned depth, struct problem_list *p,
		     struct err *err)
{
	struct stat st;

	/* What was named may be a link; what is found below it may not lead out of it. */
	if (fstatat(AT_FDCWD, path, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISLNK(st.st_mode) && (stat(path, &st) < 0 || S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISDIR(st.st_mode))
		return read_dir(ms, path, depth, p, err);
	if (S_ISREG(st.st_mode) || !depth)
		return read_file(ms, path, p, err);
	return 0;
}

int input_read(struct manifests *ms, const char *path, struct problem_list *p, struct err *err)
{
	return read_path(ms, str_cstr(ms->a, str_from(path)), 0, p, err);
}

int input_read_list(struct manifests *ms, const char *paths, struct problem_list *p,
		    struct err *err)
{
	struct str_split split = str_split(str_from(paths));
	struct str path;
	int r = 0;

	while (r == 0 && str_next(&split, ',', &path))
		r = input_read(ms, str_cstr(ms->a, path), p, err);
	return r;
}
