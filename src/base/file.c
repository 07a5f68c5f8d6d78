/* System calls on files, with retries after signals and messages that name the file. See file.h for
 * which function fits which kind of file. */

#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "err.h"
#include "macro.h"

static int fail_errno(struct err *err, const char *verb, const char *path)
{
	int code = errno;

	return err_set(err, code, "%s %s: %s", verb, path, strerror(code));
}

static int too_large(struct err *err, const char *name, size_t max)
{
	return err_set(err, EFBIG, "%s: larger than %zu bytes", name, max);
}

enum { READ_END, READ_SHORT, READ_FULL };

/* One read: READ_SHORT means that the buffer was not filled. */
static int read_more(int fd, const char *name, size_t max, struct strbuf *b, struct err *err)
{
	char *space = strbuf_reserve(b, 4096);
	/* All free space, not only the reserved part: the buffer doubles, so reads grow with the
	 * file. */
	const size_t size = b->cap - b->n;
	ssize_t n;

	if (!space)
		return err_set(err, ENOMEM, "%s: not enough memory", name);
	do
		n = read(fd, space, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail_errno(err, "read", name);
	b->n += (size_t)n;
	if (b->n > max)
		return too_large(err, name, max);
	return n == 0 ? READ_END : (size_t)n < size ? READ_SHORT : READ_FULL;
}

int file_read_fd(int fd, const char *name, size_t max, struct arena *a, struct str *ret,
		 struct err *err)
{
	struct strbuf b;
	struct stat st;
	int r;

	/* Only an early refusal. A pipe and files in /proc have no size, and a file may grow while
	 * it is read, so read_more() checks again. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size > max)
		return too_large(err, name, max);
	strbuf_init(&b, a);
	do
		r = read_more(fd, name, max, &b, err);
	while (r > READ_END);
	if (r < 0)
		return r;
	*ret = strbuf_str(&b);
	return 0;
}

static int read_value(int fd, const char *path, size_t max, struct arena *a, struct str *ret,
		      struct err *err)
{
	struct strbuf b;
	int r;

	strbuf_init(&b, a);
	do
		r = read_more(fd, path, max, &b, err);
	while (r == READ_FULL);
	if (r < 0)
		return r;
	*ret = strbuf_str(&b);
	return 0;
}

int file_read_value_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		       struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fail_errno(err, "open", path);
	return read_value(fd, path, max, a, ret, err);
}

int file_read_at(int dirfd, const char *path, size_t max, struct arena *a, struct str *ret,
		 struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return fail_errno(err, "open", path);
	return file_read_fd(fd, path, max, a, ret, err);
}

/* O_TRUNC has no effect on control files. Tests use regular files in their place, where a shorter
 * value must not leave the end of the old one. */
#define VALUE_FLAGS (O_TRUNC | O_CLOEXEC)

static int write_value(int fd, const char *path, struct str text, struct err *err)
{
	ssize_t n;

	do
		n = write(fd, text.p, text.n);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail_errno(err, "write", path);
	/* Not continued with a second write: the kernel would take the rest as a value of its own.
	 */
	if ((size_t)n != text.n)
		return err_set(err, EIO, "write %s: %zd of %zu bytes", path, n, text.n);
	return 0;
}

int file_write_value_at(int dirfd, const char *path, struct str text, struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, path, O_WRONLY | VALUE_FLAGS);

	if (fd < 0)
		return fail_errno(err, "open", path);
	return write_value(fd, path, text, err);
}

int file_exchange_value_at(int dirfd, const char *path, struct str text, size_t max,
			   struct arena *a, struct str *ret, struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, path, O_RDWR | VALUE_FLAGS);
	int r;

	if (fd < 0)
		return fail_errno(err, "open", path);
	r = write_value(fd, path, text, err);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return fail_errno(err, "seek", path);
	return read_value(fd, path, max, a, ret, err);
}

int file_write_fd(int fd, struct str text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);

		if (n == 0)
			errno = EIO; /* not expected, but would repeat without end */
		if (n == 0 || (n < 0 && errno != EINTR))
			return -1;
		if (n > 0)
			text = str_skip(text, (size_t)n);
	}
	return 0;
}

