#pragma once

/* The ledger on disk: one JSON document whose second member is a checksum over every byte that
 * follows it. Texts in, texts out; reading and replacing the file is store.h, and whether the
 * content makes sense is the ledger's business. */

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

/* CPUs that one container has for itself, until its pod is gone. */
struct assignment {
	struct str pod_uid;
	struct str pod_namespace, pod_name; /* for people; may be empty */
	struct str container;
	enum container_kind kind;
	struct cpuset cpus;
	struct str encoded; /* its JSON, where somebody keeps it so that every write need not make
			       it */
};

struct ledger_state {
	struct str boot_id; /* assignments do not outlive the boot they were made in */
	uint64_t config_hash;
	uint64_t topology_hash;
	struct pool_config config;
	struct assignment *const *entries; /* sorted by pod, then container; none twice */
	size_t n_entries;
};

/* The text lives in `a`. */
int ledger_state_encode(const struct ledger_state *s, struct arena *a, struct str *ret,
			struct err *err);

/* Refuses with -EUCLEAN what is not, byte for byte, what somebody once encoded, and with -EPROTO a
 * version that is not ours. Texts of *ret live in `a`. */
int ledger_state_decode(struct str text, struct str file, struct arena *a, struct ledger_state *ret,
			struct err *err);

/* The JSON of one assignment. Fails on texts that are not UTF-8. */
int assignment_encode(const struct assignment *e, struct arena *a, struct str *ret,
		      struct err *err);

/* The order of entries: by pod, then container. */
int assignment_cmp(const struct assignment *x, const struct assignment *y);
