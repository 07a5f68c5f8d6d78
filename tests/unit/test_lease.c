#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "api_server.h"
#include "base/arena.h"
#include "base/macro.h"
#include "cluster/leader.h"
#include "cluster/lease.h"
#include "test.h"

TEST(a_lease_is_acquired_when_it_is_free_or_was_seen_unchanged_too_long)
{
	static const struct {
		const char *what;
		struct lease l;
		uint64_t unchanged_ms;
		enum lease_action want;
	} rows[] = {
		{ "none", { 0 }, 0, LEASE_CREATE },
		{ "free", { .exists = true, .duration_s = 15 }, 0, LEASE_TAKE },
		{ "ours",
		  { .exists = true, .holder = STR_INIT("me"), .duration_s = 15 },
		  0,
		  LEASE_RENEW },
		{ "ours, long not renewed",
		  { .exists = true, .holder = STR_INIT("me"), .duration_s = 15 },
		  99999,
		  LEASE_RENEW },
		{ "another's, just seen",
		  { .exists = true, .holder = STR_INIT("you"), .duration_s = 15 },
		  0,
		  LEASE_WAIT },
		{ "another's, to the last moment",
		  { .exists = true, .holder = STR_INIT("you"), .duration_s = 15 },
		  15000,
		  LEASE_WAIT },
		{ "another's, over",
		  { .exists = true, .holder = STR_INIT("you"), .duration_s = 15 },
		  15001,
		  LEASE_TAKE },
		{ "held by another, with a longer duration",
		  { .exists = true, .holder = STR_INIT("you"), .duration_s = 60 },
		  15001,
		  LEASE_WAIT },
		{ "another's, nonsense",
		  { .exists = true, .holder = STR_INIT("you"), .duration_s = -1 },
		  1,
		  LEASE_TAKE },
		{ "a name that begins like ours",
		  { .exists = true, .holder = STR_INIT("me2"), .duration_s = 15 },
		  0,
		  LEASE_WAIT },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].what);
		CHECK_INT(lease_decide(&rows[i].l, STR("me"), rows[i].unchanged_ms), rows[i].want);
	}
}

TEST(the_holder_stops_acting_before_the_lease_expires)
{
	CHECK(!lease_is_held(0, 5));
	CHECK(lease_is_held(1000, 1000));
	CHECK(lease_is_held(1000, 1000 + LEASE_HOLD_MS - 1));
	CHECK(!lease_is_held(1000, 1000 + LEASE_HOLD_MS));
	CHECK(LEASE_HOLD_MS < LEASE_DURATION_S * 1000);
	CHECK(LEASE_RENEW_MS < LEASE_HOLD_MS);
}

TEST(a_written_lease_can_be_read)
{
	static const struct {
		const char *json; /* NULL: no lease exists */
		enum lease_action action;
		const char *want;
	} rows[] = {
		{ NULL, LEASE_CREATE,
		  "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		  "\"name\":\"l\",\"namespace\":\"n\"},\"spec\":{\"holderIdentity\":\"me\","
		  "\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-11-15T00:00:01.000007Z\","
		  "\"renewTime\":\"2026-11-15T00:00:01.000007Z\",\"leaseTransitions\":0}}" },
		{ "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":\"you\","
		  "\"acquireTime\":\"then\",\"leaseTransitions\":3}}",
		  LEASE_TAKE,
		  "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		  "\"name\":\"l\",\"namespace\":\"n\",\"resourceVersion\":\"7\"},\"spec\":{"
		  "\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":"
		  "\"2026-11-15T00:00:01.000007Z\",\"renewTime\":\"2026-11-15T00:00:01.000007Z\","
		  "\"leaseTransitions\":4}}" },
		{ "{\"metadata\":{\"resourceVersion\":\"8\"},\"spec\":{\"holderIdentity\":\"me\","
		  "\"acquireTime\":\"then\",\"leaseTransitions\":4}}",
		  LEASE_RENEW,
		  "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		  "\"name\":\"l\",\"namespace\":\"n\",\"resourceVersion\":\"8\"},\"spec\":{"
		  "\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":\"then\","
		  "\"renewTime\":\"2026-11-15T00:00:01.000007Z\",\"leaseTransitions\":4}}" },
	};
	const struct lease_write w = { STR("n"), STR("l"), STR("me"), 1794700801000007 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct lease l = lease_of(NULL);
		struct err err = { 0 };
		struct doc doc;
		struct str got;

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		if (rows[i].json) {
			CHECK_OK(doc_parse(str_from(rows[i].json), STR(""), NULL, &a, &doc, &err));
			l = lease_of(doc.root);
		}
		CHECK_OK(lease_write(&l, rows[i].action, &w, &a, &got, &err));
		CHECK_STR(got, rows[i].want);
	}
}

