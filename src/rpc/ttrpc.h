#pragma once

/* The framing of NRI: a multiplexer with two byte streams over one socket, and on each of them
 * ttrpc, requests and responses with a ten-byte header (docs/reference/nri.md#ttrpc). Unary calls
 * only, as in NRI. The caller matches responses to calls. No I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;
struct pb_message;

/* --- the multiplexer --- */

/* Frames of an eight-byte header (connection id and length, big endian) and a payload
 * (docs/reference/nri.md#frames). Frame boundaries have no meaning for a reader, so payload is
 * passed on as it arrives. */

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

/* --- messages --- */

#define TTRPC_HEADER_SIZE 10
#define TTRPC_MAX_DATA ((uint32_t)4 << 20)

enum ttrpc_type { TTRPC_REQUEST = 1, TTRPC_RESPONSE = 2, TTRPC_DATA = 3 };

/* Status codes are gRPC's. */
enum ttrpc_code {
	TTRPC_OK = 0,
	TTRPC_UNKNOWN = 2, /* the code that Go servers send for a plain error */
	TTRPC_INVALID_ARGUMENT = 3,
	TTRPC_RESOURCE_EXHAUSTED = 8,
	TTRPC_UNIMPLEMENTED = 12,
	TTRPC_INTERNAL = 13,
};

struct ttrpc_frame {
	uint32_t stream;
	uint8_t type; /* enum ttrpc_type; unknown types are passed on */
	uint8_t flags;
	uint32_t size;	   /* as announced */
	bool is_oversized; /* the data was discarded */
	struct str data;   /* valid until the next read */
};

/* A part of a message's data. */
struct ttrpc_piece {
	const struct ttrpc_frame *frame; /* without data */
	struct str bytes;		 /* a view into the caller's bytes; may be empty */
	bool is_first, is_last;
};

struct ttrpc_reader {
	unsigned char header[TTRPC_HEADER_SIZE];
	size_t n_header;
	struct ttrpc_frame frame;
	char *data; /* grows with the bytes received, not with the announced size */
	size_t n, cap;
	size_t left;
	bool is_done; /* the frame was returned: its memory may be reused */
};

void ttrpc_reader_done(struct ttrpc_reader *t);

/* Consumes *bytes. Returns 1 with a piece, 0 when *bytes is used up. Nothing is stored, so a
 * message may be of any size. Start with { 0 }. */
int ttrpc_read_piece(struct ttrpc_reader *t, struct str *bytes, struct ttrpc_piece *ret);

/* Consumes *bytes. Returns 1 with a complete message, 0 when *bytes is used up. Start with { 0 }.
 */
int ttrpc_read(struct ttrpc_reader *t, struct str *bytes, struct ttrpc_frame *ret);

/* Releases the last message before the next read does. */
void ttrpc_release(struct ttrpc_reader *t);

struct ttrpc_request {
	const char *service, *method;
	struct str payload;
	int64_t timeout_ns; /* 0: none */
};

struct ttrpc_status {
	int32_t code;
	const char *message;
};

struct ttrpc_response {
	struct ttrpc_status *status; /* NULL when the call succeeded */
	struct str payload;
};

extern const struct pb_message ttrpc_request_message;
int ttrpc_response_decode(struct str data, struct arena *a, struct ttrpc_response *ret,
			  struct err *err);

/* Write a message as two frames, the header alone and then the data: the form that the Go reader
 * accepts for every size (docs/reference/nri.md#frames). The scratch arena holds the encoded data.
 * -EMSGSIZE when it is too large; nothing is written then. */
int ttrpc_write_request(struct strbuf *out, uint32_t conn, uint32_t stream,
			const struct ttrpc_request *request, struct arena *scratch);
int ttrpc_write_response(struct strbuf *out, uint32_t conn, uint32_t stream,
			 const struct ttrpc_response *response, struct arena *scratch);
