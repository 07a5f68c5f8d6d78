/* The namespace allowlist, and the watch that fills it. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_server.h"
#include "base/file.h"
#include "nodesync/api_failures.h"
#include "nodesync/namespace_watch.h"

static yyjson_val *make_namespace(const char *name, const char *annotation, const char *label,
				  struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = doc_put_obj(m, root, STR("metadata"));

	doc_put_str(m, meta, STR("name"), str_from(name));
	if (annotation)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")),
			    STR("workload.openshift.io/allowed"), str_from(annotation));
	if (label)
		doc_put_str(m, doc_put_obj(m, meta, STR("labels")),
			    STR("workload.openshift.io/allowed"), str_from(label));
	return doc_freeze(root, a);
}

TEST(a_namespace_allows_by_its_annotation)
{
	static const struct {
		const char *annotation, *label;
		bool is_legacy;
		enum permission want;
	} rows[] = {
		{ "management", NULL, false, PERMISSION_GRANTED },
		{ "other,management", NULL, false, PERMISSION_GRANTED },
		{ "other", NULL, false, PERMISSION_DENIED },
		{ "managementx", NULL, false, PERMISSION_DENIED },
		{ "", NULL, false, PERMISSION_DENIED },
		{ NULL, NULL, false, PERMISSION_DENIED },
		{ NULL, "management", false, PERMISSION_DENIED },
		{ NULL, "management", true, PERMISSION_GRANTED },
		{ "other", "management", true, PERMISSION_DENIED },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct namespace_allowlist list = { .is_legacy = rows[i].is_legacy };

		TEST_ROW("row %zu", i);
		namespace_allowlist_begin_list(&list);
		namespace_allowlist_put(&list, make_namespace("shop", rows[i].annotation,
							      rows[i].label, &a));
		CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
			  PERMISSION_UNKNOWN);
		namespace_allowlist_end_list(&list);
		CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
			  rows[i].want);
		CHECK_INT(namespace_allowlist_check(&list, STR("other"), STR("management")),
			  PERMISSION_DENIED);
		namespace_allowlist_done(&list);
	}
}

TEST(the_namespace_label_of_the_first_draft_allows_management_in_the_legacy_dialect)
{
	for (unsigned is_legacy = 0; is_legacy < 2; is_legacy++) {
		struct namespace_allowlist list = { .is_legacy = is_legacy };
		CLEANUP(arena_done) struct arena a;
		yyjson_mut_val *root, *labels;
		yyjson_mut_doc *m;

		TEST_ROW("legacy %u", is_legacy);
		arena_init(&a, 0);
		m = doc_build(&a);
		root = yyjson_mut_obj(m);
		labels = doc_put_obj(m, root, STR("metadata"));
		doc_put_str(m, labels, STR("name"), STR("dns"));
		labels = doc_put_obj(m, labels, STR("labels"));
		doc_put_str(m, labels, STR("io.openshift.management"), STR("true"));
		namespace_allowlist_begin_list(&list);
		namespace_allowlist_put(&list, doc_freeze(root, &a));
		namespace_allowlist_end_list(&list);
		CHECK_INT(namespace_allowlist_check(&list, STR("dns"), STR("management")),
			  is_legacy ? PERMISSION_GRANTED : PERMISSION_DENIED);
		namespace_allowlist_done(&list);
	}
}

TEST(a_namespace_allows_each_workload_type_on_its_own)
{
	CLEANUP(arena_done) struct arena a;
	struct namespace_allowlist list = { 0 };

	arena_init(&a, 0);
	namespace_allowlist_begin_list(&list);
	namespace_allowlist_put(&list, make_namespace("shop", "ran,infra", NULL, &a));
	namespace_allowlist_put(&list, make_namespace("dns", "management", NULL, &a));
	namespace_allowlist_end_list(&list);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("infra")), PERMISSION_GRANTED);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
		  PERMISSION_DENIED);
	CHECK_INT(namespace_allowlist_check(&list, STR("dns"), STR("infra")), PERMISSION_DENIED);
	CHECK_UINT(namespace_allowlist_count(&list, STR("infra")), 1);
	namespace_allowlist_put(&list, make_namespace("shop", "ran", NULL, &a));
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("infra")), PERMISSION_DENIED);
	namespace_allowlist_done(&list);
}

TEST(attack_a_long_list_of_types_is_kept_within_bounds)
{
	CLEANUP(arena_done) struct arena a;
	struct namespace_allowlist list = { 0 };
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("management"));
	for (unsigned i = 0; i < 50000; i++)
		strbuf_printf(&b, ",t%u", i);
	namespace_allowlist_begin_list(&list);
	namespace_allowlist_put(&list,
				make_namespace("shop", str_cstr(&a, strbuf_str(&b)), NULL, &a));
	namespace_allowlist_end_list(&list);
	CHECK(strlen(list.items[0].types) <= 1024);
	CHECK_INT(namespace_allowlist_check(&list, STR("shop"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_done(&list);
}

static int open_directory(char *ret_path)
{
	(void)snprintf(ret_path, 64, "/tmp/allowlist-test-XXXXXX");
	CHECK(mkdtemp(ret_path) != NULL);
	return open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

TEST(the_last_known_permissions_survive_in_a_file)
{
	char path[64];
	AUTO_CLOSE int fd = open_directory(path);
	struct namespace_allowlist list = { 0 }, back = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct stat st;

	arena_init(&a, 0);
	namespace_allowlist_begin_list(&list);
	namespace_allowlist_put(&list, make_namespace("good", "management,ran", NULL, &a));
	namespace_allowlist_put(&list, make_namespace("bad", NULL, NULL, &a));
	namespace_allowlist_end_list(&list);
	CHECK(list.is_changed);
	CHECK_INT(namespace_allowlist_read(&back, fd, STR(""), &err), -ENOENT);
	CHECK_OK(namespace_allowlist_write(&list, fd, STR("https://a:6443"), &err));
	CHECK(fstatat(fd, "namespaces.json", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
	/* The namespaces of another cluster say nothing about this one. */
	CHECK_ERR(namespace_allowlist_read(&back, fd, STR("https://b:6443"), &err), ESTALE,
		  "namespaces.json is from the API server https://a:6443");
	CHECK_INT(namespace_allowlist_check(&back, STR("good"), STR("ran")), PERMISSION_UNKNOWN);
	CHECK_OK(namespace_allowlist_read(&back, fd, STR("https://a:6443"), &err));
	CHECK_INT(namespace_allowlist_check(&back, STR("good"), STR("ran")), PERMISSION_GRANTED);
	CHECK_INT(namespace_allowlist_check(&back, STR("good"), STR("x")), PERMISSION_DENIED);
	CHECK_INT(namespace_allowlist_check(&back, STR("bad"), STR("management")),
		  PERMISSION_DENIED);
	/* A complete list replaces what the file said. */
	namespace_allowlist_begin_list(&back);
	namespace_allowlist_end_list(&back);
	CHECK(back.is_changed);
	CHECK_INT(namespace_allowlist_check(&back, STR("good"), STR("ran")), PERMISSION_DENIED);
	namespace_allowlist_done(&list);
	namespace_allowlist_done(&back);
	CHECK(unlinkat(fd, "namespaces.json", 0) == 0 && rmdir(path) == 0);
}

