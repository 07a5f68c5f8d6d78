#pragma once

/* How `verify` and `local verify` tell what they found, and with which exit status. */

#include <stdbool.h>

#include "base/options.h"

struct arena;
struct err;
struct truth;

#define TRUTH_STRICT_OPTION(type)                                                                  \
	{                                                                                          \
		OPT_FLAG, 0, "strict", NULL, "strangers on exclusive CPUs are a finding, too",     \
			NULL, offsetof(type, strict)                                               \
	}

struct truth_form {
	const char *output; /* of -o */
	bool strict;
};

/* Returns EXIT_YES, or EXIT_FINDING when there are findings or, if strict, strangers. */
int truth_print(const struct truth *t, const struct truth_form *form, struct arena *a,
		struct err *err);
