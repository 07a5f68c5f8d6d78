/* Static pods: the decision about a manifest as a table, and the manifest directory with concurrent
 * writers and a crash at every system call. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "crash.h"
#include "staticpod/static_pods.h"

#define TARGET "target.workload.openshift.io/management"

static const char managed[] =
	"# kept for people\n"
	"apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  namespace: kube-system\n"
	"  annotations:\n    " TARGET ": '{\"effect\": \"PreferredDuringScheduling\"}'\n"
	"spec:\n  containers:\n  - name: etcd\n    image: e\n    resources:\n"
	"      requests: {cpu: 300m, memory: 1Gi}\n      limits: {cpu: 400m}\n"
	"  - name: metrics\n    image: m\n";
static const char plain[] =
	"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
	"  - {name: c, image: i, resources: {requests: {cpu: 300m}}}\n";
static const char guaranteed[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
				 "\"g\",\"annotations\":{\"" TARGET
				 "\":\"{}\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
				 "\"resources\":{\"limits\":{\"cpu\":\"1\","
				 "\"memory\":\"1Gi\"}}}]}}";

static struct static_decision decide(const char *text, const char *original, struct arena *a)
{
	struct static_decision d;
	struct str kept = str_from(original);

	CHECK_INT(static_manifest_decide(str_from(text), original ? &kept : NULL, STR("m"), false,
					 a, &d),
		  0);
	return d;
}

static struct str at(struct str text, const char *pointer, struct arena *a)
{
	struct doc_list docs;
	struct err err = { 0 };

	CHECK_OK(yaml_parse(text, STR("m"), NULL, a, &docs, &err));
	return doc_text(doc_find(docs.items[0].root, pointer));
}

TEST(a_manifest_that_opts_in_is_converted_once)
{
	CLEANUP(arena_done) struct arena a;
	struct static_decision d, again;
	const char *text;

	arena_init(&a, 0);
	d = decide(managed, NULL, &a);
	CHECK_INT(d.verdict, STATIC_CONVERT);
	CHECK_STR(d.pod, "kube-system/etcd");
	CHECK_INT(d.keep, STATIC_ORIGINAL_WRITE);
	CHECK_STR(d.original, managed);
	text = str_cstr(&a, d.text);
	CHECK_STR(at(d.text,
		     "/spec/containers/0/resources/requests/"
		     "management.workload.openshift.io~1cores",
		     &a),
		  "300");
	CHECK_STR(at(d.text, "/spec/containers/0/resources/requests/cpu", &a), "");
	CHECK_STR(at(d.text, "/spec/containers/0/resources/limits/cpu", &a), "");
	CHECK_STR(at(d.text, "/spec/containers/0/resources/requests/memory", &a), "1Gi");
	CHECK_STR(at(d.text, "/metadata/annotations/resources.workload.openshift.io~1etcd", &a),
		  "{\"cpushares\":307,\"cpulimit\":400}");
	CHECK_STR(at(d.text, "/metadata/annotations/resources.workload.openshift.io~1metrics", &a),
		  "{\"cpushares\": 2}");

	again = decide(text, managed, &a);
	CHECK_INT(again.verdict, STATIC_CONVERTED);
	CHECK_INT(again.keep, STATIC_ORIGINAL_STAYS);
	again = decide(text, NULL, &a); /* converted elsewhere: nothing to restore */
	CHECK_INT(again.verdict, STATIC_CONVERTED);
	CHECK_INT(again.keep, STATIC_ORIGINAL_STAYS);
}

TEST(a_limit_of_memory_anywhere_in_a_decision_fails_it_as_a_whole)
{
	CLEANUP(arena_done) struct arena all;
	const struct str original = str_from(managed);
	struct str converted;
	size_t limit = 64;
	int r;

	arena_init(&all, 0);
	converted = decide(managed, NULL, &all).text;
	do {
		struct static_decision d = { .verdict = STATIC_REFUSED };
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, limit += 64);
		TEST_ROW("%zu bytes", limit);
		r = static_manifest_decide(converted, &original, STR("m"), false, &a, &d);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK_INT(d.verdict, r == 0 ? STATIC_CONVERTED : STATIC_REFUSED);
	} while (r < 0 && limit < (1 << 20));
	CHECK_INT(r, 0);
}

