/* The status in the object: reading it, and the patch that changes it. Conditions of other
 * controllers are kept. */

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "profile_status.h"

static const char *const names[] = {
	[PROFILE_AVAILABLE] = "Available",
	[PROFILE_PROGRESSING] = "Progressing",
	[PROFILE_DEGRADED] = "Degraded",
	[PROFILE_UPGRADEABLE] = "Upgradeable",
};
_Static_assert(ARRAY_LEN(names) == PROFILE_CONDITION__COUNT, "every condition has a name");

const char *profile_condition_name(enum profile_condition c)
{
	return names[c];
}

/* PROFILE_CONDITION__COUNT: a condition of another controller. */
static enum profile_condition find_condition(struct str type)
{
	enum profile_condition c = 0;

	while (c < PROFILE_CONDITION__COUNT && !str_eq(type, str_from(names[c])))
		c++;
	return c;
}

static enum condition_status read_status(struct str text)
{
	return str_eq(text, STR("True"))  ? CONDITION_TRUE :
	       str_eq(text, STR("False")) ? CONDITION_FALSE :
					    CONDITION_UNKNOWN;
}

static size_t read_count(yyjson_val *nodes, struct str key)
{
	int64_t n = 0;

	(void)doc_int(doc_get(nodes, key), &n);
	return n > 0 ? (size_t)n : 0;
}

void profile_status_read(const struct operator_profile *p, struct profile_status *ret)
{
	yyjson_val *nodes = doc_get(p->status, STR("nodes")), *item;

	*ret = (struct profile_status){ 0 };
	(void)doc_int(doc_get(p->status, STR("observedGeneration")), &ret->observed_generation);
	ret->nodes = (struct profile_nodes){ .selected = read_count(nodes, STR("selected")),
					     .ready = read_count(nodes, STR("ready")),
					     .pending = read_count(nodes, STR("pending")),
					     .conflicting = read_count(nodes, STR("conflicting")) };
	DOC_EACH_ITEM (doc_get(p->status, STR("conditions")), item) {
		enum profile_condition c = find_condition(doc_str(doc_get(item, STR("type"))));

		if (c == PROFILE_CONDITION__COUNT)
			continue;
		ret->conditions[c] = (struct condition){
			.status = read_status(doc_str(doc_get(item, STR("status")))),
			.reason = doc_str(doc_get(item, STR("reason"))),
			.message = doc_str(doc_get(item, STR("message"))),
			.since = doc_str(doc_get(item, STR("lastTransitionTime"))),
		};
	}
}

static bool is_equal(const struct profile_status *x, const struct profile_status *y)
{
	bool equal = x->observed_generation == y->observed_generation &&
		     x->nodes.selected == y->nodes.selected && x->nodes.ready == y->nodes.ready &&
		     x->nodes.pending == y->nodes.pending &&
		     x->nodes.conflicting == y->nodes.conflicting;

	for (size_t i = 0; i < PROFILE_CONDITION__COUNT; i++)
		equal &= x->conditions[i].status == y->conditions[i].status &&
			 str_eq(x->conditions[i].reason, y->conditions[i].reason) &&
			 str_eq(x->conditions[i].message, y->conditions[i].message);
	return equal;
}

static void put_condition(yyjson_mut_doc *m, yyjson_mut_val *list, enum profile_condition c,
			  const struct condition *old, const struct condition *now, struct str time,
			  int64_t generation)
{
	yyjson_mut_val *item = yyjson_mut_obj(m);
	const bool is_same = old->status == now->status && old->since.n;

	doc_put_str(m, item, STR("type"), str_from(names[c]));
	doc_put_str(m, item, STR("status"),
		    now->status == CONDITION_TRUE ? STR("True") : STR("False"));
	doc_put_str(m, item, STR("reason"), now->reason);
	doc_put_str(m, item, STR("message"), now->message);
	/* A change of the reason alone is no transition. */
	doc_put_str(m, item, STR("lastTransitionTime"), is_same ? old->since : time);
	doc_put_int(m, item, STR("observedGeneration"), generation);
	yyjson_mut_arr_append(list, item);
}

