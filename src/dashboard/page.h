#pragma once

/* The files of the page, ui/, as parts of the program. */

#include "base/str.h"

struct page_file {
	const char *path; /* "/app.js" */
	const char *type;
	const char *text;
};

/* NULL when there is none. */
const struct page_file *page_find(struct str path);