TEST(other_manifests_are_kept_refused_or_reported)
{
	static const struct {
		const char *name, *text, *original;
		enum static_verdict verdict;
		enum static_original keep;
		const char *why;
	} rows[] = {
		{ "does not opt in", plain, NULL, STATIC_UNMANAGED, STATIC_ORIGINAL_STAYS, "" },
		{ "no longer opts in", plain, managed, STATIC_UNMANAGED, STATIC_ORIGINAL_DROP, "" },
		{ "guaranteed, as JSON", guaranteed, NULL, STATIC_CONVERT, STATIC_ORIGINAL_WRITE,
		  "" },
		{ "half of it", "apiVersion: v1\nkind: Po", NULL, STATIC_BROKEN,
		  STATIC_ORIGINAL_STAYS, "m:1:1: not a Pod" },
		{ "half of it, converted before", "apiVersion: v1\nkind: Po", managed,
		  STATIC_BROKEN, STATIC_ORIGINAL_STAYS, "m:1:1: not a Pod" },
		{ "nothing", "", NULL, STATIC_BROKEN, STATIC_ORIGINAL_STAYS,
		  "m: 0 documents, expected one Pod" },
		{ "two", "kind: Pod\n---\nkind: Pod\n", NULL, STATIC_BROKEN, STATIC_ORIGINAL_STAYS,
		  "m: 2 documents, expected one Pod" },
		{ "no pod", "kind: Deployment\n", NULL, STATIC_BROKEN, STATIC_ORIGINAL_STAYS,
		  "m:1:1: not a Pod" },
		{ "cannot be",
		  "kind: Pod\nmetadata: {name: p, annotations: {" TARGET ": '{}'}}\n"
		  "spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n",
		  NULL, STATIC_REFUSED, STATIC_ORIGINAL_STAYS,
		  "managed container c does not have memory requests" },
		{ "two of one name",
		  "kind: Pod\nmetadata: {name: p, annotations: {" TARGET ": '{}'}}\n"
		  "spec: {initContainers: [{name: c, resources: {requests: {cpu: 1, memory: "
		  "1}}}],\n"
		  "  containers: [{name: c}]}\n",
		  NULL, STATIC_REFUSED, STATIC_ORIGINAL_STAYS,
		  "conversion would make the manifest unreadable" },
		{ "a bad amount",
		  "kind: Pod\nmetadata: {name: p, annotations: {" TARGET ": '{}'}}\n"
		  "spec: {containers: [{name: c, resources: {requests: {cpu: x}}}]}\n",
		  NULL, STATIC_REFUSED, STATIC_ORIGINAL_STAYS, NULL },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct static_decision d;

		TEST_ROW("%s", rows[i].name);
		d = decide(rows[i].text, rows[i].original, &a);
		CHECK_INT(d.verdict, rows[i].verdict);
		CHECK_INT(d.keep, rows[i].keep);
		if (rows[i].why)
			CHECK_STR(d.why.msg, rows[i].why);
		else
			CHECK(*d.why.msg);
	}
	TEST_NOTE("%zu rows", ARRAY_LEN(rows));
}

/* A container is added to a converted manifest: it is converted as well, and the original has it
 * with unconverted CPU requests. */
TEST(an_edited_manifest_gets_an_original_with_the_edit)
{
	CLEANUP(arena_done) struct arena a;
	struct static_decision d;
	const char *edited;

	arena_init(&a, 0);
	d = decide(managed, NULL, &a);
	edited = str_cstr(&a, str_printf(&a,
					 PRI_STR "  - name: new\n    image: n\n    resources:\n"
						 "      requests: {cpu: 50m, memory: 1Mi}\n",
					 FMT_STR(d.text)));
	d = decide(edited, managed, &a);
	CHECK_INT(d.verdict, STATIC_CONVERT);
	CHECK_INT(d.keep, STATIC_ORIGINAL_WRITE);
	CHECK_STR(at(d.original, "/spec/containers/0/resources/requests/cpu", &a), "300m");
	CHECK_STR(at(d.original, "/spec/containers/0/resources/limits/cpu", &a), "400m");
	CHECK_STR(at(d.original, "/spec/containers/2/resources/requests/cpu", &a), "50m");
	CHECK_STR(at(d.original, "/metadata/annotations/resources.workload.openshift.io~1etcd", &a),
		  "");
	CHECK(!str_has(d.original, STR("cores")));
	CHECK_STR(at(d.text,
		     "/spec/containers/2/resources/requests/"
		     "management.workload.openshift.io~1cores",
		     &a),
		  "50");
	d = decide(str_cstr(&a, d.text), str_cstr(&a, d.original), &a);
	CHECK_INT(d.verdict, STATIC_CONVERTED);
	CHECK_INT(d.keep, STATIC_ORIGINAL_STAYS);
}

