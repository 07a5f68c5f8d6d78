/* From the text of a manifest to a decision: parse() applies the API's defaults, convert() computes
 * the patch and the new text, decide_original() decides what happens to the saved original.
 * Everything, results included, lives in the caller's arena. Problems of a manifest are part of the
 * decision; only the arena's limit is an error. */

#include "static_manifest.h"

#include <errno.h>

#include "admission/decision.h"
#include "admission/defaults.h"
#include "admission/legacy.h"
#include "admission/static_pod.h"
#include "base/arena.h"
#include "codec/yaml.h"
#include "kube/patch.h"
#include "kube/pod.h"

const char *static_verdict_name(enum static_verdict verdict)
{
	static const char *const names[STATIC__COUNT] = {
		[STATIC_UNMANAGED] = "unmanaged", [STATIC_CONVERTED] = "converted",
		[STATIC_CONVERT] = "converting",  [STATIC_REFUSED] = "refused",
		[STATIC_BROKEN] = "broken",
	};

	return names[verdict];
}

bool static_manifest_is_read(const char *name)
{
	return *name && *name != '.';
}

/* One parsed manifest and the result of its conversion. */
struct parsed_manifest {
	yyjson_val *pod;
	bool is_json;
	bool is_managed;
	bool is_legacy;	  /* names of 2021 count */
	bool is_migrated; /* and were replaced in `pod` */
	bool is_check;	  /* a second pass: only `changes` is needed */
	bool changes;
	struct str converted; /* if it changes */
	struct err broken, refused;
};

static int write_in_same_format(const struct parsed_manifest *r, yyjson_val *v, struct arena *a,
				struct str *ret, struct err *err)
{
	struct str text;
	int code;

	/* Administrators and installers edit these files: YAML stays YAML, JSON stays JSON. */
	if (!r->is_json)
		return yaml_write_val(v, a, ret, err);
	code = doc_write_val(v, true, a, &text, err);
	if (code == 0)
		*ret = str_printf(a, PRI_STR "\n", FMT_STR(text));
	return code;
}

/* Replaces the names of 2021 by the present ones. */
static int migrate(yyjson_val *pod, struct arena *a, struct parsed_manifest *ret)
{
	struct migration m;

	if (!legacy_migrate(pod, a, &m))
		return -ENOMEM;
	ret->is_migrated = !patch_is_empty(&m.patch);
	return ret->is_migrated ? patch_apply(&m.patch, pod, a, &ret->pod, &ret->broken) : 0;
}

/* The kubelet reads one pod per file and applies the API's defaults (a limit becomes the request)
 * before the conversion (docs/reference/admission.md#defaulting). */
static int parse(struct str text, struct str name, struct arena *a, struct parsed_manifest *ret)
{
	const struct doc_limits limits = { .size_bytes = STATIC_MANIFEST_MAX_SIZE };
	const struct str trimmed = str_trim(text);
	struct doc_list docs;
	int r;

	/* JSON is also YAML, so one parser reads both. */
	ret->is_json = trimmed.n > 0 && trimmed.p[0] == '{';
	r = yaml_parse(text, name, &limits, a, &docs, &ret->broken);
	if (r < 0)
		return r;
	if (docs.n != 1)
		return err_set(&ret->broken, EINVAL, PRI_STR ": %zu documents, expected one Pod",
			       FMT_STR(name), docs.n);
	if (!str_eq(object_kind(docs.items[0].root), STR("Pod")))
		return doc_err(&ret->broken, &docs.items[0], docs.items[0].root, "not a Pod");
	r = ret->is_legacy ? migrate(docs.items[0].root, a, ret) : 0;
	if (r < 0)
		return r;
	return pod_default_resources(ret->is_migrated ? ret->pod : docs.items[0].root, a, &ret->pod,
				     &ret->broken);
}

static int convert(struct parsed_manifest *ret, struct arena *a);

/* Converting the result again must change nothing. A manifest that the kubelet rejects, for example
 * with two containers of the same name, must not become one that cannot be parsed. */
static bool is_stable(struct str converted, struct arena *a)
{
	struct parsed_manifest again = { .is_check = true };

	return parse(converted, STR("converted"), a, &again) == 0 && convert(&again, a) == 0 &&
	       !again.changes && !again.refused.code;
}