static unsigned n_changes;
static uint64_t lost_ms;

static void on_change(struct leader *l)
{
	n_changes++;
	if (!leader_is(l))
		lost_ms = loop_now_ms(l->api->loop);
}

/* The server accepts the connection and sends nothing, so the renewal hangs. */
TEST(the_end_of_a_lease_is_reported_while_a_request_hangs)
{
	static const struct leader_config config = {
		.namespace = "n", .name = "l", .identity = "me", .on_change = on_change
	};
	static const char lease[] = "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"}}";
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t n = sizeof(address);
	struct api_server server;
	struct leader l;
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(silent, (struct sockaddr *)&address, sizeof(address)) == 0);
	CHECK(listen(silent, 4) == 0 && getsockname(silent, (struct sockaddr *)&address, &n) == 0);
	api_server_init(&server);
	api_server_set(&server, &(struct api_server_rule){
					"POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases",
					"", 201, lease });
	leader_init(&l, &server.api, &config);
	leader_want(&l, true);
	API_SERVER_WAIT(&server, n_changes == 1);
	CHECK(leader_is(&l));
	http_client_drop(&server.api.http, "test");
	server.api.http.config.port = ntohs(address.sin_port);
	API_SERVER_WAIT(&server, n_changes == 2);
	CHECK(!leader_is(&l));
	/* Connecting alone may take 10 s, after a renewal that began when half of the time was
	 * over. */
	CHECK(lost_ms - l.renewed_ms < LEASE_HOLD_MS + LEASE_RENEW_MS / 2);
	leader_close(&l);
	api_server_done(&server);
	leader_done(&l);
	(void)close(silent);
}

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/n/leases"
#define LEASE(version, holder)                                                                     \
	"{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"spec\":{"        \
	"\"holderIdentity\":\"" holder "\",\"leaseDurationSeconds\":15,\"acquireTime\":\"then\","  \
	"\"leaseTransitions\":7}}"

struct election {
	struct api_server server;
	struct leader leader;
	enum leader_state states[8]; /* as reported */
	size_t n_states;
};

static void on_state(struct leader *l)
{
	struct election *e = container_of(l, struct election, leader);

	CHECK(e->n_states < ARRAY_LEN(e->states));
	e->states[e->n_states++] = leader_state(l);
}

static void respond(struct election *e, const char *method, const char *path, unsigned status,
		    const char *body)
{
	api_server_set(&e->server, &(struct api_server_rule){ method, path, "", status, body });
}

/* The Lease was created and is held. */
static void election_init(struct election *e)
{
	static const struct leader_config config = {
		.namespace = "n", .name = "l", .identity = "me", .on_change = on_state
	};

	*e = (struct election){ 0 };
	api_server_init(&e->server);
	respond(e, "POST", LEASES, 201, LEASE("1", "me"));
	respond(e, "PUT", LEASES "/l", 200, LEASE("2", "me"));
	leader_init(&e->leader, &e->server.api, &config);
	leader_want(&e->leader, true);
	API_SERVER_WAIT(&e->server, e->n_states == 1);
	CHECK_INT(e->states[0], LEADER_ACTS);
	CHECK_UINT(api_server_count(&e->server), 2); /* GET, 404, and POST */
}

