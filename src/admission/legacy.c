/* The migration as a patch: `migrate` applies it, and for `lint` a patch that is not empty is a
 * finding, so that both agree on what is old. */

#include "legacy.h"

#include "base/arena.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/base64.h"
#include "kube/names.h"
#include "kube/pod.h"

static void add_note(struct migration *m, struct str text)
{
	if (m->n_notes < LEGACY_MAX_NOTES)
		m->notes[m->n_notes++] = text;
}

/* Sets an annotation in the metadata at `base`, unless it exists. */
static void set_annotation(struct migration *m, struct str base, yyjson_val *meta, struct str key,
			   struct str value)
{
	yyjson_val *map = doc_get(meta, STR("annotations"));
	struct str path = patch_path(m->patch.arena, base, STR("annotations"));
	yyjson_mut_val *added;

	/* The current name wins over the one of 2021. */
	if (doc_get(map, key))
		return;
	if (yyjson_is_obj(map)) {
		patch_add_str(&m->patch, patch_path(m->patch.arena, path, key), value);
		return;
	}
	added = yyjson_mut_obj(m->patch.doc);
	doc_put_str(m->patch.doc, added, key, value);
	patch_put(&m->patch, path, map != NULL, added);
}

static void drop_label(struct migration *m, struct str base, struct str key)
{
	struct str labels = patch_path(m->patch.arena, base, STR("labels"));

	patch_remove(&m->patch, patch_path(m->patch.arena, labels, key));
}

static yyjson_val *label(yyjson_val *meta, struct str key)
{
	return doc_get(doc_get(meta, STR("labels")), key);
}

static bool is_true(yyjson_val *v)
{
	return yyjson_is_true(v) || str_eq(doc_str(v), STR("true"));
}

static void migrate_namespace(struct migration *m, yyjson_val *object)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	yyjson_val *old = label(meta, STR(NAME_LEGACY_ALLOWED));

	if (!old && is_true(label(meta, STR(NAME_LEGACY_MANAGEMENT)))) {
		set_annotation(m, STR("/metadata"), meta, STR(NAME_ALLOWED),
			       STR(NAME_TYPE_MANAGEMENT));
		drop_label(m, STR("/metadata"), STR(NAME_LEGACY_MANAGEMENT));
	}
	if (!old)
		return;
	set_annotation(m, STR("/metadata"), meta, STR(NAME_ALLOWED), doc_str(old));
	drop_label(m, STR("/metadata"), STR(NAME_LEGACY_ALLOWED));
}

/* A selector is immutable, so a label that it uses must stay. */
static bool is_selected(yyjson_val *object)
{
	yyjson_val *selector = doc_find(object, "/spec/selector");

	return doc_get(doc_get(selector, STR("matchLabels")), STR(NAME_LEGACY_TARGET)) ||
	       doc_get(selector, STR(NAME_LEGACY_TARGET));
}

/* The name of the first draft, as an annotation or a label. */
static void migrate_management(struct migration *m, const struct pod *pod, struct str base)
{
	const struct str key = STR(NAME_LEGACY_MANAGEMENT);
	const bool is_annotated = is_true(doc_get(pod_annotations(pod), key));

	if (!is_annotated && !is_true(label(pod->meta, key)))
		return;
	set_annotation(m, base, pod->meta, STR(NAME_TARGET_PREFIX NAME_TYPE_MANAGEMENT),
		       STR(NAME_TARGET_VALUE));
	if (is_annotated)
		patch_remove(&m->patch,
			     patch_path(m->patch.arena,
					patch_path(m->patch.arena, base, STR("annotations")), key));
	else
		drop_label(m, base, key);
}

static void migrate_target(struct migration *m, yyjson_val *object, const struct pod *pod)
{
	struct arena *a = m->patch.arena;
	yyjson_val *old = label(pod->meta, STR(NAME_LEGACY_TARGET));
	struct str base = str_printf(a, "%s/metadata", pod->prefix);

	/* On a workload itself the label has no effect; only that of the template reaches the
	 * pods. */
	if (*pod->prefix && label(pod->object_meta, STR(NAME_LEGACY_TARGET)))
		drop_label(m, STR("/metadata"), STR(NAME_LEGACY_TARGET));
	if (!old) {
		migrate_management(m, pod, base);
		return;
	}
	set_annotation(m, base, pod->meta,
		       str_printf(a, NAME_TARGET_PREFIX PRI_STR, FMT_STR(doc_str(old))),
		       STR(NAME_TARGET_VALUE));
	if (is_selected(object))
		add_note(m,
			 STR("the label " NAME_LEGACY_TARGET
			     " stays because the selector uses it; selectors cannot be changed"));
	else
		drop_label(m, base, STR(NAME_LEGACY_TARGET));
}

static void drop_annotations(struct migration *m, const struct pod *pod)
{
	struct arena *a = m->patch.arena;
	struct str base = str_printf(a, "%s/metadata/annotations", pod->prefix);
	yyjson_val *key, *value;

	DOC_EACH_PAIR (pod_annotations(pod), key, value)
		if (str_starts(doc_str(key), STR(NAME_LEGACY_CPU_PREFIX)))
			patch_remove(&m->patch, patch_path(a, base, doc_str(key)));
	(void)value;
}

/* The resource of 2021 was an amount of CPUs; it becomes a cpu request, which admission converts
 * when a pod is created. */
