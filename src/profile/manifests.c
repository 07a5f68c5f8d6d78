#include "manifests.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "kube/pod.h"

void manifests_init(struct manifests *ms, struct arena *a)
{
	*ms = (struct manifests){ .a = a };
}

static void list_add(struct manifests *ms, struct manifest_list *list, struct manifest m)
{
	list->items = arena_reserve(ms->a, list->items, list->n, &list->cap, sizeof(m));
	list->items[list->n++] = m;
}

/* An install-config has an apiVersion but no kind (spec/render.md section 2.1). */
static bool is_install_config(yyjson_val *object)
{
	static const struct str keys[] = {
		STR_INIT("controlPlane"),
		STR_INIT("baseDomain"),
		STR_INIT("platform"),
		STR_INIT(NAME_INSTALL_PARTITIONING_KEY),
		STR_INIT(NAME_LEGACY_SETTINGS_KEY),
		STR_INIT(NAME_LEGACY_POOLS_KEY),
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (doc_get(object, keys[i]))
			return true;
	return false;
}

static void add_infrastructure(struct manifests *ms, struct manifest m)
{
	if (str_eq(object_name(m.object), STR(NAME_INFRASTRUCTURE)))
		ms->infrastructure = m;
}

static void add_install_config(struct manifests *ms, struct manifest m, struct problem_list *p)
{
	if (ms->install_config.doc)
		problem_error(p, PROBLEM_AT(m.doc, m.object, NULL),
			      "a second install-config; the first is " PRI_STR,
			      FMT_STR(ms->install_config.doc->file));
	else
		ms->install_config = m;
}

static void add_object(struct manifests *ms, struct manifest m, struct problem_list *p)
{
	const struct {
		struct str api, kind;
		struct manifest_list *list;
	} known[] = {
		{ STR(NAME_PROFILE_API), STR(NAME_PROFILE_KIND), &ms->profiles },
		{ STR(NAME_MACHINE_API), STR(NAME_POOL_KIND), &ms->pools },
		{ STR(NAME_MACHINE_API), STR(NAME_MACHINE_CONFIG_KIND), &ms->machine_configs },
		{ STR("v1"), STR("Node"), &ms->nodes },
		{ STR("v1"), STR("Pod"), &ms->pods },
	};
	struct str api = object_api(m.object), kind = object_kind(m.object);

	list_add(ms, &ms->all, m);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (str_eq(api, known[i].api) && str_eq(kind, known[i].kind)) {
			list_add(ms, known[i].list, m);
			return;
		}
	}
	if (str_eq(api, STR(NAME_CONFIG_API)) && str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND)))
		add_infrastructure(ms, m);
	else if (str_eq(kind, STR(NAME_PROFILE_KIND)))
		problem_warn(p,
			     PROBLEM_AT(m.doc, doc_get(m.object, STR("apiVersion")), "apiVersion"),
			     "%s is ignored: only %s is understood", quote(api).text,
			     NAME_PROFILE_API);
}

static void add_document(struct manifests *ms, const struct doc *doc, struct problem_list *p)
{
	struct object_iter it = object_iter(doc->root);
	yyjson_val *object;

	while ((object = object_next(&it))) {
		struct manifest m = { doc, object };

		if (!yyjson_is_obj(object))
			problem_error(p, PROBLEM_AT(doc, object, NULL),
				      "not a manifest: a %s, not an object", doc_type(object));
		else if (!object_kind(object).n && is_install_config(object))
			add_install_config(ms, m, p);
		else if (!object_kind(object).n || !object_api(object).n)
			problem_error(p, PROBLEM_AT(doc, object, NULL),
				      "not a manifest: it has no %s",
				      object_kind(object).n ? "apiVersion" : "kind");
		else
			add_object(ms, m, p);
	}
}

void manifests_add(struct manifests *ms, struct str text, struct str file, struct problem_list *p)
{
	struct err err = { 0 };
	struct doc_list docs;

	if (yaml_parse(text, file, NULL, ms->a, &docs, &err) < 0) {
		problem_from_err(p, &err);
		return;
	}
	for (size_t i = 0; i < docs.n; i++)
		add_document(ms, &docs.items[i], p);
}
