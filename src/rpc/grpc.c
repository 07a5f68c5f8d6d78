/* What gRPC adds to HTTP/2 as functions without state: the five-byte prefix of a message and the
 * percent-encoding of status texts. */

#include "grpc.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"

void grpc_put_prefix(unsigned char ret[GRPC_PREFIX_SIZE], uint32_t size)
{
	ret[0] = 0;
	for (unsigned i = 0; i < 4; i++)
		ret[1 + i] = (unsigned char)(size >> (24 - 8 * i));
}

int grpc_message_of(struct str body, struct str *ret, struct err *err)
{
	const unsigned char *p = (const unsigned char *)body.p;
	uint32_t size;

	if (body.n < GRPC_PREFIX_SIZE)
		return err_set(err, EBADMSG, "no whole message: %zu bytes", body.n);
	size = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
	/* A code of its own: gRPC has a status for what a server cannot decompress (UNIMPLEMENTED).
	 */
	if (p[0] == 1)
		return err_set(err, ENOTSUP, "compressed messages are not understood");
	if (p[0] > 1 || size != body.n - GRPC_PREFIX_SIZE)
		return err_set(err, EBADMSG, "not one message: %zu bytes, announced are %u",
			       body.n - GRPC_PREFIX_SIZE, size);
	*ret = str_skip(body, GRPC_PREFIX_SIZE);
	return 0;
}

void grpc_escape(struct str text, char *ret, size_t cap)
{
	size_t at = 0;

	for (size_t i = 0; i < text.n; i++) {
		const unsigned char c = (unsigned char)text.p[i];
		const bool is_plain = c >= 0x20 && c <= 0x7e && c != '%';

		/* Never cut inside an escape: the reader would show its first half as text. */
		if (at + (is_plain ? 1 : 3) >= cap)
			break;
		if (is_plain)
			ret[at++] = (char)c;
		else
			at += (size_t)snprintf(ret + at, cap - at, "%%%02X", c);
	}
	ret[at] = '\0';
}

void grpc_unescape(struct str text, char *ret, size_t cap)
{
	size_t at = 0;

	for (size_t i = 0; i < text.n && at + 1 < cap; i++) {
		const bool is_escape = text.p[i] == '%' && i + 2 < text.n &&
				       str_hex_digit(text.p[i + 1]) >= 0 &&
				       str_hex_digit(text.p[i + 2]) >= 0;

		if (!is_escape) {
			ret[at++] = text.p[i];
			continue;
		}
		ret[at++] =
			(char)(str_hex_digit(text.p[i + 1]) << 4 | str_hex_digit(text.p[i + 2]));
		i += 2;
	}
	ret[at] = '\0';
}
