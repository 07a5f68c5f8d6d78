#pragma once

/* The options of the kubelet's static CPU manager policy (spec/cpumanager.md 3.10), by their own
 * names: how a set of CPUs is to be picked. Feature gates are the kubelet's; here every option may
 * be used. */

#include <stdbool.h>

#include "base/str.h"

struct err;
struct topology;

struct pick_options {
	bool full_pcpus_only;		       /* whole cores or nothing (3.9) */
	bool distribute_cpus_across_numa;      /* 4.6 */
	bool align_by_socket;		       /* 3.6, 4.6, 5.4 */
	bool distribute_cpus_across_cores;     /* spread over cores instead of filling them */
	bool strict_cpu_reservation;	       /* reserved CPUs are not in the default set */
	bool prefer_align_cpus_by_uncorecache; /* 4.5 */
};

/* Sets one by name. The value is what Go calls a boolean: 1 t T TRUE true True 0 f F ... */
int pick_options_set(struct pick_options *o, struct str name, struct str value, struct err *err);

/* The value of any such option: -EINVAL with the kubelet's sentence for what is no boolean. */
int policy_bool_parse(struct str name, struct str value, bool *ret, struct err *err);

/* Refuses pairs that exclude each other, and with a topology (may be NULL) what it cannot do. */
int pick_options_check(const struct pick_options *o, const struct topology *t, struct err *err);
