/* The CPU manager's policy options by name. Pairs that exclude each other refer to rows of the
 * table, so the order of the rows matters. */

#include "pick_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "topology.h"

static const struct {
	const char *name;
	size_t offset;
} table[] = {
	{ "full-pcpus-only", offsetof(struct pick_options, full_pcpus_only) },
	{ "distribute-cpus-across-numa",
	  offsetof(struct pick_options, distribute_cpus_across_numa) },
	{ "align-by-socket", offsetof(struct pick_options, align_by_socket) },
	{ "distribute-cpus-across-cores",
	  offsetof(struct pick_options, distribute_cpus_across_cores) },
	{ "strict-cpu-reservation", offsetof(struct pick_options, strict_cpu_reservation) },
	{ "prefer-align-cpus-by-uncorecache",
	  offsetof(struct pick_options, prefer_align_cpus_by_uncorecache) },
};
_Static_assert(ARRAY_LEN(table) == PICK_OPTIONS_COUNT, "every option has a row");

const char *pick_option_name(size_t i)
{
	return table[i].name;
}

bool *pick_option_value(const struct pick_options *o, size_t i)
{
	/* One accessor for readers and writers; the cast drops const for the writers, whose struct
	 * is not const. */
	return (bool *)((char *)(uintptr_t)o + table[i].offset);
}

/* Go's strconv.ParseBool. */
int policy_bool_parse(struct str name, struct str value, bool *ret, struct err *err)
{
	static const struct str words[2][6] = {
		{ STR_INIT("0"), STR_INIT("f"), STR_INIT("F"), STR_INIT("FALSE"), STR_INIT("false"),
		  STR_INIT("False") },
		{ STR_INIT("1"), STR_INIT("t"), STR_INIT("T"), STR_INIT("TRUE"), STR_INIT("true"),
		  STR_INIT("True") },
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(words[0]); i++)
		if (str_eq(value, words[i & 1][i / 2])) {
			*ret = i & 1;
			return 0;
		}
	return err_set(err, EINVAL,
		       "bad value for option %s: strconv.ParseBool: parsing %s: invalid syntax",
		       quote(name).text, quote(value).text);
}

int pick_options_set(struct pick_options *o, struct str name, struct str value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(name, str_from(table[i].name)))
			return policy_bool_parse(name, value, pick_option_value(o, i), err);
	return err_set(err, EINVAL, "unknown CPU Manager Policy option: %s", quote(name).text);
}

/* Mutually exclusive options, in the order in which the kubelet checks them. */
static const struct {
	size_t first, second; /* rows of the table */
} exclusive[] = { { 0, 3 }, { 1, 3 }, { 5, 3 }, { 5, 1 } };

int pick_options_check(const struct pick_options *o, const struct topology *t, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(exclusive); i++)
		if (*pick_option_value(o, exclusive[i].first) &&
		    *pick_option_value(o, exclusive[i].second))
			return err_set(err, EINVAL,
				       "static policy options %s and %s"
				       " can not be used at the same time",
				       table[exclusive[i].first].name,
				       table[exclusive[i].second].name);
	if (t && o->align_by_socket && t->level[TOPOLOGY_SOCKET].n > t->level[TOPOLOGY_NUMA].n)
		return err_set(err, EINVAL,
			       "Align by socket is not compatible with hardware where number of "
			       "sockets are more than number of NUMA");
	return 0;
}
