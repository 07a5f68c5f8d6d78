/* The names, CPU sets and selectors of a profile; profile_tuning.c reads the other fields. Reading
 * continues after a fault, so that one run reports all of them. Strings and objects in the result
 * point into the document, which must outlive the profile. */

#include "profile.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "fields.h"
#include "kube/names.h"
#include "topology_expr.h"

static const struct {
	const char *name, *field;
} sets[PROFILE_SET__COUNT] = {
	[PROFILE_RESERVED] = { NAME_PROFILE_RESERVED, "spec.cpu." NAME_PROFILE_RESERVED },
	[PROFILE_ISOLATED] = { NAME_PROFILE_ISOLATED, "spec.cpu." NAME_PROFILE_ISOLATED },
	[PROFILE_OFFLINED] = { NAME_PROFILE_OFFLINED, "spec.cpu." NAME_PROFILE_OFFLINED },
	[PROFILE_SHARED] = { NAME_PROFILE_SHARED, "spec.cpu." NAME_PROFILE_SHARED },
	[PROFILE_OVS_DPDK] = { NAME_PROFILE_OVS_DPDK, "spec.cpu." NAME_PROFILE_OVS_DPDK },
};

const char *profile_set_pool(enum profile_set_id id)
{
	return id == PROFILE_RESERVED ? "management" :
	       id == PROFILE_ISOLATED ? "guaranteed" :
					profile_set_name(id);
}

const char *profile_set_name(enum profile_set_id id)
{
	return sets[id].name;
}

struct problem_at profile_set_at(const struct profile *profile, enum profile_set_id id)
{
	return PROBLEM_AT(profile->at.doc, profile->sets[id].value, sets[id].field);
}

/* A list always wins; only what cannot be one is read as a topology expression. */
static void read_set(const struct field_reader *r, yyjson_val *cpu, enum profile_set_id id,
		     struct profile_set *ret)
{
	yyjson_val *v = field_get(cpu, str_from(sets[id].name));
	struct problem_at at = PROBLEM_AT(r->doc, v, sets[id].field);
	struct topology_expr expr;
	struct err err = { 0 };
	int parsed;

	*ret = (struct profile_set){ .value = v, .text = doc_str(v), .is_list = true };
	if (!v)
		return;
	/* The API field is a string, and YAML reads an unquoted 3 as a number. */
	if (!yyjson_is_str(v)) {
		problem_error(r->p, at, "must be a string, not %s%s", doc_type(v),
			      doc_is_number(v) ? ": put quotes around it" : "");
		return;
	}
	if (!topology_expr_looks_like(ret->text)) {
		parsed = cpuset_parse(ret->text, &ret->cpus, &err);
	} else {
		ret->is_list = false;
		/* Only its syntax is checked here: the machine is not known yet (resolve.c). */
		parsed = topology_expr_parse(ret->text, r->a, &expr, &err);
	}
	if (parsed < 0)
		problem_error(r->p, at, "%s", err.msg);
}

/* The 2022 design's list of workloads to pin; it defines only Infrastructure. */
static void read_workloads(const struct field_reader *r, yyjson_val *cpu, struct profile *ret)
{
	yyjson_val *item;

	ret->workloads = field_get(cpu, STR(NAME_PROFILE_WORKLOADS));
	if (ret->workloads && !yyjson_is_arr(ret->workloads)) {
		problem_error(r->p, PROBLEM_AT(r->doc, ret->workloads, "spec.cpu.workloads"),
			      "must be a list, not %s", doc_type(ret->workloads));
		ret->workloads = NULL;
		return;
	}
	DOC_EACH_ITEM (ret->workloads, item) {
		if (str_eq(doc_str(item), STR(NAME_WORKLOAD_INFRASTRUCTURE)))
			ret->pins_infrastructure = true;
		else
			problem_error(r->p, PROBLEM_AT(r->doc, item, "spec.cpu.workloads"),
				      "unsupported value %s: the only valid value "
				      "is " NAME_WORKLOAD_INFRASTRUCTURE,
				      quote(doc_text(item)).text);
	}
}

static void read_cpu(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	static const char *const known[] = {
		NAME_PROFILE_RESERVED, NAME_PROFILE_ISOLATED,
		NAME_PROFILE_OFFLINED, NAME_PROFILE_SHARED,
		NAME_PROFILE_OVS_DPDK, NAME_PROFILE_WORKLOADS,
		"balanceIsolated",     NULL,
	};
	yyjson_val *cpu = field_get(spec, STR("cpu"));
	size_t errors;

	if (!yyjson_is_obj(cpu)) {
		problem_error(r->p, PROBLEM_AT(r->doc, cpu ? cpu : spec, "spec.cpu"),
			      cpu ? "must be an object" : "required: the CPU sets");
		return;
	}
	/* Faults of other fields do not prevent that the sets are resolved and checked. */
	errors = r->p->n_errors;
	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		read_set(r, cpu, (enum profile_set_id)id, &ret->sets[id]);
	if (!ret->sets[PROFILE_RESERVED].value)
		problem_error(r->p, PROBLEM_AT(r->doc, cpu, sets[PROFILE_RESERVED].field),
			      "required");
	for (int id = PROFILE_RESERVED; id <= PROFILE_ISOLATED; id++) {
		const struct profile_set *set = &ret->sets[id];

		if (set->value && yyjson_is_str(set->value) && !set->text.n)
			problem_error(r->p, PROBLEM_AT(r->doc, set->value, sets[id].field),
				      "must not be empty");
	}
	ret->has_sound_sets = r->p->n_errors == errors;
	ret->balance_isolated = field_bool(r, cpu, "spec.cpu.balanceIsolated", true);
	read_workloads(r, cpu, ret);
	field_unknown(r, cpu, "spec.cpu", known, PROBLEM_WARNING);
}

