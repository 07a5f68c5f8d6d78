/* Reading and writing follow the CRD, deploy/base/crd-nodepartitions.yaml: the tables of members
 * serve both. An absent member is the empty text, -1 for optional numbers and 0 for others. */

#include "node_partition.h"

#include <errno.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "kube/names.h"

static const char *const origin_names[] = {
	[POOLS_FROM_NOTHING] = "None",
	[POOLS_FROM_FLAGS] = "Flags",
	[POOLS_FROM_FILE] = "File",
	[POOLS_FROM_PROFILE] = "Profile",
	[POOLS_FROM_MARKER] = "KubeletMarker",
};
_Static_assert(ARRAY_LEN(origin_names) == POOLS_FROM__COUNT, "every origin has a name");

static const char *const need_names[] = {
	[NEED_RESIZE] = "Resize",
	[NEED_KUBELET_RESTART] = "KubeletRestart",
	[NEED_RUNTIME_RESTART] = "RuntimeRestart",
	[NEED_REBOOT] = "Reboot",
	[NEED_OTHER] = "",
};
_Static_assert(ARRAY_LEN(need_names) == NEED__COUNT, "every need has a name");

static const char *const condition_names[] = {
	[PARTITION_READY] = "Ready",
	[PARTITION_CONFLICT] = "Conflict",
	[PARTITION_HOST_CONFIGURED] = "HostConfigured",
};
_Static_assert(ARRAY_LEN(condition_names) == PARTITION_CONDITION__COUNT,
	       "every condition has a name");

static const char *const status_names[] = {
	[CONDITION_ABSENT] = "",
	[CONDITION_TRUE] = "True",
	[CONDITION_FALSE] = "False",
	[CONDITION_UNKNOWN] = "Unknown",
};

const char *pools_origin_name(enum pools_origin origin)
{
	return origin_names[origin];
}

struct str pending_change_what(const struct pending_change *c)
{
	return c->need == NEED_OTHER ? c->other : str_from(need_names[c->need]);
}

/* The index of a name; -1 when there is none. */
static int find_name(const char *const *names, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(str_from(names[i]), name))
			return (int)i;
	return -1;
}

enum member_kind { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_OPTIONAL_NUMBER };

struct json_member {
	const char *key;
	enum member_kind kind;
	size_t offset;
};

#define TEXT(type, key, field)                                                                     \
	{                                                                                          \
		key, MEMBER_TEXT, offsetof(struct type, field)                                     \
	}
#define NUMBER(type, key, field)                                                                   \
	{                                                                                          \
		key, MEMBER_NUMBER, offsetof(struct type, field)                                   \
	}
#define OPTIONAL_NUMBER(type, key, field)                                                          \
	{                                                                                          \
		key, MEMBER_OPTIONAL_NUMBER, offsetof(struct type, field)                          \
	}

static const struct json_member status_members[] = {
	TEXT(node_partition_status, "agentVersion", agent_version),
	NUMBER(node_partition_status, "observedGeneration", observed_generation),
};
static const struct json_member profile_members[] = {
	TEXT(node_partition_status, "name", profile),
	NUMBER(node_partition_status, "generation", profile_generation),
};
static const struct json_member cpus_members[] = {
	TEXT(node_partition_status, "management", management),
	TEXT(node_partition_status, "shared", shared),
	TEXT(node_partition_status, "guaranteed", guaranteed),
	TEXT(node_partition_status, "online", online),
};
static const struct json_member counter_members[] = {
	NUMBER(node_partition_status, "driftCorrected", drift_corrected),
	NUMBER(node_partition_status, "driftFailed", drift_failed),
	NUMBER(node_partition_status, "refused", refused),
};
static const struct json_member pool_members[] = {
	TEXT(pool_use, "name", name),
	NUMBER(pool_use, "containers", containers),
	OPTIONAL_NUMBER(pool_use, "requestedMillicores", requested_millicores),
	TEXT(pool_use, "exclusiveCPUs", exclusive_cpus),
	OPTIONAL_NUMBER(pool_use, "freeCPUs", free_cpus),
};
static const struct json_member numa_members[] = {
	NUMBER(numa_use, "id", id),
	TEXT(numa_use, "cpus", cpus),
	TEXT(numa_use, "exclusiveCPUs", exclusive_cpus),
	NUMBER(numa_use, "freeCPUs", free_cpus),
};
static const struct json_member group_members[] = {
	NUMBER(machine_group, "socket", socket),
	NUMBER(machine_group, "numaNode", numa),
	NUMBER(machine_group, "cache", cache),
	TEXT(machine_group, "cores", cores),
};
static const struct json_member assigned_members[] = {
	TEXT(assigned_cpus, "namespace", namespace),
	TEXT(assigned_cpus, "pod", pod),
	TEXT(assigned_cpus, "container", container),
	TEXT(assigned_cpus, "cpus", cpus),
};
static const struct json_member pending_members[] = {
	/* `what` is an enum */
	TEXT(pending_change, "reason", reason),
	TEXT(pending_change, "message", message),
	TEXT(pending_change, "hash", hash),
};
static const struct json_member condition_members[] = {
	/* `type` and `status` are enums */
	TEXT(condition, "reason", reason),
	TEXT(condition, "message", message),
	TEXT(condition, "lastTransitionTime", since),
};

