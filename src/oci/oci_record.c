/* Records: from the OCI configuration to JSON, from JSON to the structs of NRI, and their files. A
 * record has only what classify and placement need. */

#include "oci_record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "pin/registry.h"

#define NAMESPACE "oci" /* of containers without a pod */
#define SHORT_ID 12	/* as docker and podman print it */

/* Stands for the cgroup parent of a Guaranteed pod, from which classify derives the QoS class. It
 * is not a real cgroup: the parents of podman's containers belong to the host. */
#define GUARANTEED_PARENT "pinfold-oci-guaranteed"

bool oci_record_id_is_valid(struct str id)
{
	static const char more[] = "_.+-";

	if (id.n == 0 || id.n > OCI_RECORD_MAX_ID)
		return false;
	for (size_t i = 0; i < id.n; i++) {
		const char c = id.p[i];

		if (!str_is_alnum(c) && (i == 0 || !memchr(more, c, sizeof(more) - 1)))
			return false;
	}
	return true;
}

enum name {
	NAME_CONTAINER,
	NAME_POD,
	NAME_POD_NAMESPACE,
	NAME_POD_UID,
	NAME_TYPE, /* "sandbox" for a pause container */
	NAME__COUNT
};

/* The annotations that a runtime sets itself, after those of the pod: a pod cannot change them. It
 * can set the keys of another runtime, so those do not count. */
typedef const char *const runtime_names[NAME__COUNT];

static runtime_names containerd_names = {
	[NAME_CONTAINER] = "io.kubernetes.cri.container-name",
	[NAME_POD] = "io.kubernetes.cri.sandbox-name",
	[NAME_POD_NAMESPACE] = "io.kubernetes.cri.sandbox-namespace",
	[NAME_POD_UID] = "io.kubernetes.cri.sandbox-uid",
	[NAME_TYPE] = "io.kubernetes.cri.container-type",
};

static runtime_names crio_names = {
	[NAME_CONTAINER] = "io.kubernetes.container.name",
	[NAME_POD] = "io.kubernetes.pod.name",
	[NAME_POD_NAMESPACE] = "io.kubernetes.pod.namespace",
	[NAME_POD_UID] = "io.kubernetes.pod.uid",
	[NAME_TYPE] = "io.kubernetes.cri-o.ContainerType",
};

/* podman, which knows no namespaces and marks the pause containers of its pods as CRI-O does. */
static runtime_names other_names = {
	[NAME_TYPE] = "io.kubernetes.cri-o.ContainerType",
};

/* The runtime chooses the name of the cgroup and the kubelet its parent; a pod has no influence on
 * either (docs/reference/crio-workloads.md#annotations-of-a-container). */
static runtime_names *detect_runtime(struct str cgroup)
{
	struct str_split steps = str_split(cgroup);
	struct str step, last = { 0 };

	while (str_next(&steps, '/', &step))
		last = step.n ? step : last;
	if (str_starts(last, STR("crio-")))
		return &crio_names;
	if (str_starts(last, STR("cri-containerd-")) || str_has(cgroup, STR("kubepods")))
		return &containerd_names;
	return &other_names;
}

static struct str annotation(yyjson_val *annotations, runtime_names *names, enum name name)
{
	const char *key = (*names)[name];

	return key ? doc_str(doc_get(annotations, str_from(key))) : STR("");
}

/* podman does not pass the container's name to hooks; if the annotations have resources for exactly
 * one container, that is its name. */
static struct str name_from_resources(yyjson_val *annotations)
{
	const struct str prefix = STR(NAME_RESOURCES_PREFIX);
	yyjson_obj_iter each = yyjson_obj_iter_with(annotations);
	struct str name = { 0 };
	yyjson_val *key;

	while ((key = yyjson_obj_iter_next(&each))) {
		if (!str_starts(doc_str(key), prefix))
			continue;
		if (name.n)
			return (struct str){ 0 };
		name = str_skip(doc_str(key), prefix.n);
	}
	return name;
}

static const char *text_or(struct arena *a, struct str s, struct str fallback)
{
	return str_cstr(a, s.n ? s : fallback);
}

static void read_names(yyjson_val *annotations, runtime_names *names, struct str id,
		       struct arena *a, struct oci_record *o)
{
	const struct str brief = { id.p, id.n < SHORT_ID ? id.n : SHORT_ID };
	struct str name = annotation(annotations, names, NAME_CONTAINER);