static yyjson_val *read_labels(const struct field_reader *r, yyjson_val *spec, const char *field)
{
	yyjson_val *v = field_get(spec, field_key(field)), *key, *value;

	if (!v)
		return NULL;
	if (!yyjson_is_obj(v)) {
		problem_error(r->p, PROBLEM_AT(r->doc, v, field), "must be an object of labels");
		return NULL;
	}
	DOC_EACH_PAIR (v, key, value) {
		if (!yyjson_is_str(value))
			problem_error(r->p, PROBLEM_AT(r->doc, value, field),
				      "the value of label %s must be a string",
				      quote(doc_str(key)).text);
	}
	/* As OpenShift's validation; the role is taken from a single key. */
	if (yyjson_obj_size(v) > 1)
		problem_error(r->p, PROBLEM_AT(r->doc, v, field), "must hold only one label");
	return yyjson_obj_size(v) ? v : NULL;
}

/* Kubernetes allows 253 characters, and file systems 255 in a file name; rendered objects and files
 * need the rest for prefixes and suffixes of up to 39. */
#define MAX_NAME 200

bool profile_is_name(struct str s)
{
	if (!s.n || s.n > MAX_NAME || s.p[0] == '.' || s.p[0] == '-')
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || str_is_digit(s.p[i]) || s.p[i] == '-' ||
		      s.p[i] == '.'))
			return false;
	return true;
}

struct str profile_role(const struct profile *profile)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(profile->node_selector);
	struct str_split parts = str_split(doc_str(yyjson_obj_iter_next(&it)));
	struct str domain, role, more;

	/* Exactly one slash, as in the Node Tuning Operator. */
	if (!str_next(&parts, '/', &domain) || !str_next(&parts, '/', &role) ||
	    str_next(&parts, '/', &more))
		return STR("");
	return role;
}

static void read_selectors(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *selector = field_get(spec, STR("nodeSelector"));

	ret->node_selector = read_labels(r, spec, "spec.nodeSelector");
	ret->machine_label = read_labels(r, spec, "spec.machineConfigLabel");
	ret->pool_selector = read_labels(r, spec, "spec.machineConfigPoolSelector");
	if (!selector || (yyjson_is_obj(selector) && !ret->node_selector))
		problem_error(r->p, PROBLEM_AT(r->doc, spec, "spec.nodeSelector"),
			      "required: it selects the nodes of the profile");
	else if (ret->node_selector && !ret->machine_label && !profile_role(ret).n)
		problem_error(
			r->p, PROBLEM_AT(r->doc, selector, "spec.nodeSelector"),
			"the key is not of the form domain/role: set spec.machineConfigLabel");
}

static void read_metadata(const struct field_reader *r, struct profile *ret)
{
	yyjson_val *meta = doc_get(ret->at.object, STR("metadata"));
	yyjson_val *name = doc_get(meta, STR("name"));

	ret->name = doc_str(name);
	ret->uid = doc_str(doc_get(meta, STR("uid")));
	if (!name)
		problem_error(r->p,
			      PROBLEM_AT(r->doc, meta ? meta : ret->at.object, "metadata.name"),
			      "required");
	else if (!profile_is_name(ret->name))
		problem_error(
			r->p, PROBLEM_AT(r->doc, name, "metadata.name"),
			"%s is not a valid name: use lower-case letters, digits, \"-\" and \".\"",
			quote(doc_text(name)).text);
}

bool profile_read(struct manifest m, struct arena *a, struct profile *ret, struct problem_list *p)
{
	struct field_reader r = { m.doc, p, a };
	yyjson_val *spec = field_get(m.object, STR("spec"));
	size_t errors = p->n_errors;

	*ret = (struct profile){ .at = m, .balance_isolated = true };
	read_metadata(&r, ret);
	if (!yyjson_is_obj(spec)) {
		problem_error(p, PROBLEM_AT(m.doc, spec ? spec : m.object, "spec"),
			      spec ? "must be an object" : "required");
		return false;
	}
	read_cpu(&r, spec, ret);
	read_selectors(&r, spec, ret);
	profile_read_tuning(&r, spec, ret);
	profile_read_annotations(&r, ret);
	return p->n_errors == errors;
}
