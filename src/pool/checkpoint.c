/* The kubelet's cpu_manager_state. Its checksum is not over the file but over a dump of the decoded
 * Go structure, so verifying it means printing that dump from our own parse, byte for byte
 * (docs/reference/checkpoint.md#checksum). */

#include "checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/doc.h"

/* The dump contains the name of the Go type, which differs between kubelet releases for one
 * content. */
static const struct {
	const char *type;
	const char *entries_type;
	bool has_pods;
} forms[] = {
	[CHECKPOINT_V1] = { "CPUManagerCheckpoint", "map[string]string", false },
	[CHECKPOINT_V2] = { "CPUManagerCheckpoint", "map[string]map[string]string", false },
	[CHECKPOINT_V2_NAMED] = { "CPUManagerCheckpointV2", "map[string]map[string]string", false },
	[CHECKPOINT_V3] = { "CPUManagerCheckpoint", "map[string]map[string]string", true },
	[CHECKPOINT_V3_NAMED] = { "CPUManagerCheckpointV3", "map[string]map[string]string", true },
};
_Static_assert(ARRAY_LEN(forms) == CHECKPOINT_FORM__COUNT, "every form has a spelling");

/* Go's JSON decoder ignores the case of keys and uses the last of duplicates. */
static yyjson_val *get_folded(yyjson_val *object, const char *key)
{
	struct str want = str_from(key);
	yyjson_val *k, *v, *found = NULL;

	DOC_EACH_PAIR (object, k, v) {
		struct str name = doc_str(k);

		if (name.n == want.n && strncasecmp(name.p, want.p, want.n) == 0)
			found = v;
	}
	return found;
}

struct checkpoint_pair {
	struct str key;
	yyjson_val *value;
};

static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct checkpoint_pair *)a)->key,
		       ((const struct checkpoint_pair *)b)->key);
}

/* The pairs of a map sorted bytewise, as in Go's dump and in our entries. */
static int sorted_pairs(yyjson_val *map, struct arena *a, struct checkpoint_pair **ret,
			size_t *ret_n, struct err *err)
{
	size_t n = 0, cap = yyjson_obj_size(map);
	struct checkpoint_pair *pairs;
	yyjson_val *k, *v;

	if (map && !yyjson_is_obj(map) && !yyjson_is_null(map))
		return err_set(err, EINVAL, "expected an object, found %s", doc_type(map));
	pairs = arena_array(a, struct checkpoint_pair, cap + 1);
	if (!pairs)
		return err_set(err, ENOMEM, "not enough memory");
	DOC_EACH_PAIR (map, k, v)
		pairs[n++] = (struct checkpoint_pair){ doc_str(k), v };
	qsort(pairs, n, sizeof(*pairs), by_key);
	*ret = pairs;
	*ret_n = n;
	return 0;
}

typedef int (*dump_fn)(yyjson_val *v, struct strbuf *b, struct err *err);

static int dump_map(yyjson_val *map, dump_fn dump_value, struct strbuf *b, struct err *err)
{
	struct checkpoint_pair *pairs;
	size_t n;
	int r;

	if (yyjson_is_null(map)) { /* Go decodes an absent map as empty and null as nil */
		strbuf_add(b, STR("<nil>"));
		return 0;
	}
	r = sorted_pairs(map, b->a, &pairs, &n, err);
	if (r < 0)
		return r;
	strbuf_add(b, STR("map["));
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_addc(b, ' ');
		strbuf_add(b, pairs[i].key);
		strbuf_addc(b, ':');
		r = dump_value(pairs[i].value, b, err);
		if (r < 0)
			return err_wrap(err, "%s", quote(pairs[i].key).text);
	}
	strbuf_addc(b, ']');
	return 0;
}

static int dump_text(yyjson_val *v, struct strbuf *b, struct err *err)
{
	if (v && !yyjson_is_str(v) && !yyjson_is_null(v))
		return err_set(err, EINVAL, "expected a string, found %s", doc_type(v));
	strbuf_add(b, doc_str(v));
	return 0;
}

static int dump_texts(yyjson_val *v, struct strbuf *b, struct err *err)
{
	return dump_map(v, dump_text, b, err);
}

/* In the structure the set is decoded (a Go map of integers), unlike all other sets, which are
 * text. Go prints maps with sorted keys. */