static void election_done(struct election *e)
{
	leader_close(&e->leader);
	api_server_done(&e->server);
	leader_done(&e->leader);
}

/* As if all of the time had passed since the last renewal, in which the server gave no response. */
static void run_out(struct election *e)
{
	e->leader.renewed_ms -= LEASE_HOLD_MS;
	timer_start(&e->leader.timer, 0, 0);
}

TEST(the_holder_renews_without_reading_the_lease_first)
{
	CLEANUP(election_done) struct election e;
	struct api_server_request request;

	election_init(&e);
	timer_start(&e.leader.timer, 0, 0);
	API_SERVER_WAIT(&e.server, api_server_count(&e.server) == 3);
	request = api_server_get(&e.server, 2);
	CHECK_STR(str_from(request.method), "PUT");
	CHECK(strstr(request.body, "\"resourceVersion\":\"1\""));
	CHECK(strstr(request.body, "\"acquireTime\":\"then\"") &&
	      strstr(request.body, "\"leaseTransitions\":7"));
	API_SERVER_WAIT(&e.server, !e.leader.is_busy);
	/* The version of the response is that of the next write. */
	timer_start(&e.leader.timer, 0, 0);
	API_SERVER_WAIT(&e.server, api_server_count(&e.server) == 4);
	CHECK(strstr(api_server_get(&e.server, 3).body, "\"resourceVersion\":\"2\""));
	CHECK_UINT(e.n_states, 1);
}

TEST(a_late_leader_goes_on_when_no_other_replica_held_the_lease_in_between)
{
	static const struct {
		const char *what;
		unsigned put_status;
		const char *read; /* after a write that failed; NULL: the Lease was deleted */
		enum leader_state want[3];
		size_t n;
	} rows[] = {
		{ "renewed at once", 200, NULL, { LEADER_LATE, LEADER_ACTS }, 2 },
		{ "still its own", 409, LEASE("9", "me"), { LEADER_LATE, LEADER_ACTS }, 2 },
		{ "the server failed", 503, LEASE("9", "me"), { LEADER_LATE, LEADER_ACTS }, 2 },
		{ "another holds it", 409, LEASE("9", "you"), { LEADER_LATE, LEADER_NOT }, 2 },
		{ "another held and released it",
		  409,
		  LEASE("9", ""),
		  { LEADER_LATE, LEADER_NOT, LEADER_ACTS },
		  3 },
		{ "deleted", 404, NULL, { LEADER_LATE, LEADER_NOT, LEADER_ACTS }, 3 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(election_done) struct election e;

		TEST_ROW("%s", rows[i].what);
		election_init(&e);
		respond(&e, "PUT", LEASES "/l", rows[i].put_status, LEASE("2", "me"));
		if (rows[i].read)
			respond(&e, "GET", LEASES "/l", 200, rows[i].read);
		run_out(&e);
		API_SERVER_WAIT(&e.server, api_server_count(&e.server) >= 3);
		respond(&e, "PUT", LEASES "/l", 200, LEASE("10", "me"));
		API_SERVER_WAIT(&e.server, e.n_states == 1 + rows[i].n);
		for (size_t k = 0; k < rows[i].n; k++)
			CHECK_INT(e.states[1 + k], rows[i].want[k]);
	}
}

/* Someone annotated the Lease, for example. */
TEST(a_conflict_alone_is_no_loss)
{
	CLEANUP(election_done) struct election e;

	election_init(&e);
	respond(&e, "PUT", LEASES "/l", 409, "{}");
	respond(&e, "GET", LEASES "/l", 200, LEASE("5", "me"));
	timer_start(&e.leader.timer, 0, 0);
	API_SERVER_WAIT(&e.server, api_server_count(&e.server) >= 4); /* PUT, then GET */
	respond(&e, "PUT", LEASES "/l", 200, LEASE("6", "me"));
	API_SERVER_WAIT(&e.server, str_eq(e.leader.known.version, STR("6")));
	CHECK_UINT(e.n_states, 1);
	CHECK(leader_is(&e.leader));
}
