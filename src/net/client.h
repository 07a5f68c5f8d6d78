#pragma once

/* An HTTP/2 client: one TLS connection to one server, opened by the first call, with any number of
 * calls on it at once. A call may be endless (a watch). When the connection is lost, every call on
 * it ends with the reason, and the next call opens another one; retrying is up to the caller. It
 * does not interpret bodies. Belongs to the thread of its loop. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"
#include "loop.h"
#include "tls.h"

struct http_call;
struct nghttp2_session;

typedef void (*http_call_fn)(struct http_call *call);
typedef void (*http_call_data_fn)(struct http_call *call, struct str bytes);
typedef void (*http_call_end_fn)(struct http_call *call, const struct err *err);

/* One request and its response. The owner keeps it, and the texts it points at, until on_end. */
struct http_call {
	const char *method;
	const char *path;		   /* with the query */
	const char *accept, *content_type; /* each may be NULL */
	struct str body;
	uint64_t timeout_ms;	   /* for the complete response; 0: none */
	http_call_fn on_head;	   /* the status is known; may be NULL */
	http_call_data_fn on_data; /* a piece of the body */

	/* Called once, last, unless the call was cancelled; never inside http_client_start(). The
	 * error is NULL when the response is complete. The call may be started again from here. */
	http_call_end_fn on_end;

	unsigned status; /* 0 until it is known */

	/* Internal to the client. */
	struct http_client *client; /* NULL when not in progress */
	TAILQ_ENTRY(http_call) link;
	uint64_t deadline_ms;
	size_t sent;  /* of the body */
	int32_t id;   /* of the stream; 0 while waiting for the connection */
	bool is_lost; /* its connection was lost */
};

struct http_client_config {
	const char *host; /* name or address; also what the certificate must be for, unless... */
	uint16_t port;
	const char *other_host; /* another address of the server, or NULL: each attempt to connect
				   that fails is followed by one to the other address */
	uint16_t other_port;
	const char *tls_name; /* ...this says otherwise; may be NULL */
	struct tls_context *tls;
	const char *user_agent; /* may be NULL */
};

enum http_client_state {
	HTTP_CLIENT_IDLE,
	HTTP_CLIENT_RESOLVING,
	HTTP_CLIENT_CONNECTING,
	HTTP_CLIENT_HANDSHAKE,
	HTTP_CLIENT_OPEN,
	HTTP_CLIENT_LEAVING, /* the server sent GOAWAY: no new calls on this connection */
	HTTP_CLIENT_CLOSING,
};

#define HTTP_CLIENT_ADDRESSES 8

struct http_client {
	struct loop *loop;
	struct http_client_config config;
	const char *authorization; /* of every call from now on, or NULL; the owner may change it */
	enum http_client_state state;
	uv_getaddrinfo_t resolve;
	struct sockaddr_storage addresses[HTTP_CLIENT_ADDRESSES];
	size_t n_addresses, next_address;
	struct stream stream;
	struct tls_conn tls;
	struct nghttp2_session *session;
	struct timer tick;
	TAILQ_HEAD(http_call_list, http_call) calls;
	uint64_t since_ms;    /* when it entered the state */
	uint64_t received_ms; /* when the server last sent anything */
	uint64_t pinged_ms;
	uint64_t connections; /* opened so far */
	struct err reason;    /* why the connection is being closed */
	bool is_busy;	      /* inside nghttp2: nothing may be sent */
	bool is_resolving;    /* `resolve` is pending */
	bool is_unreached;    /* the last attempt to connect did not succeed, so far */
	bool is_done;
};

void http_client_init(struct http_client *c, struct loop *loop,
		      const struct http_client_config *config);

/* Closes the connection. Calls end without a callback. The memory must stay until the loop is
 * done. */
void http_client_close(struct http_client *c);

void http_client_start(struct http_client *c, struct http_call *call);
void http_call_cancel(struct http_call *call); /* also when it is not in progress */

/* Ends every call with this reason; the next one gets a new connection (new identity, new CA). */
void http_client_drop(struct http_client *c, const char *reason);
