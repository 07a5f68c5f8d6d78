/* Reads and writes frames. A reader keeps a partial header between calls, because a socket may
 * split the bytes anywhere; payload is never copied. */

#include "mux.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

int header_fill(unsigned char *header, size_t size, size_t *n, struct str *bytes)
{
	const size_t missing = size - *n;
	const size_t take = bytes->n < missing ? bytes->n : missing;

	if (take > 0)
		memcpy(header + *n, bytes->p, take);
	*n += take;
	*bytes = str_skip(*bytes, take);
	return *n == size;
}

int mux_read(struct mux_reader *m, struct str *bytes, struct mux_piece *ret, struct err *err)
{
	size_t take;

	while (m->left == 0) { /* a frame may be empty */
		uint32_t length;

		if (!header_fill(m->header, MUX_HEADER_SIZE, &m->n_header, bytes))
			return 0;
		length = be32_get(m->header + 4);
		/* Such a length is no frame but a sign that the reader lost its position in the
		 * stream. */
		if (length > MUX_MAX_PAYLOAD)
			return err_set(err, EMSGSIZE, "a frame of %u bytes, more than %u", length,
				       MUX_MAX_PAYLOAD);
		m->n_header = 0;
		m->conn = be32_get(m->header);
		m->left = length;
	}
	if (bytes->n == 0)
		return 0;
	take = bytes->n < m->left ? bytes->n : m->left;
	*ret = (struct mux_piece){ m->conn, { bytes->p, take } };
	*bytes = str_skip(*bytes, take);
	m->left -= take;
	return 1;
}

int mux_is_inside(const struct mux_reader *m)
{
	return m->n_header > 0 || m->left > 0;
}

void mux_write(struct strbuf *out, uint32_t conn, struct str payload)
{
	unsigned char header[MUX_HEADER_SIZE];

	assert(payload.n <= MUX_MAX_PAYLOAD);
	be32_put(header, conn);
	be32_put(header + 4, (uint32_t)payload.n);
	strbuf_add(out, (struct str){ (const char *)header, sizeof(header) });
	strbuf_add(out, payload);
}
