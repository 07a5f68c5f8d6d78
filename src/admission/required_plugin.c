/* With the setting requires_agent, the runtime creates no container of a partitioned pod while
 * the agent is not connected (docs/reference/nri.md#required-plugins). Without the setting the
 * container would start on any CPU until the agent adopts it. */

#include "base/arena.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "steps.h"

#define POD_SUFFIX "/pod"
#define ONLY_THE_AGENT "[\"" NAME_AGENT_PLUGIN "\"]"

/* As Go's strconv.ParseBool, which the validator uses. */
static bool is_true(struct str value)
{
	static const struct str texts[] = { STR_INIT("1"),    STR_INIT("t"),	STR_INIT("T"),
					    STR_INIT("true"), STR_INIT("True"), STR_INIT("TRUE") };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (str_eq(value, texts[i]))
			return true;
	return false;
}

/* Pods that may start without the agent, such as the agent's own. */
static bool tolerates(yyjson_val *annotations)
{
	return is_true(doc_str(doc_get(annotations, STR(NAME_TOLERATE_PLUGINS)))) ||
	       is_true(doc_str(doc_get(annotations, STR(NAME_TOLERATE_PLUGINS POD_SUFFIX))));
}

/* Appends the agent's name to the list: "" when the list has it. False when it is not a list of
 * names. */
static bool add_name(struct str list, struct arena *a, struct str *ret)
{
	const struct doc_limits limits = { .size_bytes = 4096, .documents = 1 };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *names = m ? yyjson_mut_arr(m) : NULL;
	struct doc_list docs;
	yyjson_val *name;

	*ret = STR("");
	/* The validator reads YAML, so a user's list need not be JSON. */
	if (yaml_parse(list, STR(""), &limits, a, &docs, NULL) < 0 || !docs.n ||
	    !yyjson_is_arr(docs.items[0].root))
		return false;
	DOC_EACH_ITEM (docs.items[0].root, name) {
		if (!yyjson_is_str(name))
			return false;
		if (str_eq(doc_str(name), STR(NAME_AGENT_PLUGIN)))
			return true;
		yyjson_mut_arr_append(names, doc_new_str(m, doc_str(name)));
	}
	yyjson_mut_arr_append(names, doc_new_str(m, STR(NAME_AGENT_PLUGIN)));
	return doc_write(names, false, a, ret, NULL) >= 0;
}

void required_plugin_admit(struct pod_context *ctx)
{
	const struct str base = STR(NAME_REQUIRED_PLUGINS), prefix = STR(NAME_REQUIRED_PLUGINS "/");
	yyjson_val *map = pod_annotations(&ctx->pod), *key, *value;
	bool is_covered = false;
	struct str list;

	if (!ctx->state->settings.requires_agent || !(ctx->is_managed || ctx->is_counted) ||
	    tolerates(map))
		return;
	/* The validator uses the most specific of these annotations, so each must name the agent.
	 * */
	DOC_EACH_PAIR (map, key, value) {
		if (!str_eq(doc_str(key), base) && !str_starts(doc_str(key), prefix))
			continue;
		/* A list for one container does not cover the others. */
		is_covered |= str_eq(doc_str(key), base) ||
			      str_eq(doc_str(key), STR(NAME_REQUIRED_PLUGINS POD_SUFFIX));
		if (!add_name(doc_str(value), ctx->a, &list))
			result_warn(ctx->result,
				    str_printf(ctx->a,
					       "annotation " PRI_STR
					       " is not a list of plugins and was not changed",
					       FMT_STR(doc_str(key))));
		else if (list.n)
			annotations_set(&ctx->annotations, doc_str(key), list);
	}
	if (!is_covered)
		annotations_set(&ctx->annotations, base, STR(ONLY_THE_AGENT));
	result_step(ctx->result, RULE_AGENT, VERDICT_CHANGE, base);
}
