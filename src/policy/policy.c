/* Tables become objects. The texts are CEL and are copied as they are. */

#include "policy.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "kube/names.h"

#define GROUP "admissionregistration.k8s.io/"

static const char *const mode_names[] = {
	[POLICY_MODE_WEBHOOK] = "webhook",
	[POLICY_MODE_POLICY] = "policy",
	[POLICY_MODE_BOTH] = "both",
};
_Static_assert(ARRAY_LEN(mode_names) == POLICY_MODE__COUNT, "every mode has a name");

const char *policy_mode_name(enum policy_mode mode)
{
	return mode_names[mode];
}

struct policy_builder {
	const struct policy_options *o;
	struct arena *a;
	yyjson_mut_doc *m;
};

static void put(struct policy_builder *b, yyjson_mut_val *to, const char *key, const char *text)
{
	doc_put_str(b->m, to, str_from(key), str_from(text));
}

static yyjson_mut_val *put_object(struct policy_builder *b, yyjson_mut_val *to, const char *key)
{
	return doc_put_obj(b->m, to, str_from(key));
}

static void put_list(struct policy_builder *b, yyjson_mut_val *to, const char *key,
		     const char *const *items, size_t max)
{
	yyjson_mut_val *list = doc_put_arr(b->m, to, str_from(key));

	for (size_t i = 0; i < max && items[i]; i++)
		(void)yyjson_mut_arr_add_str(b->m, list, items[i]);
}

static void put_rules(struct policy_builder *b, yyjson_mut_val *match, const struct policy *p)
{
	yyjson_mut_val *list = doc_put_arr(b->m, match, STR("resourceRules"));

	for (size_t i = 0; i < ARRAY_LEN(p->rules) && p->rules[i].version; i++) {
		const struct policy_rule *r = &p->rules[i];
		yyjson_mut_val *rule = yyjson_mut_arr_add_obj(b->m, list);

		put_list(b, rule, "apiGroups", &r->group, 1);
		put_list(b, rule, "apiVersions", &r->version, 1);
		put_list(b, rule, "operations", r->operations, ARRAY_LEN(r->operations));
		put_list(b, rule, "resources", r->resources, ARRAY_LEN(r->resources));
	}
}

/* As in the webhook's configuration: what Pinfold itself runs does not wait for Pinfold (D18). */
static void put_selector(struct policy_builder *b, yyjson_mut_val *match)
{
	static const char *const own[] = { NAME_NAMESPACE_WEBHOOK, NAME_NAMESPACE_AGENT };
	yyjson_mut_val *selector = put_object(b, match, "namespaceSelector");
	yyjson_mut_val *list = doc_put_arr(b->m, selector, STR("matchExpressions"));
	yyjson_mut_val *item = yyjson_mut_arr_add_obj(b->m, list);

	put(b, item, "key", "kubernetes.io/metadata.name");
	put(b, item, "operator", "NotIn");
	put_list(b, item, "values", own, ARRAY_LEN(own));
}

static void put_texts(struct policy_builder *b, yyjson_mut_val *spec, const char *key,
		      const struct cel_text *texts, size_t max)
{
	yyjson_mut_val *list;

	if (!texts[0].name)
		return;
	list = doc_put_arr(b->m, spec, str_from(key));
	for (size_t i = 0; i < max && texts[i].name; i++) {
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(b->m, list);
		bool is_legacy = b->o->legacy && texts[i].legacy_text;

		put(b, item, "name", texts[i].name);
		put(b, item, "expression", is_legacy ? texts[i].legacy_text : texts[i].text);
	}
}

static void put_validations(struct policy_builder *b, yyjson_mut_val *spec, const struct policy *p)
{
	yyjson_mut_val *list = doc_put_arr(b->m, spec, STR("validations"));

	for (size_t i = 0; i < ARRAY_LEN(p->validations) && p->validations[i].text; i++) {
		const struct policy_validation *v = &p->validations[i];
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(b->m, list);

		put(b, item, "expression", v->text);
		if (v->message)
			put(b, item, "message", v->message);
		if (v->message_text)
			put(b, item, "messageExpression", v->message_text);
		put(b, item, "reason", v->reason ? v->reason : "Invalid");
	}
}

static void put_mutation(struct policy_builder *b, yyjson_mut_val *spec, const struct policy *p)
{
	yyjson_mut_val *list = doc_put_arr(b->m, spec, STR("mutations"));
	yyjson_mut_val *item = yyjson_mut_arr_add_obj(b->m, list);

	/* A LimitRange is applied again after the mutation and adds cpu again. */
	put(b, spec, "reinvocationPolicy", "IfNeeded");
	put(b, item, "patchType", "JSONPatch");
	put(b, put_object(b, item, "jsonPatch"), "expression", p->mutation);
}

static yyjson_mut_val *new_object(struct policy_builder *b, const struct policy *p,
				  const char *suffix)
{
	yyjson_mut_val *object = yyjson_mut_obj(b->m);
	bool is_beta = p->mutation && b->o->minor < POLICY_MINOR_MUTATING;

	put(b, object, "apiVersion", is_beta ? GROUP "v1beta1" : GROUP "v1");
	doc_put_str(b->m, object, STR("kind"),
		    str_printf(b->a, "%sAdmissionPolicy%s", p->mutation ? "Mutating" : "Validating",
			       suffix));
	put(b, put_object(b, object, "metadata"), "name", p->name);
	return object;
}