static int dump_pod_set(yyjson_val *v, struct strbuf *b, struct err *err)
{
	struct cpuset cpus;
	bool first = true;
	int r;

	r = cpuset_parse_lenient(doc_str(get_folded(v, "cpuSet")), &cpus, err);
	if (r < 0)
		return r;
	strbuf_add(b, STR("{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map["));
	CPUSET_FOREACH (cpu, &cpus) {
		strbuf_printf(b, "%s%u:{}", first ? "" : " ", cpu);
		first = false;
	}
	strbuf_add(b, STR("]}}"));
	return 0;
}

int checkpoint_hash_input(yyjson_val *root, enum checkpoint_form form, struct arena *a,
			  struct str *ret, struct err *err)
{
	struct strbuf b;
	int r;

	strbuf_init(&b, a);
	strbuf_printf(&b, "(*state.%s){PolicyName:(string)", forms[form].type);
	r = dump_text(get_folded(root, "policyName"), &b, err);
	if (r < 0)
		return err_wrap(err, "policyName");
	strbuf_add(&b, STR(" DefaultCPUSet:(string)"));
	r = dump_text(get_folded(root, "defaultCpuSet"), &b, err);
	if (r < 0)
		return err_wrap(err, "defaultCpuSet");
	strbuf_printf(&b, " Entries:(%s)", forms[form].entries_type);
	r = dump_map(get_folded(root, "entries"), form == CHECKPOINT_V1 ? dump_text : dump_texts,
		     &b, err);
	if (r < 0)
		return err_wrap(err, "entries");
	if (forms[form].has_pods) {
		strbuf_add(&b, STR(" PodEntries:(state.PodCPUAssignments)"));
		r = dump_map(get_folded(root, "podEntries"), dump_pod_set, &b, err);
		if (r < 0)
			return err_wrap(err, "podEntries");
	}
	/* The field itself is part of the dump, so the kubelet sets it to 0 before it computes. */
	strbuf_add(&b, STR(" Checksum:(checksum.Checksum)0}"));
	if (b.failed)
		return err_set(err, ENOMEM, "not enough memory");
	*ret = strbuf_str(&b);
	return 0;
}

uint32_t checkpoint_data_checksum(struct str data)
{
	return fnv1a32(fnv1a32(FNV1A32_START, STR("(string)")), data);
}

static bool matches(yyjson_val *root, enum checkpoint_form form, int64_t checksum, struct arena *a)
{
	struct str input = STR("");

	return checkpoint_hash_input(root, form, a, &input, NULL) >= 0 &&
	       fnv1a32(FNV1A32_START, input) == checksum;
}

static int parse_set(yyjson_val *v, struct cpuset *ret, struct err *err)
{
	if (v && !yyjson_is_str(v) && !yyjson_is_null(v))
		return err_set(err, EINVAL, "expected a string, found %s", doc_type(v));
	return cpuset_parse_lenient(doc_str(v), ret, err);
}

struct entry_list {
	struct checkpoint_entry *items;
	size_t n, cap;
};

static int add_entry(struct entry_list *list, struct str pod, struct checkpoint_pair p,
		     struct arena *a, struct err *err)
{
	struct checkpoint_entry *e;
	int r;

	list->items = arena_reserve(a, list->items, list->n, &list->cap, sizeof(*list->items));
	if (!list->items)
		return err_set(err, ENOMEM, "not enough memory");
	e = &list->items[list->n];
	*e = (struct checkpoint_entry){ .pod_uid = pod, .container = p.key };
	r = parse_set(p.value, &e->cpus, err);
	if (r < 0)
		return err_wrap(err, "could not parse cpuset %s for container %s in pod %s",
				quote(doc_str(p.value)).text, quote(p.key).text, quote(pod).text);
	list->n++;
	return 0;
}

static int read_entries(struct checkpoint *c, yyjson_val *map, struct arena *a, struct err *err)
{
	struct entry_list list = { 0 };
	struct checkpoint_pair *pods, *containers;
	size_t n_pods, n;
	int r;

	r = sorted_pairs(map, a, &pods, &n_pods, err);
	for (size_t i = 0; r >= 0 && i < n_pods; i++) {
		if (c->version == 1) {
			r = add_entry(&list, STR(""), pods[i], a, err);
			continue;
		}
		r = sorted_pairs(pods[i].value, a, &containers, &n, err);
		for (size_t j = 0; r >= 0 && j < n; j++)
			r = add_entry(&list, pods[i].key, containers[j], a, err);
	}
	c->entries = list.items;
	c->n_entries = list.n;
	return r < 0 ? r : 0;
}

