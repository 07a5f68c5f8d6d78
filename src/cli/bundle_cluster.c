/* Objects are trimmed and written as text while they are listed, so that memory follows the size of
 * the bundle and not that of the cluster. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "bundle_collect.h"
#include "check_print.h"
#include "cluster/object_path.h"
#include "kube/names.h"
#include "kube/object_trim.h"
#include "kube/pod.h"
#include "preflight/cluster_read.h"

#define OBJECTS_FILE_BYTES ((size_t)4 << 20)
#define LIST_BYTES 64 /* of the List around the objects */
#define LOG_LINES "2000"
#define LOG_BYTES "524288"

struct cluster_files {
	struct bundle_build *b;
	struct api_sync *s;
	size_t log_bytes; /* so far */
};

/* One kind: the text of its current file. */
struct object_files {
	const struct cluster_files *c;
	const struct trimmed_kind *kind;
	struct arena scratch; /* of one object */
	struct strbuf text;
	size_t n, n_objects, n_dropped;
};

static bool is_component(struct str name)
{
	return str_starts(name, STR("pinfold"));
}

/* Deployments, DaemonSets and Events of others are none of our business. */
static bool is_wanted(const struct trimmed_kind *kind, yyjson_val *object)
{
	const struct str name = str_from(kind->kind);

	if (str_eq(name, STR("Deployment")) || str_eq(name, STR("DaemonSet")))
		return is_component(doc_str(doc_get(doc_find(object, "/metadata/labels"),
						    STR("app.kubernetes.io/name"))));
	if (str_eq(name, STR("Event")))
		return is_component(doc_str(doc_find(object, "/source/component"))) ||
		       is_component(doc_str(doc_get(object, STR("reportingComponent"))));
	return true;
}

static void flush(struct object_files *f)
{
	struct arena *a = f->c->b->a;
	const struct str path =
		f->n++ ? str_printf(a, BUNDLE_OBJECTS "%s-%zu.json", f->kind->file, f->n) :
			 str_printf(a, BUNDLE_OBJECTS "%s.json", f->kind->file);

	strbuf_add(&f->text, STR("\n]}\n"));
	(void)bundle_build_add(f->c->b, path, strbuf_str(&f->text));
	f->text.n = 0;
}

static int add_object(void *context, yyjson_val *object, struct err *err)
{
	struct object_files *f = context;
	const struct bundle_build *b = f->c->b;
	struct str text;
	int r;

	if (!is_wanted(f->kind, object))
		return 0;
	arena_reset(&f->scratch);
	r = doc_write(object_trim(f->kind, object, doc_build(&f->scratch)), false, &f->scratch,
		      &text, err);
	if (r < 0)
		return r;
	if (b->used_bytes + f->text.n + text.n + LIST_BYTES > b->max_bytes) {
		f->n_dropped++;
		return 0;
	}
	if (f->text.n + text.n > OBJECTS_FILE_BYTES && f->text.n) {
		flush(f);
		strbuf_init(&f->text, b->a); /* the old text is in the bundle */
	}
	strbuf_add(&f->text, f->text.n ?
				     STR(",\n") :
				     STR("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n"));
	strbuf_add(&f->text, text);
	f->n_objects++;
	return 0;
}

static void add_kind(const struct cluster_files *c, const struct trimmed_kind *kind)
{
	struct object_files f = { .c = c, .kind = kind };
	const struct str what = str_printf(c->b->a, BUNDLE_OBJECTS "%s.json", kind->file);
	struct err err = { 0 };
	int r;

	arena_init(&f.scratch, 0);
	strbuf_init(&f.text, c->b->a);
	r = api_sync_list(c->s,
			  &(struct api_sync_list){ .path = str_from(kind->path),
						   .on_object = add_object,
						   .context = &f },
			  &err);
	if (f.text.n)
		flush(&f);
	if (r == -ENOENT)
		bundle_build_leave_out(c->b, what, STR("the cluster does not serve this kind"));
	else if (r < 0)
		bundle_build_leave_out(c->b, what, str_dup(c->b->a, str_from(err.msg)));
	if (f.n_dropped)
		bundle_build_leave_out(
			c->b, what,
			str_printf(
				c->b->a,
				"%zu of %zu objects: the bundle has reached its size (%zu bytes)",
				f.n_dropped, f.n_dropped + f.n_objects, c->b->max_bytes));
	arena_done(&f.scratch);
}

struct log_source {
	struct str namespace, pod, container;
	bool is_previous;
};

static void add_log(struct cluster_files *c, const struct log_source *l)
{
	struct bundle_build *b = c->b;
	const struct object_ref ref = { STR("v1"), STR("pods"), l->namespace, l->pod, STR("log") };
	const struct str file = str_printf(b->a,
					   BUNDLE_LOGS PRI_STR "/" PRI_STR "/" PRI_STR "%s.log",
					   FMT_STR(bundle_path_part(l->namespace, b->a)),
					   FMT_STR(bundle_path_part(l->pod, b->a)),
					   FMT_STR(bundle_path_part(l->container, b->a)),
					   l->is_previous ? ".previous" : "");
	struct err err = { 0 };
	struct str text;

	if (c->log_bytes > b->max_bytes / 4) {
		bundle_build_leave_out(b, file, STR("logs have a quarter of the bundle"));
		return;
	}
	if (api_sync_text(c->s,
			  str_printf(b->a,
				     PRI_STR "?container=" PRI_STR "&tailLines=" LOG_LINES
					     "&limitBytes=" LOG_BYTES "%s",
				     FMT_STR(object_path(&ref, b->a)), FMT_STR(l->container),
				     l->is_previous ? "&previous=true" : ""),
			  b->a, &text, &err) < 0)
		bundle_build_leave_out(b, file, str_dup(b->a, str_from(err.msg)));
	else if (bundle_build_add(b, file, text))
		c->log_bytes += text.n;
}

