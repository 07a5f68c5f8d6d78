/* Manifests of every kind, through layout and both renderers: never a crash; what is accepted
 * renders, and every problem is one line. */

#include <stdlib.h>
#include <string.h>

#include "../unit/manifests_text.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "distro/distro.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/host.h"
#include "render/openshift.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* No path leaves the output directory. A name may have two dots in it. */
static bool stays_inside(struct str path)
{
	struct str_split parts = str_split(path);
	struct str part;

	if (!path.n || path.p[0] == '/')
		return false;
	while (str_next(&parts, '/', &part))
		if (str_eq(part, STR("..")))
			return false;
	return true;
}

static void render_all(struct layout *layout, enum distro_id distro, struct problem_list *p,
		       struct arena *a)
{
	const struct openshift_options openshift = { .kubelet = { .fill_reservations = true } };
	const struct host_options host = { .quota_keys = true, .distro = distro_get(distro) };
	struct file_set files;
	struct err err = { 0 };

	file_set_init(&files, a);
	require(openshift_render(layout, &openshift, &files, p, &err) == 0);
	require(host_render(layout, &host, &files, p, &err) == 0);
	for (size_t i = 0; i < files.n; i++)
		require(stays_inside(files.items[i].path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	const struct layout_options options = { .plain_hosts = size % 2 };
	struct str text = { (const char *)data, size };
	struct problem_list p;
	struct manifests ms;
	struct layout layout;

	arena_init(&a, 0);
	manifests_init(&ms, &a);
	problem_list_init(&p, &a);
	manifests_from_text(&ms, text, STR("input"), &p);
	layout_resolve(&ms, &options, &a, &layout, &p);
	if (!p.n_errors)
		render_all(&layout, size % DISTRO__COUNT, &p, &a);
	for (size_t i = 0; i < p.n; i++)
		require(p.items[i].text.n && !memchr(p.items[i].text.p, '\n', p.items[i].text.n));
	return 0;
}
