/* Problems are collected and printed once, sorted by position, because reading and resolving find
 * them in another order than a user reads the file. */

#include "layout_input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology_read.h"
#include "output.h"

void layout_input_init(struct layout_input *in, struct arena *a)
{
	*in = (struct layout_input){ 0 };
	manifests_init(&in->manifests, a);
	problem_list_init(&in->problems, a);
}

/* "worker=host": a name before "=". Neither paths nor synthetic strings begin like that. */
static size_t pool_prefix(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.");

	return text[n] == '=' ? n : 0;
}

int layout_input_topologies(struct layout_input *in, const struct option_list *list,
			    struct err *err)
{
	struct arena *a = in->manifests.a;
	struct pool_topology *topologies = arena_array(a, struct pool_topology, list->n + 1);

	for (size_t i = 0; i < list->n; i++) {
		size_t n = pool_prefix(list->items[i]);
		struct topology *t = arena_new(a, struct topology);
		int r = topology_read(list->items[i] + (n ? n + 1 : 0), a, t, err);

		if (r < 0)
			return r;
		topologies[i] = (struct pool_topology){ { list->items[i], n }, t };
	}
	in->layout_options.topologies = topologies;
	in->layout_options.n_topologies = list->n;
	return 0;
}

void layout_input_resolve(struct layout_input *in)
{
	layout_resolve(&in->manifests, &in->layout_options, in->manifests.a, &in->layout,
		       &in->problems);
}

void layout_input_print_problems(struct layout_input *in)
{
	struct str text;

	problem_list_sort(&in->problems);
	text = output_printable(problem_list_format(&in->problems, in->manifests.a),
				in->manifests.a);
	(void)fwrite(text.p, 1, text.n, stderr);
}

int layout_input_check(const struct layout_input *in, const char *what, struct err *err)
{
	size_t n = in->problems.n_errors; /* warnings and notes do not count */

	return n ? err_set(err, EINVAL, "%zu problem%s; %s", n, n == 1 ? "" : "s", what) : 0;
}
