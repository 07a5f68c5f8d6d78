#pragma once

/* The kubelet's CPU manager checkpoint (/var/lib/kubelet/cpu_manager_state), read and never
 * written: it shows whether the kubelet assigns CPUs as well (policy "static": two CPU managers
 * would conflict), and which CPUs containers had when a node is migrated to Pinfold. Versions 1 to
 * 4 (docs/reference/checkpoint.md). Pinfold's own state is in ledger_state.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

#define CHECKPOINT_POLICY_STATIC "static"

struct checkpoint_entry {
	struct str pod_uid;   /* empty in version 1 */
	struct str container; /* name; container id in version 1; empty for a pod-level set */
	struct cpuset cpus;
};

struct checkpoint {
	int version;
	bool verified; /* versions 1 and 2 may have no checksum */
	struct str policy;
	struct cpuset default_cpus;
	const struct checkpoint_entry *entries; /* sorted by pod, then container */
	size_t n_entries;
	const struct checkpoint_entry *pod_entries; /* pod-level sets, versions 3 and 4 */
	size_t n_pod_entries;
};

/* Strings of `ret` are in `a`. -EUCLEAN when a checksum does not match. */
int checkpoint_decode(struct str text, struct str file, struct arena *a, struct checkpoint *ret,
		      struct err *err);

/* The machine a checkpoint is checked against. */
struct checkpoint_machine {
	struct cpuset cpus; /* online */
	struct cpuset reserved;
	bool strict; /* strict-cpu-reservation: reserved CPUs are not in the default set */
};

/* The kubelet's checks at start, with its order and messages
 * (docs/reference/cpu-manager.md#start-checks). *ret_default is the set its shared containers run
 * on: the recorded one, or a new one when nothing was recorded. */
int checkpoint_check(const struct checkpoint *c, const struct checkpoint_machine *m,
		     struct cpuset *ret_default, struct err *err);

/* The checksum covers a Go dump of the structure, which includes the name of the Go type; that name
 * changed between kubelet versions (docs/reference/checkpoint.md#checksum). */
enum checkpoint_form {
	CHECKPOINT_V1,
	CHECKPOINT_V2,
	CHECKPOINT_V2_NAMED,
	CHECKPOINT_V3,
	CHECKPOINT_V3_NAMED,
	CHECKPOINT_FORM__COUNT
};

/* The text whose FNV-1a hash is the checksum of the JSON object `root`. */
int checkpoint_hash_input(yyjson_val *root, enum checkpoint_form form, struct arena *a,
			  struct str *ret, struct err *err);
uint32_t checkpoint_data_checksum(struct str data); /* "dataChecksum" of version 4 */
