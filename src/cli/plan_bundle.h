#pragma once

/* `plan --bundle`: the cluster of a support bundle before and after a change. Its profiles are
 * rendered as they are, and once more with those of the input, which replace objects of the same
 * kind and name. */

#include "rendering.h"

struct arena;
struct err;
struct file_set;
struct layout_input;

int plan_bundle(const struct rendering_options *o, const char *path, struct layout_input *in,
		struct file_set *ret_before, struct file_set *ret_after, struct err *err);
