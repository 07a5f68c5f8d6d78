/* YAML streams: whatever is read can be written as YAML, and what was written reads back as the
 * same document. */

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct str as_json(struct arena *a, yyjson_val *v)
{
	struct err err = { 0 };
	struct str text;

	must(doc_write_val(v, false, a, &text, &err) == 0);
	return text;
}

static void check_document(struct arena *a, const struct doc *doc)
{
	struct err err = { 0 };
	struct doc_list again;
	struct str text;

	must(doc->n_values > 0 && doc_position(doc, doc->root).line >= 1);
	must(yaml_write_val(doc->root, a, &text, &err) == 0);
	must(yaml_parse(text, STR("again"), NULL, a, &again, &err) == 0);
	must(again.n == 1);
	must(str_eq(as_json(a, again.items[0].root), as_json(a, doc->root)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Small limits, so that a fuzzer finds them. */
	const struct doc_limits limits = {
		.depth = 20, .nodes = 2000, .alias_nodes = 200, .documents = 20
	};
	struct str text = { (const char *)data, size };
	struct err err = { 0 };
	struct doc_list docs;
	struct arena a;

	arena_init(&a, 64 << 20);
	if (yaml_parse(text, STR("f"), &limits, &a, &docs, &err) == 0)
		for (size_t i = 0; i < docs.n; i++)
			check_document(&a, &docs.items[i]);
	else
		must(err.code && err.msg[0]);
	arena_done(&a);
	return 0;
}