static void migrate_list(struct migration *m, struct str base, yyjson_val *list, bool *has_cpu)
{
	struct arena *a = m->patch.arena;
	yyjson_val *key, *value;

	DOC_EACH_PAIR (list, key, value) {
		if (!str_starts(doc_str(key), STR(NAME_LEGACY_CPU_PREFIX)))
			continue;
		patch_remove(&m->patch, patch_path(a, base, doc_str(key)));
		if (!*has_cpu)
			patch_add(&m->patch, patch_path(a, base, STR(NAME_CPU)),
				  yyjson_val_mut_copy(m->patch.doc, value));
		*has_cpu = true;
	}
}

static void migrate_resources(struct migration *m, const struct pod *pod)
{
	struct arena *a = m->patch.arena;
	struct container_iter it = container_iter(pod, false);
	struct container c;

	while (container_next(&it, &c)) {
		struct str base =
			str_printf(a, "%s/spec/%s/%zu/resources", pod->prefix, c.list, c.index);
		bool has_request = doc_get(c.requests, STR(NAME_CPU)) != NULL;
		bool no_limit = true; /* the limit only repeated the request, so it is dropped */

		migrate_list(m, patch_path(a, base, STR("requests")), c.requests, &has_request);
		migrate_list(m, patch_path(a, base, STR("limits")), c.limits, &no_limit);
	}
}

/* Only the install-config itself: profile/settings_migration.h says what becomes of the CPUs. */
static void migrate_install_config(struct migration *m, yyjson_val *object)
{
	static const struct str keys[] = { STR_INIT(NAME_LEGACY_SETTINGS_KEY),
					   STR_INIT(NAME_LEGACY_POOLS_KEY) };
	bool has_settings = false;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		yyjson_val *settings = doc_get(object, keys[i]);

		if (settings)
			patch_remove(&m->patch, patch_path(m->patch.arena, STR(""), keys[i]));
		has_settings |= yyjson_arr_size(settings) > 0;
	}
	if (has_settings && !doc_get(object, STR(NAME_INSTALL_PARTITIONING_KEY)))
		patch_add_str(&m->patch, STR("/" NAME_INSTALL_PARTITIONING_KEY),
			      STR(NAME_PARTITIONING_ALL));
}

/* Texts that only the 2021 design uses, as keys and in values. */
static bool is_old_text(struct str s)
{
	return str_has(s, STR(NAME_LEGACY_TARGET)) || str_has(s, STR(NAME_LEGACY_CPU_PREFIX)) ||
	       str_has(s, STR(NAME_LEGACY_MARKER)) || str_has(s, STR(NAME_LEGACY_CRIO_CPUS));
}

static void note_remaining(struct migration *m, struct str path, struct str text)
{
	add_note(m, str_printf(m->patch.arena, "not migrated: %s at " PRI_STR, quote(text).text,
			       FMT_STR(path)));
}

/* Files in MachineConfigs are encoded. */
static void check_string(struct migration *m, struct str path, struct str s)
{
	const struct str prefix = STR("data:text/plain;charset=utf-8;base64,");
	struct arena *a = m->patch.arena;
	struct str text;

	if (!str_starts(s, prefix)) {
		if (is_old_text(s))
			note_remaining(m, path, s);
	} else if (base64_decode(str_skip(s, prefix.n), a, &text, NULL) == 0 && is_old_text(text)) {
		add_note(m, str_printf(a,
				       "not migrated: the file in " PRI_STR
				       " is of the 2021 design: replace it by a profile",
				       FMT_STR(path)));
	}
}

static void find_remaining(struct migration *m, struct str path, yyjson_val *v)
{
	struct arena *a = m->patch.arena;
	yyjson_val *key, *value;
	size_t i = 0;

	if (yyjson_is_str(v))
		check_string(m, path, doc_str(v));
	DOC_EACH_PAIR (v, key, value) {
		/* kubectl keeps a copy of the object there, and replaces it. */
		if (str_eq(doc_str(key), STR("kubectl.kubernetes.io/last-applied-configuration")))
			continue;
		if (is_old_text(doc_str(key)))
			note_remaining(m, path, doc_str(key));
		else
			find_remaining(m, patch_path(a, path, doc_str(key)), value);
	}
	DOC_EACH_ITEM (v, value)
		find_remaining(m, str_printf(a, PRI_STR "/%zu", FMT_STR(path), i++), value);
}

void legacy_note_remaining(struct migration *m, yyjson_val *object)
{
	yyjson_val *patched;

	/* The note on a label that stays says what to do. */
	if (!m->n_notes && patch_apply(&m->patch, object, m->patch.arena, &patched, NULL) >= 0)
		find_remaining(m, STR(""), patched);
}

bool legacy_migrate(yyjson_val *object, struct arena *a, struct migration *ret)
{
	struct pod pod;

	ret->n_notes = 0;
	if (!patch_init(&ret->patch, a))
		return false;
	if (str_eq(object_kind(object), STR("Namespace"))) {
		migrate_namespace(ret, object);
	} else if (pod_from_object(object, &pod)) {
		migrate_target(ret, object, &pod);
		drop_annotations(ret, &pod);
		migrate_resources(ret, &pod);
	} else if (!object_kind(object).n) {
		migrate_install_config(ret, object);
	}
	return !a->failed;
}

bool legacy_is_used(yyjson_val *object, struct arena *a)
{
	struct migration m;

	return legacy_migrate(object, a, &m) && !patch_is_empty(&m.patch);
}