	if (!name.n)
		name = name_from_resources(annotations);
	o->container.id = str_cstr(a, id);
	o->container.name = text_or(a, name, brief);
	o->pod.id = o->container.pod_id =
		str_cstr(a, str_printf(a, REGISTRY_OCI_PREFIX PRI_STR, FMT_STR(id)));
	o->pod.name = text_or(a, annotation(annotations, names, NAME_POD), brief);
	o->pod.pod_namespace =
		text_or(a, annotation(annotations, names, NAME_POD_NAMESPACE), STR(NAMESPACE));
	o->pod.uid = text_or(a, annotation(annotations, names, NAME_POD_UID), str_from(o->pod.id));
}

static int read_annotations(const struct doc *doc, yyjson_val *annotations, struct arena *a,
			    struct oci_record *o, struct err *err)
{
	yyjson_val *key, *value;
	size_t n = 0;

	o->pod.annotations = arena_array(a, struct nri_pair, yyjson_obj_size(annotations) + 1);
	DOC_EACH_PAIR (annotations, key, value) {
		if (!yyjson_is_str(value))
			return doc_err(err, doc, value, "annotation %s: want a string, not %s",
				       quote(doc_str(key)).text, doc_type(value));
		o->pod.annotations[n++] =
			(struct nri_pair){ str_cstr(a, doc_str(key)), str_cstr(a, doc_str(value)) };
	}
	o->pod.n_annotations = n;
	return 0;
}

static int read_number(const struct doc *doc, const char *key, int64_t *ret, struct err *err)
{
	yyjson_val *v = doc_get(doc->root, str_from(key));

	*ret = 0;
	if (v && !doc_int(v, ret))
		return doc_err(err, doc, v, "%s: want a whole number, not %s", key, doc_type(v));
	return 0;
}

bool oci_record_is_adjusted(const struct nri_cpu *cpu)
{
	struct cpuset cpus;

	return cpu->has_quota && cpu->quota_us == CGROUP_UNLIMITED && cpu->has_shares &&
	       cpuset_parse(str_from(cpu->cpus), &cpus, NULL) == 0 && !cpuset_is_empty(&cpus) &&
	       cpu->shares == cpu_shares_from_milli((int64_t)cpuset_count(&cpus) * 1000);
}

/* The quota before precreate removed it: as many CPUs as the container has. The bound of the period
 * keeps the product below INT64_MAX. */
static void restore_quota(struct nri_cpu *cpu)
{
	struct cpuset cpus;

	(void)cpuset_parse(str_from(cpu->cpus), &cpus, NULL);
	if (cpu->period_us == 0 || cpu->period_us > INT64_MAX / CPUSET_MAX)
		cpu->period_us = CGROUP_PERIOD_US;
	cpu->quota_us = (int64_t)(cpuset_count(&cpus) * cpu->period_us);
}

/* As in Kubernetes: a limit without a request also sets the request, and with a memory limit the
 * class is Guaranteed. */
static bool is_guaranteed(struct nri_cpu *cpu, int64_t memory)
{
	int64_t milli;

	if (memory <= 0 || cpu->quota_us <= 0 || cpu->period_us == 0)
		return false;
	milli = (int64_t)((__int128)cpu->quota_us * 1000 / cpu->period_us); /* quota is any int64 */
	if (!cpu->has_shares) {
		cpu->has_shares = true;
		cpu->shares = cpu_shares_from_milli(milli);
	}
	return cpu->shares == cpu_shares_from_milli(milli);
}

static int read_resources(const struct doc *doc, struct arena *a, struct oci_record *o,
			  struct err *err)
{
	const char *cgroup = str_cstr(a, doc_str(doc_get(doc->root, STR("cgroup"))));
	int64_t shares = 0, quota = 0, period = 0, memory = 0;
	int r;