struct fixture {
	char dir[64];
	struct arena a;
	struct static_pods s;
};

static void place_init(struct fixture *p)
{
	struct err err = { 0 };

	*p = (struct fixture){ 0 };
	arena_init(&p->a, 0);
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/static-pods-XXXXXX");
	CHECK(mkdtemp(p->dir) != NULL);
	CHECK_OK(static_pods_open(&p->s, p->dir, &err));
}

static void place_done(struct fixture *p)
{
	char command[128];

	static_pods_done(&p->s);
	(void)snprintf(command, sizeof(command), "rm -rf %s", p->dir);
	CHECK(system(command) == 0);
	arena_done(&p->a);
}

static void put(const struct fixture *p, const char *name, const char *text, mode_t mode)
{
	struct err err = { 0 };

	(void)unlinkat(p->s.dir_fd, name, 0);
	CHECK_OK(file_create_at(p->s.dir_fd, name, str_from(text), mode, &err));
}

static struct str get(struct fixture *p, const char *name)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(file_read_at(p->s.dir_fd, name, 1 << 20, &p->a, &text, &err));
	return text;
}

static size_t count(struct fixture *p)
{
	struct err err = { 0 };
	struct str *names;
	size_t n;

	CHECK_OK(file_list_at(p->s.dir_fd, ".", &p->a, &names, &n, &err));
	return n;
}

static struct str converted(struct fixture *p)
{
	return decide(managed, NULL, &p->a).text;
}

TEST(a_directory_is_converted_and_restored)
{
	CLEANUP(place_done) struct fixture p;
	struct err err = { 0 };
	struct stat st;

	place_init(&p);
	put(&p, "etcd.yaml", managed, 0640);
	put(&p, "web.yaml", plain, 0600);
	put(&p, ".hidden.yaml", managed, 0600);
	put(&p, "half.yaml", "kind: P", 0600);
	CHECK(symlinkat("web.yaml", p.s.dir_fd, "link.yaml") == 0);
	CHECK(mkdirat(p.s.dir_fd, "sub", 0700) == 0);
	CHECK_OK(static_pods_scan(&p.s, &err));
	CHECK_STR(get(&p, "etcd.yaml"), converted(&p));
	CHECK_STR(get(&p, ".etcd.yaml.pinfold-original"), managed);
	CHECK(fstatat(p.s.dir_fd, "etcd.yaml", &st, 0) == 0);
	CHECK_UINT(st.st_mode & 07777, 0640);
	CHECK_STR(get(&p, "web.yaml"), plain);
	CHECK_STR(get(&p, ".hidden.yaml"), managed);
	CHECK_UINT(count(&p), 7);
	CHECK_UINT(p.s.n_converted, 1);
	CHECK_UINT(p.s.n, 3); /* etcd, half, link */
	CHECK_STR(p.s.items[0].file, "etcd.yaml");
	CHECK_INT(p.s.items[0].verdict, STATIC_CONVERTED);
	CHECK_INT(p.s.items[1].verdict, STATIC_BROKEN);

	CHECK_OK(static_pods_scan(&p.s, &err));
	CHECK_UINT(p.s.n_converted, 1);
	put(&p, "half.yaml", managed, 0600); /* now complete */
	CHECK_OK(static_pods_visit(&p.s, "half.yaml", &err));
	CHECK_STR(get(&p, "half.yaml"), converted(&p));
	CHECK(unlinkat(p.s.dir_fd, "half.yaml", 0) == 0);

	CHECK_INT(static_pods_restore(&p.s, &err), 1);
	CHECK_STR(get(&p, "etcd.yaml"), managed);
	CHECK_STR(get(&p, "web.yaml"), plain);
	CHECK_UINT(count(&p), 5); /* no original is left, also not of the removed manifest */
	CHECK_INT(static_pods_restore(&p.s, &err), 0);
}