TEST(a_damaged_file_of_permissions_permits_nothing)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"version\":2,\"server\":\"s\",\"namespaces\":{\"good\":\"management\"}}",
		"{\"version\":1,\"server\":\"s\"}",
		"{\"version\":1,\"server\":\"s\",\"namespaces\":[\"good\"]}",
		"{\"version\":1,\"server\":\"s\",\"namespaces\":{\"good\":\"management\",\"x\":1}}",
	};
	char path[64];
	AUTO_CLOSE int fd = open_directory(path);

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct namespace_allowlist list = { 0 };
		struct err err = { 0 };

		TEST_ROW("%s", texts[i]);
		CHECK_OK(file_replace_at(fd, "namespaces.json", str_from(texts[i]), 0600, &err));
		CHECK(namespace_allowlist_read(&list, fd, STR(""), &err) < 0);
		CHECK(err.msg[0]);
		CHECK_INT(namespace_allowlist_check(&list, STR("good"), STR("management")),
			  PERMISSION_UNKNOWN);
		namespace_allowlist_done(&list);
	}
	CHECK(unlinkat(fd, "namespaces.json", 0) == 0 && rmdir(path) == 0);
}

TEST(the_allowlist_follows_objects_and_lists)
{
	CLEANUP(arena_done) struct arena a;
	struct namespace_allowlist list = { 0 };
	char name[16];

	arena_init(&a, 0);
	namespace_allowlist_begin_list(&list);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "ns-%u", i * 37 % 100);
		namespace_allowlist_put(&list, make_namespace(name, i % 2 ? "management" : NULL,
							      NULL, &a));
	}
	namespace_allowlist_end_list(&list);
	CHECK_UINT(list.n, 50);
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-37"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_put(&list, make_namespace("ns-37", NULL, NULL, &a)); /* withdrawn */
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-37"), STR("management")),
		  PERMISSION_DENIED);
	namespace_allowlist_put(&list, make_namespace("ns-37", "management", NULL, &a));
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-37"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_remove(&list,
				   make_namespace("ns-37", "management", NULL, &a)); /* deleted */
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-37"), STR("management")),
		  PERMISSION_DENIED);
	namespace_allowlist_begin_list(
		&list); /* what was known counts until the new list is complete */
	namespace_allowlist_put(&list, make_namespace("ns-11", "management", NULL, &a));
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-85"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_end_list(&list);
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-85"), STR("management")),
		  PERMISSION_DENIED);
	CHECK_INT(namespace_allowlist_check(&list, STR("ns-11"), STR("management")),
		  PERMISSION_GRANTED);
	namespace_allowlist_done(&list);
}

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct namespace_watch watch;
	unsigned n_known;
	enum permission good, bad; /* when the first list was complete */
};