	r = read_number(doc, "shares", &shares, err);
	if (r == 0)
		r = read_number(doc, "quotaUs", &quota, err);
	if (r == 0)
		r = read_number(doc, "periodUs", &period, err);
	if (r == 0)
		r = read_number(doc, "memoryBytes", &memory, err);
	if (r < 0)
		return r;
	if (period < 0 || shares < 0)
		return doc_err(err, doc, doc->root, "shares and periodUs are not below 0");
	/* Zero is "not set" in a runtime's configuration, as in NRI
	 * (docs/reference/nri.md#unset-values). */
	o->cpu = (struct nri_cpu){ .has_shares = shares > 0,
				   .has_quota = quota != 0,
				   .has_period = period > 0,
				   .shares = (uint64_t)shares,
				   .quota_us = quota,
				   .period_us = (uint64_t)period,
				   .cpus = str_cstr(a, doc_str(doc_get(doc->root, STR("cpus")))),
				   .mems = str_cstr(a, doc_str(doc_get(doc->root, STR("mems")))) };
	if (memory > 0 && oci_record_is_adjusted(&o->cpu))
		restore_quota(&o->cpu);
	o->on_linux.cgroups_path = cgroup;
	if (strstr(cgroup, "kubepods")) { /* the parent's name contains the QoS class */
		const char *slash = strrchr(cgroup, '/');

		o->pod_linux.cgroup_parent =
			str_cstr(a, (struct str){ cgroup, slash ? (size_t)(slash - cgroup) : 0 });
	} else {
		o->pod_linux.cgroup_parent = is_guaranteed(&o->cpu, memory) ? GUARANTEED_PARENT :
									      "";
	}
	return 0;
}

int oci_record_parse(const struct doc *record, struct arena *a, struct oci_record *ret,
		     struct err *err)
{
	yyjson_val *annotations = doc_get(record->root, STR("annotations"));
	const struct str id = doc_str(doc_get(record->root, STR("id")));
	int r;

	*ret = (struct oci_record){ 0 };
	if (!oci_record_id_is_valid(id))
		return doc_err(err, record, record->root, "invalid container id %s",
			       quote(id).text);
	/* The structs point at each other, so a record must not be copied or moved. */
	ret->pod.on_linux = &ret->pod_linux;
	ret->pod_linux.cgroups_path = "";
	ret->container.on_linux = &ret->on_linux;
	ret->container.state = NRI_RUNNING;
	ret->on_linux.resources = &ret->resources;
	ret->resources.cpu = &ret->cpu;
	read_names(annotations, detect_runtime(doc_str(doc_get(record->root, STR("cgroup")))), id,
		   a, ret);
	r = read_annotations(record, annotations, a, ret, err);
	ret->is_unnamed = doc_bool(doc_get(record->root, STR("unnamed")), false);
	ret->is_precreated = doc_get(record->root, STR("precreatedAtS")) != NULL;
	if (r == 0)
		r = read_number(record, "precreatedAtS", &ret->precreated_at_s, err);
	return r < 0 ? r : read_resources(record, a, ret, err);
}

/* Other annotations are not kept: some contain whole manifests. */
static bool is_relevant(struct str key)
{
	static const struct str prefixes[] = {
		STR_INIT(NAME_RESOURCES_PREFIX),  STR_INIT(NAME_TARGET_PREFIX),
		STR_INIT("io.kubernetes."),	  STR_INIT(NAME_STAMP),
		STR_INIT(NAME_LEGACY_CPU_PREFIX), STR_INIT(NAME_LEGACY_MANAGEMENT)
	};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(key, prefixes[i]))
			return true;
	return false;
}

static void put_number(yyjson_mut_doc *m, yyjson_mut_val *root, const char *key, yyjson_val *v)
{
	int64_t n;

	if (doc_int(v, &n))
		doc_put_int(m, root, str_from(key), n);
}

int oci_record_build(const struct doc *config, const struct oci_record_source *given,
		     struct arena *a, struct str *ret, struct err *err)
{
	yyjson_val *annotations = doc_get(config->root, STR("annotations")), *key, *value;
	yyjson_val *resources = doc_find(config->root, "/linux/resources");
	const struct str cpus = doc_str(doc_find(resources, "/cpu/cpus"));
	const struct str mems = doc_str(doc_find(resources, "/cpu/mems"));
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *kept;

	if (!yyjson_is_obj(config->root))
		return doc_err(err, config, config->root, "want an object, not %s",
			       doc_type(config->root));
	if (str_eq(annotation(annotations, detect_runtime(str_from(given->cgroup)), NAME_TYPE),
		   STR("sandbox")))
		return err_set(err, EUCLEAN, "a pause container");
	doc_put_str(m, root, STR("id"), given->id);
	doc_put_str(m, root, STR("cgroup"), str_from(given->cgroup));
	kept = doc_put_obj(m, root, STR("annotations"));
	DOC_EACH_PAIR (annotations, key, value) {
		if (is_relevant(doc_str(key)))
			doc_put(m, kept, doc_str(key), yyjson_val_mut_copy(m, value));
	}
	if (cpus.n)
		doc_put_str(m, root, STR("cpus"), cpus);
	if (mems.n)
		doc_put_str(m, root, STR("mems"), mems);
	put_number(m, root, "shares", doc_find(resources, "/cpu/shares"));
	put_number(m, root, "quotaUs", doc_find(resources, "/cpu/quota"));
	put_number(m, root, "periodUs", doc_find(resources, "/cpu/period"));
	put_number(m, root, "memoryBytes", doc_find(resources, "/memory/limit"));
	if (given->is_precreated)
		doc_put_int(m, root, STR("precreatedAtS"), given->precreated_at_s);
	if (given->is_unnamed)
		doc_put_bool(m, root, STR("unnamed"), true);
	return doc_write(root, true, a, ret, err);
}