static yyjson_mut_val *policy_object(struct policy_builder *b, const struct policy *p)
{
	yyjson_mut_val *object = new_object(b, p, ""), *spec = put_object(b, object, "spec");
	yyjson_mut_val *match, *kind;

	put(b, spec, "failurePolicy", "Fail");
	if (p->has_parameters) {
		kind = put_object(b, spec, "paramKind");
		put(b, kind, "apiVersion", "v1");
		put(b, kind, "kind", "ConfigMap");
	}
	match = put_object(b, spec, "matchConstraints");
	if (p->spares_own_namespaces)
		put_selector(b, match);
	put_rules(b, match, p);
	put_texts(b, spec, "matchConditions", p->conditions, ARRAY_LEN(p->conditions));
	put_texts(b, spec, "variables", p->variables, ARRAY_LEN(p->variables));
	if (p->mutation)
		put_mutation(b, spec, p);
	else
		put_validations(b, spec, p);
	return object;
}

/* Beside a webhook with failurePolicy Ignore a pod that was not converted is stored, with a
 * warning; where policies convert, it is refused (D48). */
static void put_actions(struct policy_builder *b, yyjson_mut_val *spec, const struct policy *p)
{
	static const char *const deny[] = { "Deny", NULL };
	const char *const *actions = p->actions;

	if (p == &policy_converted && b->o->mode != POLICY_MODE_WEBHOOK)
		actions = deny;
	if (p == &policy_nodes && b->o->refuse_nodes)
		actions = deny;
	put_list(b, spec, "validationActions", actions, ARRAY_LEN(p->actions));
}

static yyjson_mut_val *binding_object(struct policy_builder *b, const struct policy *p)
{
	yyjson_mut_val *object = new_object(b, p, "Binding"), *spec = put_object(b, object, "spec");
	yyjson_mut_val *ref;

	put(b, spec, "policyName", p->name);
	if (p->has_parameters) {
		ref = put_object(b, spec, "paramRef");
		put(b, ref, "name", NAME_PARAMETERS);
		put(b, ref, "namespace", NAME_PERMISSIONS_NAMESPACE);
		/* "Deny" would refuse every pod, also those that the conditions leave out. */
		put(b, ref, "parameterNotFoundAction", "Allow");
	}
	if (!p->mutation)
		put_actions(b, spec, p);
	return object;
}

struct policy_selection {
	const struct policy *items[8];
	size_t n;
};

static struct policy_selection select_policies(const struct policy_options *o)
{
	struct policy_selection s = { .n = 0 };

	/* The guard first: nothing is mutated before it is there. */
	if (!o->only_mutating) {
		s.items[s.n++] = &policy_guard;
		s.items[s.n++] = &policy_pods;
		s.items[s.n++] = &policy_converted;
	}
	if (o->mode == POLICY_MODE_WEBHOOK)
		return s;
	s.items[s.n++] = &policy_workloads;
	s.items[s.n++] = &policy_warnings;
	s.items[s.n++] = &policy_cluster_flag;
	s.items[s.n++] = &policy_nodes;
	if (!o->refuse_nodes)
		s.items[s.n++] = &policy_tainted_nodes;
	return s;
}

int policy_options_check(const struct policy_options *o, struct err *err)
{
	if (o->minor < POLICY_MINOR_GUARD)
		return err_set(err, EINVAL,
			       "Kubernetes 1.%u has no ValidatingAdmissionPolicy of version v1: "
			       "1.%d and later",
			       o->minor, POLICY_MINOR_GUARD);
	if (o->mode != POLICY_MODE_WEBHOOK && o->minor < POLICY_MINOR_BETA)
		return err_set(err, EINVAL,
			       "mode %s needs MutatingAdmissionPolicy, which Kubernetes has since "
			       "1.%d, and by default since 1.%d",
			       policy_mode_name(o->mode), POLICY_MINOR_BETA, POLICY_MINOR_MUTATING);
	return 0;
}

int policy_objects(const struct policy_options *o, struct arena *a, yyjson_mut_doc **ret_doc,
		   yyjson_mut_val **ret, struct err *err)
{
	struct policy_builder b = { .o = o, .a = a, .m = doc_build(a) };
	struct policy_selection s = select_policies(o);
	yyjson_mut_val *list;

	if (policy_options_check(o, err) < 0)
		return -EINVAL;
	if (!b.m)
		return err_set(err, ENOMEM, "not enough memory");
	list = yyjson_mut_arr(b.m);
	for (size_t i = 0; i < s.n; i++) {
		(void)yyjson_mut_arr_append(list, policy_object(&b, s.items[i]));
		(void)yyjson_mut_arr_append(list, binding_object(&b, s.items[i]));
	}
	*ret_doc = b.m;
	*ret = list;
	return a->failed ? err_set(err, ENOMEM, "not enough memory") : 0;
}

static int add_yaml(struct strbuf *out, yyjson_mut_val *object, struct arena *a, struct err *err)
{
	struct str text;
	int r = yaml_write(object, a, &text, err);

	if (r == 0)
		strbuf_add(out, text);
	return r;
}

int policy_yaml(const struct policy_options *o, struct arena *a, struct str *ret, struct err *err)
{
	struct policy_builder b = { .o = o, .a = a, .m = doc_build(a) };
	struct policy_selection s = select_policies(o);
	struct strbuf out;
	int r = policy_options_check(o, err);

	strbuf_init(&out, a);
	for (size_t i = 0; r == 0 && i < s.n; i++) {
		strbuf_printf(&out, "%s# %s\n", i ? "---\n" : "", s.items[i]->about);
		r = add_yaml(&out, policy_object(&b, s.items[i]), a, err);
		strbuf_add(&out, STR("---\n"));
		if (r == 0)
			r = add_yaml(&out, binding_object(&b, s.items[i]), a, err);
	}
	*ret = strbuf_str(&out);
	return r;
}
