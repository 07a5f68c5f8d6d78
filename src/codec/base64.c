/* Standard base64 with padding (RFC 4648), as in Kubernetes Secrets, patches in admission responses
 * and Ignition files. Decoding is strict: there is exactly one text for given bytes. */

#include "base64.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct str base64_encode(struct str bytes, struct arena *a)
{
	const unsigned char *in = (const unsigned char *)bytes.p;
	size_t len = (bytes.n + 2) / 3 * 4, i = 0;
	char *out = arena_alloc(a, len + 1, 1);
	char *p = out;

	if (!out)
		return STR("");
	/* The loop reads eight bytes and uses six, so it stops while eight are left; the plain loop
	 * below does the rest. Patches are encoded within the budget of an admission decision
	 * (D22). */
	for (; i + 8 <= bytes.n; i += 6, p += 8) {
		uint64_t word; /* six bytes at once, read before anything is written */

		memcpy(&word, in + i, sizeof(word));
		word = be64toh(word);
		p[0] = alphabet[word >> 58];
		p[1] = alphabet[word >> 52 & 63];
		p[2] = alphabet[word >> 46 & 63];
		p[3] = alphabet[word >> 40 & 63];
		p[4] = alphabet[word >> 34 & 63];
		p[5] = alphabet[word >> 28 & 63];
		p[6] = alphabet[word >> 22 & 63];
		p[7] = alphabet[word >> 16 & 63];
	}
	for (; i + 2 < bytes.n; i += 3) {
		*p++ = alphabet[in[i] >> 2];
		*p++ = alphabet[(in[i] & 3) << 4 | in[i + 1] >> 4];
		*p++ = alphabet[(in[i + 1] & 15) << 2 | in[i + 2] >> 6];
		*p++ = alphabet[in[i + 2] & 63];
	}
	if (i < bytes.n) {
		unsigned second = i + 1 < bytes.n ? in[i + 1] : 0;

		*p++ = alphabet[in[i] >> 2];
		*p++ = alphabet[(in[i] & 3U) << 4 | second >> 4];
		*p++ = i + 1 < bytes.n ? alphabet[(second & 15) << 2] : '=';
		*p++ = '=';
	}
	*p = '\0';
	return (struct str){ out, len };
}

/* Decodes four characters; returns how many bytes they hold, or -1. */
static int decode_group(const char *in, unsigned char out[3])
{
	/* A "=" anywhere else is found below: it is not in the alphabet. */
	int pad = in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
	unsigned bits = 0;

	for (int i = 0; i < 4 - pad; i++) {
		const char *hit = in[i] ? strchr(alphabet, in[i]) : NULL;

		if (!hit)
			return -1;
		bits |= (unsigned)(hit - alphabet) << (18 - 6 * i);
	}
	out[0] = (unsigned char)(bits >> 16);
	out[1] = (unsigned char)(bits >> 8 & 255);
	out[2] = (unsigned char)(bits & 255);
	if ((pad >= 1 && out[2]) || (pad == 2 && out[1]))
		return -1; /* RFC 4648, 3.5: unused bits must be zero */
	return 3 - pad;
}

int base64_decode(struct str text, struct arena *a, struct str *ret, struct err *err)
{
	char *out = arena_alloc(a, text.n / 4 * 3 + 1, 1);
	size_t n = 0;

	if (!out)
		return err_set(err, ENOMEM, "base64: not enough memory");
	if (text.n % 4)
		return err_set(err, EINVAL, "base64: length is not a multiple of four");
	for (size_t i = 0; i < text.n; i += 4) {
		unsigned char bytes[3];
		int got = decode_group(text.p + i, bytes);

		/* Padding ends the text. */
		if (got < 0 || (got < 3 && i + 4 < text.n))
			return err_set(err, EINVAL, "base64: bad character near offset %zu", i);
		memcpy(out + n, bytes, (size_t)got);
		n += (size_t)got;
	}
	out[n] = '\0';
	*ret = (struct str){ out, n };
	return 0;
}
