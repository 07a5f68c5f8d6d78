/* JSON documents: whatever is read can be walked, located and written, and what was written reads
 * back as the same text. */

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static struct str rewrite(struct arena *a, struct str text, bool pretty)
{
	struct err err = { 0 };
	struct doc doc;

	must(doc_parse(text, STR("again"), NULL, a, &doc, &err) == 0);
	must(doc_write_val(doc.root, pretty, a, &text, &err) == 0);
	return text;
}

/* Calls every accessor on every value; depth is bounded by the reader. */
static void walk(const struct doc *doc, yyjson_val *v)
{
	struct doc_pos pos = doc_position(doc, v);
	yyjson_val *key, *value;
	int64_t n;

	must(pos.line >= 1 && pos.column >= 1);
	(void)doc_int(v, &n);
	(void)doc_bool(v, true);
	must(doc_text(v).n >= doc_str(v).n);
	must(*doc_type(v));
	DOC_EACH_ITEM (v, value)
		walk(doc, value);
	DOC_EACH_PAIR (v, key, value) {
		must(doc_get(v, doc_str(key)));
		walk(doc, value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, compact;
	struct err err = { 0 };
	struct arena a;
	struct doc doc;

	arena_init(&a, 64 << 20);
	if (doc_parse(text, STR("f"), NULL, &a, &doc, &err) == 0) {
		if (size < 1000) /* positions cost a look at the whole text each */
			walk(&doc, doc.root);
		(void)doc_check_keys(&doc, &a, &err);
		must(doc_write_val(doc.root, false, &a, &compact, &err) == 0);
		must(str_eq(rewrite(&a, compact, false), compact));
		must(str_eq(rewrite(&a, rewrite(&a, compact, true), false), compact));
	} else {
		must(err.code && err.msg[0]);
	}
	arena_done(&a);
	return 0;
}
