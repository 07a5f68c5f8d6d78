/* The CPU sets before a change, parsed from the old files, because the profile that they were
 * rendered from is not known. A set that the files do not determine stays unknown. */

#include "plan_sets.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "file_set.h"
#include "kube/names.h"
#include "plan.h"
#include "profile/layout.h"

struct old_set {
	bool is_known;
	struct cpuset cpus;
};

/* What the files of one pool say. Two of the sets are unions: see derive(). */
struct old_files {
	struct file_set node;	 /* absolute paths, units included */
	struct old_set reserved; /* of the runtime */
	struct old_set kubelet;	 /* reservedSystemCPUs */
	struct old_set kernel;	 /* the CPUs that the kernel is tuned on */
	struct old_set offlined;
	struct old_set pools[PROFILE_SET__COUNT]; /* of the pools file */
};

static struct old_set parse_set(struct str list)
{
	struct old_set set = { 0 };

	set.is_known = cpuset_parse(list, &set.cpus, NULL) == 0;
	return set;
}

/* The first document of a file; NULL when there is none. */
static yyjson_val *read_document(const struct file_set *files, struct str path, struct arena *a)
{
	const struct rendered_file *file = file_set_find(files, path);
	struct doc_list docs;

	if (!file || yaml_parse(file->bytes, path, NULL, a, &docs, NULL) < 0 || !docs.n)
		return NULL;
	return docs.items[0].root;
}

/* The directory depends on the distribution. */
yyjson_val *plan_kubelet_config(const struct file_set *files, const struct partition *part,
				struct arena *a)
{
	struct str tree = str_printf(a, PRI_STR "/rootfs/", FMT_STR(part->pool->name));

	for (size_t i = 0; i < files->n; i++)
		if (str_starts(files->items[i].path, tree) &&
		    str_ends(files->items[i].path, STR("/kubelet.conf.d/50-pinfold.conf")))
			return read_document(files, files->items[i].path, a);
	return NULL;
}

/* The text between `key` and the end of its line, word or string; "" when it is not there. */
static struct str value_after(struct str text, const char *key)
{
	const char *at = text.n ? memmem(text.p, text.n, key, strlen(key)) : NULL;
	size_t n = 0;

	if (!at)
		return STR("");
	at += strlen(key);
	while (at + n < text.p + text.n && at[n] != '\n' && at[n] != ' ' && at[n] != '"')
		n++;
	return (struct str){ at, n };
}

static struct str node_text(const struct old_files *old, const char *path)
{
	const struct rendered_file *file = file_set_find(&old->node, str_from(path));

	return file ? file->bytes : STR("");
}

static void add_machine_config(struct old_files *old, yyjson_val *machine, struct arena *a)
{
	const struct str prefix = STR("data:text/plain;charset=utf-8;base64,");
	yyjson_val *item;

	DOC_EACH_ITEM (doc_find(machine, "/spec/config/storage/files"), item) {
		struct str source = doc_str(doc_find(item, "/contents/source"));
		struct str text;

		if (str_starts(source, prefix) &&
		    base64_decode(str_skip(source, prefix.n), a, &text, NULL) == 0)
			file_set_add(&old->node, doc_str(doc_get(item, STR("path"))), 0, text);
	}
	DOC_EACH_ITEM (doc_find(machine, "/spec/config/systemd/units"), item)
		file_set_add(&old->node,
			     str_printf(a, "/etc/systemd/system/" PRI_STR,
					FMT_STR(doc_str(doc_get(item, STR("name"))))),
			     0, doc_str(doc_get(item, STR("contents"))));
}

static void read_openshift(struct old_files *old, const struct file_set *files, struct str profile,
			   struct arena *a)
{
	yyjson_val *config, *tuned;

	config = read_document(files,
			       str_printf(a, PRI_STR "_kubeletconfig.yaml", FMT_STR(profile)), a);
	tuned = read_document(files, str_printf(a, PRI_STR "_tuned.yaml", FMT_STR(profile)), a);
	add_machine_config(
		old,
		read_document(files, str_printf(a, PRI_STR "_machineconfig.yaml", FMT_STR(profile)),
			      a),
		a);
	if (config)
		old->kubelet = parse_set(
			doc_str(doc_find(config, "/spec/kubeletConfig/reservedSystemCPUs")));
	if (tuned)
		old->kernel = parse_set(value_after(
			doc_str(doc_find(tuned, "/spec/profile/0/data")), "\nisolated_cores="));
}

