#pragma once

/* The ledger's state as text: one JSON document whose second member is a checksum over every byte
 * that follows it. No I/O: reading and replacing the file is in store.h. Checks of the content are
 * in the ledger. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "config.h"
#include "cpu/cpuset.h"
#include "kube/pod.h"

struct arena;
struct err;

#define LEDGER_STATE_VERSION 1
#define LEDGER_STATE_MAX_SIZE ((size_t)16 << 20)

/* The exclusive CPUs of one container, until its pod is removed. */
struct assignment {
	struct str pod_uid;
	struct str pod_namespace, pod_name; /* for messages; may be empty */
	struct str container;
	enum container_kind kind;
	struct cpuset cpus;
	struct str encoded; /* its JSON, cached by the ledger for the next write; may be empty */
};

struct ledger_state {
	struct str boot_id; /* assignments are valid only in the boot they were made in */
	uint64_t config_hash;
	uint64_t topology_hash;
	const struct pool_config *config;
	struct assignment *const *entries; /* sorted by pod, then container; no duplicates */
	size_t n_entries;
};

/* The text is in `a`. */
int ledger_state_encode(const struct ledger_state *s, struct arena *a, struct str *ret,
			struct err *err);

/* -EUCLEAN when the checksum does not match or the content is malformed, -EPROTO for an unknown
 * version. Strings of *ret are in `a`. */
int ledger_state_decode(struct str text, struct str file, struct arena *a, struct ledger_state *ret,
			struct err *err);

/* The JSON of one assignment. Fails on texts that are not UTF-8. */
int assignment_encode(const struct assignment *e, struct arena *a, struct str *ret,
		      struct err *err);

/* The order of entries: by pod, then container. */
int assignment_cmp(const struct assignment *x, const struct assignment *y);
