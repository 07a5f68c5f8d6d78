/* HTTP/1.1 on a connection: requests out of its buffer, answers in their order. */

#include <stdio.h>
#include <string.h>

#include "conn.h"
#include "limits.h"

static enum server_close_reason reason_of(unsigned status)
{
	return status == 413 || status == 431 ? SERVER_CLOSE_TOO_LARGE :
	       status == 503		      ? SERVER_CLOSE_OVERLOAD :
						SERVER_CLOSE_BAD_REQUEST;
}

/* Ends the line before it, not its own. */
static void put_field(struct buffer *b, const char *name, const char *value)
{
	if (!value)
		return;
	buffer_add(b, STR("\r\n"));
	buffer_add(b, str_from(name));
	buffer_add(b, STR(": "));
	buffer_add(b, str_from(value));
}

static void put_answer(struct conn *c, const struct http_response *response, bool without_body)
{
	struct buffer *b = &c->worker->head;
	char line[80];
	int n;

	n = snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\nContent-Length: %zu", response->status,
		     http_status_text(response->status), response->body.n);
	buffer_add(b, (struct str){ line, (size_t)n });
	put_field(b, "Date", c->worker->date);
	put_field(b, "Content-Type", response->content_type);
	put_field(b, "Allow", response->allow);
	put_field(b, "Connection", c->is_last ? "close" : NULL);
	buffer_add(b, STR("\r\n\r\n"));
	if (!without_body)
		buffer_add(b, response->body);
	conn_put(c, buffer_str(b));
	buffer_consume(b, buffer_len(b));
	buffer_trim(b, LOOP_READ_BYTES);
}

/* The end is part of the answer, so it is decided before; the TLS farewell comes behind. */
static void answer_last(struct conn *c, const struct http_response *response, bool without_body,
			enum server_close_reason reason)
{
	c->is_last = true;
	put_answer(c, response, without_body);
	c->is_last = false;
	conn_finish(c, reason);
}

static void refuse(struct conn *c, unsigned status)
{
	struct http_response response;

	arena_reset(&c->worker->arena);
	http_response_status(&response, status, &c->worker->arena);
	answer_last(c, &response, false, reason_of(status));
}

static void serve(struct conn *c, const struct http1_request *got)
{
	struct http_request request = { .method = got->method, .body = got->body };
	bool is_head = str_eq(got->method, STR("HEAD"));
	struct http_response response;

	http_split_target(got->target, &request.path, &request.query);
	if (is_head)
		request.method = STR("GET");
	conn_handle(c, &request, &response);
	if (!got->keep_alive)
		answer_last(c, &response, is_head, SERVER_CLOSE_ASKED);
	else if (c->worker->phase != WORKER_SERVING)
		answer_last(c, &response, is_head, SERVER_CLOSE_DRAIN);
	else
		put_answer(c, &response, is_head);
}

static void wait_for_more(struct conn *c, bool served)
{
	size_t need = c->http1.need > buffer_len(&c->in) ? c->http1.need : buffer_len(&c->in);

	if (!conn_count_bytes(c, need)) {
		refuse(c, 503);
		return;
	}
	if (c->http1.expects_continue && !c->said_continue) {
		conn_put(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
		c->said_continue = true;
	}
	if (!buffer_len(&c->in)) {
		if (c->state != CONN_NEW || served)
			conn_move(c, CONN_IDLE);
	} else if (c->state == CONN_IDLE || served) {
		conn_move(c, CONN_ACTIVE);
	}
}

void conn_serve_http1(struct conn *c)
{
	struct http1_request request;
	bool served = false;
	int64_t n = 0;

	while (!c->is_last && buffer_len(&c->in)) {
		struct str bytes = buffer_str(&c->in);

		n = http1_parse(&c->http1, (char *)bytes.p, bytes.n, &request);
		if (n <= 0)
			break;
		serve(c, &request);
		buffer_consume(&c->in, (size_t)n);
		c->said_continue = false;
		served = true;
	}
	if (c->is_last)
		return;
	if (n < 0)
		refuse(c, (unsigned)-n);
	else
		wait_for_more(c, served);
}
