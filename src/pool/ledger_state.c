/* The state file's text. Keys are written in a fixed order and assignments sorted, so equal ledgers
 * have equal files. */

#include "ledger_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/doc.h"

/* Version and checksum come first and have a fixed size, so that the checksum can be verified
 * before anything is parsed, and the file is still one JSON document. */
#define HEAD "{\"version\":"
#define CHECKSUM ",\"checksum\":\"xxh64:"
#define DIGITS 16

int assignment_encode(const struct assignment *e, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *v = m ? yyjson_mut_obj(m) : NULL;

	if (!v)
		return err_set(err, ENOMEM, "assignment: not enough memory");
	doc_put_str(m, v, STR("pod"), e->pod_uid);
	doc_put_str(m, v, STR("namespace"), e->pod_namespace);
	doc_put_str(m, v, STR("name"), e->pod_name);
	doc_put_str(m, v, STR("container"), e->container);
	doc_put_str(m, v, STR("kind"), str_from(container_kind_name(e->kind)));
	doc_put_str(m, v, STR("cpus"), cpuset_format(&e->cpus, a));
	return doc_write(v, false, a, ret, err);
}

static struct str hex(uint64_t n, struct arena *a)
{
	return str_printf(a, "%0*" PRIx64, DIGITS, n);
}

/* All but the assignments, without the closing brace. */
static int add_facts(const struct ledger_state *s, struct strbuf *b, struct err *err)
{
	yyjson_mut_doc *m = doc_build(b->a);
	yyjson_mut_val *v = m ? yyjson_mut_obj(m) : NULL;
	struct str text;
	int r;

	if (!v)
		return err_set(err, ENOMEM, "state: not enough memory");
	doc_put_str(m, v, STR("bootId"), s->boot_id);
	doc_put_str(m, v, STR("configHash"), hex(s->config_hash, b->a));
	doc_put_str(m, v, STR("topologyHash"), hex(s->topology_hash, b->a));
	doc_put(m, v, STR("config"), pool_config_to_doc(s->config, m, b->a));
	r = doc_write(v, false, b->a, &text, err);
	if (r < 0)
		return err_wrap(err, "state");
	/* Without its braces: the members continue the object that HEAD opened. */
	strbuf_add(b, (struct str){ text.p + 1, text.n - 2 });
	return 0;
}

static int add_entries(const struct ledger_state *s, struct strbuf *b, struct err *err)
{
	strbuf_add(b, STR(",\"assignments\":["));
	for (size_t i = 0; i < s->n_entries; i++) {
		/* Empty when encoding failed before: it fails again here, where the error can be
		 * returned. */
		struct str text = s->entries[i]->encoded;
		int r = text.n ? 0 : assignment_encode(s->entries[i], b->a, &text, err);

		if (r < 0)
			return err_wrap(err, "state");
		if (i)
			strbuf_addc(b, ',');
		strbuf_add(b, text);
	}
	strbuf_add(b, STR("]}"));
	return 0;
}

int ledger_state_encode(const struct ledger_state *s, struct arena *a, struct str *ret,
			struct err *err)
{
	char digits[DIGITS + 1];
	struct strbuf b;
	size_t head;
	int r;

	strbuf_init(&b, a);
	(void)strbuf_reserve(&b, 2048 + s->n_entries * 256); /* usually enough: one allocation */
	/* Zeros in place of the checksum, which is known only when the rest is written. */
	strbuf_printf(&b, HEAD "%d" CHECKSUM "%0*d\",", LEDGER_STATE_VERSION, DIGITS, 0);
	head = b.n;
	r = add_facts(s, &b, err);
	if (r >= 0)
		r = add_entries(s, &b, err);
	if (r < 0)
		return r;
	if (b.failed)
		return err_set(err, ENOMEM, "state: not enough memory");
	(void)snprintf(digits, sizeof(digits), "%0*" PRIx64, DIGITS,
		       xxh64(str_skip(strbuf_str(&b), head), 0));
	memcpy(b.p + head - DIGITS - strlen("\","), digits, DIGITS);
	*ret = strbuf_str(&b);
	return 0;
}

static bool skip_text(struct str *text, struct str expected)
{
	if (!str_starts(*text, expected))
		return false;
	*text = str_skip(*text, expected.n);
	return true;
}

static bool parse_hex(struct str digits, uint64_t *ret)
{
	static const char alphabet[] = "0123456789abcdef";
	uint64_t n = 0;

	/* Lower case and the full width only, as written: one form for one number. */
	if (digits.n != DIGITS)
		return false;
	for (size_t i = 0; i < digits.n; i++) {
		const char *at = digits.p[i] ? strchr(alphabet, digits.p[i]) : NULL;

		if (!at)
			return false;
		n = n << 4 | (uint64_t)(at - alphabet);
	}
	*ret = n;
	return true;
}

/* Checks that need no parsing: version and checksum.
 * Done on bytes, before the JSON parser sees them: a truncated or damaged file is reported as such
 * and not as a syntax error somewhere in it. */
