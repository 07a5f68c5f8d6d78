/* All calls of a batch are sent at once; replies are matched by serial. A systemd that is busy, for
 * example with a reload, answers late, so nothing here waits. */

#include "systemd_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "host_dirs.h"
#include "rpc/dbus.h"

#define TIMEOUT_MS 60000 /* systemd is slow while it reloads on a busy machine */
#define INPUT_MAX (DBUS_MAX_MESSAGE * 2)
#define SERIAL_FIRST 2 /* 1 is Hello */

#define MANAGER                                                                                    \
	"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define BUS "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"

static void connect_next(struct systemd_client *c);

/* --- calls --- */

/* The property is an array of bytes, CPU 0 in the lowest bit of the first. */
static void add_mask(struct strbuf *b, const struct cpuset *cpus)
{
	const unsigned last = cpuset_last(cpus);
	const struct dbus_array array = dbus_begin_array(b, 1);

	for (unsigned i = 0; last != CPUSET_NONE && i <= last / 8; i++)
		strbuf_addc(b, (char)(cpus->w[i / 8] >> (i % 8 * 8) & 0xff));
	dbus_end_array(b, array);
}

static void add_set(struct strbuf *b, const struct systemd_call *call, uint32_t serial)
{
	static const struct cpuset unrestricted;
	struct dbus_array properties;
	struct strbuf body;

	strbuf_init(&body, b->a);
	dbus_add_string(&body, str_from(call->unit));
	dbus_add_u32(&body, 1); /* at run time: ends with the boot */
	properties = dbus_begin_array(&body, 8);
	dbus_align(&body, 8);
	dbus_add_string(&body, STR("AllowedCPUs"));
	dbus_add_signature(&body, STR("ay"));
	add_mask(&body, call->cpus ? call->cpus : &unrestricted);
	dbus_end_array(&body, properties);
	dbus_add_call(b, &(struct dbus_call){ MANAGER, "SetUnitProperties", "sba(sv)",
					      strbuf_str(&body), serial });
}

/* StartUnit() and its relatives: the unit, and what happens to jobs that conflict. */
static void add_job(struct strbuf *b, const struct systemd_call *call, const char *member,
		    uint32_t serial)
{
	struct strbuf body;

	strbuf_init(&body, b->a);
	dbus_add_string(&body, str_from(call->unit));
	dbus_add_string(&body, call->method == SYSTEMD_REBOOT ? STR("replace-irreversibly") :
								STR("replace"));
	dbus_add_call(b, &(struct dbus_call){ MANAGER, member, "ss", strbuf_str(&body), serial });
}

/* EnableUnitFiles() and DisableUnitFiles(): not only until the next boot, and links of others are
 * not replaced. */
static void add_enable(struct strbuf *b, const struct systemd_call *call, uint32_t serial)
{
	const bool enables = call->method == SYSTEMD_ENABLE;
	struct dbus_array units;
	struct strbuf body;

	strbuf_init(&body, b->a);
	units = dbus_begin_array(&body, 4);
	dbus_add_string(&body, str_from(call->unit));
	dbus_end_array(&body, units);
	dbus_add_u32(&body, 0);
	if (enables)
		dbus_add_u32(&body, 0);
	dbus_add_call(
		b, &(struct dbus_call){ MANAGER, enables ? "EnableUnitFiles" : "DisableUnitFiles",
					enables ? "asbb" : "asb", strbuf_str(&body), serial });
}

static void add_call(struct strbuf *b, const struct systemd_call *call, uint32_t serial)
{
	switch (call->method) {
	case SYSTEMD_RELOAD:
		dbus_add_call(b, &(struct dbus_call){ MANAGER, "Reload", "", STR(""), serial });
		break;
	case SYSTEMD_SET_CPUS:
		add_set(b, call, serial);
		break;
	case SYSTEMD_START:
	case SYSTEMD_REBOOT:
		add_job(b, call, "StartUnit", serial);
		break;
	case SYSTEMD_RESTART:
		add_job(b, call, "RestartUnit", serial);
		break;
	case SYSTEMD_TRY_RESTART:
		add_job(b, call, "TryRestartUnit", serial);
		break;
	case SYSTEMD_ENABLE:
	case SYSTEMD_DISABLE:
		add_enable(b, call, serial);
		break;
	}
}

static void send_calls(struct systemd_client *c)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	if (c->is_bus)
		dbus_add_call(&b, &(struct dbus_call){ BUS, "Hello", "", STR(""), 1 });
	for (size_t i = 0; i < c->n; i++)
		add_call(&b, &c->calls[i], (uint32_t)i + SERIAL_FIRST);
	c->state = SYSTEMD_CALLING;
	stream_write(&c->stream, strbuf_str(&b));
}

/* --- connection --- */

static void on_closed(struct stream *s)
{
	struct systemd_client *c = container_of(s, struct systemd_client, stream);

	c->state = SYSTEMD_IDLE;
	c->on_done(c);
}

/* It may be closing already, to connect to the other socket. */
static void close_stream(struct systemd_client *c, stream_fn then)
{
	c->state = SYSTEMD_CLOSING;
	if (stream_is_closing(&c->stream))
		c->stream.on_closed = then;
	else
		stream_close(&c->stream, then);
}

