/* One source has all pools: two sources that are merged could give a CPU to two pools. */

#include "pools_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/doc.h"
#include "kept_profile.h"
#include "kube/names.h"

#define MAX_FILE_SIZE 65536 /* three CPU lists of a machine with 8192 CPUs, at their worst */

static int read_cpus(const struct doc *doc, yyjson_val *v, struct cpuset *ret, struct err *err)
{
	struct err why = { 0 };

	if (!yyjson_is_str(v))
		return doc_err(err, doc, v, "want a CPU list, not %s", doc_type(v));
	if (cpuset_parse(doc_str(v), ret, &why) < 0)
		return doc_err(err, doc, v, "%s", why.msg);
	return 0;
}

static int read_resize(const struct doc *doc, yyjson_val *v, bool *ret, struct err *err)
{
	if (!str_eq(doc_str(v), STR(NAME_POOLS_RESIZE_REFUSE)) &&
	    !str_eq(doc_str(v), STR(NAME_POOLS_RESIZE_DEFER)))
		return doc_err(err, doc, v,
			       "want \"" NAME_POOLS_RESIZE_REFUSE "\" or \"" NAME_POOLS_RESIZE_DEFER
			       "\"");
	*ret = str_eq(doc_str(v), STR(NAME_POOLS_RESIZE_DEFER));
	return 0;
}

static int read_policy(const struct doc *doc, yyjson_val *v, struct hint_config *ret,
		       struct err *err)
{
	if (hint_policy_parse(doc_str(v), &ret->policy, NULL) < 0)
		return doc_err(err, doc, v,
			       "want \"none\", \"best-effort\", \"restricted\" or "
			       "\"single-numa-node\"");
	return 0;
}

static int read_scope(const struct doc *doc, yyjson_val *v, struct hint_config *ret,
		      struct err *err)
{
	if (hint_scope_parse(doc_str(v), &ret->scope, NULL) < 0)
		return doc_err(err, doc, v, "want \"container\" or \"pod\"");
	return 0;
}

/* {"full-pcpus-only":"true"}: the kubelet's form, where values are texts. */
static int read_options(const struct doc *doc, yyjson_val *v, struct pick_options *ret,
			struct err *err)
{
	struct err why = { 0 };
	yyjson_val *key, *value;

	if (!yyjson_is_obj(v))
		return doc_err(err, doc, v, "want an object, not %s", doc_type(v));
	DOC_EACH_PAIR (v, key, value) {
		if (!yyjson_is_str(value))
			return doc_err(err, doc, value, "%s: want \"true\" or \"false\", not %s",
				       quote(doc_str(key)).text, doc_type(value));
		if (pick_options_set(ret, doc_str(key), doc_str(value), &why) < 0)
			return doc_err(err, doc, key, "%s", why.msg);
	}
	return 0;
}

static int read_member(const struct doc *doc, yyjson_val *key, yyjson_val *value,
		       struct pool_config *c, struct err *err)
{
	const struct str name = doc_str(key);

	if (str_eq(name, STR(NAME_POOLS_RESERVED_KEY)))
		return read_cpus(doc, value, &c->reserved, err);
	if (str_eq(name, STR(NAME_POOLS_SHARED_KEY)))
		return read_cpus(doc, value, &c->shared, err);
	if (str_eq(name, STR(NAME_POOLS_GUARANTEED_KEY)))
		return read_cpus(doc, value, &c->guaranteed, err);
	if (str_eq(name, STR(NAME_POOLS_TYPES_KEY)))
		return pool_config_read_types(doc, value, c, err);
	if (str_eq(name, STR(NAME_POOLS_RESIZE_KEY)))
		return read_resize(doc, value, &c->defers_resize, err);
	if (str_eq(name, STR(NAME_POOLS_POLICY_KEY)))
		return read_policy(doc, value, &c->topology, err);
	if (str_eq(name, STR(NAME_POOLS_SCOPE_KEY)))
		return read_scope(doc, value, &c->topology, err);
	if (str_eq(name, STR(NAME_POOLS_OPTIONS_KEY)))
		return read_options(doc, value, &c->options, err);
	/* a typing error would silently remove a pool */
	return doc_err(err, doc, key, "unknown pool %s", quote(name).text);
}