static int read_pod_entries(struct checkpoint *c, yyjson_val *map, struct arena *a, struct err *err)
{
	struct entry_list list = { 0 };
	struct checkpoint_pair *pods;
	size_t n;
	int r;

	r = sorted_pairs(map, a, &pods, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct checkpoint_pair p = { STR(""), get_folded(pods[i].value, "cpuSet") };

		r = add_entry(&list, pods[i].key, p, a, err);
	}
	c->pod_entries = list.items;
	c->n_pod_entries = list.n;
	return r < 0 ? r : 0;
}

/* The part that all versions have in common. */
static int read_body(struct checkpoint *c, yyjson_val *root, struct arena *a, struct err *err)
{
	yyjson_val *set = get_folded(root, "defaultCpuSet");
	int r;

	c->policy = doc_str(get_folded(root, "policyName"));
	r = parse_set(set, &c->default_cpus, err);
	if (r < 0)
		return err_wrap(err, "could not parse default CPU set %s",
				quote(doc_str(set)).text);
	r = read_entries(c, get_folded(root, "entries"), a, err);
	if (r < 0 || c->version < 3)
		return r;
	return read_pod_entries(c, get_folded(root, "podEntries"), a, err);
}

static int corrupted(struct err *err)
{
	return err_set(err, EUCLEAN, "checkpoint is corrupted");
}

static int decode_v4(struct checkpoint *c, struct str data, int64_t checksum, struct arena *a,
		     struct err *err)
{
	struct doc inner;
	int r;

	if (checkpoint_data_checksum(data) != checksum)
		return corrupted(err);
	r = doc_parse(data, STR("data"), NULL, a, &inner, err);
	if (r < 0)
		return r;
	r = doc_check_keys(&inner, a, err);
	if (r < 0)
		return r;
	if (!yyjson_is_obj(inner.root))
		return doc_err(err, &inner, inner.root, "expected an object, found %s",
			       doc_type(inner.root));
	c->version = 4;
	c->verified = true;
	return read_body(c, inner.root, a, err);
}

/* Version 1 maps container ids directly to sets. */
static bool is_flat(yyjson_val *entries)
{
	yyjson_val *k, *v;

	DOC_EACH_PAIR (entries, k, v)
		if (yyjson_is_str(v))
			return true;
	return false;
}

static int find_version(struct checkpoint *c, yyjson_val *root, int64_t checksum, struct arena *a,
			struct err *err)
{
	bool flat = is_flat(get_folded(root, "entries"));

	c->verified = true;
	/* The file has no version number: the form whose checksum matches is the version. */
	if (!flat && (matches(root, CHECKPOINT_V3, checksum, a) ||
		      matches(root, CHECKPOINT_V3_NAMED, checksum, a)))
		c->version = 3;
	else if (!flat && (matches(root, CHECKPOINT_V2, checksum, a) ||
			   matches(root, CHECKPOINT_V2_NAMED, checksum, a)))
		c->version = 2;
	else if (matches(root, CHECKPOINT_V1, checksum, a))
		c->version = 1;
	else if (checksum == 0)
		c->version = flat ? 1 : 2;
	else
		return corrupted(err);
	/* The kubelet accepts 0 as "no checksum" (docs/reference/checkpoint.md#checksum). */
	c->verified = checksum != 0;
	return 0;
}

static int decode_root(struct checkpoint *c, yyjson_val *root, struct arena *a, struct err *err)
{
	struct str data = doc_str(get_folded(root, "data"));
	int64_t checksum = 0, data_checksum = 0;
	int r;

	(void)doc_int(get_folded(root, "checksum"), &checksum);
	(void)doc_int(get_folded(root, "dataChecksum"), &data_checksum);
	/* Version 4 is found by its members; what they hold counts, not the version 2 beside them.
	 */
	if (data.n || data_checksum) {
		r = decode_v4(c, data, data_checksum, a, err);
		return r < 0 ? err_wrap(err, "could not load v4 checkpoint") : 0;
	}
	r = find_version(c, root, checksum, a, err);
	return r < 0 ? r : read_body(c, root, a, err);
}

