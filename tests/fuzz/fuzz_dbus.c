/* What a D-Bus server sends: never a crash, texts within the input, and progress with each message.
 */

#include <stdlib.h>

#include "base/err.h"
#include "rpc/dbus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_within(struct str part, struct str all)
{
	if (part.n && (part.p < all.p || part.p + part.n > all.p + all.n))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size };
	struct dbus_message m;
	struct err err = { 0 };
	size_t used = 0;
	int r;

	if (dbus_parse_auth(rest, &used, &err) == 1)
		rest = str_skip(rest, used);
	while ((r = dbus_parse(rest, &m, &used, &err)) == 1) {
		if (used == 0 || used > rest.n)
			abort();
		require_within(m.error_name, rest);
		require_within(m.signature, rest);
		require_within(m.body, rest);
		require_within(dbus_error_text(&m), rest);
		rest = str_skip(rest, used);
	}
	if (r < 0 && (err.code != -r || !*err.msg))
		abort();
	return 0;
}
