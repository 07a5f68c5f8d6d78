#include "host_files_read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "host/host_dirs.h"

const char *host_file_path(const char *root, struct str path, struct arena *a)
{
	return str_cstr(a, str_printf(a, "%s" PRI_STR, host_prefix(root), FMT_STR(path)));
}

struct str host_file_content(const char *root, const char *path, struct arena *a)
{
	struct str text;

	if (file_read_at(AT_FDCWD, host_file_path(root, str_from(path), a), HOST_FILE_MAX, a, &text,
			 NULL) < 0)
		return STR("");
	return text;
}

/* In a container a file is seen when the directory of the host that contains it was mounted: the
 * first two parts of its path exist, or /etc is that of a host as a whole. */
static bool is_seen(const char *root, struct str path, struct arena *a)
{
	size_t n = 0, slashes = 0;

	if (strcmp(root, "/") == 0)
		return true;
	if (str_starts(path, STR("/etc/")) &&
	    access(host_file_path(root, STR("/etc/passwd"), a), F_OK) == 0)
		return true;
	while (n < path.n && (path.p[n] != '/' || slashes++ < 2))
		n++;
	return access(host_file_path(root, (struct str){ path.p, n }, a), F_OK) == 0;
}

bool host_has_line(struct str text, struct str line)
{
	struct str_split split = str_split(text);
	struct str each;

	while (str_next(&split, '\n', &each))
		if (str_eq(each, line))
			return true;
	return false;
}

static bool has_lines(struct str text, struct str lines)
{
	struct str_split wanted = str_split(lines);
	struct str line;

	while (str_next(&wanted, '\n', &line))
		if (line.n && !host_has_line(text, line))
			return false;
	return true;
}

static enum host_file_state state_of(const char *root, const struct host_file *f)
{
	CLEANUP(arena_done) struct arena a;
	const char *path;
	struct str text;
	int r;

	arena_init(&a, 0);
	path = host_file_path(root, f->path, &a);
	if (!is_seen(root, f->path, &a))
		return HOST_FILE_UNSEEN;
	r = file_read_at(AT_FDCWD, path, HOST_FILE_MAX, &a, &text, NULL);
	if (r == -ENOENT || r == -ENOTDIR)
		return f->is_absent ? HOST_FILE_SAME : HOST_FILE_MISSING;
	if (f->is_absent)
		return HOST_FILE_LEFT;
	if (r < 0)
		return HOST_FILE_DIFFERS;
	if (f->is_by_hand)
		return has_lines(text, f->bytes) ? HOST_FILE_SAME : HOST_FILE_DIFFERS;
	return str_eq(text, f->bytes) ? HOST_FILE_SAME : HOST_FILE_DIFFERS;
}

/* What `tuned-adm profile pinfold` writes. */
void host_files_choose_tuned(const char *root, struct host_files *files)
{
	const bool has_tuned =
		access(host_file_path(root, STR(HOST_TUNED_CHOICE), files->a), F_OK) == 0;
	size_t kept = 0;

	if (has_tuned && files->has_profile && files->n) {
		host_files_add(files, (struct host_file){ .path = STR(HOST_TUNED_CHOICE),
							  .mode = 0644,
							  .bytes = STR("pinfold\n") });
		host_files_add(files, (struct host_file){ .path = STR("/etc/tuned/profile_mode"),
							  .mode = 0644,
							  .bytes = STR("manual\n") });
	}
	for (size_t i = 0; i < files->n; i++)
		if (has_tuned || files->items[i].is_original ||
		    !str_starts(files->items[i].path, STR("/etc/tuned/")))
			files->items[kept++] = files->items[i];
	files->n = kept;
}

void host_files_read(const char *root, struct host_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		files->items[i].state = state_of(root, &files->items[i]);
}

void host_files_add_originals(struct host_files *files, const struct files_record *record)
{
	for (size_t i = 0; i < record->n; i++) {
		const struct file_original *o = &record->items[i];

		if (!host_files_find(files, o->path))
			host_files_add(files, (struct host_file){ .path = o->path,
								  .mode = o->mode,
								  .bytes = o->bytes,
								  .is_absent = !o->existed,
								  .is_original = true,
								  .class = o->class });
	}
}

/* A file that cannot be read is not replaced: it could not be restored. */
static int record_original(const char *root, const struct host_file *f, struct files_record *record,
			   struct err *err)
{
	struct file_original o = { .path = f->path, .class = f->class };
	const char *path = host_file_path(root, f->path, record->a);
	struct stat st;
	int r;

	if (f->is_original || files_record_find(record, f->path))
		return 0;
	r = file_read_at(AT_FDCWD, path, HOST_FILE_MAX, record->a, &o.bytes, err);
	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return r;
	o.existed = r == 0;
	if (o.existed && stat(path, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	o.mode = o.existed ? st.st_mode & 07777u : 0;
	files_record_add(record, o);
	return 0;
}

static int write_file(const char *root, const struct host_file *f, struct arena *a, struct err *err)
{
	const char *path = host_file_path(root, f->path, a);
	const char *slash = strrchr(path, '/');
	int r;

	if (f->is_absent) {
		if (unlink(path) < 0 && errno != ENOENT)
			return err_set(err, errno, "remove %s: %s", path, strerror(errno));
		return 0;
	}
	r = file_mkdirs_at(AT_FDCWD, str_cstr(a, (struct str){ path, (size_t)(slash - path) }),
			   0755, err);
	return r < 0 ? r : file_replace_at(AT_FDCWD, path, f->bytes, f->mode, err);
}

static bool is_to_write(const struct host_file *f, enum host_file_class class)
{
	return f->class == class && !f->is_by_hand && f->state != HOST_FILE_SAME &&
	       f->state != HOST_FILE_UNSEEN;
}

int host_files_write(const char *root, const char *state_dir, const struct host_files *files,
		     enum host_file_class class, struct files_record *record, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < files->n && r == 0; i++)
		if (is_to_write(&files->items[i], class))
			r = record_original(root, &files->items[i], record, err);
	if (r == 0)
		r = files_record_save(record, state_dir, err);
	for (size_t i = 0; i < files->n && r == 0; i++)
		if (is_to_write(&files->items[i], class))
			r = write_file(root, &files->items[i], record->a, err);
	return r;
}

void host_files_forget(const struct host_files *files, struct files_record *record)
{
	for (size_t i = 0; i < files->n; i++)
		if (files->items[i].is_original && files->items[i].state == HOST_FILE_SAME)
			files_record_forget(record, files->items[i].path);
}

struct str host_unit_invocation(const char *root, struct str unit, struct arena *a)
{
	const char *path = host_file_path(
		root, str_printf(a, "/run/systemd/units/invocation:" PRI_STR, FMT_STR(unit)), a);
	char id[64];
	ssize_t n = readlink(path, id, sizeof(id));

	return n > 0 ? str_dup(a, (struct str){ id, (size_t)n }) : STR("");
}
