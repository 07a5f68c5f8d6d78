#include "decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kube/quantity.h"

bool result_init(struct admission_result *r, struct arena *a)
{
	/* The arrays are filled up to their counts, so they need no clearing. */
	r->allowed = true;
	r->code = 0;
	r->reason = "";
	r->message = STR("");
	r->n_warnings = r->n_steps = 0;
	r->rule = RULE__COUNT;
	r->is_static = false;
	return patch_init(&r->patch, a);
}

void result_step(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		 struct str seen)
{
	if (r->n_steps < RESULT_MAX_STEPS)
		r->steps[r->n_steps++] = (struct rule_step){ rule, verdict, seen };
}

void result_decide(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		   struct str seen)
{
	result_step(r, rule, verdict, seen);
	r->rule = rule;
}

void result_warn(struct admission_result *r, struct str text)
{
	if (r->n_warnings < RESULT_MAX_WARNINGS)
		r->warnings[r->n_warnings++] = text;
}

struct subject subject_of(yyjson_val *object, const char *resource, const char *kind)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));

	return (struct subject){
		.resource = resource,
		.kind = kind,
		.name = doc_str(doc_get(meta, STR("name"))),
		.generate_name = doc_str(doc_get(meta, STR("generateName"))),
	};
}

void result_refuse(struct admission_result *r, enum admission_rule rule, unsigned code,
		   const char *reason, struct str message)
{
	r->allowed = false;
	r->code = code;
	r->reason = reason;
	r->message = message;
	result_decide(r, rule, VERDICT_REFUSE, message);
	(void)patch_init(&r->patch, r->patch.arena); /* nothing of what was planned happens */
}

void result_forbid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		   struct str text)
{
	struct str name = s->name.n	     ? s->name :
			  s->generate_name.n ? s->generate_name :
					       STR("Unknown");

	result_refuse(r, rule, 403, "Forbidden",
		      str_printf(r->patch.arena, "%s \"" PRI_STR "\" is forbidden: " PRI_STR,
				 s->resource, FMT_STR(name), FMT_STR(text)));
}

void field_errors_init(struct field_errors *p, struct arena *a)
{
	*p = (struct field_errors){ .a = a };
}

void field_errors_add(struct field_errors *p, struct str text)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->items[i], text))
			return;
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 8;
		struct str *items = arena_realloc(p->a, p->items, p->cap * sizeof(*items),
						  cap * sizeof(*items));

		if (!items)
			return; /* the arena is exhausted: the caller's answer fails as a whole */
		p->items = items;
		p->cap = cap;
	}
	p->items[p->n++] = text;
}

void field_errors_invalid(struct field_errors *p, struct str field, struct str value,
			  struct str detail)
{
	field_errors_add(p, str_printf(p->a, PRI_STR ": Invalid value: " PRI_STR ": " PRI_STR,
				       FMT_STR(field), FMT_STR(value), FMT_STR(detail)));
}

void result_invalid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		    const struct field_errors *p)
{
	struct strbuf b;

	strbuf_init(&b, r->patch.arena);
	strbuf_printf(&b, "%s \"" PRI_STR "\" is invalid: ", s->kind, FMT_STR(s->name));
	if (p->n > 1)
		strbuf_addc(&b, '[');
	for (size_t i = 0; i < p->n; i++) {
		if (i)
			strbuf_add(&b, STR(", "));
		strbuf_add(&b, p->items[i]);
	}
	if (p->n > 1)
		strbuf_addc(&b, ']');
	result_refuse(r, rule, 422, "Invalid", strbuf_str(&b));
}

/* JSON text the way Go's encoder writes it for HTML. */
static void add_json_string(struct strbuf *b, struct str s)
{
	strbuf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			strbuf_printf(b, "\\%c", c);
		else if (c == '\n')
			strbuf_add(b, STR("\\n"));
		else if (c == '\r')
			strbuf_add(b, STR("\\r"));
		else if (c == '\t')
			strbuf_add(b, STR("\\t"));
		else if (c < 0x20 || c == '<' || c == '>' || c == '&')
			strbuf_printf(b, "\\u%04x", c);
		else
			strbuf_addc(b, (char)c);
	}
	strbuf_addc(b, '"');
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(doc_str(*(yyjson_val *const *)a), doc_str(*(yyjson_val *const *)b));
}

static struct str value_text(yyjson_val *value, bool quantities, struct arena *a)
{
	struct quantity q;

	if (quantities && quantity_parse(str_trim(doc_text(value)), &q, NULL) == 0)
		return quantity_format(&q, a);
	return doc_text(value);
}

struct str print_map(yyjson_val *map, bool quantities, struct arena *a)
{
	size_t n = yyjson_obj_size(map), i = 0;
	yyjson_val **keys = arena_array(a, yyjson_val *, n + 1);
	yyjson_val *key, *value;
	struct strbuf b;

	strbuf_init(&b, a);
	if (!map || !keys)
		return STR("null");
	DOC_EACH_PAIR (map, key, value)
		keys[i++] = key;
	qsort(keys, n, sizeof(yyjson_val *), by_key);
	strbuf_addc(&b, '{');
	for (i = 0; i < n; i++) {
		if (i)
			strbuf_addc(&b, ',');
		add_json_string(&b, doc_str(keys[i]));
		strbuf_addc(&b, ':');
		value = yyjson_obj_iter_get_val(keys[i]);
		add_json_string(&b, value_text(value, quantities, a));
	}
	strbuf_addc(&b, '}');
	return strbuf_str(&b);
}

struct str print_quoted(struct str s, struct arena *a)
{
	static const char letters[] = "abtnvfr"; /* of 7 to 13 */
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_addc(&b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			strbuf_printf(&b, "\\%c", c);
		else if (c >= 7 && c <= 13)
			strbuf_printf(&b, "\\%c", letters[c - 7]);
		else if (c < 0x20 || c == 0x7f)
			strbuf_printf(&b, "\\x%02x", c);
		else
			strbuf_addc(&b, (char)c);
	}
	strbuf_addc(&b, '"');
	return strbuf_str(&b);
}
