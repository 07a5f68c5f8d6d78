/* Recognised by the paths of their files, because users encode the contents in any way that
 * Ignition reads. */

#include "user_configs.h"

#include "base/arena.h"
#include "base/macro.h"
#include "base/quote.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "layout.h"

bool machine_config_has_marker(yyjson_val *machine_config)
{
	yyjson_val *file;

	DOC_EACH_ITEM (doc_find(machine_config, "/spec/config/storage/files"), file) {
		if (str_eq(doc_str(doc_get(file, STR("path"))), STR(NAME_KUBELET_MARKER)))
			return true;
	}
	return false;
}

/* What render and OpenShift's operators write is not the user's. */
static bool is_rendered(struct str name, struct str role, struct arena *a)
{
	return str_starts(name, STR("50-performance-")) || str_starts(name, STR("50-nto-")) ||
	       str_starts(name, STR("rendered-")) ||
	       str_eq(name, str_printf(a, "01-" PRI_STR "-cpu-partitioning", FMT_STR(role)));
}

/* The name of CRI-O's drop-in at a path; "" for other paths and for the names that are rendered. */
static struct str drop_in_name(struct str path)
{
	const struct str dir = STR(NAME_CRIO_DIR);
	struct str name;

	if (!str_starts(path, dir))
		return STR("");
	name = str_skip(path, dir.n);
	return str_eq(name, STR(NAME_CRIO_DEFAULT)) || str_eq(name, STR(NAME_CRIO_PINNING)) ?
		       STR("") :
		       name;
}

static void read_config(struct manifest m, struct user_config *ret)
{
	yyjson_val *labels = doc_find(m.object, "/metadata/labels"), *file;

	*ret = (struct user_config){
		.at = m,
		.name = object_name(m.object),
		.role = doc_str(doc_get(labels, STR(NAME_MACHINE_ROLE))),
		.writes_marker = machine_config_has_marker(m.object),
	};
	DOC_EACH_ITEM (doc_find(m.object, "/spec/config/storage/files"), file) {
		struct str name = drop_in_name(doc_str(doc_get(file, STR("path"))));

		/* Beside the marker any drop-in belongs to partitioning. */
		if (!name.n || (!ret->writes_marker && !str_has(name, STR("workload"))))
			continue;
		if (!ret->drop_in.n || str_cmp(name, ret->drop_in) < 0)
			ret->drop_in = name;
	}
}

void user_configs_find(const struct manifest_list *machine_configs, struct arena *a,
		       struct user_configs *ret)
{
	*ret = (struct user_configs){ arena_array(a, struct user_config, machine_configs->n + 1),
				      0 };
	for (size_t i = 0; i < machine_configs->n; i++) {
		struct user_config *c = &ret->items[ret->n];

		read_config(machine_configs->items[i], c);
		if ((c->writes_marker || c->drop_in.n) && !is_rendered(c->name, c->role, a))
			ret->n++;
	}
}

/* Custom pools also get the MachineConfigs of worker
 * (docs/reference/openshift-render.md#node-pools).
 */
static bool concerns(const struct user_config *c, struct str pool)
{
	return str_eq(c->role, pool) ||
	       (str_eq(c->role, STR("worker")) && !str_eq(pool, STR("master")) &&
		!str_eq(pool, STR("arbiter")));
}

struct default_files user_configs_defaults(const struct user_configs *configs, struct str pool,
					   struct arena *a)
{
	struct str own = str_printf(a, "01-" PRI_STR "-cpu-partitioning", FMT_STR(pool));
	struct default_files files = { true, NAME_CRIO_DEFAULT };

	for (size_t i = 0; i < configs->n; i++) {
		const struct user_config *c = &configs->items[i];

		if (!concerns(c, pool))
			continue;
		/* Of two MachineConfigs the later name wins, and of CRI-O's drop-ins the later
		 * one replaces the whole workload. */
		if (c->writes_marker && str_cmp(c->name, own) < 0)
			files.marker = false;
		if (!c->drop_in.n || str_cmp(c->drop_in, STR(NAME_CRIO_DEFAULT)) > 0)
			continue;
		files.drop_in = files.drop_in && str_cmp(c->drop_in, STR(NAME_CRIO_DEFAULT_EARLY)) >
							 0 ?
					NAME_CRIO_DEFAULT_EARLY :
					NULL;
	}
	return files;
}

void user_configs_report(const struct user_configs *configs, const struct layout *layout,
			 struct problem_list *p)
{
	for (size_t i = 0; i < configs->n; i++) {
		const struct user_config *c = &configs->items[i];
		const struct partition *part = layout_find(layout, c->role);
		struct problem_at at = PROBLEM_AT(c->at.doc, c->at.object, NULL);

		if (part)
			problem_warn(
				p, at,
				"MachineConfig %s: profile %s replaces it; delete it when the "
				"nodes of machine config pool %s run with 50-performance-" PRI_STR,
				quote(c->name).text, quote(part->profile->name).text,
				quote(c->role).text, FMT_STR(part->profile->name));
		else
			problem_note(
				p, at,
				"MachineConfig %s stays in force: to replace it, create a profile "
				"with its CPUs as reserved, then delete it",
				quote(c->name).text);
	}
}
