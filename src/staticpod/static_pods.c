/* Files for a manifest X, all in the same directory, because rename(2) is atomic only within a file
 * system: ".X.pinfold-keep" is an original that is being written, ".X.pinfold-original" a complete
 * one, ".X.pinfold-new" the converted text before the exchange and the replaced text after it.
 * Every step is synced before the next one begins, so that complete_change() can tell from the
 * files alone where a crash interrupted it. */

#include "static_pods.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"

/* The kubelet ignores files whose name begins with a dot. */
#define ORIGINAL_SUFFIX ".pinfold-original"
#define NEW_SUFFIX ".pinfold-new"
#define KEEP_SUFFIX ".pinfold-keep"

static int failed(struct err *err, const char *verb, const char *name)
{
	const int code = errno;

	return err_set(err, code, "%s %s: %s", verb, name, strerror(code));
}

static const char *beside(const char *name, const char *suffix, struct arena *a)
{
	return str_cstr(a, str_printf(a, ".%s%s", name, suffix));
}

/* "etcd.yaml" of ".etcd.yaml.pinfold-new"; NULL when it has another suffix. */
static const char *owner_of(struct str hidden, struct str suffix, struct arena *a)
{
	if (!str_starts(hidden, STR(".")) || !str_ends(hidden, suffix) || hidden.n <= suffix.n + 1)
		return NULL;
	return str_cstr(a, (struct str){ hidden.p + 1, hidden.n - suffix.n - 1 });
}

/* The list for the status. */

static struct static_entry *entry_of(struct static_pods *s, const char *file, bool add)
{
	size_t at = 0;

	while (at < s->n && strcmp(s->items[at].file, file) < 0)
		at++;
	if (at < s->n && strcmp(s->items[at].file, file) == 0)
		return &s->items[at];
	if (!add)
		return NULL;
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->items = realloc(s->items, s->cap * sizeof(*s->items));
		if (!s->items)
			abort();
	}
	memmove(&s->items[at + 1], &s->items[at], (s->n++ - at) * sizeof(*s->items));
	s->items[at] = (struct static_entry){ .file = strdup(file) };
	return &s->items[at];
}

static void forget(struct static_pods *s, const char *file)
{
	struct static_entry *e = entry_of(s, file, false);

	if (!e)
		return;
	free(e->file);
	free(e->pod);
	free(e->why);
	s->n--;
	memmove(e, e + 1, (size_t)(s->items + s->n - e) * sizeof(*e));
	s->is_changed = true;
}

static char *copy(struct str s)
{
	char *p = strndup(s.n ? s.p : "", s.n);

	if (!p)
		abort();
	return p;
}

static void update_entry(struct static_pods *s, const char *file, const struct static_decision *d)
{
	/* Called after the manifest was replaced. */
	const enum static_verdict verdict = d->verdict == STATIC_CONVERT ? STATIC_CONVERTED :
									   d->verdict;
	struct static_entry *e;

	if (d->verdict == STATIC_UNMANAGED) {
		forget(s, file);
		return;
	}
	e = entry_of(s, file, true);
	if (e->why && e->verdict == verdict && str_eq(str_from(e->pod), d->pod) &&
	    strcmp(e->why, d->why.msg) == 0)
		return; /* unchanged */
	free(e->pod);
	free(e->why);
	e->pod = copy(d->pod);
	e->why = copy(str_from(d->why.msg));
	e->verdict = verdict;
	s->is_changed = true;
}

struct file {
	struct str text;
	struct stat st;
};

/* The kernel grants no read lease on a file that is open for writing (EAGAIN). On file systems
 * without leases it fails otherwise, and an incomplete manifest shows only by its text. */
static bool is_being_written(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
		return false;
	return errno == EAGAIN;
}

/* -ELOOP for a symbolic link: a rename would replace the link and not its target. */
static int read_file(int dir, const char *name, struct arena *a, struct file *ret, struct err *err)
{
	/* O_NONBLOCK: opening a FIFO would wait for a writer. */
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct file f = { 0 };
	int r;

	if (fd < 0)
		return failed(err, "open", name);
	if (fstat(fd, &f.st) < 0)
		return failed(err, "stat", name);
	if (!S_ISREG(f.st.st_mode))
		return err_set(err, EISDIR, "%s: not a regular file", name);
	if (is_being_written(fd))
		return err_set(err, EAGAIN, "%s: is being written", name);
	/* While the lease is held, a process that opens the file for writing waits: the text is one
	 * version. */
	r = file_read_fd(fd, name, STATIC_MANIFEST_MAX_SIZE, a, &f.text, err);
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	if (r == 0)
		*ret = f;
	return r;
}