bool oci_record_is_pending(int64_t precreated_at_s, int64_t now_s)
{
	return precreated_at_s <= now_s && precreated_at_s > now_s - OCI_RECORD_PENDING_S;
}

int64_t oci_record_now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec;
}

struct str oci_record_cgroup(struct str text)
{
	/* Lines are "hierarchy:controllers:path"; v2 has no controllers there (cgroups(7)). On a
	 * hybrid host both kinds exist; if cpuset is with v1, that line counts. */
	struct str_split lines = str_split(text);
	struct str line, unified = { 0 };

	while (str_next(&lines, '\n', &line)) {
		struct str_split fields = str_split(line);
		struct str number, controllers, each;

		if (!str_next(&fields, ':', &number) || !str_next(&fields, ':', &controllers) ||
		    fields.ended)
			continue;
		if (controllers.n == 0) {
			unified = fields.rest; /* a path may contain colons */
			continue;
		}
		for (struct str_split names = str_split(controllers); str_next(&names, ',', &each);)
			if (str_eq(each, STR("cpuset")))
				return fields.rest;
	}
	return unified;
}

static const char *record_path(struct str id, struct arena *a)
{
	return str_cstr(a, str_printf(a, OCI_RECORD_DIR "/" PRI_STR ".json", FMT_STR(id)));
}

int oci_record_save(int run_fd, struct str id, struct str record, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	int r;

	arena_init(&a, 0);
	r = file_mkdirs_at(run_fd, OCI_RECORD_DIR, 0700, err);
	return r < 0 ? r : file_replace_at(run_fd, record_path(id, &a), record, 0600, err);
}

void oci_record_delete(int run_fd, struct str id)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	(void)unlinkat(run_fd, record_path(id, &a), 0);
}

int oci_record_load(int run_fd, struct str id, struct arena *a, struct oci_record *ret,
		    struct err *err)
{
	const char *path = record_path(id, a);
	struct doc doc = { 0 };
	struct str text;
	int r;

	r = file_read_at(run_fd, path, OCI_RECORD_MAX_RECORD, a, &text, err);
	if (r == 0)
		r = doc_parse(text, str_from(path), NULL, a, &doc, err);
	if (r == 0)
		r = oci_record_parse(&doc, a, ret, err);
	if (r == 0)
		ret->is_pending = ret->is_precreated &&
				  oci_record_is_pending(ret->precreated_at_s, oci_record_now_s());
	return r;
}

int oci_records_load(int run_fd, const struct cgroup_fs *cgroups, struct arena *a,
		     struct oci_record_list *ret, struct err *err)
{
	const struct str suffix = STR(".json");
	struct oci_record_list list = { 0 };
	struct str *names;
	size_t n;
	int r;

	r = file_list_at(run_fd, OCI_RECORD_DIR, a, &names, &n, err);
	if (r == -ENOENT)
		n = 0;
	else if (r < 0)
		return r;
	list.items = arena_array(a, struct oci_record *, n + 1);
	list.gone = arena_array(a, struct oci_record *, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct str id = { names[i].p, names[i].n - suffix.n };
		struct oci_record *o = arena_new(a, struct oci_record);

		if (names[i].n <= suffix.n || !str_ends(names[i], suffix) ||
		    !oci_record_id_is_valid(id))
			continue; /* a temporary or foreign file */
		r = oci_record_load(run_fd, id, a, o, NULL);
		if (r == 0 && o->is_pending && o->is_unnamed)
			continue; /* its hook removes it before it ends */
		if (r == 0 &&
		    (o->is_pending ||
		     cgroup_exists(cgroups, cgroup_path_of(o->on_linux.cgroups_path, a)))) {
			list.items[list.n++] = o;
			continue;
		}
		if (r == 0) /* an unreadable record names no container to release */
			list.gone[list.n_gone++] = o;
		oci_record_delete(run_fd, id);
	}
	*ret = list;
	return 0;
}