static int convert(struct parsed_manifest *ret, struct arena *a)
{
	const struct static_options options = { .every_container = true };
	struct admission_result result;
	yyjson_val *after;
	int r;

	r = static_pod_convert(ret->pod, &options, a, &result);
	if (r < 0)
		return r;
	/* Without a target annotation the evaluation ends at RULE_TARGET, and the agent does not
	 * manage the manifest. */
	ret->is_managed = result.rule != RULE_TARGET;
	if (!result.allowed) {
		(void)err_set(&ret->refused, EINVAL, PRI_STR, FMT_STR(result.message));
		return 0;
	}
	if (!ret->is_managed || (patch_is_empty(&result.patch) && !ret->is_migrated))
		return 0;
	ret->changes = true;
	if (ret->is_check)
		return 0;
	r = patch_apply(&result.patch, ret->pod, a, &after, &ret->broken);
	if (r == 0)
		r = write_in_same_format(ret, after, a, &ret->converted, &ret->broken);
	if (r < 0 || is_stable(ret->converted, a))
		return r;
	ret->changes = false;
	ret->converted = (struct str){ 0 };
	(void)err_set(&ret->refused, EINVAL, "conversion would make the manifest unreadable");
	return 0;
}

/* 0, also for what is broken or refused; -ENOMEM otherwise. */
static int read_text(struct str text, struct str name, bool is_legacy, struct arena *a,
		     struct parsed_manifest *ret)
{
	int r;

	*ret = (struct parsed_manifest){ .is_legacy = is_legacy };
	r = parse(text, name, a, ret);
	if (r == 0)
		r = convert(ret, a);
	if (a->failed)
		return -ENOMEM;
	if (r < 0 && !ret->broken.code)
		(void)err_set(&ret->broken, EINVAL, PRI_STR ": cannot be parsed", FMT_STR(name));
	return 0;
}

/* A converted manifest was edited: its original is the edited pod, converted back. */
static int restore_original(const struct parsed_manifest *now, struct str text, struct arena *a,
			    bool *ret_is_converted, struct str *ret)
{
	struct err err = { 0 };
	struct patch back;
	yyjson_val *v;

	*ret_is_converted = false;
	*ret = text;
	if (static_pod_revert(now->pod, a, &back) < 0)
		return -ENOMEM;
	if (patch_is_empty(&back))
		return 0;
	*ret_is_converted = true;
	if (patch_apply(&back, now->pod, a, &v, &err) < 0)
		return a->failed ? -ENOMEM : 0;
	return write_in_same_format(now, v, a, ret, &err) < 0 && a->failed ? -ENOMEM : 0;
}

static int decide_original(const struct parsed_manifest *now, struct str text,
			   const struct str *original, struct arena *a, struct static_decision *d)
{
	struct parsed_manifest then;
	bool is_converted;
	int r;

	if (original) {
		r = read_text(*original, STR("original"), now->is_legacy, a, &then);
		if (r < 0)
			return r;
		if (then.changes && str_eq(then.converted, text))
			return 0; /* the manifest is the conversion of this original */
	}
	r = restore_original(now, text, a, &is_converted, &d->original);
	if (r < 0)
		return r;
	if (d->verdict == STATIC_CONVERT || is_converted)
		/* Without an original the manifest was converted elsewhere, and there is nothing to
		 * restore later. */
		d->keep = d->verdict == STATIC_CONVERT || original ? STATIC_ORIGINAL_WRITE :
								     STATIC_ORIGINAL_STAYS;
	else if (original)
		d->keep = STATIC_ORIGINAL_DROP;
	if (d->keep == STATIC_ORIGINAL_WRITE && original && str_eq(*original, d->original))
		d->keep = STATIC_ORIGINAL_STAYS;
	return 0;
}

int static_manifest_decide(struct str text, const struct str *original, struct str name,
			   bool is_legacy, struct arena *a, struct static_decision *ret)
{
	struct static_decision d = { 0 };
	struct parsed_manifest now;
	struct pod pod;
	int r;

	r = read_text(text, name, is_legacy, a, &now);
	if (r < 0)
		return r;
	if (now.broken.code) { /* it may be half written: the saved original stays */
		*ret = (struct static_decision){ .verdict = STATIC_BROKEN, .why = now.broken };
		return 0;
	}
	if (pod_from_object(now.pod, &pod))
		d.pod = str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(pod_namespace(&pod)),
				   FMT_STR(pod_name(&pod)));
	d.why = now.refused;
	d.text = now.converted;
	d.verdict = now.refused.code ? STATIC_REFUSED :
		    now.changes	     ? STATIC_CONVERT :
		    now.is_managed   ? STATIC_CONVERTED :
				       STATIC_UNMANAGED;
	r = decide_original(&now, text, original, a, &d);
	if (r < 0 || a->failed)
		return -ENOMEM;
	*ret = d;
	return 0;
}