static int sync_dir(int dir, struct err *err)
{
	return fsync(dir) < 0 ? failed(err, "sync", "the manifest directory") : 0;
}

/* Sets owner and group as on another file. Without CAP_CHOWN fchown() fails with EPERM: it is not
 * called when nothing would change, and otherwise a manifest with another owner is accepted. */
static int copy_owner(int fd, const struct stat *like)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if (st.st_uid == like->st_uid && st.st_gid == like->st_gid)
		return 0;
	return fchown(fd, like->st_uid, like->st_gid) < 0 && errno != EPERM ? -1 : 0;
}

/* A complete, synced file under a hidden name, with the owner and the mode of another file. */
static int write_hidden(int dir, const char *name, struct str text, const struct stat *like,
			struct err *err)
{
	int r;

	/* A crash may have left this file; file_create_at() requires that it does not exist. */
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return failed(err, "remove", name);
	r = file_create_at(dir, name, text, like->st_mode & 07777, err);
	if (r < 0)
		return r;

	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || copy_owner(fd, like) < 0 || fsync(fd) < 0)
		return failed(err, "write", name);
	return 0;
}

static int write_original(int dir, const char *name, struct str text, const struct stat *like,
			  struct arena *a, struct err *err)
{
	const char *temporary = beside(name, KEEP_SUFFIX, a);
	int r = write_hidden(dir, temporary, text, like, err);

	if (r < 0)
		return r;
	if (renameat(dir, temporary, dir, beside(name, ORIGINAL_SUFFIX, a)) < 0)
		return failed(err, "rename", temporary);
	return sync_dir(dir, err);
}

static int remove_file(int dir, const char *name, struct err *err)
{
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return failed(err, "remove", name);
	return 0;
}

static bool has_text(int dir, const char *name, struct str text, struct arena *a)
{
	struct file f = { 0 };

	return read_file(dir, name, a, &f, NULL) == 0 && str_eq(f.text, text);
}

/* *ret_is_ours: the temporary file, if it is there, has the text of write_hidden() and not another
 * process's.
 * RENAME_EXCHANGE swaps both names at once, so the replaced text can be checked afterwards. With
 * the manifest as first argument, inotify reports its removal before its creation, which the
 * kubelet needs to see the file again. */
static int exchange(int dir, const char *name, const char *temporary, struct str expected,
		    struct arena *a, bool *ret_is_ours, struct err *err)
{
	*ret_is_ours = true;
	if (renameat2(dir, name, dir, temporary, RENAME_EXCHANGE) == 0) {
		if (has_text(dir, temporary, expected, a))
			return remove_file(dir, temporary, err);
		*ret_is_ours = false;
		if (renameat(dir, temporary, dir, name) < 0)
			return err_set(err, errno,
				       "%s was changed by another process, and its new text stays "
				       "in %s: rename: %s",
				       name, temporary, strerror(errno));
		return err_set(err, EAGAIN, "%s: was changed by another process", name);
	}
	/* File systems without RENAME_EXCHANGE: compared before the rename, a change between these
	 * two calls is lost. */
	if (errno != EINVAL && errno != ENOSYS)
		return failed(err, "rename", temporary);
	if (!has_text(dir, name, expected, a))
		return err_set(err, EAGAIN, "%s: was changed by another process", name);
	return renameat(dir, temporary, dir, name) < 0 ? failed(err, "rename", temporary) : 0;
}

static int replace_manifest(int dir, const char *name, const struct file *was, struct str text,
			    struct arena *a, struct err *err)
{
	const char *temporary = beside(name, NEW_SUFFIX, a);
	bool is_ours = true;
	int r;

	r = write_hidden(dir, temporary, text, &was->st, err);
	if (r == 0)
		r = exchange(dir, name, temporary, was->text, a, &is_ours, err);
	/* After -EAGAIN the hidden file is gone, or the next write_hidden() removes it. */
	if (r < 0 && r != -EAGAIN && is_ours)
		(void)unlinkat(dir, temporary, 0);
	return r < 0 ? r : sync_dir(dir, err);
}

