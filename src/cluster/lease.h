#pragma once

/* Leader election by a Lease object: which replica may act now. Pure; leader.h reads and writes. As
 * in client-go, the lease of another replica has expired when this process has not seen it change
 * for its duration: clocks of different machines are not compared. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

#define LEASE_DURATION_S 15
#define LEASE_RENEW_MS 5000 /* between two renewals by the holder */
#define LEASE_HOLD_MS 10000 /* the holder stops acting this long after its last renewal */
#define LEASE_RETRY_MS 2000 /* between two reads by the others */

struct lease {
	bool exists;
	struct str holder;	      /* "": none */
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

/* `unchanged_ms`: how long this process has seen the lease unchanged. */
enum lease_action lease_decide(const struct lease *l, struct str identity, uint64_t unchanged_ms);

/* True while a holder that last renewed at renewed_ms may act. */
bool lease_is_held(uint64_t renewed_ms, uint64_t now_ms);

struct lease_write {
	struct str namespace, name, identity;
	int64_t now_us; /* since 1970 */
};

/* The object to create, or to replace `l` with. */
int lease_write(const struct lease *l, enum lease_action action, const struct lease_write *w,
		struct arena *a, struct str *ret, struct err *err);
