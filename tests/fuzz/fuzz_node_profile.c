/* Profiles of an API server: trimming and deciding never crash, a trimmed profile trims to the
 * same, and pools that are kept on disk are read back. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology_read.h"
#include "partition/node_profile.h"
#include "pin/kept_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static yyjson_val *parse(struct str text, struct arena *a)
{
	struct doc doc;

	return doc_parse(text, STR("profile"), NULL, a, &doc, NULL) == 0 ? doc.root : NULL;
}

static void keep(const struct node_profile *p, struct arena *a)
{
	const struct kept_profile kept = { p->name, p->generation, p->pools, p->profile };
	struct kept_profile back;
	struct str text;

	require(kept_profile_encode(&kept, a, &text, NULL) == 0);
	require(kept_profile_decode(text, STR("kept"), a, &back, NULL) == 0);
	require(str_eq(back.name, p->name) && pool_config_eq(&back.pools, &p->pools));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct kept_profile kept;
	struct node_profile p;
	struct str once, twice;
	yyjson_val *profile;
	struct topology t;

	arena_init(&a, 0);
	require(topology_read("numa:2 core:4 pu:2", &a, &t, NULL) == 0);
	(void)kept_profile_decode((struct str){ (const char *)data, size }, STR("kept"), &a, &kept,
				  NULL);
	profile = parse((struct str){ (const char *)data, size }, &a);
	if (!profile || node_profile_trim(profile, &a, &once, NULL) < 0)
		return 0;
	profile = parse(once, &a);
	require(profile != NULL);
	node_profile_decide(&profile, 1, doc_find(profile, "/spec/nodeSelector"), &t, &a, &p);
	if (p.state == PROFILE_SELECTED && p.name.n)
		keep(&p, &a);
	require(p.state != PROFILE_INVALID || p.message.n > 0);
	require(node_profile_trim(profile, &a, &twice, NULL) == 0);
	require(doc_get(profile, STR("tooLarge")) || str_eq(once, twice));
	return 0;
}
