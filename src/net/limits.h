#pragma once

/* How much of the process one client of the server may use. Constants, not options: the API server
 * is the only client that matters, and its behaviour is known. */

/* The API server keeps 25 idle connections per replica of it and closes them after 90 s; ours must
 * last longer, or a request could arrive on a connection that is being closed. */
#define LIMIT_IDLE_MS 120000

/* From the first byte of a request to its last, and for the handshake: a webhook's own time limit
 * is 30 s at most, ours is 1 s by default. */
#define LIMIT_REQUEST_MS 10000

/* After a response that ends the connection, how long what still arrives is read and discarded: a
 * reset would discard the response before the client reads it. */
#define LIMIT_LINGER_MS 2000

#define LIMIT_CONNECTIONS 4096	/* of the process; about 30 KiB each when idle */
#define LIMIT_FD_RESERVE 64	/* descriptors kept for files, watches and the API client */
#define LIMIT_HEAD_BYTES 16384	/* request line and header; the API server sends 300 bytes */
#define LIMIT_HEADER_FIELDS 100 /* lines in it */

/* etcd takes objects of 1.5 MiB, the API server bodies of 3 MiB; a review holds the object twice,
 * and JSON of it may be larger than what the user sent. */
#define LIMIT_BODY_BYTES ((size_t)8 << 20)
#define LIMIT_CHUNK_OVERHEAD_BYTES ((size_t)64 << 10) /* sizes and line ends of a chunked body */
#define LIMIT_IN_FLIGHT_BYTES ((size_t)48 << 20)      /* requests being received, per thread */
#define LIMIT_REQUEST_ARENA_BYTES                                                                  \
	((size_t)128 << 20) /* parsing 8 MiB of "[[[[" takes 16 times that */

/* Responses that a client does not read: beyond this its requests are not read either. */
#define LIMIT_UNREAD_BYTES ((size_t)256 << 10)

#define LIMIT_HTTP2_STREAMS 128 /* at once, on a connection */
#define LIMIT_HTTP2_RESETS                                                                         \
	1000 /* streams reset by the client, on a connection (CVE-2023-44487)                      \
	      */
#define LIMIT_HTTP2_WINDOW_BYTES (1 << 20)