TEST(a_manifest_that_cannot_be_replaced_is_reported_and_retried)
{
	CLEANUP(place_done) struct fixture p;
	struct err err = { 0 };

	place_init(&p);
	put(&p, "etcd.yaml", managed, 0600);
	CHECK(mkdirat(p.s.dir_fd, ".etcd.yaml.pinfold-original", 0700) ==
	      0); /* blocks the rename */
	CHECK_INT(static_pods_scan(&p.s, &err), -EISDIR);
	CHECK_UINT(p.s.n, 1);
	CHECK_INT(p.s.items[0].verdict, STATIC_REFUSED);
	CHECK_STR(p.s.items[0].why, "rename .etcd.yaml.pinfold-keep: Is a directory");
	CHECK_STR(get(&p, "etcd.yaml"), managed);
	p.s.is_changed = false;
	CHECK_INT(static_pods_scan(&p.s, &err), -EISDIR);
	CHECK(!p.s.is_changed); /* the status is the same */
	CHECK(unlinkat(p.s.dir_fd, ".etcd.yaml.pinfold-original", AT_REMOVEDIR) == 0);
	CHECK_OK(static_pods_scan(&p.s, &err));
	CHECK_STR(get(&p, "etcd.yaml"), converted(&p));
	CHECK_INT(p.s.items[0].verdict, STATIC_CONVERTED);
}

TEST(a_manifest_that_is_being_written_is_not_read)
{
	CLEANUP(place_done) struct fixture p;
	struct err err = { 0 };
	int fd;

	place_init(&p);
	put(&p, "etcd.yaml", "", 0600);
	fd = openat(p.s.dir_fd, "etcd.yaml", O_WRONLY);
	CHECK(write(fd, managed, sizeof(managed) - 1) == sizeof(managed) - 1);
	CHECK_ERR(static_pods_visit(&p.s, "etcd.yaml", &err), EAGAIN,
		  "etcd.yaml: is being written");
	CHECK_ERR(static_pods_scan(&p.s, &err), EAGAIN, "etcd.yaml: is being written");
	CHECK_UINT(count(&p), 1);
	(void)close(fd);
	CHECK_OK(static_pods_scan(&p.s, &err));
	CHECK_STR(get(&p, "etcd.yaml"), converted(&p));
}

/* The linker directs all calls to these (--wrap). */
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);

static struct fixture *writer; /* another process writes just before the exchange */

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (writer && strcmp(to, "etcd.yaml") == 0) {
		errno = ENOSPC;
		return -1;
	}
	return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	if (writer)
		put(writer, "etcd.yaml", plain, 0600);
	return __real_renameat2(from_dir, from, to_dir, to, flags);
}

TEST(a_text_of_another_process_survives_a_rename_back_that_fails)
{
	CLEANUP(place_done) struct fixture p;
	struct err err = { 0 };

	place_init(&p);
	put(&p, "etcd.yaml", managed, 0600);
	writer = &p;
	CHECK_INT(static_pods_scan(&p.s, &err), -ENOSPC);
	writer = NULL;
	CHECK_STR(get(&p, ".etcd.yaml.pinfold-new"), plain);
	CHECK_OK(static_pods_scan(&p.s, &err)); /* the next scan puts it back */
	CHECK_STR(get(&p, "etcd.yaml"), plain);
}

TEST(a_change_during_an_interrupted_replacement_is_kept)
{
	CLEANUP(place_done) struct fixture p;
	struct err err = { 0 };

	place_init(&p);
	put(&p, "etcd.yaml", str_cstr(&p.a, converted(&p)), 0600);
	put(&p, ".etcd.yaml.pinfold-original", managed, 0600);
	put(&p, ".etcd.yaml.pinfold-new", plain, 0600); /* the previous text of the manifest */
	CHECK_OK(static_pods_scan(&p.s, &err));
	CHECK_STR(get(&p, "etcd.yaml"), plain);
	CHECK_UINT(count(&p), 1);
}

