#pragma once

/* A plan as a picture and as a page for review: the machines before and after, restarts and
 * reboots, pods that move or no longer fit, files. */

#include "render/plan.h"

struct plan_page {
	const struct plan *plan;
	struct str present; /* what the new state is compared with */
	const struct str *blocked;
	size_t n_blocked;
	const struct str *diffs; /* one for each file of the plan */
};

struct str plan_page(const struct plan_page *p, struct arena *a);

/* -EINVAL when no machine config pool has a topology. */
int plan_svg(const struct plan *plan, struct arena *a, struct str *ret, struct err *err);
