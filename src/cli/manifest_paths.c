/* Operands and -f mean the same, so that shell patterns and scripts both work. */

#include "manifest_paths.h"

#include "base/arena.h"
#include "bundle/manifest_load.h"
#include "command.h"
#include "profile/manifests.h"

struct option_list manifest_paths(const struct invocation *inv, const struct option_list *files)
{
	struct option_list all = { .items = arena_array(inv->arena, const char *,
							inv->args.n + files->n + 1) };

	for (size_t i = 0; i < inv->args.n; i++)
		all.items[all.n++] = inv->args.items[i];
	for (size_t i = 0; i < files->n; i++)
		all.items[all.n++] = files->items[i];
	return all;
}

int manifests_read(struct manifests *ms, const struct option_list *paths, struct problem_list *p,
		   struct err *err)
{
	struct manifest_files files;
	struct manifest_list objects;
	/* With `p`, a file that does not parse is a problem with its position and not the end. */
	int r = manifest_load(paths, ms->a, p, &files, err);

	if (r < 0)
		return r;
	objects = manifest_files_objects(&files, ms->a);
	manifests_add(ms, &objects, p);
	return 0;
}
