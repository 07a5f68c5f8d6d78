/* Topology files: JSON, hwloc XML and synthetic strings. Never a crash; what is accepted survives
 * its own JSON form, and CPUs can be picked on it. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/pick.h"
#include "cpu/topology_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_machine(const struct topology *t, struct arena *a)
{
	const struct pick_request half = { .n_cpus = t->n_cpus / 2, .distributed = true };
	struct topology back;
	struct cpuset got;
	struct str text;

	require(t->n_cpus > 0 && cpuset_count(&t->online) == t->n_cpus);
	require(doc_write(topology_to_doc(t, doc_build(a), a), false, a, &text, NULL) == 0);
	if (topology_parse_json(text, STR("back"), a, &back, NULL) == 0) /* ids may be too large */
		require(topology_hash(t) == topology_hash(&back));
	require(pick_cpus(t, &t->online, &half, &got, NULL) == 0);
	require(cpuset_count(&got) == t->n_cpus / 2 && cpuset_is_subset(&got, &t->online));
}

/* hwloc needs a minute for thousands of children of one parent ("8000"): such input is skipped. */
static bool is_slow(struct str text)
{
	unsigned digits = 0;

	if (str_starts(str_trim(text), STR("{")) || str_starts(str_trim(text), STR("<")))
		return false;
	for (size_t i = 0; i < text.n && digits < 4; i++)
		digits = text.p[i] >= '0' && text.p[i] <= '9' ? digits + 1 : 0;
	return digits == 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a = { 0 };
	struct str text = { (const char *)data, size };
	struct topology t = { .n_cpus = 4242 };
	struct err err = { 0 };
	int r;

	if (is_slow(text))
		return 0;
	if (str_starts(str_trim(text), STR("<"))) /* hwloc may crash there, we may not */
		r = topology_parse_child(text, STR("fuzz"), &a, &t, &err);
	else
		r = topology_parse(text, STR("fuzz"), &a, &t, &err);
	if (r == 0)
		check_machine(&t, &a);
	else
		require(r < 0 && err.code == -r && err.msg[0] && t.n_cpus == 4242);
	require(!strchr(err.msg, '\n')); /* errors are one line */
	return 0;
}