/* False when no original was saved. */
static bool read_original(int dir, const char *name, struct arena *a, struct str *ret)
{
	struct file f = { 0 };

	if (read_file(dir, beside(name, ORIGINAL_SUFFIX, a), a, &f, NULL) < 0)
		return false;
	*ret = f.text;
	return true;
}

static int decide_manifest(const struct static_pods *s, const char *name, const struct file *f,
			   struct arena *a, struct static_decision *ret, struct err *err)
{
	struct str original = { 0 };
	const bool has_original = read_original(s->dir_fd, name, a, &original);

	if (static_manifest_decide(f->text, has_original ? &original : NULL, str_from(name),
				   s->is_legacy, a, ret) < 0)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	return 0;
}

/* The original is saved before the manifest is replaced, so that a crash loses nothing. */
static int apply_decision(int dir, const char *name, const struct file *f,
			  const struct static_decision *d, struct arena *a, struct err *err)
{
	int r = 0;

	if (d->keep == STATIC_ORIGINAL_WRITE)
		r = write_original(dir, name, d->original, &f->st, a, err);
	else if (d->keep == STATIC_ORIGINAL_DROP)
		r = remove_file(dir, beside(name, ORIGINAL_SUFFIX, a), err);
	if (r == 0 && d->verdict == STATIC_CONVERT)
		r = replace_manifest(dir, name, f, d->text, a, err);
	return r;
}

int static_pods_visit(struct static_pods *s, const char *name, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct static_decision d = { 0 };
	struct err why = { 0 };
	struct file f = { 0 };
	int r;

	arena_init(&a, 0);
	if (!static_manifest_is_read(name))
		return 0;
	r = read_file(s->dir_fd, name, &a, &f, &why);
	if (r == -ENOENT || r == -EISDIR) { /* removed, or not a manifest */
		forget(s, name);
		return 0;
	}
	/* The kubelet may read such a file although it is not converted: it is shown in the
	 * status. */
	if (r == -ELOOP || r == -EFBIG) {
		d = (struct static_decision){ .verdict = STATIC_BROKEN, .why = why };
		if (r == -ELOOP)
			(void)err_set(&d.why, ELOOP, "%s: a symbolic link, not converted", name);
		update_entry(s, name, &d);
		return 0;
	}
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	r = decide_manifest(s, name, &f, &a, &d, err);
	if (r < 0)
		return r;
	r = apply_decision(s->dir_fd, name, &f, &d, &a, &why);
	if (r < 0 && r != -EAGAIN) { /* it runs unconverted: show it in the status */
		d.verdict = STATIC_REFUSED;
		d.why = why;
	}
	if (r < 0 && err)
		*err = why;
	if (r == -EAGAIN)
		return r;
	s->n_converted += d.verdict == STATIC_CONVERT;
	update_entry(s, name, &d);
	return r;
}

/* Completes an interrupted replacement. Before the exchange the hidden file has the new text,
 * perhaps incomplete; after it, the previous text of the manifest: the original, or what another
 * process wrote in between, which is moved back. */
static int complete_change(struct static_pods *s, const char *name, struct arena *a,
			   struct err *err)
{
	const char *temporary = beside(name, NEW_SUFFIX, a);
	struct static_decision d = { 0 };
	struct str original = { 0 };
	struct file now = { 0 }, left = { 0 };

	if (!read_original(s->dir_fd, name, a, &original) ||
	    read_file(s->dir_fd, name, a, &now, NULL) < 0 ||
	    read_file(s->dir_fd, temporary, a, &left, NULL) < 0)
		return remove_file(s->dir_fd, temporary, err);
	if (static_manifest_decide(original, NULL, str_from(name), s->is_legacy, a, &d) < 0)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	if (d.verdict != STATIC_CONVERT || !str_eq(d.text, now.text) ||
	    str_eq(left.text, original) || str_eq(left.text, now.text))
		return remove_file(s->dir_fd, temporary, err);
	/* The manifest has the converted text, and the hidden file has neither text: another
	 * process replaced the manifest just before the exchange. */
	if (renameat(s->dir_fd, temporary, s->dir_fd, name) < 0)
		return failed(err, "rename", temporary);
	return 0;
}

