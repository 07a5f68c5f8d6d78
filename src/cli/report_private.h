#pragma once

/* What the parts of the report share. */

#include "bundle/saved_bundle.h"
#include "picture/html_page.h"

struct err;

struct report_writer {
	const struct saved_bundle *bundle;
	struct strbuf b;
	struct arena *a;
	unsigned n_figures;
	size_t n_findings;
	size_t n_missing; /* parts that a node should have and that are not known */
};

/* A document of the bundle; NULL when it has none or an invalid one, and then the page says so. */
yyjson_val *report_doc(struct report_writer *w, struct str path, struct doc *ret);

/* Adds why a part is missing. */
void report_missing(struct report_writer *w, const struct err *err);

void report_checks(struct report_writer *w, struct str path);
void report_node(struct report_writer *w, struct str node);
int report_cluster(struct report_writer *w, struct err *err);
void report_history(struct report_writer *w);
