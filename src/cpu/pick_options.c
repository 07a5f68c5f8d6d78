#include "pick_options.h"

#include <errno.h>
#include <stddef.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "topology.h"

static const struct pick_option {
	struct str name;
	size_t offset;
} table[] = {
	{ STR_INIT("full-pcpus-only"), offsetof(struct pick_options, full_pcpus_only) },
	{ STR_INIT("distribute-cpus-across-numa"),
	  offsetof(struct pick_options, distribute_cpus_across_numa) },
	{ STR_INIT("align-by-socket"), offsetof(struct pick_options, align_by_socket) },
	{ STR_INIT("distribute-cpus-across-cores"),
	  offsetof(struct pick_options, distribute_cpus_across_cores) },
	{ STR_INIT("strict-cpu-reservation"),
	  offsetof(struct pick_options, strict_cpu_reservation) },
	{ STR_INIT("prefer-align-cpus-by-uncorecache"),
	  offsetof(struct pick_options, prefer_align_cpus_by_uncorecache) },
};

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
		if (str_eq(name, table[i].name))
			return policy_bool_parse(name, value, (bool *)((char *)o + table[i].offset),
						 err);
	return err_set(err, EINVAL, "unknown CPU Manager Policy option: %s", quote(name).text);
}

/* Mutually exclusive options, in the order in which the kubelet checks them. */
static const struct {
	size_t first, second; /* rows of the table */
} exclusive[] = { { 0, 3 }, { 1, 3 }, { 5, 3 }, { 5, 1 } };

static bool is_set(const struct pick_options *o, size_t row)
{
	return *(const bool *)((const char *)o + table[row].offset);
}

int pick_options_check(const struct pick_options *o, const struct topology *t, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(exclusive); i++)
		if (is_set(o, exclusive[i].first) && is_set(o, exclusive[i].second))
			return err_set(err, EINVAL,
				       "static policy options " PRI_STR " and " PRI_STR
				       " can not be used at the same time",
				       FMT_STR(table[exclusive[i].first].name),
				       FMT_STR(table[exclusive[i].second].name));
	if (t && o->align_by_socket && t->level[TOPOLOGY_SOCKET].n > t->level[TOPOLOGY_NUMA].n)
		return err_set(err, EINVAL,
			       "Align by socket is not compatible with hardware where number of "
			       "sockets are more than number of NUMA");
	return 0;
}