static yyjson_mut_val *build_patch(const struct operator_snapshot *s,
				   const struct operator_profile *p,
				   const struct profile_status *old,
				   const struct profile_status *now)
{
	yyjson_mut_doc *m = doc_build(s->arena);
	yyjson_mut_val *root = yyjson_mut_obj(m), *status, *list;
	struct str time = object_time(s->now_s, s->arena);
	yyjson_val *item;

	/* Another controller may have changed its conditions meanwhile. */
	doc_put_str(m, doc_put_obj(m, root, STR("metadata")), STR("resourceVersion"), p->version);
	status = doc_put_obj(m, root, STR("status"));
	doc_put_int(m, status, STR("observedGeneration"), now->observed_generation);
	list = doc_put_obj(m, status, STR("nodes"));
	doc_put_int(m, list, STR("selected"), (int64_t)now->nodes.selected);
	doc_put_int(m, list, STR("ready"), (int64_t)now->nodes.ready);
	doc_put_int(m, list, STR("pending"), (int64_t)now->nodes.pending);
	doc_put_int(m, list, STR("conflicting"), (int64_t)now->nodes.conflicting);
	list = doc_put_arr(m, status, STR("conditions"));
	for (enum profile_condition c = 0; c < PROFILE_CONDITION__COUNT; c++)
		put_condition(m, list, c, &old->conditions[c], &now->conditions[c], time,
			      now->observed_generation);
	DOC_EACH_ITEM (doc_get(p->status, STR("conditions")), item)
		if (find_condition(doc_str(doc_get(item, STR("type")))) == PROFILE_CONDITION__COUNT)
			yyjson_mut_arr_append(list, yyjson_val_mut_copy(m, item));
	return root;
}

/* The transition that people want to know of. */
static struct object_event *transition_event(const struct operator_snapshot *s,
					     const struct operator_profile *p,
					     const struct profile_status *old,
					     const struct profile_status *now)
{
	static const enum profile_condition reported[] = { PROFILE_DEGRADED, PROFILE_AVAILABLE };
	struct object_event *e;

	for (size_t i = 0; i < ARRAY_LEN(reported); i++) {
		const enum profile_condition c = reported[i];
		const struct condition *condition = &now->conditions[c];
		const bool is_true = condition->status == CONDITION_TRUE;

		if (condition->status == old->conditions[c].status)
			continue;
		/* A profile that was never degraded need not say so. */
		if (c == PROFILE_DEGRADED && !is_true &&
		    old->conditions[c].status == CONDITION_ABSENT)
			continue;
		e = arena_new(s->arena, struct object_event);
		*e = (struct object_event){
			.api = STR(NAME_PROFILE_API),
			.kind = STR(NAME_PROFILE_KIND),
			.name = p->name,
			.uid = p->uid,
			.reason = str_printf(s->arena, "%s%s", is_true ? "" : "Not", names[c]),
			.message = condition->message,
			.component = STR("pinfold-operator"),
			.is_warning = is_true == (c == PROFILE_DEGRADED),
			.now_s = s->now_s,
			.random = (uint32_t)s->now_ms,
		};
		return e;
	}
	return NULL;
}

void profile_status_write(const struct operator_snapshot *s, const struct operator_profile *p,
			  const struct profile_status *old, const struct profile_status *now,
			  struct operator_writes *w)
{
	const struct object_ref ref = { .api = STR(NAME_PROFILE_API),
					.resource = STR("performanceprofiles"),
					.name = p->name,
					.subresource = STR("status") };
	struct operator_write *write;

	if (is_equal(old, now))
		return;
	write = operator_writes_merge(w, object_path(&ref, s->arena), build_patch(s, p, old, now),
				      OPERATOR_PROFILES, p->name);
	write->what = "profile status";
	write->key = str_printf(s->arena, "profile status " PRI_STR, FMT_STR(p->name));
	write->event = transition_event(s, p, old, now);
}
