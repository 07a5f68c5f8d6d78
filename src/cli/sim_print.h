#pragma once

/* The result of a simulation as a table, as a document, as a picture, and as manifests. */

#include "output.h"
#include "sim_input.h"

/* n is 1, or 2 with --compare. */
struct str sim_print_table(const struct sim_run *runs, size_t n, struct arena *a);
yyjson_mut_val *sim_print_doc(const struct sim_run *runs, size_t n, yyjson_mut_doc *m,
			      struct arena *a);
struct str sim_print_svg(const struct sim_run *runs, size_t n, struct arena *a);

/* Nodes and Pods as a List, to create them in a real cluster. Pods are as they were before
 * admission. */
yyjson_mut_val *sim_print_manifests(const struct sim_run *run, yyjson_mut_doc *m, struct arena *a);
