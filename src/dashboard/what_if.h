#pragma once

/* What a profile would do to a node: the checks of `pinfold profile check` and the comparison of
 * `pinfold plan`, with the node's CPUs and pods. Nothing is written anywhere. Pure. */

#include "base/str.h"
#include "shown_state.h"

struct arena;
struct err;

#define WHAT_IF_MAX_BYTES ((size_t)256 << 10)

/* {"problems":[...],"pools":{...},"effect":"reboot","files":[...],"pods":[...],"nodes":N}. A
 * profile with problems is a result, too; an error is returned for what cannot be compared at all.
 */
int what_if(const struct shown_state *s, const struct shown_node *node, struct str profile,
	    struct arena *a, struct str *ret, struct err *err);

/* The profile in force on the node as YAML, without what the API server adds; where there is none,
 * one that describes its pools. */
int what_if_present(const struct shown_state *s, const struct shown_node *node, struct arena *a,
		    struct str *ret, struct err *err);
