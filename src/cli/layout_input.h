#pragma once

/* The first steps of render, profile check and plan: manifests and topologies are read, a layout is
 * resolved, and all problems are collected. */

#include <stdbool.h>

#include "base/options.h"
#include "codec/problems.h"
#include "profile/layout.h"
#include "profile/manifests.h"

struct arena;
struct err;

struct layout_input {
	struct manifests manifests;
	struct problem_list problems;
	struct layout_options layout_options;
	struct layout layout;
};

#define TOPOLOGY_OPTION(type, field)                                                               \
	{                                                                                          \
		OPT_STRS, 0, "topology", "[POOL=]FROM",                                            \
			"the machines of one or all machine config pools: host, a file or a "      \
			"synthetic string",                                                        \
			NULL, offsetof(type, field)                                                \
	}
#define SPLIT_CORES_OPTION(type, field)                                                            \
	{                                                                                          \
		OPT_FLAG, 0, "allow-split-cores", NULL,                                            \
			"warn instead of failing when SMT siblings are in different sets", NULL,   \
			offsetof(type, field)                                                      \
	}

void layout_input_init(struct layout_input *in, struct arena *a);

/* Reads "[POOL=]FROM" options. */
int layout_input_topologies(struct layout_input *in, const struct option_list *list,
			    struct err *err);

/* Resolves what was read. Problems are in in->problems. */
void layout_input_resolve(struct layout_input *in);

/* Prints the problems to standard error, in the order of files and lines. */
void layout_input_print_problems(struct layout_input *in);

/* -EINVAL with "N problems; WHAT" when there was an error. */
int layout_input_check(const struct layout_input *in, const char *what, struct err *err);
