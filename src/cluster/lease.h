#pragma once

/* Leader election by a Lease object: who may act now. The decision is pure; leader.h asks and
 * writes. As in Kubernetes' own clients, another's lease is over when it was not renewed for its
 * duration as this process saw it: clocks of other machines do not count. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

#define LEASE_DURATION_S 15
#define LEASE_RENEW_MS 5000 /* the holder renews that often */
#define LEASE_HOLD_MS 10000 /* and stops acting that long after it last could */
#define LEASE_RETRY_MS 2000 /* others look that often */

struct lease {
	bool exists;
	struct str holder;	      /* "": free */
	struct str renewed, acquired; /* as written */
	struct str version;
	int64_t duration_s, transitions;
};

/* NULL gives a lease that does not exist. Texts point into the object. */
struct lease lease_of(yyjson_val *object);

enum lease_action {
	LEASE_CREATE,
	LEASE_TAKE,
	LEASE_RENEW,
	LEASE_WAIT,
};

/* `unchanged_ms`: for how long this process has seen the lease as it is. */
enum lease_action lease_decide(const struct lease *l, struct str identity, uint64_t unchanged_ms);

/* True while who last renewed at renewed_ms may act. */
bool lease_is_held(uint64_t renewed_ms, uint64_t now_ms);

struct lease_write {
	struct str namespace, name, identity;
	int64_t now_us; /* since 1970 */
};

/* The object to create or to put in place of `l`. */
int lease_write(const struct lease *l, enum lease_action action, const struct lease_write *w,
		struct arena *a, struct str *ret, struct err *err);