int pools_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		     struct err *err)
{
	struct pool_config c;
	yyjson_val *key, *value;
	struct doc doc;
	int r;

	pool_config_init(&c);
	c.is_classic = true; /* unless there is a shared pool */
	r = doc_parse(text, file, NULL, a, &doc, err);
	if (r == 0)
		r = doc_check_keys(&doc, a, err);
	if (r < 0)
		return r;
	if (!yyjson_is_obj(doc.root))
		return doc_err(err, &doc, doc.root, "want an object, not %s", doc_type(doc.root));
	DOC_EACH_PAIR (doc.root, key, value) {
		r = read_member(&doc, key, value, &c, err);
		if (r < 0)
			return r;
	}
	c.is_classic = !doc_get(doc.root, STR(NAME_POOLS_SHARED_KEY));
	*ret = c;
	return 0;
}

/* One member of the marker. The management pool is the CPUs of all types together. */
static int read_marker_type(const struct doc *doc, yyjson_val *name, yyjson_val *cpuset,
			    struct pool_config *c, struct err *err)
{
	struct err why = { 0 };
	struct cpuset cpus;
	int r;

	r = read_cpus(doc, cpuset, &cpus, err);
	if (r < 0)
		return r;
	if (pool_config_set_type(c, doc_str(name), &cpus, &why) < 0)
		return doc_err(err, doc, name, "%s", why.msg);
	cpuset_union(&c->reserved, &cpus);
	return 0;
}

/* The file is OpenShift's (docs/reference/openshift-render.md#pinning-files), so members without a
 * cpuset are ignored. */
int marker_file_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
		      struct err *err)
{
	yyjson_val *key, *value, *cpuset;
	struct pool_config c;
	struct doc doc;
	int r;

	pool_config_init(&c);
	c.is_classic = true;
	r = doc_parse(text, file, NULL, a, &doc, err);
	if (r < 0)
		return r;
	if (!doc_get(doc_get(doc.root, STR(NAME_TYPE_MANAGEMENT)), STR(NAME_MARKER_CPUSET_KEY)))
		return doc_err(err, &doc, doc.root,
			       "no \"" NAME_TYPE_MANAGEMENT "\" with a \"" NAME_MARKER_CPUSET_KEY
			       "\"");
	DOC_EACH_PAIR (doc.root, key, value) {
		cpuset = doc_get(value, STR(NAME_MARKER_CPUSET_KEY));
		r = cpuset ? read_marker_type(&doc, key, cpuset, &c, err) : 0;
		if (r < 0)
			return r;
	}
	if (c.n_types == 1) /* only management: it has the whole pool */
		c.n_types = 0;
	*ret = c;
	return 0;
}

int legacy_marker_parse(struct str text, struct str file, struct arena *a, struct pool_config *ret,
			struct err *err)
{
	struct pool_config c;

	(void)a;
	pool_config_init(&c);
	c.is_classic = true;
	if (cpuset_parse(str_trim(text), &c.reserved, err) < 0)
		return err_wrap(err, PRI_STR, FMT_STR(file));
	*ret = c;
	return 0;
}

static int type_from_flag(const char *flag, struct pool_config *c, struct err *err)
{
	struct str_split split = str_split(str_from(flag));
	struct cpuset cpus;
	struct str name;
	int r;

	(void)str_next(&split, '=', &name);
	if (split.ended)
		return err_set(err, EINVAL, "--workload-type %s: want TYPE=CPUS",
			       quote(str_from(flag)).text);
	r = cpuset_parse(split.rest, &cpus, err);
	if (r == 0)
		r = pool_config_set_type(c, name, &cpus, err);
	return r < 0 ? err_wrap(err, "--workload-type %s", quote(str_from(flag)).text) : 0;
}

static int from_flags(const struct pools_source *s, struct pool_config *ret, struct err *err)
{
	const struct {
		const char *text, *name;
		struct cpuset *set;
	} flags[] = {
		{ s->reserved, "--management", &ret->reserved },
		{ s->shared, "--shared", &ret->shared },
		{ s->guaranteed, "--guaranteed", &ret->guaranteed },
	};

	ret->is_classic = !s->shared;
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (flags[i].text && cpuset_parse(str_from(flags[i].text), flags[i].set, err) < 0)
			return err_wrap(err, "%s", flags[i].name);
	for (size_t i = 0; i < s->n_types; i++)
		if (type_from_flag(s->types[i], ret, err) < 0)
			return -EINVAL;
	return 0;
}

typedef int (*parse_fn)(struct str text, struct str file, struct arena *a, struct pool_config *ret,
			struct err *err);

