#pragma once

/* The options of the kubelet's static CPU manager policy, with the kubelet's names
 * (docs/reference/cpu-manager.md#policy-options): how CPUs are picked. There are no feature gates
 * here; every option may be used. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct err;
struct topology;

struct pick_options {
	bool full_pcpus_only;		       /* whole cores or refuse */
	bool distribute_cpus_across_numa;      /* equal shares of several NUMA nodes */
	bool align_by_socket;		       /* prefer NUMA nodes of one socket */
	bool distribute_cpus_across_cores;     /* spread over cores instead of filling them */
	bool strict_cpu_reservation;	       /* reserved CPUs are not in the default set */
	bool prefer_align_cpus_by_uncorecache; /* prefer CPUs of one L3 cache */
};

/* Names and values by number, for configuration files; below PICK_OPTIONS_COUNT. */
#define PICK_OPTIONS_COUNT 6
const char *pick_option_name(size_t i);
bool *pick_option_value(const struct pick_options *o, size_t i);

/* Sets one option by name. The value is a boolean as in Go: 1 t T TRUE true True 0 f F ... */
int pick_options_set(struct pick_options *o, struct str name, struct str value, struct err *err);

/* Parses the value of such an option: -EINVAL with the kubelet's message if it is not a boolean. */
int policy_bool_parse(struct str name, struct str value, bool *ret, struct err *err);

/* Refuses mutually exclusive options and, if `t` is not NULL, options that the machine does not
 * support. */
int pick_options_check(const struct pick_options *o, const struct topology *t, struct err *err);