int file_create_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err)
{
	AUTO_CLOSE int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return fail_errno(err, "create", path);
	if (fchmod(fd, mode) < 0) /* the mode of a state file must not depend on the umask */
		return fail_errno(err, "chmod", path);
	if (file_write_fd(fd, text) < 0)
		return fail_errno(err, "write", path);
	return 0;
}

static int write_synced(int dirfd, const char *path, struct str text, mode_t mode, struct err *err)
{
	int r = file_create_at(dirfd, path, text, mode, err);

	if (r < 0)
		return r;

	/* fsync() writes all pages of the file, also those of the descriptor that is closed now. */
	AUTO_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return fail_errno(err, "sync", path);
	return 0;
}

/* A rename is an entry in the directory: without fsync of the directory it can be lost in a crash
 * although the caller was told that the file is replaced. */
static int sync_parent_of(int dirfd, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char parent[4096] = ".";

	if (slash)
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	if (slash == path)
		(void)snprintf(parent, sizeof(parent), "/");

	AUTO_CLOSE int fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return fail_errno(err, "open", parent);
	if (fsync(fd) < 0)
		return fail_errno(err, "sync", parent);
	return 0;
}

int file_replace_at(int dirfd, const char *path, struct str text, mode_t mode, struct err *err)
{
	char temporary[4096];
	int r;

	/* A fixed suffix: a crash leaves at most one stale file, and the next write removes it. */
	r = snprintf(temporary, sizeof(temporary), "%s.pinfold-new", path);
	if (r < 0 || (size_t)r >= sizeof(temporary))
		return err_set(err, ENAMETOOLONG, "%s: name too long", path);
	if (unlinkat(dirfd, temporary, 0) < 0 && errno != ENOENT)
		return fail_errno(err, "remove", temporary);
	/* The bytes must be on disk before the rename: file systems may write the new name first,
	 * and after a crash it would name an empty file. The temporary file is in the same
	 * directory because rename() does not work across file systems. */
	r = write_synced(dirfd, temporary, text, mode, err);
	if (r >= 0 && renameat(dirfd, temporary, dirfd, path) < 0)
		r = fail_errno(err, "rename to", path);
	if (r < 0) {
		(void)unlinkat(dirfd, temporary, 0);
		return r;
	}
	return sync_parent_of(dirfd, path, err);
}

int file_mkdirs_at(int dirfd, const char *path, mode_t mode, struct err *err)
{
	char part[4096];
	size_t len = strlen(path);
	struct stat st;

	if (len >= sizeof(part))
		return err_set(err, ENAMETOOLONG, "%s: name too long", path);
	memcpy(part, path, len + 1);
	/* From 1 on: the part before a leading slash is empty. */
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		/* mkdir first, then check: another process may create the directory between a check
		 * and mkdir. */
		if (mkdirat(dirfd, part, mode) < 0 &&
		    (errno != EEXIST || fstatat(dirfd, part, &st, 0) < 0 || !S_ISDIR(st.st_mode)))
			return fail_errno(err, "mkdir", part);
		part[i] = path[i];
	}
	return 0;
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

int file_list_at(int dirfd, const char *path, struct arena *a, struct str **ret, size_t *ret_n,
		 struct err *err)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close_dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct str *names = NULL;
	size_t n = 0, cap = 0;
	struct dirent *entry;

	if (!dir) {
		int r = fail_errno(err, "open", path);

		if (fd >= 0)
			(void)close(fd);
		return r;
	}
	/* readdir() returns NULL at the end and on failure; only errno distinguishes them. */
	while ((errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		names = arena_reserve(a, names, n, &cap, sizeof(*names));
		if (!names)
			return err_set(err, ENOMEM, "%s: not enough memory", path);
		names[n++] = str_dup(a, str_from(entry->d_name));
	}
	if (errno)
		return fail_errno(err, "read", path);
	if (a->failed)
		return err_set(err, ENOMEM, "%s: not enough memory", path);
	if (n)
		qsort(names, n, sizeof(*names), str_order);
	*ret = names;
	*ret_n = n;
	return 0;
}