int checkpoint_decode(struct str text, struct str file, struct arena *a, struct checkpoint *ret,
		      struct err *err)
{
	struct checkpoint c = { 0 };
	struct doc doc;
	int r;

	r = doc_parse(text, file, NULL, a, &doc, err);
	if (r < 0)
		return r;
	r = doc_check_keys(&doc, a, err);
	if (r < 0)
		return r;
	if (!yyjson_is_obj(doc.root))
		return doc_err(err, &doc, doc.root, "expected an object, found %s",
			       doc_type(doc.root));
	r = decode_root(&c, doc.root, a, err);
	if (r < 0)
		return file.n ? err_wrap(err, PRI_STR, FMT_STR(file)) : r;
	*ret = c;
	return 0;
}

static int check_reserved(const struct cpuset *set, const struct checkpoint_machine *m,
			  struct arena *a, struct err *err)
{
	struct cpuset both = m->reserved;

	cpuset_intersect(&both, set);
	if (m->strict && !cpuset_is_empty(&both))
		return err_set(err, EINVAL,
			       "some of strictly reserved cpus: \"" PRI_STR
			       "\" are present in defaultCpuSet: \"" PRI_STR "\"",
			       FMT_STR(cpuset_format(&both, a)), FMT_STR(cpuset_format(set, a)));
	if (!m->strict && !cpuset_eq(&both, &m->reserved))
		return err_set(err, EINVAL,
			       "not all reserved cpus: \"" PRI_STR
			       "\" are present in defaultCpuSet: \"" PRI_STR "\"",
			       FMT_STR(cpuset_format(&m->reserved, a)),
			       FMT_STR(cpuset_format(set, a)));
	return 0;
}

static int check_disjoint(const struct checkpoint *c, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < c->n_entries; i++) {
		const struct checkpoint_entry *e = &c->entries[i];

		if (cpuset_intersects(&e->cpus, &c->default_cpus))
			return err_set(err, EINVAL,
				       "pod: " PRI_STR ", container: " PRI_STR " cpuset: \"" PRI_STR
				       "\" overlaps with default cpuset \"" PRI_STR "\"",
				       FMT_STR(e->pod_uid), FMT_STR(e->container),
				       FMT_STR(cpuset_format(&e->cpus, a)),
				       FMT_STR(cpuset_format(&c->default_cpus, a)));
	}
	return 0;
}

static int check_complete(const struct checkpoint *c, const struct cpuset *expected,
			  struct arena *a, struct err *err)
{
	struct cpuset found = c->default_cpus;

	for (size_t i = 0; i < c->n_entries; i++)
		cpuset_union(&found, &c->entries[i].cpus);
	for (size_t i = 0; i < c->n_pod_entries; i++)
		cpuset_union(&found, &c->pod_entries[i].cpus);
	if (cpuset_eq(&found, expected))
		return 0;
	return err_set(err, EINVAL,
		       "current set of available CPUs \"" PRI_STR
		       "\" doesn't match with CPUs in state \"" PRI_STR "\"",
		       FMT_STR(cpuset_format(expected, a)), FMT_STR(cpuset_format(&found, a)));
}

int checkpoint_check(const struct checkpoint *c, const struct checkpoint_machine *m,
		     struct cpuset *ret_default, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset expected = m->cpus;
	int r;

	arena_init(&a, 0);
	/* The checks and their order are the kubelet's at start
	 * (docs/reference/cpu-manager.md#start-checks): a state that passes here lets the kubelet
	 * start. */
	if (m->strict)
		cpuset_minus(&expected, &m->reserved);
	if (cpuset_is_empty(&c->default_cpus)) {
		if (c->n_entries)
			return err_set(err, EINVAL, "default cpuset cannot be empty");
		*ret_default = expected;
		return 0;
	}
	r = check_reserved(&c->default_cpus, m, &a, err);
	if (r < 0)
		return r;
	r = check_disjoint(c, &a, err);
	if (r < 0)
		return r;
	r = check_complete(c, &expected, &a, err);
	if (r < 0)
		return r;
	*ret_default = c->default_cpus;
	return 0;
}
