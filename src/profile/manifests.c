/* Sorts objects by apiVersion and kind. Input directories of OpenShift's bootstrap hold many other
 * kinds, so an unknown one is no problem; an object without a kind is one. */

#include "manifests.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/pod.h"

void manifests_init(struct manifests *ms, struct arena *a)
{
	*ms = (struct manifests){ .a = a };
}

bool manifest_is_install_config(yyjson_val *object)
{
	static const struct str keys[] = {
		STR_INIT("controlPlane"),
		STR_INIT("baseDomain"),
		STR_INIT("platform"),
		STR_INIT(NAME_INSTALL_PARTITIONING_KEY),
		STR_INIT(NAME_LEGACY_SETTINGS_KEY),
		STR_INIT(NAME_LEGACY_POOLS_KEY),
	};

	for (size_t i = 0; !object_kind(object).n && i < ARRAY_LEN(keys); i++)
		if (doc_get(object, keys[i]))
			return true;
	return false;
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

	/* The lists are filled in reading order, so of two profiles the later is
	 * reported. */
	manifest_list_add(&ms->all, ms->a, m);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (str_eq(api, known[i].api) && str_eq(kind, known[i].kind)) {
			manifest_list_add(known[i].list, ms->a, m);
			return;
		}
	}
	if (str_eq(api, STR(NAME_CONFIG_API)) && str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND))) {
		if (str_eq(object_name(m.object), STR(NAME_INFRASTRUCTURE)))
			ms->infrastructure = m;
	} else if (str_eq(kind, STR(NAME_PROFILE_KIND))) {
		/* An older API version would be left out silently, and its nodes unpartitioned. */
		problem_warn(p,
			     PROBLEM_AT(m.doc, doc_get(m.object, STR("apiVersion")), "apiVersion"),
			     "%s is ignored: only %s is supported", quote(api).text,
			     NAME_PROFILE_API);
	}
}

void manifests_add(struct manifests *ms, const struct manifest_list *list, struct problem_list *p)
{
	for (size_t i = 0; i < list->n; i++) {
		struct manifest m = list->items[i];

		if (manifest_is_install_config(m.object))
			add_install_config(ms, m, p);
		else if (!object_kind(m.object).n || !object_api(m.object).n)
			problem_error(p, PROBLEM_AT(m.doc, m.object, NULL),
				      "not a manifest: it has no %s",
				      object_kind(m.object).n ? "apiVersion" : "kind");
		else
			add_object(ms, m, p);
	}
}