static void on_listed(struct namespace_watch *w)
{
	struct fixture *f = container_of(w, struct fixture, watch);

	f->n_known++;
	f->good = namespace_allowlist_check(&w->allowlist, STR("good"), STR("management"));
	f->bad = namespace_allowlist_check(&w->allowlist, STR("bad"), STR("management"));
}

static void respond_to_list(struct fixture *f, unsigned status, const char *body)
{
	api_server_set(&f->server, &(struct api_server_rule){ "GET", "/api/v1/namespaces",
							      "limit=50", status, body });
}

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	f->watch.on_listed = on_listed;
}

static void fixture_done(struct fixture *f)
{
	watch_close(&f->watch.watch);
	api_server_done(&f->server);
	watch_done(&f->watch.watch);
	namespace_allowlist_done(&f->watch.allowlist);
}

#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"
#define NAMESPACE(name, allowed)                                                                   \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"8\",\"annotations\":{"         \
	"\"workload.openshift.io/allowed\":\"" allowed "\"}}}"

TEST(the_allowlist_is_known_after_the_first_list_and_follows_the_watch)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	respond_to_list(&f, 503, "{}");
	namespace_watch_start(&f.watch, &f.server.api, &f.failures);
	API_SERVER_WAIT(&f.server, f.failures.n == 1);
	CHECK_INT(namespace_allowlist_check(&f.watch.allowlist, STR("good"), STR("management")),
		  PERMISSION_UNKNOWN);
	api_server_set(&f.server,
		       &(struct api_server_rule){
			       "GET", "/api/v1/namespaces", "resourceVersion=7", 200,
			       "{\"type\":\"MODIFIED\",\"object\":" NAMESPACE(
				       "good", "") "}\n"
						   "{\"type\":\"ADDED\",\"object\":" NAMESPACE(
							   "new", "management") "}\n" });
	api_server_set(&f.server, /* so that the list is not read again */
		       &(struct api_server_rule){ "GET", "/api/v1/namespaces", "resourceVersion=8",
						  500, "{}" });
	respond_to_list(&f, 200,
			LIST(NAMESPACE("good", "management") "," NAMESPACE("bad", "other")));
	API_SERVER_WAIT(&f.server, f.n_known == 1);
	CHECK_INT(f.good, PERMISSION_GRANTED);
	CHECK_INT(f.bad, PERMISSION_DENIED);
	API_SERVER_WAIT(&f.server, f.watch.watch.events_seen >= 2);
	CHECK_INT(namespace_allowlist_check(&f.watch.allowlist, STR("good"), STR("management")),
		  PERMISSION_DENIED);
	CHECK_INT(namespace_allowlist_check(&f.watch.allowlist, STR("new"), STR("management")),
		  PERMISSION_GRANTED);
	CHECK_UINT(f.n_known, 1);
}

/* Lines that were logged with this message. */
static unsigned count_lines(int fd, const char *message)
{
	char text[8192] = "";
	const char *p = text;
	unsigned n = 0;

	CHECK(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	while ((p = strstr(p, message))) {
		p++;
		n++;
	}
	return n;
}

TEST(a_forbidden_list_is_logged_once_and_the_permission_stays_unknown)
{
	CLEANUP(fixture_done) struct fixture f;
	AUTO_CLOSE int log_fd = memfd_create("log", MFD_CLOEXEC);
	const int stderr_fd = dup(STDERR_FILENO);

	fixture_init(&f);
	respond_to_list(&f, 403, "{\"message\":\"namespaces is forbidden\"}");
	namespace_watch_start(&f.watch, &f.server.api, &f.failures);
	f.watch.watch.refusals = BACKOFF_SURE_FAILURES;
	log_setup(LOG_LEVEL_WARNING, LOG_FORMAT_TEXT);
	(void)dup2(log_fd, STDERR_FILENO);
	for (size_t i = 1; i <= 3; i++) {
		API_SERVER_WAIT(&f.server, api_server_count(&f.server) == i &&
						   f.watch.watch.phase == WATCH_WAITING);
		timer_start(&f.watch.watch.timer, 0, 0); /* instead of two minutes later */
	}
	(void)dup2(stderr_fd, STDERR_FILENO);
	(void)close(stderr_fd);
	CHECK_UINT(count_lines(log_fd, "not allowed to list namespaces"), 1);
	CHECK_UINT(f.n_known, 0);
	CHECK_INT(namespace_allowlist_check(&f.watch.allowlist, STR("good"), STR("management")),
		  PERMISSION_UNKNOWN);
}
