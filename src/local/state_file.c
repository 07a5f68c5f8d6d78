/* The state file is read by the next supervisor, perhaps after a crash or by a newer version, so
 * every value is checked. A file of another version is not converted: nothing is adopted from it.
 */

#include "state_file.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/doc.h"

/* Kinds, policies and modes are written as numbers: reordering these enums changes the format. */
#define STATE_FILE_VERSION 1

static void put_strings(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key,
			const struct str *items, size_t n)
{
	yyjson_mut_val *list = doc_put_arr(m, object, key);

	for (size_t i = 0; i < n; i++)
		yyjson_mut_arr_append(list, doc_new_str(m, items[i]));
}

static void put_container(yyjson_mut_doc *m, yyjson_mut_val *o, const struct local_container *c,
			  struct arena *a)
{
	doc_put_str(m, o, STR("namespace"), c->namespace);
	doc_put_str(m, o, STR("pod"), c->pod);
	doc_put_str(m, o, STR("container"), c->name);
	doc_put_int(m, o, STR("kind"), c->kind);
	doc_put_int(m, o, STR("restart"), c->restart);
	doc_put_int(m, o, STR("graceSeconds"), c->grace_s);
	doc_put_str(m, o, STR("pool"), str_from(pool_name(c->pool)));
	if (c->type.n)
		doc_put_str(m, o, STR("type"), c->type);
	doc_put_bool(m, o, STR("exclusive"), c->is_exclusive);
	cpu_settings_put(&c->settings, m, o, a);
	doc_put_str(m, o, STR("workdir"), c->workdir);
	put_strings(m, o, STR("argv"), c->argv, c->n_argv);
	put_strings(m, o, STR("env"), c->env, c->n_env);
}

int state_file_encode(const struct local_state_file *in, struct arena *a, struct str *ret,
		      struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;

	doc_put_int(m, root, STR("version"), STATE_FILE_VERSION);
	doc_put_int(m, root, STR("mode"), in->mode);
	doc_put_str(m, root, STR("boot"), in->boot_id);
	doc_put_str(m, root, STR("topology"), in->topology);
	doc_put(m, root, STR("pools"), pool_config_to_doc(&in->config, m, a));
	list = doc_put_arr(m, root, STR("containers"));
	for (size_t i = 0; i < in->n; i++) {
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(m, list);

		put_container(m, o, &in->containers[i], a);
		doc_put_str(m, o, STR("state"), str_from(local_state_name(in->states[i])));
		doc_put_int(m, o, STR("restarts"), in->restarts[i]);
	}
	return doc_write(root, false, a, ret, err);
}

/* --- reading --- */

/* Texts point into the document, which lives in the caller's arena. */

static bool get_number(yyjson_val *o, struct str key, int64_t min, int64_t max, int64_t *ret)
{
	return doc_int(doc_get(o, key), ret) && *ret >= min && *ret <= max;
}

static bool get_strings(yyjson_val *o, struct str key, struct arena *a, struct str **ret,
			size_t *ret_n)
{
	yyjson_val *list = doc_get(o, key), *item;
	struct str *items = arena_array(a, struct str, yyjson_arr_size(list));
	size_t n = 0;

	DOC_EACH_ITEM (list, item) {
		if (!yyjson_is_str(item))
			return false;
		items[n++] = doc_str(item);
	}
	*ret = items;
	*ret_n = n;
	return yyjson_is_arr(list);
}

static bool get_pool(yyjson_val *o, enum pool *ret)
{
	struct str name = doc_str(doc_get(o, STR("pool")));

	for (unsigned i = 0; i < POOL__COUNT; i++)
		if (str_eq(name, str_from(pool_name((enum pool)i)))) {
			*ret = (enum pool)i;
			return true;
		}
	return false;
}

static bool get_state(yyjson_val *o, enum local_state *ret)
{
	struct str name = doc_str(doc_get(o, STR("state")));

	for (unsigned i = 0; i < LOCAL_STATE__COUNT; i++)
		if (str_eq(name, str_from(local_state_name((enum local_state)i)))) {
			*ret = (enum local_state)i;
			return true;
		}
	return false;
}