/* At every system call of a conversion and of a restore: the manifest is the old or the new one,
 * complete, and the next start completes the change. */

struct attempt {
	struct fixture *p;
	bool is_restore;
};

static void attempt(void *data)
{
	const struct attempt *t = data;
	struct static_pods s;

	if (static_pods_open(&s, t->p->dir, NULL) < 0)
		_exit(2);
	if (t->is_restore)
		(void)static_pods_restore(&s, NULL);
	else
		(void)static_pods_scan(&s, NULL);
	static_pods_done(&s);
}

static void check_whole(struct fixture *p, struct str new_text)
{
	const struct str now = get(p, "etcd.yaml");

	CHECK(str_eq(now, str_from(managed)) || str_eq(now, new_text));
}

static unsigned crash_everywhere(struct fixture *p, bool is_restore)
{
	struct attempt t = { p, is_restore };
	const struct str new_text = converted(p);
	struct err err = { 0 };
	unsigned n = 0;
	bool was_killed = true;

	for (; was_killed; n++) {
		TEST_ROW("killed before call %u", n);
		put(p, "etcd.yaml", managed, 0600);
		if (is_restore)
			CHECK_OK(static_pods_scan(&p->s, &err));
		was_killed = crash_run(attempt, &t, n);
		check_whole(p, new_text);
		CHECK_OK(static_pods_scan(&p->s, &err));
		CHECK_STR(get(p, "etcd.yaml"), new_text);
		CHECK_STR(get(p, ".etcd.yaml.pinfold-original"), managed);
		CHECK_UINT(count(p), 2);
		CHECK_INT(static_pods_restore(&p->s, &err), 1);
		CHECK_STR(get(p, "etcd.yaml"), managed);
		CHECK_UINT(count(p), 1);
	}
	return n;
}

TEST(a_change_interrupted_at_any_point_is_completed_at_the_next_start)
{
	CLEANUP(place_done) struct fixture p;
	unsigned n_convert, n_restore;

	place_init(&p);
	n_convert = crash_everywhere(&p, false);
	n_restore = crash_everywhere(&p, true);
	TEST_NOTE("%u crashes of a conversion, %u of the way back", n_convert, n_restore);
	CHECK(n_convert > 40 && n_restore > 20);
}

/* The label of 2021, and the annotation of its first draft. */
TEST(names_of_2021_are_converted_in_the_legacy_dialect_only)
{
	static const char *const metadata[] = {
		"labels: {workload.openshift.io/target: management}",
		"labels: {io.openshift.management: 'true'}",
		"annotations: {io.openshift.management: 'true'}",
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(metadata); i++) {
		struct static_decision d, again;
		struct str text, converted;

		TEST_ROW("%s", metadata[i]);
		text = str_printf(
			&a,
			"apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  %s\n"
			"spec:\n  containers:\n  - name: c\n    resources:\n      requests: "
			"{cpu: 400m, memory: 1Mi}\n",
			metadata[i]);
		CHECK_INT(static_manifest_decide(text, NULL, STR("m"), false, &a, &d), 0);
		CHECK_STR(static_verdict_name(d.verdict), static_verdict_name(STATIC_UNMANAGED));
		CHECK_INT(static_manifest_decide(text, NULL, STR("m"), true, &a, &d), 0);
		CHECK_STR(static_verdict_name(d.verdict), static_verdict_name(STATIC_CONVERT));
		converted = d.text;
		CHECK(str_has(converted, STR("target.workload.openshift.io/management")));
		CHECK(str_has(converted, STR("management.workload.openshift.io/cores")));
		CHECK(str_has(converted, STR("cpushares")));
		CHECK(!str_has(converted, STR("io.openshift.management")) &&
		      !str_has(converted, STR("workload.openshift.io/target:")));
		CHECK_STR(d.original, text); /* --uninstall restores the manifest with its label */
		CHECK_INT(static_manifest_decide(converted, &text, STR("m"), true, &a, &again), 0);
		CHECK_STR(static_verdict_name(again.verdict),
			  static_verdict_name(STATIC_CONVERTED));
		CHECK_INT(again.keep, STATIC_ORIGINAL_STAYS);
	}
}
