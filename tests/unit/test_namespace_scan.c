/* The scan of namespaces: what is requested, in which order, and what stays after a failure. */

#include "operator/namespace_scan.h"

#include <string.h>

#include "api_server.h"

struct fixture {
	struct api_server server;
	struct object_store allowed;
	struct namespace_scan scan;
	unsigned n_complete, n_failed;
};

static void on_complete(struct namespace_scan *s)
{
	container_of(s, struct fixture, scan)->n_complete++;
}

static void on_failure(struct namespace_scan *s, const struct err *err)
{
	CHECK(err->msg[0]);
	container_of(s, struct fixture, scan)->n_failed++;
}

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	api_server_init(&f->server);
	f->scan.on_complete = on_complete;
	f->scan.on_failure = on_failure;
	namespace_scan_start(&f->scan, &f->server.api);
}

static void fixture_done(struct fixture *f)
{
	namespace_scan_close(&f->scan);
	api_server_done(&f->server);
	namespace_scan_done(&f->scan);
	object_store_done(&f->allowed);
}

static void allow(struct fixture *f, const char *namespace)
{
	(void)object_store_put(&f->allowed, str_from(namespace), STR("1"), STR("{}"));
}

static void respond(struct fixture *f, const char *path, const char *query, unsigned status,
		    const char *body)
{
	api_server_set(&f->server, &(struct api_server_rule){ "GET", path, query, status, body });
}

#define POD(name)                                                                                  \
	"{\"metadata\":{\"namespace\":\"shop\",\"name\":\"" name "\",\"annotations\":{"            \
	"\"target.workload.openshift.io/management\":\"{}\"}}}"
#define EMPTY "{\"metadata\":{},\"items\":[]}"

static bool run(struct fixture *f)
{
	const unsigned before = f->n_complete + f->n_failed;

	f->scan.next_ms = 0;
	namespace_scan_run(&f->scan, &f->allowed, true);
	API_SERVER_WAIT(&f->server, f->n_complete + f->n_failed > before);
	return f->n_failed == 0;
}

TEST(a_cluster_in_which_no_namespace_allows_a_type_is_scanned)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	respond(&f, "/api/v1/limitranges", "", 200, EMPTY);
	respond(&f, "/api/v1/resourcequotas", "", 200, EMPTY);
	allow(&f, "pinfold"); /* exempt */
	CHECK(run(&f));	      /* the autoscaling API is absent */
	CHECK_UINT(f.scan.found.n, 0);
	CHECK_UINT(f.scan.requests, 3);
}

TEST(pods_are_read_in_pages_and_a_failed_round_keeps_the_last_findings)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	respond(&f, "/api/v1/namespaces/shop/pods", "continue=%61%62", 200,
		"{\"metadata\":{},\"items\":[" POD("second") "]}");
	respond(&f, "/api/v1/namespaces/shop/pods", "", 200,
		"{\"metadata\":{\"continue\":\"ab\"},\"items\":[" POD("first") "]}");
	respond(&f, "/api/v1/limitranges", "", 200, EMPTY);
	respond(&f, "/api/v1/resourcequotas", "", 200,
		"{\"metadata\":{},\"items\":[{\"metadata\":{\"namespace\":\"shop\",\"name\":\"q\"},"
		"\"spec\":{\"hard\":{\"cpu\":\"1\"}}}]}");
	allow(&f, "shop");
	CHECK(run(&f));
	CHECK_UINT(f.scan.found.counts[CLUSTER_POD_UNCONVERTED], 2);
	CHECK_STR(f.scan.found.items[1].name, "second");
	CHECK_UINT(f.scan.found.counts[CLUSTER_QUOTA], 1);
	/* Not due yet. */
	namespace_scan_run(&f.scan, &f.allowed, true);
	CHECK(!f.scan.is_busy);
	respond(&f, "/api/v1/resourcequotas", "", 500, "{}");
	CHECK(!run(&f));
	CHECK_UINT(f.scan.found.counts[CLUSTER_QUOTA], 1);
	CHECK_UINT(f.scan.found.n, 3);
	/* Without the flag there is nothing to find. */
	namespace_scan_run(&f.scan, &f.allowed, false);
	CHECK_UINT(f.scan.found.n, 0);
}

TEST(a_long_round_and_failures_in_a_row_are_followed_by_a_longer_pause)
{
	static const struct {
		uint64_t took_ms;
		unsigned failures;
		uint64_t want_ms;
	} rows[] = {
		{ 0, 0, NAMESPACE_SCAN_MS },
		{ 15000, 0, NAMESPACE_SCAN_MS },
		{ 60000, 0, 1200000 },
		{ 100, 1, NAMESPACE_SCAN_RETRY_MS },
		{ 100, 2, 60000 },
		{ 100, 4, 240000 },
		{ 100, 5, NAMESPACE_SCAN_MS },
		{ 100, 1000, NAMESPACE_SCAN_MS },
		{ 30000, 1, NAMESPACE_SCAN_RETRY_MS }, /* the server gave no response */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%zu", i);
		CHECK_UINT(namespace_scan_pause_ms(rows[i].took_ms, rows[i].failures),
			   rows[i].want_ms);
	}
}