static int add_pod_logs(void *context, yyjson_val *object, struct err *err)
{
	struct cluster_files *c = context;
	yyjson_val *status;

	(void)err;
	DOC_EACH_ITEM (doc_find(object, "/status/containerStatuses"), status) {
		struct log_source l = {
			.namespace =
				str_dup(c->b->a, doc_str(doc_find(object, "/metadata/namespace"))),
			.pod = str_dup(c->b->a, object_name(object)),
			.container = str_dup(c->b->a, doc_str(doc_get(status, STR("name")))),
		};
		int64_t restarts = 0;

		add_log(c, &l);
		(void)doc_int(doc_get(status, STR("restartCount")), &restarts);
		l.is_previous = true;
		if (restarts)
			add_log(c, &l);
	}
	return 0;
}

/* The pods first, and then their logs: a list and a log use the same connection. */
struct pod_copies {
	struct arena *a;
	yyjson_val **items;
	size_t n;
};

static int copy_pod(void *context, yyjson_val *object, struct err *err)
{
	struct pod_copies *l = context;

	(void)err;
	l->items = arena_one_more(l->a, l->items, l->n, sizeof(yyjson_val *));
	l->items[l->n++] = doc_freeze(yyjson_val_mut_copy(doc_build(l->a), object), l->a);
	return 0;
}

static void add_logs(struct cluster_files *c, const char *namespace)
{
	const struct object_ref ref = { STR("v1"), STR("pods"), str_from(namespace), STR(""),
					STR("") };
	struct pod_copies pods = { .a = c->b->a };
	struct err err = { 0 };
	int r = api_sync_list(c->s,
			      &(struct api_sync_list){ .path = object_path(&ref, c->b->a),
						       .on_object = copy_pod,
						       .context = &pods },
			      &err);

	if (r < 0)
		bundle_build_leave_out(c->b, str_printf(c->b->a, BUNDLE_LOGS "%s", namespace),
				       str_dup(c->b->a, str_from(err.msg)));
	for (size_t i = 0; i < pods.n; i++)
		(void)add_pod_logs(c, pods.items[i], &err);
}

static void add_check(const struct cluster_files *c, const struct kubeconfig *kubeconfig)
{
	struct arena *a = c->b->a;
	struct cluster_facts *facts = arena_new(a, struct cluster_facts);
	struct preflight_report report;
	struct err err = { 0 };

	preflight_report_init(&report, a);
	if (cluster_facts_read(kubeconfig, STR(PINFOLD_VERSION), a, facts, &err) < 0) {
		bundle_build_leave_out(c->b, STR(BUNDLE_CHECK), str_dup(a, str_from(err.msg)));
		return;
	}
	preflight_cluster(facts, &report);
	(void)bundle_build_add_doc(c->b, STR(BUNDLE_CHECK),
				   check_document(&report, doc_build(a), a));
}

static void add_versions(const struct cluster_files *c, yyjson_val *server)
{
	yyjson_mut_doc *m = doc_build(c->b->a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	doc_put_str(m, root, STR("pinfold"), STR(PINFOLD_VERSION));
	doc_put(m, root, STR("apiServer"), yyjson_val_mut_copy(m, server));
	(void)bundle_build_add_doc(c->b, STR(BUNDLE_VERSIONS), root);
}

int bundle_collect_cluster(struct bundle_build *b, const struct kubeconfig *kubeconfig,
			   bool with_logs, struct err *err)
{
	CLEANUP(api_sync_close) struct api_sync s = { 0 };
	struct cluster_files c = { .b = b, .s = &s };
	yyjson_val *version;
	int r = api_sync_open(&s, kubeconfig, "pinfold/" PINFOLD_VERSION, b->a, err);

	if (r >= 0)
		r = api_sync_get(&s, STR("/version"), b->a, &version, err);
	if (r < 0)
		return r;
	bundle_build_source(b, STR("cluster"));
	add_versions(&c, version);
	add_check(&c, kubeconfig);
	if (with_logs) {
		add_logs(&c, NAME_NAMESPACE_WEBHOOK);
		add_logs(&c, NAME_NAMESPACE_AGENT);
	} else {
		bundle_build_leave_out(b, STR(BUNDLE_LOGS), STR("--no-logs"));
	}
	/* Pods are the last kind of the table: what does not fit is theirs. */
	for (const struct trimmed_kind *k = trimmed_kinds; k->kind; k++)
		add_kind(&c, k);
	bundle_build_leave_out(b, STR("Secrets and ConfigMaps"), STR("never read"));
	bundle_build_leave_out(b,
			       STR("environment variables, commands, images and volumes of pods, "
				   "annotations and labels of others"),
			       STR("removed from the objects"));
	return 0;
}