static bool get_container(yyjson_val *o, struct arena *a, struct local_container *ret)
{
	int64_t kind, restart, grace, shares = 0, quota, period;
	struct cpuset nodes;
	struct local_container c = {
		.namespace = doc_str(doc_get(o, STR("namespace"))),
		.pod = doc_str(doc_get(o, STR("pod"))),
		.name = doc_str(doc_get(o, STR("container"))),
		.type = doc_str(doc_get(o, STR("type"))),
		.is_exclusive = doc_bool(doc_get(o, STR("exclusive")), false),
		.workdir = doc_str(doc_get(o, STR("workdir"))),
	};

	/* Names become the paths of cgroups, whose processes are killed. */
	if (!local_container_names_are_valid(&c) ||
	    !get_number(o, STR("kind"), 0, CONTAINER__COUNT - 1, &kind) ||
	    !get_number(o, STR("restart"), 0, LOCAL_RESTART__COUNT - 1, &restart) ||
	    !get_number(o, STR("graceSeconds"), 0, INT32_MAX, &grace) ||
	    (doc_get(o, STR("shares")) &&
	     !get_number(o, STR("shares"), 0, INT64_MAX, &shares)) || /* 0 is not written */
	    !get_number(o, STR("quotaUs"), -1, INT64_MAX, &quota) ||
	    !get_number(o, STR("periodUs"), 1, INT64_MAX, &period) || !get_pool(o, &c.pool) ||
	    !get_strings(o, STR("argv"), a, &c.argv, &c.n_argv) ||
	    !get_strings(o, STR("env"), a, &c.env, &c.n_env) ||
	    cpuset_parse(doc_str(doc_get(o, STR("cpus"))), &c.settings.cpus, NULL) < 0 ||
	    cpuset_parse(doc_str(doc_get(o, STR("mems"))), &nodes, NULL) < 0)
		return false;
	c.settings.mems = nodes.w[0];
	c.kind = (enum container_kind)kind;
	c.restart = (enum local_restart)restart;
	c.grace_s = (unsigned)grace;
	c.settings.shares = (uint64_t)shares;
	c.settings.has_quota = true;
	c.settings.quota_us = quota;
	c.settings.period_us = (uint64_t)period;
	*ret = c;
	return true;
}

static int get_containers(const struct doc *doc, struct arena *a, struct local_state_file *in,
			  struct err *err)
{
	yyjson_val *list = doc_get(doc->root, STR("containers")), *o;
	size_t n = yyjson_arr_size(list);
	int64_t restarts;

	in->containers = arena_array(a, struct local_container, n);
	in->states = arena_array(a, enum local_state, n);
	in->restarts = arena_array(a, unsigned, n);
	DOC_EACH_ITEM (list, o) {
		if (!get_container(o, a, &in->containers[in->n]) ||
		    !get_state(o, &in->states[in->n]) ||
		    !get_number(o, STR("restarts"), 0, UINT32_MAX, &restarts))
			return doc_err(err, doc, o, "not a container of a state file");
		in->restarts[in->n++] = (unsigned)restarts;
	}
	return 0;
}

int state_file_decode(struct str text, struct str file, struct arena *a,
		      struct local_state_file *ret, struct err *err)
{
	struct local_state_file in = { 0 };
	struct doc doc;
	int64_t version, mode;
	int r;

	r = doc_parse(text, file, NULL, a, &doc, err);
	if (r < 0)
		return r;
	if (!get_number(doc.root, STR("version"), STATE_FILE_VERSION, STATE_FILE_VERSION,
			&version) ||
	    !get_number(doc.root, STR("mode"), 0, LOCAL_MODE__COUNT - 1, &mode))
		return doc_err(err, &doc, doc.root, "not a state file of this version");
	in.mode = (enum local_mode)mode;
	in.boot_id = doc_str(doc_get(doc.root, STR("boot")));
	in.topology = doc_str(doc_get(doc.root, STR("topology")));
	r = pool_config_from_doc(&doc, doc_get(doc.root, STR("pools")), &in.config, err);
	if (r >= 0)
		r = get_containers(&doc, a, &in, err);
	if (r >= 0)
		*ret = in;
	return r;
}
