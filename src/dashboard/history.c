#include "history.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "codec/doc.h"

void history_init(struct history *h)
{
	*h = (struct history){ 0 };
	TAILQ_INIT(&h->entries);
}

static void drop_first(struct history *h)
{
	struct history_entry *e = TAILQ_FIRST(&h->entries);

	TAILQ_REMOVE(&h->entries, e, next);
	h->n--;
	h->bytes -= e->size;
	h->since_ms = e->event.time_ms;
	free(e);
}

void history_done(struct history *h)
{
	while (h->n)
		drop_first(h);
}

void history_expire(struct history *h, int64_t now_ms)
{
	while (h->n && TAILQ_FIRST(&h->entries)->event.time_ms < now_ms - HISTORY_MS)
		drop_first(h);
	if (h->since_ms < now_ms - HISTORY_MS)
		h->since_ms = now_ms - HISTORY_MS;
}

static void keep(struct str *text, char **to)
{
	if (text->n)
		memcpy(*to, text->p, text->n);
	text->p = *to;
	*to += text->n;
}

void history_add(struct history *h, const struct history_event *event)
{
	struct history_event v = *event;
	struct str *const texts[] = {
		&v.node,	&v.namespace,	&v.pod,	       &v.container,
		&v.before.pool, &v.before.cpus, &v.after.pool, &v.after.cpus
	};
	const size_t n_texts = sizeof(texts) / sizeof(texts[0]);
	struct history_entry *e;
	size_t size = sizeof(*e);
	char *to;

	for (size_t i = 0; i < n_texts; i++)
		size += texts[i]->n;
	e = malloc(size);
	if (!e)
		abort(); /* D21 */
	to = (char *)(e + 1);
	for (size_t i = 0; i < n_texts; i++)
		keep(texts[i], &to);
	e->event = v;
	e->size = size;
	TAILQ_INSERT_TAIL(&h->entries, e, next);
	h->n++;
	h->bytes += size;
	while (h->bytes > HISTORY_BYTES)
		drop_first(h);
}

static bool matches(const struct history_event *e, const struct history_filter *f)
{
	if (f->pod.n)
		return str_eq(e->pod, f->pod) && str_eq(e->namespace, f->namespace);
	return str_eq(e->node, f->node);
}

static void put_place(yyjson_mut_doc *m, yyjson_mut_val *to, struct str key,
		      const struct history_place *p)
{
	yyjson_mut_val *v;

	if (!p->pool.n)
		return;
	v = doc_put_obj(m, to, key);
	doc_put_str(m, v, STR("pool"), p->pool);
	doc_put_str(m, v, STR("cpus"), p->cpus);
}

static void put_event(yyjson_mut_doc *m, yyjson_mut_val *list, const struct history_event *e)
{
	yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

	doc_put_int(m, v, STR("time"), e->time_ms);
	doc_put_str(m, v, STR("node"), e->node);
	if (e->pod.n) {
		doc_put_str(m, v, STR("namespace"), e->namespace);
		doc_put_str(m, v, STR("pod"), e->pod);
		doc_put_str(m, v, STR("container"), e->container);
	}
	put_place(m, v, STR("from"), &e->before);
	put_place(m, v, STR("to"), &e->after);
	doc_put_str(m, v, STR("why"), str_from(e->why));
}

struct str history_to_json(const struct history *h, const struct history_filter *f, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;
	const struct history_entry *e;
	int64_t since_ms = h->since_ms;
	struct str text = STR("{}");
	size_t n = 0, skip;

	TAILQ_FOREACH(e, &h->entries, next)
	n += matches(&e->event, f);
	skip = n > f->max ? n - f->max : 0;
	list = doc_put_arr(m, root, STR("events"));
	TAILQ_FOREACH(e, &h->entries, next)
	{
		if (!matches(&e->event, f))
			continue;
		if (skip) {
			skip--;
			since_ms = e->event.time_ms;
		} else {
			put_event(m, list, &e->event);
		}
	}
	doc_put_int(m, root, STR("since"), since_ms);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}
