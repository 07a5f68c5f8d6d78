/* Calls are made one after the other, so the next response is the one to the last call. */

#include "runtime_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"

#define PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"
#define TIMEOUT_NS 2000000000 /* what runtimes send */

void runtime_peer_init(struct runtime_peer *p, int fd)
{
	*p = (struct runtime_peer){ .fd = fd, .stream = UINT32_MAX }; /* the first is 1 */
	arena_init(&p->a, 0);
}

void runtime_peer_done(struct runtime_peer *p)
{
	ttrpc_reader_done(&p->readers[0]);
	ttrpc_reader_done(&p->readers[1]);
	arena_done(&p->a);
}

static int send_all(struct runtime_peer *p, struct str bytes, struct err *err)
{
	while (bytes.n > 0) {
		const ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0)
			return err_set(err, errno, "send: %s", strerror(errno));
		bytes = str_skip(bytes, (size_t)n);
	}
	return 0;
}

int runtime_peer_receive(struct runtime_peer *p, uint32_t conn, struct ttrpc_frame *ret,
			 struct err *err)
{
	for (;;) {
		struct mux_piece piece;
		ssize_t n;
		int r;

		while ((r = mux_read(&p->mux, &p->rest, &piece, err)) > 0)
			while (piece.bytes.n > 0 && piece.conn - 1 < 2 &&
			       ttrpc_read(&p->readers[piece.conn - 1], &piece.bytes, ret))
				if (piece.conn == conn)
					return 0;
		if (r < 0)
			return r;
		n = recv(p->fd, p->bytes, sizeof(p->bytes), 0);
		if (n == 0)
			return err_set(err, ECONNRESET, "the plugin closed the connection");
		if (n < 0 && errno == EAGAIN)
			return err_set(err, ETIMEDOUT, "the plugin does not respond");
		if (n < 0)
			return err_set(err, errno, "receive: %s", strerror(errno));
		p->rest = (struct str){ p->bytes, (size_t)n };
	}
}

int runtime_peer_register(struct runtime_peer *p, struct nri_register *ret, struct err *err)
{
	const struct ttrpc_response accepted = { 0 };
	struct ttrpc_request request;
	struct ttrpc_frame frame;
	struct strbuf b;
	int r;

	r = runtime_peer_receive(p, MUX_CONN_RUNTIME, &frame, err);
	if (r < 0)
		return r;
	pb_clear(&ttrpc_request_message, &request);
	pb_clear(&nri_register_message, ret);
	r = pb_decode(&ttrpc_request_message, frame.data, &p->a, &request, err);
	if (r == 0)
		r = pb_decode(&nri_register_message, request.payload, &p->a, ret, err);
	if (r < 0)
		return err_wrap(err, "registration");
	strbuf_init(&b, &p->a);
	(void)ttrpc_write_response(&b, MUX_CONN_RUNTIME, frame.stream, &accepted, &p->a);
	return send_all(p, strbuf_str(&b), err);
}

int runtime_peer_call(struct runtime_peer *p, const char *method, struct str payload,
		      struct ttrpc_response *ret, struct err *err)
{
	const struct ttrpc_request request = { PLUGIN_SERVICE, method, payload, TIMEOUT_NS };
	struct ttrpc_frame frame;
	struct strbuf b;
	int r;

	strbuf_init(&b, &p->a);
	p->stream += 2;
	if (ttrpc_write_request(&b, MUX_CONN_PLUGIN, p->stream, &request, &p->a) < 0)
		return err_set(err, EMSGSIZE, "%s: more than %u bytes", method, TTRPC_MAX_DATA);
	r = send_all(p, strbuf_str(&b), err);
	if (r == 0)
		r = runtime_peer_receive(p, MUX_CONN_PLUGIN, &frame, err);
	if (r == 0) /* copied: it is valid until the next message only */
		r = ttrpc_response_decode(str_dup(&p->a, frame.data), &p->a, ret, err);
	return r < 0 ? err_wrap(err, "%s", method) : 0;
}

struct str runtime_peer_encode(struct runtime_peer *p, const struct pb_message *m,
			       const void *value)
{
	struct strbuf b;

	strbuf_init(&b, &p->a);
	pb_encode(m, value, &b);
	return strbuf_str(&b);
}
