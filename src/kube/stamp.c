/* The CPU stamp is written at admission and read on the node, where it decides which containers
 * may own CPUs. It travels in an annotation, which users and other webhooks can also write, so the
 * reader is strict. */

#include "stamp.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/doc.h"
#include "names.h"
#include "shares.h"

struct str stamps_format(const struct cpu_stamp *stamps, size_t n, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");

	for (size_t i = 0; i < n; i++) {
		yyjson_mut_val *c = yyjson_mut_obj(m);

		yyjson_mut_obj_add(root, doc_new_str(m, stamps[i].name), c);
		yyjson_mut_obj_add_str(m, c, NAME_STAMP_KIND_KEY,
				       container_kind_name(stamps[i].kind));
		yyjson_mut_obj_add_int(m, c, NAME_STAMP_MILLI_KEY, stamps[i].milli);
		yyjson_mut_obj_add_str(m, c, NAME_STAMP_POOL_KEY, pool_name(stamps[i].pool));
	}
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

static bool kind_parse(struct str text, enum container_kind *ret)
{
	/* Ephemeral containers are added to a running pod and have no resources, so a stamp cannot
	 * name them. */
	for (size_t i = 0; i < CONTAINER_EPHEMERAL; i++)
		if (str_eq(text, str_from(container_kind_name((enum container_kind)i)))) {
			*ret = (enum container_kind)i;
			return true;
		}
	return false;
}

static bool pool_parse(struct str text, enum pool *ret)
{
	/* Management is not a pool of a stamp: a stamp must not be a way into it. That needs a
	 * permission of the namespace. */
	for (enum pool i = POOL_SHARED; i < POOL__COUNT; i++)
		if (str_eq(text, str_from(pool_name(i)))) {
			*ret = i;
			return true;
		}
	return false;
}

static int parse_one(struct str name, yyjson_val *v, struct cpu_stamp *ret, struct err *err)
{
	struct cpu_stamp s = { .name = name };
	struct quoted container = quote(name);

	/* Together with the checks below this refuses unknown members. doc_check_keys() refused
	 * repeated ones. */
	if (yyjson_obj_size(v) != 3)
		return err_set(err, EINVAL, "container %s: want kind, milli and pool",
			       container.text);
	if (!kind_parse(doc_str(doc_get(v, STR(NAME_STAMP_KIND_KEY))), &s.kind))
		return err_set(err, EINVAL, "container %s: unknown kind", container.text);
	if (!pool_parse(doc_str(doc_get(v, STR(NAME_STAMP_POOL_KEY))), &s.pool))
		return err_set(err, EINVAL, "container %s: unknown pool", container.text);
	if (!doc_int(doc_get(v, STR(NAME_STAMP_MILLI_KEY)), &s.milli) || s.milli < 0)
		return err_set(err, EINVAL, "container %s: bad amount of millicores",
			       container.text);
	if (s.pool == POOL_GUARANTEED && (!s.milli || s.milli % 1000))
		return err_set(err, EINVAL, "container %s: guaranteed, but not whole CPUs",
			       container.text);
	*ret = s;
	return 0;
}

int stamps_parse(struct str text, struct arena *a, struct cpu_stamp **ret, size_t *ret_n,
		 struct err *err)
{
	static const struct doc_limits limits = { .depth = 4 };
	struct cpu_stamp *stamps;
	yyjson_val *key, *value;
	struct doc doc;
	size_t n = 0;
	int r;

	r = doc_parse(text, STR(""), &limits, a, &doc, err);
	if (r < 0)
		return r;
	if (!yyjson_is_obj(doc.root))
		return err_set(err, EINVAL, "want an object, not %s", doc_type(doc.root));
	r = doc_check_keys(&doc, a, err);
	if (r < 0)
		return r;
	stamps = arena_array(a, struct cpu_stamp, yyjson_obj_size(doc.root) + 1);
	if (!stamps)
		return err_set(err, ENOMEM, "not enough memory");
	DOC_EACH_PAIR (doc.root, key, value) {
		r = parse_one(doc_str(key), value, &stamps[n++], err);
		if (r < 0)
			return r;
	}
	*ret = stamps;
	*ret_n = n;
	return 0;
}

const struct cpu_stamp *stamps_find(const struct cpu_stamp *stamps, size_t n, struct str container)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(stamps[i].name, container))
			return &stamps[i];
	return NULL;
}

bool stamp_matches(const struct cpu_stamp *stamp, const struct runtime_cpu *seen)
{
	/* 0: the runtime reported none. The kubelet computes the shares from the CPU request, which
	 * the stamp repeats. */
	if (seen->shares && seen->shares != cpu_shares_from_milli(stamp->milli))
		return false;
	/* A wrong stamp for the shared pool gains nothing. */
	if (stamp->pool == POOL_SHARED)
		return true;
	if (!seen->is_guaranteed)
		return false;
	/* Guaranteed: the limit equals the request. No quota: the agent or the runtime removed
	 * it. */
	return seen->quota_us <= 0 || !seen->period_us ||
	       (uint64_t)seen->quota_us * 1000 / seen->period_us == (uint64_t)stamp->milli;
}
