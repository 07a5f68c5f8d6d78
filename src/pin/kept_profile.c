/* {"name":"worker","generation":4,"pools":{...},"resize":"defer","profile":{...}}: the pools as in
 * the ledger's state, which leaves out what a resize does. */

#include "kept_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "kube/names.h"

int kept_profile_encode(const struct kept_profile *kept, struct arena *a, struct str *ret,
			struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	(void)doc_put_str(m, root, STR("name"), kept->name);
	(void)doc_put_int(m, root, STR("generation"), kept->generation);
	(void)doc_put(m, root, STR("pools"), pool_config_to_doc(&kept->pools, m, a));
	if (kept->pools.defers_resize)
		(void)doc_put_str(m, root, STR(NAME_POOLS_RESIZE_KEY),
				  STR(NAME_POOLS_RESIZE_DEFER));
	(void)doc_put(m, root, STR("profile"), yyjson_val_mut_copy(m, kept->profile));
	return doc_write(root, false, a, ret, err);
}

int kept_profile_decode(struct str text, struct str file, struct arena *a, struct kept_profile *ret,
			struct err *err)
{
	struct kept_profile kept = { 0 };
	struct doc doc;
	int r;

	r = doc_parse(text, file, NULL, a, &doc, err);
	if (r == 0)
		r = pool_config_from_doc(&doc, doc_get(doc.root, STR("pools")), &kept.pools, err);
	if (r < 0)
		return r;
	kept.name = doc_str(doc_get(doc.root, STR("name")));
	kept.profile = doc_get(doc.root, STR("profile"));
	if (!kept.name.n || !doc_int(doc_get(doc.root, STR("generation")), &kept.generation))
		return doc_err(err, &doc, doc.root, "no name or no generation");
	kept.pools.fold_rest = true; /* as partition_pools() has it */
	kept.pools.defers_resize = str_eq(doc_str(doc_get(doc.root, STR(NAME_POOLS_RESIZE_KEY))),
					  STR(NAME_POOLS_RESIZE_DEFER));
	*ret = kept;
	return 0;
}

static const char *path_in(const char *state_dir, struct arena *a)
{
	return str_cstr(a, str_printf(a, "%s/" KEPT_PROFILE_FILE, state_dir));
}

int kept_profile_read(const char *state_dir, struct arena *a, struct kept_profile *ret,
		      struct err *err)
{
	const char *path = path_in(state_dir, a);
	struct str text;
	int r = file_read_at(AT_FDCWD, path, KEPT_PROFILE_MAX_BYTES, a, &text, err);

	return r < 0 ? r : kept_profile_decode(text, str_from(path), a, ret, err);
}

int kept_profile_write(const char *state_dir, struct str text, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	int r;

	arena_init(&a, 0);
	r = file_mkdirs_at(AT_FDCWD, state_dir, 0700, err);
	return r < 0 ? r : file_replace_at(AT_FDCWD, path_in(state_dir, &a), text, 0600, err);
}

int kept_profile_remove(const char *state_dir, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	const char *path;

	arena_init(&a, 0);
	path = path_in(state_dir, &a);
	if (unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_set(err, errno, "remove %s: %s", path, strerror(errno));
	return 0;
}
