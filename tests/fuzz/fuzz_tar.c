/* Archives of support bundles: never a crash, a refusal has a sentence, and every name that is
 * accepted is safe, its content inside the input. What is read can be written and read again. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle/saved_bundle.h"
#include "bundle/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct tar_list *list, struct arena *a)
{
	struct tar_list again = { 0 };
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++)
		tar_add(&b, &list->items[i], 0);
	tar_end(&b);
	if (b.failed || !list->n)
		return;
	if (tar_parse(strbuf_str(&b), STR("f"), a, &again, NULL) < 0 || again.n != list->n)
		abort();
	for (size_t i = 0; i < list->n; i++)
		if (!str_eq(again.items[i].name, list->items[i].name) ||
		    !str_eq(again.items[i].bytes, list->items[i].bytes))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	const struct str text = { (const char *)data, size };
	struct saved_bundle bundle;
	struct err err = { 0 };
	struct tar_list list;
	int r;

	arena_init(&a, (size_t)64 << 20);
	r = tar_parse(text, STR("f"), &a, &list, &err);
	if (r < 0) {
		if (err.code != -r || !err.msg[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < list.n; i++)
		if (!tar_name_is_safe(list.items[i].name) || list.items[i].bytes.p < text.p ||
		    list.items[i].bytes.p + list.items[i].bytes.n > text.p + text.n)
			abort();
	check_again(&list, &a);
	if (saved_bundle_parse(text, STR("f"), &a, &bundle, &err) >= 0) {
		struct str *nodes;
		size_t n;

		saved_bundle_nodes(&bundle, &a, &nodes, &n);
		if (!saved_bundle_find(&bundle, STR(BUNDLE_INDEX)))
			abort();
	}
	return 0;
}
