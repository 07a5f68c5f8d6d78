/* When the agent creates its NodePartition and writes the status, and when it does not. */

#include "api_server.h"
#include "nodesync/api_failures.h"
#include "nodesync/partition_writer.h"

#define PATH "/apis/pinfold.io/v1alpha1/nodepartitions"
#define META "\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"8\",\"generation\":2}"
#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"
#define STATUS "\"agentVersion\":\"1\",\"observedGeneration\":2,\"source\":\"None\""

struct fixture {
	struct api_server server;
	struct api_failures failures;
	struct partition_writer writer;
	int64_t refused;
	const char *version;
};

static struct node_partition_status desired(void *data, struct arena *a)
{
	const struct fixture *f = data;

	(void)a;
	return (struct node_partition_status){ .agent_version = str_from(f->version),
					       .refused = f->refused };
}

static void fixture_init(struct fixture *f, const char *items)
{
	memset(f, 0, sizeof(*f));
	f->version = "1";
	api_server_init(&f->server);
	api_server_set(&f->server, &(struct api_server_rule){ "GET", PATH, "limit=1", 200, items });
	api_server_set(&f->server, &(struct api_server_rule){ "GET", PATH, "watch=", 200, "" });
	partition_writer_start(&f->writer, &f->server.api, STR("n1"),
			       &(struct partition_writer_config){ desired, f, &f->failures });
	partition_writer_set_node(&f->writer, "uid-1");
	API_SERVER_WAIT(&f->server, f->writer.watch.watch.is_synced);
}

static void fixture_done(struct fixture *f)
{
	partition_writer_close(&f->writer);
	api_server_done(&f->server);
	partition_writer_done(&f->writer);
}

/* Requests of a method. */
static size_t count(struct fixture *f, const char *method)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&f->server.lock);
	for (size_t i = 0; i < f->server.n_requests && i < API_SERVER_REQUESTS; i++)
		n += strcmp(f->server.requests[i].method, method) == 0;
	(void)pthread_mutex_unlock(&f->server.lock);
	return n;
}

static struct str body(struct fixture *f, const char *method)
{
	for (size_t i = 0; i < f->server.n_requests && i < API_SERVER_REQUESTS; i++)
		if (strcmp(f->server.requests[i].method, method) == 0)
			return str_from(f->server.requests[i].body);
	return STR("");
}

TEST(figures_wait_for_ten_seconds_and_everything_else_is_written_at_once)
{
	static const struct {
		struct partition_facts facts;
		enum partition_step want;
	} rows[] = {
		{ { false, true, STATUS_DIFFERS, UINT64_MAX }, PARTITION_CREATE },
		{ { false, false, STATUS_DIFFERS, UINT64_MAX }, PARTITION_KEEP },
		{ { true, true, STATUS_EQUAL, UINT64_MAX }, PARTITION_KEEP },
		{ { true, true, STATUS_DIFFERS, 0 }, PARTITION_WRITE },
		{ { true, false, STATUS_DIFFERS, 0 }, PARTITION_WRITE },
		{ { true, true, STATUS_FIGURES_DIFFER, 9999 }, PARTITION_KEEP },
		{ { true, true, STATUS_FIGURES_DIFFER, 10000 }, PARTITION_WRITE },
		{ { true, true, STATUS_FIGURES_DIFFER, UINT64_MAX }, PARTITION_WRITE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%zu", i);
		CHECK_INT(partition_step_choose(&rows[i].facts), rows[i].want);
	}
}

TEST(a_missing_object_is_created_with_its_owner_and_gets_its_status)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, LIST(""));
	api_server_set(&f.server, &(struct api_server_rule){ "POST", PATH, "", 201, "{" META "}" });
	api_server_set(&f.server,
		       &(struct api_server_rule){ "PATCH", PATH "/n1/status", "", 200,
						  "{" META ",\"status\":{" STATUS "}}" });
	partition_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.n_written == 1);
	CHECK(str_has(body(&f, "POST"),
		      STR("\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"uid-1\"")));
	CHECK(str_has(body(&f, "PATCH"),
		      STR("[{\"op\":\"add\",\"path\":\"/status\",\"value\":{" STATUS)));
	CHECK_UINT(count(&f, "POST"), 1);
}

TEST(without_a_node_nothing_is_created)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, LIST(""));
	partition_writer_set_node(&f.writer, "");
	partition_writer_update(&f.writer);
	CHECK(!f.writer.is_busy);
}

TEST(an_equal_status_is_not_written_and_a_different_one_is)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, LIST("{" META ",\"spec\":{\"granted\":\"ab\"},\"status\":{" STATUS "}}"));
	CHECK_STR(f.writer.observed.granted, "ab");
	partition_writer_update(&f.writer);
	CHECK(!f.writer.is_busy);
	f.refused = 1; /* never written before: at once */
	partition_writer_update(&f.writer);
	CHECK(f.writer.is_busy);
}

TEST(a_status_that_cannot_be_read_is_replaced)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, LIST("{" META ",\"status\":{\"source\":\"Guess\"}}"));
	partition_writer_update(&f.writer);
	CHECK(f.writer.is_busy && !f.writer.is_creating);
}

TEST(a_write_that_is_refused_is_counted_and_repeated_with_growing_delays)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f, LIST("{" META "}"));
	api_server_set(&f.server, &(struct api_server_rule){ "PATCH", PATH "/n1/status", "", 500,
							     "{\"message\":\"no\"}" });
	partition_writer_update(&f.writer);
	API_SERVER_WAIT(&f.server, f.writer.backoff.n >= 3);
	CHECK(count(&f, "PATCH") >= 3 && f.failures.n >= 3);
	CHECK_UINT(f.writer.n_written, 0);
}