/* Returns 1 when there was a file. */
static int from_file(const char *path, parse_fn parse, struct arena *a, struct pool_config *ret,
		     struct err *err)
{
	struct str text;
	int r;

	if (!path)
		return 0;
	r = file_read_at(AT_FDCWD, path, MAX_FILE_SIZE, a, &text, err);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = parse(text, str_from(path), a, ret, err);
	return r < 0 ? r : 1;
}

const char *node_marker_of(const char *marker_file, struct arena *a)
{
	return str_cstr(a, str_printf(a, "%s" NAME_NODE_MARKER_SUFFIX, marker_file));
}

static int set_policy(const struct pools_source *s, struct pool_config *c, struct err *err)
{
	for (size_t i = 0; i < s->n_policy_options; i++) {
		struct str_split split = str_split(str_from(s->policy_options[i]));
		struct str name, value;
		int r;

		if (!str_next(&split, '=', &name) || !str_next(&split, '=', &value))
			return err_set(err, EINVAL, "--policy-option %s: want NAME=VALUE",
				       s->policy_options[i]);
		r = pick_options_set(&c->options, name, value, err);
		if (r < 0)
			return err_wrap(err, "--policy-option");
	}
	if (s->topology_policy &&
	    hint_policy_parse(str_from(s->topology_policy), &c->topology.policy, err) < 0)
		return err_wrap(err, "--topology-policy");
	if (s->topology_scope &&
	    hint_scope_parse(str_from(s->topology_scope), &c->topology.scope, err) < 0)
		return err_wrap(err, "--topology-scope");
	return 0;
}

/* Returns 1 when a profile is kept. */
static int from_profile(const char *state_dir, struct arena *a, struct pool_config *ret,
			struct pools_found *found, struct err *err)
{
	struct kept_profile kept;
	int r;

	if (!state_dir)
		return 0;
	r = kept_profile_read(state_dir, a, &kept, err);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	*found = (struct pools_found){ POOLS_FROM_PROFILE, "profile", STR(""), 0 };
	if (r < 0)
		return r;
	found->profile = kept.name;
	found->generation = kept.generation;
	*ret = kept.pools;
	return 1;
}

static int from_markers(const struct pools_source *s, struct arena *a, struct pool_config *ret,
			struct pools_found *found, struct err *err)
{
	const struct {
		const char *path;
		parse_fn parse;
	} markers[] = {
		{ s->marker_file ? node_marker_of(s->marker_file, a) : NULL, marker_file_parse },
		{ s->marker_file, marker_file_parse },
		{ s->legacy_marker, legacy_marker_parse },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(markers); i++) {
		*found = (struct pools_found){ POOLS_FROM_MARKER, markers[i].path, STR(""), 0 };
		r = from_file(markers[i].path, markers[i].parse, a, ret, err);
	}
	return r;
}

/* Returns 1 when there was a source. */
static int from_any(const struct pools_source *s, struct arena *a, struct pool_config *ret,
		    struct pools_found *found, struct err *err)
{
	int r;

	if (s->reserved || s->shared || s->guaranteed || s->n_types) {
		*found = (struct pools_found){ POOLS_FROM_FLAGS, "flags", STR(""), 0 };
		r = from_flags(s, ret, err);
		return r < 0 ? r : 1;
	}
	*found = (struct pools_found){ POOLS_FROM_FILE, s->pools_file, STR(""), 0 };
	r = from_file(s->pools_file, pools_file_parse, a, ret, err);
	if (r == 0)
		r = from_profile(s->state_dir, a, ret, found, err);
	if (r == 0)
		r = from_markers(s, a, ret, found, err);
	return r;
}

int pools_source_read(const struct pools_source *s, struct arena *a, struct pool_config *ret,
		      struct pools_found *ret_found, struct err *err)
{
	struct pool_config c;
	int r;

	pool_config_init(&c);
	r = from_any(s, a, &c, ret_found, err);
	if (r == 0) {
		if (!s->or_whole_set)
			return err_set(
				err, ENOENT,
				"no pools: neither --management nor %s nor %s says which CPUs",
				s->pools_file ? s->pools_file : "a pools file",
				s->marker_file ? s->marker_file : "a marker");
		c.is_classic = true;
		*ret_found = (struct pools_found){ POOLS_FROM_NOTHING, "nothing", STR(""), 0 };
	}
	if (r < 0)
		return r;
	if (ret_found->origin != POOLS_FROM_PROFILE)
		c.fold_rest = s->fold_rest;
	r = set_policy(s, &c, err);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}