static int complete_changes(struct static_pods *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str *names = NULL;
	size_t n = 0;
	int r;

	arena_init(&a, 0);
	r = file_list_at(s->dir_fd, ".", &a, &names, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const char *name = owner_of(names[i], STR(NEW_SUFFIX), &a);

		if (name)
			r = complete_change(s, name, &a, err);
		else if (owner_of(names[i], STR(KEEP_SUFFIX), &a))
			r = remove_file(s->dir_fd, str_cstr(&a, names[i]), err);
	}
	return r;
}

int static_pods_scan(struct static_pods *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str *names = NULL;
	size_t n = 0;
	int r, worst = 0;

	arena_init(&a, 0);
	r = complete_changes(s, err);
	if (r == 0)
		r = file_list_at(s->dir_fd, ".", &a, &names, &n, err);
	if (r < 0)
		return r;
	/* Backwards, because forget() moves the later entries. */
	for (size_t i = s->n; i-- > 0;) { /* files that were removed */
		struct stat st;

		if (fstatat(s->dir_fd, s->items[i].file, &st, AT_SYMLINK_NOFOLLOW) < 0)
			forget(s, s->items[i].file);
	}
	for (size_t i = 0; i < n; i++) {
		r = static_pods_visit(s, str_cstr(&a, names[i]), err);
		/* -EAGAIN is returned before other failures: the caller then scans again soon. */
		if (r < 0 && worst != -EAGAIN)
			worst = r;
	}
	return worst;
}

static int restore_manifest(struct static_pods *s, const char *name, struct arena *a,
			    struct err *err)
{
	const char *original = beside(name, ORIGINAL_SUFFIX, a);
	struct static_decision d = { 0 };
	struct file f = { 0 };
	int r;

	r = read_file(s->dir_fd, name, a, &f, err);
	if (r == -ENOENT) /* the manifest was removed */
		return remove_file(s->dir_fd, original, err);
	if (r == 0)
		r = decide_manifest(s, name, &f, a, &d, err);
	if (r < 0)
		return r;
	if (d.verdict == STATIC_BROKEN)
		return err_set(err, EINVAL, "%s; the original is in %s", d.why.msg, original);
	if (d.verdict == STATIC_CONVERT || d.keep == STATIC_ORIGINAL_DROP)
		return remove_file(s->dir_fd, original, err); /* the manifest is not converted */
	if (d.keep == STATIC_ORIGINAL_WRITE)
		r = write_original(s->dir_fd, name, d.original, &f.st, a, err);
	/* One rename restores the manifest and removes the original. */
	if (r == 0 && renameat(s->dir_fd, original, s->dir_fd, name) < 0)
		r = failed(err, "rename", original);
	return r < 0 ? r : 1;
}

int static_pods_restore(struct static_pods *s, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str *names = NULL;
	size_t n = 0;
	int r, restored = 0;

	arena_init(&a, 0);
	r = complete_changes(s, err);
	if (r == 0)
		r = file_list_at(s->dir_fd, ".", &a, &names, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		const char *name = owner_of(names[i], STR(ORIGINAL_SUFFIX), &a);

		if (!name)
			continue;
		r = restore_manifest(s, name, &a, err);
		restored += r > 0;
	}
	if (r >= 0)
		r = sync_dir(s->dir_fd, err);
	return r < 0 ? r : restored;
}

int static_pods_open(struct static_pods *s, const char *path, struct err *err)
{
	*s = (struct static_pods){
		.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
	(void)signal(SIGIO, SIG_IGN);
	return s->dir_fd < 0 ? failed(err, "open", path) : 0;
}

void static_pods_done(struct static_pods *s)
{
	while (s->n > 0)
		forget(s, s->items[s->n - 1].file);
	free(s->items);
	if (s->dir_fd >= 0)
		(void)close(s->dir_fd);
	*s = (struct static_pods){ .dir_fd = -1 };
}

void static_pods_describe(const struct static_pods *s, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *list = doc_put_arr(doc, root, STR("staticPods"));

	for (size_t i = 0; i < s->n; i++) {
		const struct static_entry *e = &s->items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);

		doc_put_str(doc, v, STR("file"), str_from(e->file));
		doc_put_str(doc, v, STR("pod"), str_from(e->pod));
		doc_put_str(doc, v, STR("state"), str_from(static_verdict_name(e->verdict)));
		if (*e->why)
			doc_put_str(doc, v, STR("reason"), str_from(e->why));
	}
}
