#include "files_seen.h"

#include <sys/stat.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "distro/distro.h"
#include "files_follow.h"
#include "files_record.h"
#include "host_files_read.h"

/* Every write of a file changes one of these; a rename changes the first. */
struct metadata {
	uint64_t inode, size, mode;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};

static uint64_t add_file(const char *path, uint64_t hash)
{
	struct metadata m = { 0 };
	struct stat st;

	if (stat(path, &st) == 0)
		m = (struct metadata){ st.st_ino,	  (uint64_t)st.st_size, st.st_mode,
				       st.st_mtim.tv_sec, st.st_mtim.tv_nsec,	st.st_ctim.tv_sec,
				       st.st_ctim.tv_nsec };
	return xxh64((struct str){ (const char *)&m, sizeof(m) }, hash);
}

static uint64_t add_unit(const struct files_settings *s, const char *unit, struct arena *a,
			 uint64_t hash)
{
	if (!unit)
		return hash;
	return xxh64(host_unit_invocation(s->root, str_from(unit), a), hash + 1);
}

uint64_t files_seen(const struct files_settings *settings, const struct host_files *files,
		    bool has_crio)
{
	static const struct str others[] = { STR_INIT(HOST_KERNEL_ARGS_APPLIED),
					     STR_INIT(HOST_TUNED_CHOICE),
					     STR_INIT(HOST_REBOOT_SENTINEL) };
	const struct distro *d = settings->distro;
	const struct distro crio = distro_on_crio(d);
	CLEANUP(arena_done) struct arena a;
	uint64_t hash = 0;

	arena_init(&a, 0);
	hash = add_file(str_cstr(&a, str_printf(&a, "%s/" FILES_RECORD, settings->state_dir)),
			hash);
	for (size_t i = 0; i < files->n; i++)
		hash = add_file(host_file_path(settings->root, files->items[i].path, &a), hash);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		hash = add_file(host_file_path(settings->root, others[i], &a), hash);
	for (size_t i = 0; i < ARRAY_LEN(d->kubelet_units); i++)
		hash = add_unit(settings, d->kubelet_units[i], &a, hash);
	return add_unit(settings, has_crio ? crio.runtime_unit : d->runtime_unit, &a, hash);
}
