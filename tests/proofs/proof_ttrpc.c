/* Frames of NRI: from any state that reading can leave, with any bytes. */

#include "proof.h"

#include SOURCE

#define MAX_BYTES 9 /* a header and a byte */

static bool is_valid_mux(const struct mux_reader *m)
{
	return m->n_header < MUX_HEADER_SIZE && m->left <= MUX_MAX_PAYLOAD &&
	       (!m->n_header || !m->left);
}

void a_mux_frame_of_any_bytes_stays_inside_them(void)
{
	char bytes[MAX_BYTES];
	const struct str all = ANY_TEXT_IN(bytes);
	struct str rest = all;
	struct mux_piece piece;
	struct mux_reader m;
	int r;

	ASSUME(is_valid_mux(&m));
	r = mux_read(&m, &rest, &piece, NULL);
	if (r < 0)
		return;
	PROVE(is_valid_mux(&m));
	PROVE(is_inside(rest, all));
	PROVE(r == 1 || rest.n == 0);
	PROVE(r == 0 || (piece.bytes.n > 0 && is_inside(piece.bytes, all)));
	PROVE(r == 0 || piece.bytes.n + rest.n <= all.n);
}

/* Wherever the socket splits a header, the frame is the same. */
void a_split_header_is_the_same_header(void)
{
	char bytes[TTRPC_HEADER_SIZE + 1];
	const size_t at = nondet_size();
	struct str all = { bytes, sizeof(bytes) }, first, second;
	struct ttrpc_reader whole = { 0 }, split = { 0 };
	struct ttrpc_piece x, y;

	ASSUME(at < TTRPC_HEADER_SIZE);
	first = (struct str){ bytes, at };
	second = (struct str){ bytes + at, sizeof(bytes) - at };
	PROVE(ttrpc_read_piece(&whole, &all, &x) == 1);
	PROVE(ttrpc_read_piece(&split, &first, &y) == 0);
	PROVE(ttrpc_read_piece(&split, &second, &y) == 1);
	PROVE(second.n == all.n && x.bytes.n == y.bytes.n);
	PROVE(whole.frame.size == split.frame.size && whole.frame.stream == split.frame.stream &&
	      whole.frame.type == split.frame.type);
	PROVE(x.is_last == (whole.frame.size <= 1));
}
