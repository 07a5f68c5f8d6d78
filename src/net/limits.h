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

/* A body must arrive at this rate, counted from the end of the first second. */
#define LIMIT_RATE_BYTES_PER_MS 64
#define LIMIT_RATE_GRACE_MS 1000

/* When memory is short, a request that has been received for this long makes room for others. */
#define LIMIT_PATIENCE_MS 250
#define LIMIT_RETRY_MS 50 /* how often a request that waits for memory is tried again */

#define LIMIT_CONNECTIONS 4096	/* of the process, where memory allows; see server_shares() */
#define LIMIT_FD_RESERVE 64	/* descriptors kept for files, watches and the API client */
#define LIMIT_HEAD_BYTES 16384	/* request line and header; the API server sends 300 bytes */
#define LIMIT_HEADER_FIELDS 100 /* lines in it */

/* The API server accepts requests of 3 MiB and etcd objects of 1.5 MiB. A review has the new object
 * and, for an update, the old one, and a byte such as '<' is written as six: 27 MiB at most, except
 * for a pod that consists of defaults. Of a larger body only the beginning is kept: it says to what
 * the response belongs. */
#define LIMIT_BODY_BYTES ((size_t)32 << 20)
#define LIMIT_BODY_PREFIX_BYTES ((size_t)4096)
#define LIMIT_CHUNK_OVERHEAD_BYTES ((size_t)64 << 10) /* sizes and line ends of a chunked body */

/* Memory for requests and connections of the process, when the server's owner does not know how
 * much there is: what 256 MiB allow. */
#define LIMIT_MEMORY_BYTES ((size_t)160 << 20)

/* What every connection may hold without asking: most requests never meet a limit. TLS and the
 * socket take as much again. */
#define LIMIT_CONNECTION_BYTES ((size_t)48 << 10)

/* More than this is not kept of one read or one response when there is no memory for it. */
#define LIMIT_OVERDRAFT_BYTES ((size_t)64 << 10)

/* Responses that a client does not read: beyond this its requests are not read either. */
#define LIMIT_UNREAD_BYTES ((size_t)256 << 10)

#define LIMIT_HTTP2_STREAMS 128 /* at once, on a connection */
#define LIMIT_HTTP2_RESETS                                                                         \
	1000 /* streams reset by the client, on a connection (CVE-2023-44487)                      \
	      */
#define LIMIT_HTTP2_WINDOW_BYTES (1 << 20)
#define LIMIT_HTTP2_METHOD_BYTES 32
#define LIMIT_HTTP2_TARGET_BYTES 1024 /* the longest path here has 25 bytes */
