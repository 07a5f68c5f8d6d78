#pragma once

/* CPU sets that name hardware instead of numbers, so that one profile fits machines of different
 * sizes. Where a profile takes a CPU list it also takes
 *
 *	EXPR  := TERM { "and" TERM }
 *	TERM  := "rest" | LIST | ("all" | PART) [ "of" SCOPE ]
 *	PART  := N "%" | [ "first" | "last" ] N UNIT
 *	UNIT  := "core" | "cores" | "cpu" | "cpus" | "thread" | "threads"
 *	SCOPE := "each" LEVEL | LEVEL N
 *	LEVEL := "numa" | "socket" | "die" | "l3"
 *
 * in lower case, with blanks between words. "first 2 cores of each numa"; "10%", which is rounded
 * up to whole cores and taken evenly from the NUMA nodes; "rest", which is what no other set took.
 * Only CPUs that are in no other set are taken. A text that is a plain CPU list means that list. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "cpu/topology.h"

struct arena;
struct err;

#define TOPOLOGY_EXPR_MAX_TERMS 16

enum expr_unit { EXPR_ALL, EXPR_PERCENT, EXPR_CORES, EXPR_CPUS, EXPR_LIST, EXPR_REST };
enum expr_scope { EXPR_MACHINE, EXPR_EACH, EXPR_ONE };

struct expr_term {
	enum expr_unit unit;
	unsigned n;    /* percent, cores or CPUs */
	bool from_end; /* "last" */
	enum expr_scope scope;
	enum topology_level level; /* of the scope */
	unsigned element;	   /* its id, for EXPR_ONE */
	struct cpuset list;
	struct str text; /* as written, for messages */
};

struct topology_expr {
	struct expr_term *terms;
	size_t n;
};

/* True when a text is meant as an expression: it holds a letter or a "%". */
bool topology_expr_looks_like(struct str text);

int topology_expr_parse(struct str text, struct arena *a, struct topology_expr *ret,
			struct err *err);

/* Has the term "rest", and therefore has to be resolved after the others. */
bool topology_expr_has_rest(const struct topology_expr *e);

/* The CPUs it means on this machine, out of those in `from`. -ERANGE when the machine is too small.
 */
int topology_expr_resolve(const struct topology_expr *e, const struct topology *t,
			  const struct cpuset *from, struct cpuset *ret, struct err *err);