static void finish(struct systemd_client *c)
{
	timer_stop(&c->timeout);
	buffer_done(&c->input);
	c->input = (struct buffer){ 0 };
	close_stream(c, on_closed);
}

static void fail(struct systemd_client *c, int code, const char *why)
{
	(void)err_set(&c->err, code, "systemd: %s", why);
	finish(c);
}

static void on_timeout(struct timer *t)
{
	fail(container_of(t, struct systemd_client, timeout), ETIMEDOUT, "no answer");
}

static void handle(struct systemd_client *c, const struct dbus_message *m)
{
	const size_t i = (size_t)m->reply_serial - SERIAL_FIRST;
	struct systemd_call *call;

	/* Others are the reply to Hello, and signals. */
	if ((m->type != DBUS_REPLY && m->type != DBUS_ERROR) || m->reply_serial < SERIAL_FIRST ||
	    i >= c->n || c->calls[i].is_answered)
		return;
	call = &c->calls[i];
	call->is_answered = true;
	c->n_answered++;
	if (m->type == DBUS_ERROR) {
		const struct str text = dbus_error_text(m);

		(void)err_set(&call->err, EIO, "systemd: %s: " PRI_STR,
			      call->unit ? call->unit : "reload",
			      FMT_STR(text.n ? text : m->error_name));
	}
}

/* Returns whether there may be more to take from the input. */
static bool take_input(struct systemd_client *c)
{
	const struct str bytes = buffer_str(&c->input);
	struct dbus_message m;
	struct err err = { 0 };
	size_t size = 0;
	int r;

	r = c->state == SYSTEMD_AUTH ? dbus_parse_auth(bytes, &size, &err) :
				       dbus_parse(bytes, &m, &size, &err);
	if (r < 0) {
		fail(c, err.code, err.msg);
		return false;
	}
	if (r == 0)
		return false;
	if (c->state == SYSTEMD_AUTH)
		send_calls(c);
	else
		handle(c, &m);
	buffer_consume(&c->input, size);
	return true;
}

static void on_data(struct stream *s, struct str bytes)
{
	struct systemd_client *c = container_of(s, struct systemd_client, stream);

	if (buffer_len(&c->input) + bytes.n > INPUT_MAX) {
		fail(c, EMSGSIZE, "too much data");
		return;
	}
	buffer_add(&c->input, bytes);
	while (take_input(c))
		;
	if (c->state == SYSTEMD_CALLING && c->n_answered == c->n)
		finish(c);
}

static void on_end(struct stream *s, int error)
{
	struct systemd_client *c = container_of(s, struct systemd_client, stream);

	fail(c, error ? -error : ECONNRESET, "the connection was closed");
}

static void on_closed_for_bus(struct stream *s)
{
	connect_next(container_of(s, struct systemd_client, stream));
}

static void on_connected(struct stream *s, int error)
{
	struct systemd_client *c = container_of(s, struct systemd_client, stream);
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	if (error && !c->is_bus) {
		c->is_bus = true;
		c->private_error = -error;
		stream_close(s, on_closed_for_bus);
		return;
	}
	if (error) {
		(void)err_set(&c->err, c->private_error,
			      "neither /run/systemd/private nor the system bus can be reached: %s",
			      strerror(c->private_error));
		finish(c);
		return;
	}
	strbuf_init(&b, &a);
	dbus_add_auth(&b, (unsigned)geteuid());
	c->state = SYSTEMD_AUTH;
	stream_write(s, strbuf_str(&b));
}

static const struct stream_events events = { on_data, on_end, NULL, on_connected };

static void connect_next(struct systemd_client *c)
{
	char path[4096];
	struct err err = { 0 };

	(void)snprintf(path, sizeof(path), "%s%s", host_prefix(c->root),
		       c->is_bus ? "/run/dbus/system_bus_socket" : "/run/systemd/private");
	c->state = SYSTEMD_CONNECTING;
	if (stream_connect_unix(&c->stream, c->loop, path, &events, &err) < 0)
		fail(c, err.code, err.msg);
}

void systemd_client_init(struct systemd_client *c, struct loop *loop, const char *root,
			 systemd_done_fn on_done)
{
	*c = (struct systemd_client){
		.loop = loop, .root = root, .on_done = on_done, .timeout_ms = TIMEOUT_MS
	};
	timer_init(&c->timeout, loop, on_timeout);
}

void systemd_client_start(struct systemd_client *c, struct systemd_call *calls, size_t n)
{
	c->calls = calls;
	c->n = n;
	c->n_answered = 0;
	c->is_bus = false;
	c->err = (struct err){ 0 };
	timer_start(&c->timeout, c->timeout_ms, 0);
	connect_next(c);
}

bool systemd_client_is_idle(const struct systemd_client *c)
{
	return c->state == SYSTEMD_IDLE;
}

void systemd_client_close(struct systemd_client *c)
{
	if (c->state == SYSTEMD_IDLE || c->state == SYSTEMD_CLOSING || !c->loop)
		return;
	timer_stop(&c->timeout);
	buffer_done(&c->input);
	c->input = (struct buffer){ 0 };
	close_stream(c, NULL);
}