#define MEMBERS(table) (table), ARRAY_LEN(table)

static int read_member(yyjson_val *v, const struct json_member *m, void *ret, struct err *err)
{
	int64_t n = m->kind == MEMBER_OPTIONAL_NUMBER ? -1 : 0;

	if (m->kind == MEMBER_TEXT) {
		if (v && !yyjson_is_str(v))
			return err_set(err, EINVAL, "%s: not a string", m->key);
		*(struct str *)ret = doc_str(v);
		return 0;
	}
	if (v && (!doc_int(v, &n) || n < 0))
		return err_set(err, EINVAL, "%s: not a whole number from 0 on", m->key);
	*(int64_t *)ret = n;
	return 0;
}

static int read_members(yyjson_val *object, const struct json_member *members, size_t n, void *ret,
			struct err *err)
{
	if (object && !yyjson_is_obj(object))
		return err_set(err, EINVAL, "not an object");
	for (size_t i = 0; i < n; i++) {
		yyjson_val *v = doc_get(object, str_from(members[i].key));
		int r = read_member(v, &members[i], (char *)ret + members[i].offset, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static void write_members(yyjson_mut_doc *m, yyjson_mut_val *object,
			  const struct json_member *members, size_t n, const void *from)
{
	for (size_t i = 0; i < n; i++) {
		const void *field = (const char *)from + members[i].offset;
		struct str key = str_from(members[i].key);

		if (members[i].kind == MEMBER_TEXT) {
			const struct str *text = field;

			if (text->n)
				(void)doc_put_str(m, object, key, *text);
		} else if (*(const int64_t *)field >= 0) {
			(void)doc_put_int(m, object, key, *(const int64_t *)field);
		}
	}
}

/* An array member with at most `max` items; an absent one has none. */
static int read_array(yyjson_val *object, const char *key, size_t max, yyjson_val **ret,
		      struct err *err)
{
	yyjson_val *v = doc_get(object, str_from(key));

	if (v && !yyjson_is_arr(v))
		return err_set(err, EINVAL, "%s: not an array", key);
	if (v && yyjson_arr_size(v) > max)
		return err_set(err, EINVAL, "%s: more than %zu items", key, max);
	*ret = v;
	return 0;
}

static int read_pools(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
		      struct err *err)
{
	yyjson_val *array, *item;
	struct pool_use *pools;
	int r = read_array(status, "pools", NODE_PARTITION_POOLS_MAX, &array, err);

	if (r < 0)
		return r;
	pools = arena_array(a, struct pool_use, yyjson_arr_size(array));
	DOC_EACH_ITEM (array, item) {
		r = read_members(item, MEMBERS(pool_members), &pools[ret->n_pools], err);
		if (r < 0)
			return err_wrap(err, "pools[%zu]", ret->n_pools);
		ret->n_pools++;
	}
	ret->pools = pools;
	return 0;
}

static int read_numa(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
		     struct err *err)
{
	yyjson_val *array, *item;
	struct numa_use *numa;
	int r = read_array(status, "numaNodes", NODE_PARTITION_NUMA_MAX, &array, err);

	if (r < 0)
		return r;
	numa = arena_array(a, struct numa_use, yyjson_arr_size(array));
	DOC_EACH_ITEM (array, item) {
		r = read_members(item, MEMBERS(numa_members), &numa[ret->n_numa], err);
		if (r < 0)
			return err_wrap(err, "numaNodes[%zu]", ret->n_numa);
		ret->n_numa++;
	}
	ret->numa = numa;
	return 0;
}

static int read_topology(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
			 struct err *err)
{
	yyjson_val *array, *item;
	struct machine_group *groups;
	int r = read_array(status, "topology", MACHINE_GROUPS_MAX, &array, err);

	if (r < 0)
		return r;
	groups = arena_array(a, struct machine_group, yyjson_arr_size(array));
	DOC_EACH_ITEM (array, item) {
		r = read_members(item, MEMBERS(group_members), &groups[ret->n_topology], err);
		if (r < 0)
			return err_wrap(err, "topology[%zu]", ret->n_topology);
		ret->n_topology++;
	}
	ret->topology = groups;
	return 0;
}

static int read_assignments(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
			    struct err *err)
{
	yyjson_val *array, *item;
	struct assigned_cpus *list;
	int r = read_array(status, "assignments", NODE_PARTITION_ASSIGNMENTS_MAX, &array, err);

	if (r < 0)
		return r;
	list = arena_array(a, struct assigned_cpus, yyjson_arr_size(array));
	DOC_EACH_ITEM (array, item) {
		r = read_members(item, MEMBERS(assigned_members), &list[ret->n_assignments], err);
		if (r < 0)
			return err_wrap(err, "assignments[%zu]", ret->n_assignments);
		ret->n_assignments++;
	}
	ret->assignments = list;
	return 0;
}

static int read_change(yyjson_val *item, struct pending_change *ret, struct err *err)
{
	struct str what = doc_str(doc_get(item, STR("what")));
	int need = find_name(need_names, NEED__COUNT, what);

	if (!what.n)
		return err_set(err, EINVAL, "what: required");
	ret->need = need < 0 ? NEED_OTHER : (enum pending_need)need;
	ret->other = need < 0 ? what : STR("");
	return read_members(item, MEMBERS(pending_members), ret, err);
}

static int read_pending(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
			struct err *err)
{
	yyjson_val *array, *item;
	struct pending_change *pending;
	int r = read_array(status, "pending", NODE_PARTITION_PENDING_MAX, &array, err);

	if (r < 0)
		return r;
	pending = arena_array(a, struct pending_change, yyjson_arr_size(array));
	DOC_EACH_ITEM (array, item) {
		r = read_change(item, &pending[ret->n_pending], err);
		if (r < 0)
			return err_wrap(err, "pending[%zu]", ret->n_pending);
		ret->n_pending++;
	}
	ret->pending = pending;
	return 0;
}

/* Conditions of other types are ignored. */
static int read_conditions(yyjson_val *status, struct node_partition_status *ret, struct err *err)
{
	yyjson_val *array, *item;
	int r = read_array(status, "conditions", SIZE_MAX, &array, err);

	if (r < 0)
		return r;
	DOC_EACH_ITEM (array, item) {
		int type = find_name(condition_names, PARTITION_CONDITION__COUNT,
				     doc_str(doc_get(item, STR("type"))));
		struct str value = doc_str(doc_get(item, STR("status")));
		int is = find_name(status_names, ARRAY_LEN(status_names), value);

		if (type < 0)
			continue;
		if (is <= CONDITION_ABSENT)
			return err_set(err, EINVAL, "conditions: %s: unknown status %s",
				       condition_names[type], quote(value).text);
		ret->conditions[type].status = (enum condition_status)is;
		r = read_members(item, MEMBERS(condition_members), &ret->conditions[type], err);
		if (r < 0)
			return err_wrap(err, "conditions: %s", condition_names[type]);
	}
	return 0;
}

static int read_origin(yyjson_val *status, enum pools_origin *ret, struct err *err)
{
	yyjson_val *v = doc_get(status, STR("source"));
	int origin = v ? find_name(origin_names, POOLS_FROM__COUNT, doc_str(v)) :
			 POOLS_FROM_NOTHING;

	if (origin < 0)
		return err_set(err, EINVAL, "source: unknown value %s", quote(doc_str(v)).text);
	*ret = (enum pools_origin)origin;
	return 0;
}

/* The members of an object inside the status. */
static int read_inner(yyjson_val *status, const char *key, const struct json_member *members,
		      size_t n, struct node_partition_status *ret, struct err *err)
{
	int r = read_members(doc_get(status, str_from(key)), members, n, ret, err);

	return r < 0 ? err_wrap(err, "%s", key) : 0;
}

static int read_status(yyjson_val *status, struct arena *a, struct node_partition_status *ret,
		       struct err *err)
{
	int r;

	if ((r = read_members(status, MEMBERS(status_members), ret, err)) < 0 ||
	    (r = read_origin(status, &ret->origin, err)) < 0 ||
	    (r = read_inner(status, "profile", MEMBERS(profile_members), ret, err)) < 0 ||
	    (r = read_inner(status, "cpus", MEMBERS(cpus_members), ret, err)) < 0 ||
	    (r = read_inner(status, "counters", MEMBERS(counter_members), ret, err)) < 0 ||
	    (r = read_pools(status, a, ret, err)) < 0 || (r = read_numa(status, a, ret, err)) < 0 ||
	    (r = read_topology(status, a, ret, err)) < 0 ||
	    (r = read_assignments(status, a, ret, err)) < 0 ||
	    (r = read_pending(status, a, ret, err)) < 0)
		return r;
	return read_conditions(status, ret, err);
}

int node_partition_decode(yyjson_val *object, struct arena *a, struct node_partition *ret,
			  struct err *err)
{
	static const struct json_member metadata_members[] = {
		TEXT(node_partition, "name", name),
		TEXT(node_partition, "uid", uid),
		TEXT(node_partition, "resourceVersion", version),
		NUMBER(node_partition, "generation", generation),
	};
	static const struct json_member spec_members[] = { TEXT(node_partition, "granted",
								granted) };
	yyjson_val *metadata = doc_get(object, STR("metadata")),
		   *status = doc_get(object, STR("status"));
	struct node_partition p = { .has_status = status != NULL };

	if (read_members(metadata, MEMBERS(metadata_members), &p, err) < 0)
		return err_wrap(err, "metadata");
	if (read_members(doc_get(object, STR("spec")), MEMBERS(spec_members), &p, err) < 0)
		return err_wrap(err, "spec");
	if (read_status(status, a, &p.status, err) < 0)
		return err_wrap(err, "status");
	p.owner_uid = doc_str(doc_find(metadata, "/ownerReferences/0/uid"));
	*ret = p;
	return 0;
}

static void write_condition(yyjson_mut_doc *m, yyjson_mut_val *array, const char *type,
			    const struct condition *c)
{
	yyjson_mut_val *object = yyjson_mut_arr_add_obj(m, array);

	(void)doc_put_str(m, object, STR("type"), str_from(type));
	(void)doc_put_str(m, object, STR("status"), str_from(status_names[c->status]));
	write_members(m, object, MEMBERS(condition_members), c);
}

static void write_arrays(yyjson_mut_doc *m, yyjson_mut_val *root,
			 const struct node_partition_status *s)
{
	yyjson_mut_val *array = doc_put_arr(m, root, STR("pools"));

	for (size_t i = 0; i < s->n_pools; i++)
		write_members(m, yyjson_mut_arr_add_obj(m, array), MEMBERS(pool_members),
			      &s->pools[i]);
	array = doc_put_arr(m, root, STR("numaNodes"));
	for (size_t i = 0; i < s->n_numa; i++)
		write_members(m, yyjson_mut_arr_add_obj(m, array), MEMBERS(numa_members),
			      &s->numa[i]);
	/* Absent when empty: agents without pools have neither. */
	array = s->n_topology ? doc_put_arr(m, root, STR("topology")) : NULL;
	for (size_t i = 0; i < s->n_topology; i++)
		write_members(m, yyjson_mut_arr_add_obj(m, array), MEMBERS(group_members),
			      &s->topology[i]);
	array = s->n_assignments ? doc_put_arr(m, root, STR("assignments")) : NULL;
	for (size_t i = 0; i < s->n_assignments; i++)
		write_members(m, yyjson_mut_arr_add_obj(m, array), MEMBERS(assigned_members),
			      &s->assignments[i]);
	array = doc_put_arr(m, root, STR("pending"));
	for (size_t i = 0; i < s->n_pending; i++) {
		yyjson_mut_val *change = yyjson_mut_arr_add_obj(m, array);

		(void)doc_put_str(m, change, STR("what"), pending_change_what(&s->pending[i]));
		write_members(m, change, MEMBERS(pending_members), &s->pending[i]);
	}
	array = doc_put_arr(m, root, STR("conditions"));
	for (size_t i = 0; i < PARTITION_CONDITION__COUNT; i++)
		if (s->conditions[i].status != CONDITION_ABSENT)
			write_condition(m, array, condition_names[i], &s->conditions[i]);
}

int node_partition_status_encode(const struct node_partition_status *s, struct arena *a,
				 struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	write_members(m, root, MEMBERS(status_members), s);
	(void)doc_put_str(m, root, STR("source"), str_from(origin_names[s->origin]));
	if (s->profile.n)
		write_members(m, doc_put_obj(m, root, STR("profile")), MEMBERS(profile_members), s);
	write_members(m, doc_put_obj(m, root, STR("cpus")), MEMBERS(cpus_members), s);
	write_members(m, doc_put_obj(m, root, STR("counters")), MEMBERS(counter_members), s);
	write_arrays(m, root, s);
	return doc_write(root, false, a, ret, err);
}

int node_partition_create(struct str node, struct str node_uid, struct arena *a, struct str *ret,
			  struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *metadata, *owner;

	(void)doc_put_str(m, root, STR("apiVersion"), STR(NAME_PARTITION_API));
	(void)doc_put_str(m, root, STR("kind"), STR(NAME_PARTITION_KIND));
	metadata = doc_put_obj(m, root, STR("metadata"));
	(void)doc_put_str(m, metadata, STR("name"), node);
	if (node_uid.n) {
		owner = yyjson_mut_arr_add_obj(m, doc_put_arr(m, metadata, STR("ownerReferences")));
		(void)doc_put_str(m, owner, STR("apiVersion"), STR("v1"));
		(void)doc_put_str(m, owner, STR("kind"), STR("Node"));
		(void)doc_put_str(m, owner, STR("name"), node);
		(void)doc_put_str(m, owner, STR("uid"), node_uid);
	}
	return doc_write(root, false, a, ret, err);
}

/* The same status without the times of conditions, and without figures on request. */
static struct str comparable(const struct node_partition_status *s, bool figures, struct arena *a)
{
	struct node_partition_status copy = *s;
	struct str text = { 0 };

	for (size_t i = 0; i < PARTITION_CONDITION__COUNT; i++)
		copy.conditions[i].since = STR("");
	if (!figures) {
		copy.drift_corrected = copy.drift_failed = copy.refused = 0;
		copy.n_pools = copy.n_numa = 0;
	}
	(void)node_partition_status_encode(&copy, a, &text, NULL);
	return text;
}

enum status_difference node_partition_compare(const struct node_partition_status *x,
					      const struct node_partition_status *y)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	if (!str_eq(comparable(x, false, &a), comparable(y, false, &a)))
		return STATUS_DIFFERS;
	return str_eq(comparable(x, true, &a), comparable(y, true, &a)) ? STATUS_EQUAL :
									  STATUS_FIGURES_DIFFER;
}

void node_partition_set_times(struct node_partition_status *s,
			      const struct node_partition_status *old, struct str now)
{
	for (size_t i = 0; i < PARTITION_CONDITION__COUNT; i++) {
		const struct condition *was = old ? &old->conditions[i] : NULL;
		const bool stays = was && was->status == s->conditions[i].status && was->since.n;

		s->conditions[i].since = stays ? was->since : now;
	}
}
