/* A profile that is created or changed gets the checks of `pinfold profile check`, as far as they
 * need no machine: which nodes the profile selects changes later, and every agent resolves it for
 * its own machine. Errors refuse the profile, all of them at once; warnings become admission
 * warnings; notes are left out.
 *
 * A profile that was stored while the webhook was unavailable may have faults. Changes that do not
 * touch what is checked are allowed then, with warnings: finalizers can always be removed. */

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "profile/profile_alone.h"
#include "profile/selector.h"
#include "render/rendered_check.h"
#include "steps.h"

/* The checks allocate without a limit, in proportion to the object. Profiles have about 100 values.
 */
#define MAX_VALUES 4096
#define MAX_TEXT_BYTES ((size_t)256 << 10)

#define MAX_PROBLEMS 32 /* in a message */

/* The checks read these two; a large status does not matter. */
static bool is_too_large(yyjson_val *object)
{
	yyjson_val *const parts[] = { doc_get(object, STR("spec")), object_annotations(object) };
	size_t n = 0, bytes = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		yyjson_val *end;

		if (!parts[i])
			continue;
		end = unsafe_yyjson_get_next(parts[i]); /* a value's descendants follow it */
		n += (size_t)(end - parts[i]);
		for (yyjson_val *v = parts[i]; n <= MAX_VALUES && v < end; v++)
			bytes += doc_text(v).n;
	}
	return n > MAX_VALUES || bytes > MAX_TEXT_BYTES;
}

static struct str problem_text(const struct problem *item, struct arena *a)
{
	return item->field.n ? str_printf(a, PRI_STR ": " PRI_STR, FMT_STR(item->field),
					  FMT_STR(item->text)) :
			       str_dup(a, item->text);
}

static void add_problems(const struct problem_list *list, struct admission_result *r,
			 struct field_errors *errors)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct problem *item = &list->items[i];

		if (item->level == PROBLEM_WARNING)
			result_warn(r, problem_text(item, errors->a));
		if (item->level == PROBLEM_ERROR && n++ < MAX_PROBLEMS)
			field_errors_add(errors, problem_text(item, errors->a));
	}
	if (n > MAX_PROBLEMS)
		field_errors_add(errors, str_printf(errors->a, "and %zu more", n - MAX_PROBLEMS));
}

/* Two profiles for the same nodes: an agent would apply neither. Other overlaps depend on the
 * labels of nodes, which change at any time; the operator reports them. */
static const struct profile_ref *find_conflict(const struct admission_state *state,
					       const struct profile_ref *self)
{
	for (size_t i = 0; self->selector.n && i < state->n_profiles; i++)
		if (str_eq(state->profiles[i].selector, self->selector) &&
		    !str_eq(state->profiles[i].name, self->name))
			return &state->profiles[i];
	return NULL;
}

static bool check_conflict(const struct admission_state *state, yyjson_val *object,
			   struct arena *scratch, struct admission_result *r,
			   struct field_errors *errors)
{
	struct profile_ref self = profile_ref_of(object, scratch);
	const struct profile_ref *other = find_conflict(state, &self);

	if (!state->has_profiles)
		result_warn(r,
			    STR("the other profiles of the cluster are not known to the webhook: "
				"conflicts with them were not checked"));
	if (other)
		field_errors_add(errors, str_printf(errors->a,
						    "spec.nodeSelector: profile \"" PRI_STR
						    "\" already selects the nodes with " PRI_STR,
						    FMT_STR(other->name), FMT_STR(self.selector)));
	return other != NULL;
}

static void check_object(const struct admission_state *state, yyjson_val *object,
			 struct arena *scratch, struct admission_result *r,
			 struct field_errors *errors)
{
	/* Without positions: the object is a part of the review. */
	const struct doc doc = { 0 };
	struct profile_alone *alone = arena_new(scratch, struct profile_alone);
	struct problem_list problems;

	problem_list_init(&problems, scratch);
	profile_alone_read((struct manifest){ &doc, object }, state->infrastructure.is_partitioned,
			   scratch, alone, &problems);
	if (alone->is_resolved)
		rendered_check(&alone->partition, scratch, &problems);
	add_problems(&problems, r, errors);
}

struct profile_errors {
	struct field_errors list;
	bool has_conflict;
};

static void check_all(const struct admission_state *state, yyjson_val *object,
		      struct admission_result *r, struct profile_errors *ret)
{
	CLEANUP(arena_done) struct arena scratch;

	arena_init(&scratch, 0);
	field_errors_init(&ret->list, r->patch.arena);
	if (is_too_large(object)) {
		field_errors_add(&ret->list, STR("spec: too many fields, or too long texts"));
		return;
	}
	check_object(state, object, &scratch, r, &ret->list);
	ret->has_conflict = check_conflict(state, object, &scratch, r, &ret->list);
}

static bool has_error(const struct field_errors *list, struct str text)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->items[i], text))
			return true;
	return false;
}

/* Whether the stored object has all of these errors and the change does not touch its
 * specification, which the API server counts in the generation. */
static bool were_stored(const struct admission_state *state, const struct admission_request *rq,
			const struct field_errors *errors)
{
	struct str generation = doc_text(doc_find(rq->object, "/metadata/generation"));
	struct profile_errors old = { 0 };
	struct admission_result ignored;

	if (rq->operation != OPERATION_UPDATE || !generation.n ||
	    !str_eq(generation, doc_text(doc_find(rq->old_object, "/metadata/generation"))) ||
	    !result_init(&ignored, errors->a))
		return false;
	check_all(state, rq->old_object, &ignored, &old);
	for (size_t i = 0; i < errors->n; i++)
		if (!has_error(&old.list, errors->items[i]))
			return false;
	return true;
}

void performance_profile_validate(const struct admission_state *state,
				  const struct admission_request *rq, struct admission_result *r)
{
	struct subject s = subject_of(rq->object, NAME_PROFILE_RESOURCE "." NAME_PROFILE_GROUP,
				      NAME_PROFILE_KIND "." NAME_PROFILE_GROUP);
	struct profile_errors errors = { 0 };
	const struct field_errors *list = &errors.list;

	if (doc_find(rq->object, "/metadata/deletionTimestamp")) {
		result_decide(r, RULE_PROFILE, VERDICT_LEAVE, s.name);
		return;
	}
	check_all(state, rq->object, r, &errors);
	if (list->n && !were_stored(state, rq, list)) {
		result_invalid(r,
			       errors.has_conflict && list->n == 1 ? RULE_PROFILE_CONFLICT :
								     RULE_PROFILE,
			       &s, list);
		return;
	}
	for (size_t i = 0; i < list->n; i++)
		result_warn(r, list->items[i]);
	result_decide(r, RULE_PROFILE, VERDICT_LEAVE, s.name);
}