static int check_head(struct str text, struct str file, struct err *err)
{
	uint64_t version, checksum;
	size_t digits = 0;
	struct str rest = text;

	if (!skip_text(&rest, STR(HEAD)))
		return err_set(err, EUCLEAN, PRI_STR ": not a state file", FMT_STR(file));
	while (digits < rest.n && str_is_digit(rest.p[digits]))
		digits++;
	if (!str_to_u64((struct str){ rest.p, digits }, UINT32_MAX, &version))
		return err_set(err, EUCLEAN, PRI_STR ": not a state file", FMT_STR(file));
	/* Before the checksum: another version may compute it differently. */
	if (version != LEDGER_STATE_VERSION)
		return err_set(err, EPROTO,
			       PRI_STR ": version %" PRIu64
				       " is not supported, expected version %d",
			       FMT_STR(file), version, LEDGER_STATE_VERSION);
	rest = str_skip(rest, digits);
	if (!skip_text(&rest, STR(CHECKSUM)) || rest.n < DIGITS ||
	    !parse_hex((struct str){ rest.p, DIGITS }, &checksum))
		return err_set(err, EUCLEAN, PRI_STR ": the checksum is missing", FMT_STR(file));
	rest = str_skip(rest, DIGITS);
	if (!skip_text(&rest, STR("\",")) || xxh64(rest, 0) != checksum)
		return err_set(err, EUCLEAN, PRI_STR ": the checksum does not match the content",
			       FMT_STR(file));
	return 0;
}

static int get_text(const struct doc *doc, yyjson_val *object, const char *key, struct str *ret,
		    struct err *err)
{
	yyjson_val *v = doc_get(object, str_from(key));

	if (!yyjson_is_str(v))
		return doc_err(err, doc, v ? v : object, "%s: expected a string, found %s", key,
			       doc_type(v));
	*ret = doc_str(v);
	return 0;
}

static int get_hash(const struct doc *doc, const char *key, uint64_t *ret, struct err *err)
{
	struct str text;
	int r;

	r = get_text(doc, doc->root, key, &text, err);
	if (r < 0)
		return r;
	if (!parse_hex(text, ret))
		return doc_err(err, doc, doc_get(doc->root, str_from(key)),
			       "%s: expected %d hexadecimal digits", key, DIGITS);
	return 0;
}

static bool kind_parse(struct str name, enum container_kind *ret)
{
	for (int k = 0; k < CONTAINER__COUNT; k++) {
		if (!str_eq(name, str_from(container_kind_name((enum container_kind)k))))
			continue;
		*ret = (enum container_kind)k;
		return true;
	}
	return false;
}

static int read_entry(const struct doc *doc, yyjson_val *v, struct assignment *ret, struct err *err)
{
	struct str kind, cpus;
	const struct {
		const char *key;
		struct str *target;
	} texts[] = {
		{ "pod", &ret->pod_uid },   { "namespace", &ret->pod_namespace },
		{ "name", &ret->pod_name }, { "container", &ret->container },
		{ "kind", &kind },	    { "cpus", &cpus },
	};
	struct err why = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int r = get_text(doc, v, texts[i].key, texts[i].target, err);

		if (r < 0)
			return r;
	}
	if (!kind_parse(kind, &ret->kind))
		return doc_err(err, doc, doc_get(v, STR("kind")), "unknown kind %s",
			       quote(kind).text);
	if (cpuset_parse(cpus, &ret->cpus, &why) < 0)
		return doc_err(err, doc, doc_get(v, STR("cpus")), "cpus: %s", why.msg);
	return 0;
}

int assignment_cmp(const struct assignment *x, const struct assignment *y)
{
	int r = str_cmp(x->pod_uid, y->pod_uid);

	return r ? r : str_cmp(x->container, y->container);
}

static int read_entries(const struct doc *doc, struct arena *a, struct ledger_state *s,
			struct err *err)
{
	yyjson_val *list = doc_get(doc->root, STR("assignments")), *v;
	size_t n = 0, cap = yyjson_arr_size(list) + 1;
	struct assignment *entries, **order;
	int r;

	if (!yyjson_is_arr(list))
		return doc_err(err, doc, list ? list : doc->root,
			       "assignments: expected an array, found %s", doc_type(list));
	entries = arena_array(a, struct assignment, cap);
	order = arena_array(a, struct assignment *, cap);
	if (!entries || !order)
		return err_set(err, ENOMEM, "state: not enough memory");
	DOC_EACH_ITEM (list, v) {
		r = read_entry(doc, v, &entries[n], err);
		if (r < 0)
			return r;
		/* The ledger searches by bisection and relies on this order. */
		if (n && assignment_cmp(&entries[n - 1], &entries[n]) >= 0)
			return doc_err(err, doc, v, "assignments: not sorted, or a duplicate");
		order[n] = &entries[n];
		n++;
	}
	s->entries = order;
	s->n_entries = n;
	return 0;
}

static int read_root(const struct doc *doc, struct arena *a, struct ledger_state *s,
		     struct err *err)
{
	struct pool_config *config = arena_new(a, struct pool_config);
	int r;

	if (!yyjson_is_obj(doc->root))
		return doc_err(err, doc, doc->root, "expected an object");
	if (!config)
		return err_set(err, ENOMEM, "state: not enough memory");
	r = doc_check_keys(doc, a, err);
	if (r < 0)
		return r;
	r = get_text(doc, doc->root, "bootId", &s->boot_id, err);
	if (r < 0)
		return r;
	r = get_hash(doc, "configHash", &s->config_hash, err);
	if (r < 0)
		return r;
	r = get_hash(doc, "topologyHash", &s->topology_hash, err);
	if (r < 0)
		return r;
	r = pool_config_from_doc(doc, doc_get(doc->root, STR("config")), config, err);
	if (r < 0)
		return r;
	s->config = config;
	return read_entries(doc, a, s, err);
}

int ledger_state_decode(struct str text, struct str file, struct arena *a, struct ledger_state *ret,
			struct err *err)
{
	struct doc_limits limits = { .size_bytes = LEDGER_STATE_MAX_SIZE };
	struct ledger_state s = { 0 };
	struct doc doc;
	int r;

	r = check_head(text, file, err);
	if (r < 0)
		return r;
	r = doc_parse(text, file, &limits, a, &doc, err);
	if (r < 0)
		return r;
	r = read_root(&doc, a, &s, err);
	if (r < 0)
		return r;
	*ret = s;
	return 0;
}
