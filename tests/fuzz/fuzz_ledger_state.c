/* State files: never a crash; what is accepted encodes to something that reads back the same. The
 * input is also taken as a body under the right checksum, so that the fuzzer gets past it. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "pool/ledger_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check(struct str text, struct arena *a)
{
	struct str once, twice;
	struct ledger_state s, back;
	struct err err = { 0 };
	int r = ledger_state_decode(text, STR("state"), a, &s, &err);

	if (r < 0) {
		require(err.code == -r && err.msg[0] && !strchr(err.msg, '\n'));
		return;
	}
	require(ledger_state_encode(&s, a, &once, &err) == 0);
	require(ledger_state_decode(once, STR("state"), a, &back, &err) == 0);
	require(ledger_state_encode(&back, a, &twice, &err) == 0);
	require(str_eq(once, twice) && s.n_entries == back.n_entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	check(text, &a);
	check(str_printf(&a, "{\"version\":1,\"checksum\":\"xxh64:%016" PRIx64 "\"," PRI_STR,
			 xxh64(text, 0), FMT_STR(text)),
	      &a);
	return 0;
}
