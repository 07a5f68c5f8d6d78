#pragma once

/* Loads tests/vectors/<name>.json. A test replays every row and checks the number of rows, so that
 * an empty or renamed table cannot pass. */

#include <fcntl.h>

#include "base/arena.h"
#include "base/file.h"
#include "codec/doc.h"
#include "test.h"

static inline yyjson_val *vectors_load(const char *name, struct arena *a)
{
	struct err err = { 0 };
	struct str text;
	struct doc doc;

	CHECK_OK(file_read_at(AT_FDCWD, test_data(name), DOC_MAX_SIZE, a, &text, &err));
	CHECK_OK(doc_parse(text, str_from(name), NULL, a, &doc, &err));
	return doc.root;
}

static inline void vectors_count(const char *what, size_t got, size_t least)
{
	TEST_NOTE("%zu %s rows", got, what);
	CHECK(got >= least);
}
