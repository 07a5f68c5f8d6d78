#pragma once

/* The NRI multiplexer: two byte streams over one socket, in frames of an eight-byte header
 * (connection id and length, big endian) and a payload (docs/reference/nri.md#frames). Frame
 * boundaries have no meaning for a reader, so payload is passed on as it arrives. No I/O. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct err;

#define MUX_HEADER_SIZE 8
#define MUX_MAX_PAYLOAD ((uint32_t)(10 + (4 << 20))) /* the longest frame that runtimes send */

/* The connections of NRI. Others are ignored by both sides. */
enum mux_conn { MUX_CONN_PLUGIN = 1, MUX_CONN_RUNTIME = 2 };

struct mux_reader {
	unsigned char header[MUX_HEADER_SIZE];
	size_t n_header; /* bytes received */
	uint32_t conn;
	size_t left; /* of the payload */
};

struct mux_piece {
	uint32_t conn;
	struct str bytes; /* a view into the caller's bytes */
};

/* Consumes *bytes. Returns 1 with a piece, 0 when *bytes is used up, -EMSGSIZE for a frame beyond
 * the limit; the connection must be closed then. Start with { 0 }. */
int mux_read(struct mux_reader *m, struct str *bytes, struct mux_piece *ret, struct err *err);

/* True inside a frame: end of file here means a truncated frame. */
int mux_is_inside(const struct mux_reader *m);

/* One frame. The payload is at most MUX_MAX_PAYLOAD bytes. */
void mux_write(struct strbuf *out, uint32_t conn, struct str payload);

/* Big-endian numbers, for the headers of mux and ttrpc. */
static inline uint32_t be32_get(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void be32_put(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)(v >> 24);
	p[1] = (unsigned char)(v >> 16);
	p[2] = (unsigned char)(v >> 8);
	p[3] = (unsigned char)v;
}

/* Moves bytes into a partly received header; true when it is complete. */
int header_fill(unsigned char *header, size_t size, size_t *n, struct str *bytes);