static void read_host(struct old_files *old, const struct file_set *files,
		      const struct partition *part, struct arena *a)
{
	struct str root = str_printf(a, PRI_STR "/rootfs/", FMT_STR(part->pool->name));
	yyjson_val *kubelet = plan_kubelet_config(files, part, a);
	struct str args;

	for (size_t i = 0; i < files->n; i++)
		if (str_starts(files->items[i].path, root))
			file_set_add(&old->node, str_skip(files->items[i].path, root.n - 1), 0,
				     files->items[i].bytes);
	if (kubelet)
		old->kubelet = parse_set(doc_str(doc_get(kubelet, STR("reservedSystemCPUs"))));
	args = node_text(old, "/etc/pinfold/kernel-args");
	if (args.n)
		old->kernel = parse_set(value_after(args, "nohz_full="));
}

static void read_pools(struct old_files *old, struct arena *a)
{
	static const struct {
		enum profile_set_id id;
		struct str key;
	} keys[] = {
		{ PROFILE_RESERVED, STR_INIT(NAME_POOLS_RESERVED_KEY) },
		{ PROFILE_SHARED, STR_INIT(NAME_POOLS_SHARED_KEY) },
		{ PROFILE_ISOLATED, STR_INIT(NAME_POOLS_GUARANTEED_KEY) },
	};
	struct str text = node_text(old, NAME_POOLS_FILE);
	struct doc doc;

	if (!text.n || doc_parse(text, STR(""), NULL, a, &doc, NULL) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		old->pools[keys[i].id] = parse_set(doc_str(doc_get(doc.root, keys[i].key)));
}

static void read_node(struct old_files *old, struct arena *a)
{
	static const char *const drop_ins[] = { NAME_CRIO_DIR NAME_CRIO_RUNTIMES,
						NAME_CRIO_DIR "50-pinfold.conf" };

	for (size_t i = 0; i < ARRAY_LEN(drop_ins); i++) {
		struct str text = node_text(old, drop_ins[i]);

		if (text.n)
			old->reserved = parse_set(value_after(text, "infra_ctr_cpuset = \""));
	}
	if (old->reserved.is_known)
		old->offlined = parse_set(
			value_after(node_text(old, "/etc/systemd/system/set-cpus-offline.service"),
				    "OFFLINE_CPUS="));
	read_pools(old, a);
}

static struct old_set minus(struct old_set x, const struct old_set *y)
{
	cpuset_minus(&x.cpus, &y->cpus);
	x.is_known &= y->is_known;
	return x;
}

/* The kubelet's set is reserved, ovsDpdk, and, unless the agent assigns CPUs, shared; the kernel's
 * is isolated and ovsDpdk. So what the kubelet reserves beyond reserved is ovsDpdk where the kernel
 * is tuned, and shared elsewhere. */
static void derive(const struct old_files *old, struct old_set *sets)
{
	struct old_set extra = minus(old->kubelet, &old->reserved), ovs = extra;

	cpuset_intersect(&ovs.cpus, &old->kernel.cpus);
	ovs.is_known &= old->kernel.is_known;
	sets[PROFILE_RESERVED] = old->reserved.is_known ? old->reserved : old->kubelet;
	sets[PROFILE_OVS_DPDK] = ovs;
	sets[PROFILE_ISOLATED] = minus(old->kernel, &ovs);
	sets[PROFILE_SHARED] = minus(extra, &ovs);
	sets[PROFILE_OFFLINED] = old->offlined;
	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		if (old->pools[id].is_known)
			sets[id] = old->pools[id];
}

void plan_sets_read(const struct file_set *files, const struct partition *part, struct arena *a,
		    struct plan_sets *ret)
{
	struct old_set sets[PROFILE_SET__COUNT];
	struct old_files *old = arena_new(a, struct old_files);

	file_set_init(&old->node, a);
	/* The old files may be of either target; the other one's names are not found. */
	read_openshift(old, files, part->profile->name, a);
	read_host(old, files, part, a);
	read_node(old, a);
	derive(old, sets);
	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		ret->is_known[id] = sets[id].is_known;
		ret->before[id] = sets[id].cpus;
	}
}
