/* Numbers and field headers of protobuf. */

#include "proof.h"

#include SOURCE

/* The format by its definition: seven bits a byte, the lowest first. */
static size_t encode_varint(uint64_t value, char *ret)
{
	size_t n = 0;

	while (value > 0x7f) {
		ret[n++] = (char)(value | 0x80);
		value >>= 7;
	}
	ret[n++] = (char)value;
	return n;
}

void every_number_is_read_as_it_was_written(void)
{
	char bytes[VARINT_MAX + 2]; /* what follows it is anything */
	uint64_t value, got;
	const size_t n = encode_varint(value, bytes);

	PROVE(read_varint((struct str){ bytes, sizeof(bytes) }, &got, NULL) == (int)n);
	PROVE(got == value);
}

void a_header_of_any_bytes_stays_inside_them(void)
{
	const struct str in = any_text(2 * VARINT_MAX + 1);
	struct err err = { 0 };
	struct pb_wire w;
	const int n = pb_read_header(in, &w, &err);

	PROVE(n >= 0 ? (size_t)n <= in.n : err.code == EBADMSG);
	PROVE(n != 0 || in.n < 2 * VARINT_MAX);
	if (n <= 0)
		return;
	PROVE(w.number > 0 && w.number < UINT32_C(1) << 29);
	PROVE(w.type == WIRE_VARINT || w.type == WIRE_BYTES || w.type == WIRE_FIXED32 ||
	      w.type == WIRE_FIXED64);
}
