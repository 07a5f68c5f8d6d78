/* Texts only: paths and Event objects, built in the caller's arena. */

#include "object_path.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "codec/doc.h"
#include "kube/object_time.h"

#define MAX_MESSAGE 1024 /* limit of the API server */
#define MAX_NAME 200	 /* of 253, the rest is the suffix */

static void add_escaped(struct strbuf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		/* The unreserved characters of RFC 3986. */
		if (isalnum(c) || memchr("-._~", c, 4))
			strbuf_addc(b, (char)c);
		else
			strbuf_printf(b, "%%%02X", c);
	}
}

static void add_part(struct strbuf *b, struct str part)
{
	if (!part.n)
		return;
	strbuf_addc(b, '/');
	add_escaped(b, part);
}

struct str object_path(const struct object_ref *ref, struct arena *a)
{
	bool has_group = memchr(ref->api.p, '/', ref->api.n) != NULL;
	struct strbuf b;

	strbuf_init(&b, a);
	/* The core group has no name and its own root. The version is a constant of the program, so
	 * it is not escaped. */
	strbuf_printf(&b, "/%s/" PRI_STR, has_group ? "apis" : "api", FMT_STR(ref->api));
	if (ref->namespace.n)
		strbuf_add(&b, STR("/namespaces"));
	add_part(&b, ref->namespace);
	add_part(&b, ref->resource);
	add_part(&b, ref->name);
	add_part(&b, ref->subresource);
	return strbuf_str(&b);
}

struct str object_apply_path(const struct object_ref *ref, struct str manager, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, object_path(ref, a));
	/* Without force, a field that another manager has set is a conflict, which a daemon cannot
	 * resolve. */
	strbuf_add(&b, STR("?force=true&fieldManager="));
	add_escaped(&b, manager);
	return strbuf_str(&b);
}

struct str object_list_path(struct str path, const char *selector, unsigned page, struct str token,
			    struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, PRI_STR "?limit=%u", FMT_STR(path), page);
	if (selector)
		strbuf_printf(&b, "&%s", selector);
	if (token.n)
		strbuf_add(&b, STR("&continue="));
	for (size_t i = 0; i < token.n; i++) /* opaque to clients */
		strbuf_printf(&b, "%%%02X", (unsigned char)token.p[i]);
	return strbuf_str(&b);
}

/* Does not cut inside a UTF-8 character. */
static struct str truncate_utf8(struct str s, size_t max)
{
	if (s.n <= max)
		return s;
	s.n = max;
	while (s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
		s.n--;
	return s;
}

static void put_if(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, struct str value)
{
	if (value.n)
		doc_put_str(m, object, key, value);
}

int object_event_write(const struct object_event *e, struct arena *a, struct str *ret_path,
		       struct str *ret_body, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *object = yyjson_mut_obj(m), *meta, *about, *source;
	/* Events are namespaced objects. For an object without a namespace the API server expects
	 * "default". */
	struct str namespace = e->namespace.n ? e->namespace : STR("default");
	struct str now = object_time(e->now_s, a), base = truncate_utf8(e->name, MAX_NAME);

	doc_put_str(m, object, STR("apiVersion"), STR("v1"));
	doc_put_str(m, object, STR("kind"), STR("Event"));
	meta = doc_put_obj(m, object, STR("metadata"));
	doc_put_str(m, meta, STR("namespace"), namespace);
	doc_put_str(m, meta, STR("name"),
		    str_printf(a, PRI_STR ".%llx%08x", FMT_STR(base), (unsigned long long)e->now_s,
			       e->random));
	about = doc_put_obj(m, object, STR("involvedObject"));
	put_if(m, about, STR("apiVersion"), e->api);
	put_if(m, about, STR("kind"), e->kind);
	put_if(m, about, STR("namespace"), e->namespace);
	put_if(m, about, STR("name"), e->name);
	put_if(m, about, STR("uid"), e->uid);
	doc_put_str(m, object, STR("reason"), e->reason);
	doc_put_str(m, object, STR("message"), truncate_utf8(e->message, MAX_MESSAGE));
	doc_put_str(m, object, STR("type"), e->is_warning ? STR("Warning") : STR("Normal"));
	source = doc_put_obj(m, object, STR("source"));
	doc_put_str(m, source, STR("component"), e->component);
	put_if(m, source, STR("host"), e->host);
	doc_put_str(m, object, STR("firstTimestamp"), now);
	doc_put_str(m, object, STR("lastTimestamp"), now);
	doc_put_int(m, object, STR("count"), e->count ? e->count : 1);
	*ret_path = object_path(&(struct object_ref){ .api = STR("v1"),
						      .resource = STR("events"),
						      .namespace = namespace },
				a);
	return doc_write(object, false, a, ret_body, err);
}
