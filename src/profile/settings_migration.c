/* A profile without an isolated set pins management pods and tunes nothing else, as
 * workloadSettings did. */

#include "settings_migration.h"

#include "base/arena.h"
#include "codec/doc.h"
#include "codec/yaml.h"
#include "install_config.h"
#include "kube/names.h"
#include "kube/pod.h"

static void add_note(struct settings_migration *m, struct str text)
{
	m->notes[m->n_notes++] = text;
}

static bool has_profile(const struct manifest_list *existing, struct str role, struct arena *a)
{
	struct str key = str_printf(a, NAME_NODE_ROLE_PREFIX PRI_STR, FMT_STR(role));

	for (size_t i = 0; i < existing->n; i++)
		if (doc_get(doc_find(existing->items[i].object, "/spec/nodeSelector"), key))
			return true;
	return false;
}

static struct str profile_text(const struct workload_setting *s, struct str role, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *spec;
	struct str text = STR("");

	doc_put_str(m, root, STR("apiVersion"), STR(NAME_PROFILE_API));
	doc_put_str(m, root, STR("kind"), STR(NAME_PROFILE_KIND));
	doc_put_str(m, doc_put_obj(m, root, STR("metadata")), STR("name"),
		    str_printf(a, "workload-partitioning-" PRI_STR, FMT_STR(role)));
	spec = doc_put_obj(m, root, STR("spec"));
	doc_put_str(m, doc_put_obj(m, spec, STR("cpu")), STR(NAME_PROFILE_RESERVED), s->text);
	doc_put_str(m, doc_put_obj(m, spec, STR("nodeSelector")),
		    str_printf(a, NAME_NODE_ROLE_PREFIX PRI_STR, FMT_STR(role)), STR(""));
	(void)yaml_write(root, a, &text, NULL); /* our own object */
	return text;
}

static struct str node_names(const struct workload_setting *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < s->n_nodes; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? ", " : "", FMT_STR(s->nodes[i]));
	return strbuf_str(&b);
}

static void add_profiles(struct settings_migration *m, const struct install_config *install,
			 const struct workload_setting *s, const struct manifest_list *existing,
			 struct arena *a)
{
	const struct str roles[] = { STR("master"), STR("worker") };
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < (install->n_workers ? 2 : 1); i++) {
		if (has_profile(existing, roles[i], a))
			add_note(m,
				 str_printf(a,
					    "role " PRI_STR
					    " has a profile already: check that its reserved CPUs "
					    "are " PRI_STR,
					    FMT_STR(roles[i]), FMT_STR(s->text)));
		else
			strbuf_printf(&b, "%s" PRI_STR, b.n ? "---\n" : "",
				      FMT_STR(profile_text(s, roles[i], a)));
	}
	m->profiles = strbuf_str(&b);
	if (m->profiles.n)
		add_note(m, STR("OpenShift requires spec.cpu." NAME_PROFILE_ISOLATED
				" in the profiles: add the CPUs for exclusive use"));
}

void settings_migrate(const struct install_config *install, const struct manifest_list *existing,
		      struct arena *a, struct settings_migration *ret)
{
	/* One note for each entry, or three for the one that becomes profiles. */
	*ret = (struct settings_migration){
		.notes = arena_array(a, struct str, install->n_settings + 3),
	};
	for (size_t i = 0; i < install->n_settings; i++) {
		const struct workload_setting *s = &install->settings[i];

		if (!str_eq(s->type, STR(NAME_TYPE_MANAGEMENT)))
			add_note(ret, str_printf(a,
						 "workload type " PRI_STR " with CPUs " PRI_STR
						 " is not migrated: a profile has CPUs for "
						 "management only",
						 FMT_STR(s->type), FMT_STR(s->text)));
		else if (s->n_nodes)
			add_note(ret,
				 str_printf(a,
					    "CPUs " PRI_STR " of nodes " PRI_STR
					    " are not migrated: create a MachineConfigPool for "
					    "these nodes, and a profile with the CPUs as reserved",
					    FMT_STR(s->text), FMT_STR(node_names(s, a))));
		else
			add_profiles(ret, install, s, existing, a);
	}
}
