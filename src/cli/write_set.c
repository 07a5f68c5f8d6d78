/* Two ways to write all files or none. A new or empty directory is prepared beside and renamed,
 * which is atomic. A directory with other files in it cannot be replaced: its files are staged
 * under other names, and renamed one by one only when all of them are on the disk. */

#include "write_set.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "render/file_set.h"

#define STAGED ".pinfold-new" /* in the same directory: rename(2) needs one file system */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* The directory part of a relative path; "" when there is none. */
static struct str parent_of(struct str path)
{
	size_t n = path.n;

	while (n && path.p[n - 1] != '/')
		n--;
	return (struct str){ path.p, n ? n - 1 : 0 };
}

static struct str name_of(struct str path)
{
	size_t n = parent_of(path).n;

	return str_skip(path, n ? n + 1 : 0);
}

/* Opens the directory of a path below `root`, and makes it. A symbolic link is an error: with the
 * rights of this process, another user could redirect the files with it. */
static int open_parent(int root, struct str path, struct arena *a, int *ret, struct err *err)
{
	AUTO_CLOSE int fd = dup(root);
	struct str_split split = str_split(parent_of(path));
	struct str part;

	while (fd >= 0 && str_next(&split, '/', &part)) {
		const char *name = str_cstr(a, part);
		int next;

		if (!part.n)
			continue;
		if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
			return err_set(err, errno, PRI_STR ": %s", FMT_STR(path), strerror(errno));
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
			return err_set(err, ENOTDIR,
				       PRI_STR ": %s is a symbolic link or a file, not a directory",
				       FMT_STR(path), name);
		(void)close(fd);
		fd = next;
	}
	if (fd < 0)
		return err_set(err, errno, PRI_STR ": %s", FMT_STR(path), strerror(errno));
	*ret = fd;
	fd = -1; /* the caller's; NOLINT(clang-analyzer-deadcode.DeadStores): read by AUTO_CLOSE */
	return 0;
}

static int write_one(int root, const struct rendered_file *file, const char *suffix,
		     struct arena *a, struct err *err)
{
	AUTO_CLOSE int dir = -1;
	const char *name =
		str_cstr(a, str_printf(a, PRI_STR "%s", FMT_STR(name_of(file->path)), suffix));
	int r = open_parent(root, file->path, a, &dir, err);

	if (r < 0)
		return r;
	if (*suffix)
		(void)unlinkat(dir, name, 0); /* left by a run that was killed */
	return file_create_at(dir, name, file->bytes, (mode_t)file->mode, err);
}

static int write_all(const struct file_set *files, const char *dir, const char *suffix,
		     struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", dir, strerror(errno));
	for (size_t i = 0; i < files->n && r == 0; i++)
		r = write_one(fd, &files->items[i], suffix, files->a, err);
	return r < 0 ? err_wrap(err, "%s", dir) : 0;
}

static int write_beside(const struct file_set *files, const char *dir, struct err *err)
{
	char *temporary = NULL;
	mode_t mask = umask(0); /* the only way to read it */
	int r;

	(void)umask(mask);
	if (asprintf(&temporary, "%s.XXXXXX", dir) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (!mkdtemp(temporary)) {
		r = err_set(err, errno, "%s: %s", temporary, strerror(errno));
		free(temporary);
		return r;
	}
	(void)chmod(temporary, 0777 & ~mask); /* mkdtemp() makes it 0700 */
	r = write_all(files, temporary, "", err);
	if (r == 0 && rename(temporary, dir) < 0)
		r = err_set(err, errno, "%s: %s", dir, strerror(errno));
	if (r < 0)
		(void)nftw(temporary, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(temporary);
	return r;
}

/* Renames a staged file, or removes it when another one could not be written. */
static int finish_staged(int root, const struct rendered_file *file, bool is_written,
			 struct arena *a, struct err *err)
{
	AUTO_CLOSE int dir = -1;
	const char *to = str_cstr(a, name_of(file->path));
	const char *from = str_printf(a, "%s" STAGED, to).p;
	int r = open_parent(root, file->path, a, &dir, err);

	if (r < 0)
		return r;
	if (!is_written)
		(void)unlinkat(dir, from, 0);
	else if (renameat(dir, from, dir, to) < 0)
		return err_set(err, errno, PRI_STR ": %s", FMT_STR(file->path), strerror(errno));
	return 0;
}

/* For a directory with files in it, and for one that is a mount point and cannot be renamed. */
static int write_into(const struct file_set *files, const char *dir, struct err *err)
{
	AUTO_CLOSE int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root < 0)
		return err_set(err, errno, "%s: %s", dir, strerror(errno));
	r = write_all(files, dir, STAGED, err);
	for (size_t i = 0; i < files->n; i++) {
		int done = finish_staged(root, &files->items[i], r == 0, files->a,
					 r == 0 ? err : NULL);

		r = r == 0 ? done : r;
	}
	return r;
}

/* Failures of a rename that writing into the directory itself does not have. */
static bool needs_no_rename(int r)
{
	return r == -EBUSY || r == -EXDEV || r == -EACCES || r == -EPERM || r == -EROFS;
}

int write_set(const struct file_set *files, const char *dir, bool force, struct err *err)
{
	struct arena *a = files->a;
	struct str path = str_from(dir), *names, parent;
	bool exists;
	size_t n = 0;
	int r;

	/* With "out/" the temporary directory would be created inside it. */
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	dir = str_cstr(a, path);

	r = file_list_at(AT_FDCWD, dir, a, &names, &n, err);
	exists = r == 0;
	if (r < 0 && r != -ENOENT)
		return r;
	if (n && !force)
		return err_set(err, ENOTEMPTY, "%s is not empty (--force replaces files in it)",
			       dir);
	if (n)
		return write_into(files, dir, err);
	parent = parent_of(path);
	if (parent.n && !exists) {
		r = file_mkdirs_at(AT_FDCWD, str_cstr(a, parent), 0777, err);
		if (r < 0)
			return r;
	}
	r = write_beside(files, dir, err);
	return exists && needs_no_rename(r) ? write_into(files, dir, err) : r;
}
