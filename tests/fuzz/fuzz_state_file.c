/* State files of pinfold local: decoding never crashes; names in an accepted file are safe in a
 * path, and the file encodes to something that decodes to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "local/state_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, once, twice;
	CLEANUP(arena_done) struct arena a;
	struct local_state_file in, back;
	struct err err = { 0 };
	int r;

	arena_init(&a, 0);
	r = state_file_decode(text, STR("state.json"), &a, &in, &err);
	if (r < 0) {
		require(err.code == -r && err.msg[0] && !strchr(err.msg, '\n'));
		return 0;
	}
	for (size_t i = 0; i < in.n; i++)
		require(local_container_names_are_valid(&in.containers[i]));
	require(state_file_encode(&in, &a, &once, &err) == 0);
	require(state_file_decode(once, STR("state.json"), &a, &back, &err) == 0);
	require(state_file_encode(&back, &a, &twice, &err) == 0);
	require(str_eq(once, twice) && in.n == back.n);
	return 0;
}
