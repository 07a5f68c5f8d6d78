#include <stdlib.h>
#include <string.h>

#include "admission/admission_state.h"
#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology_read.h"
#include "dashboard/dashboard_private.h"
#include "dashboard/explanation.h"
#include "dashboard/page.h"
#include "dashboard/views.h"
#include "dashboard/what_if.h"
#include "net/http1.h"
#include "partition/machine_groups.h"
#include "test.h"

static yyjson_val *parse(struct str json, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(json, STR("json"), NULL, a, &doc, &err));
	return doc.root;
}

static yyjson_val *parse_text(const char *json, struct arena *a)
{
	return parse(str_dup(a, str_from(json)), a);
}

/* --- requests --- */

static unsigned refusal(const struct request_rules *rules, const char *path, const char *header)
{
	const struct small_request q = { .http = { .method = STR("GET"), .path = str_from(path) },
					 .head = str_from(header) };
	const char *why = NULL;
	unsigned status = request_refuse(rules, &q, &why);

	CHECK(!status == !why);
	return status;
}

TEST(attack_a_rebound_name_or_a_page_of_another_origin_reads_the_dashboard)
{
	static const struct {
		const char *path, *header;
		unsigned status;
	} rows[] = {
		{ "/", "Host: localhost:8088\r\n", 0 },
		{ "/", "host: LocalHost\r\n", 0 },
		{ "/api/cluster", "Host: 127.0.0.1:1\r\n", 0 },
		{ "/api/cluster", "Host: [::1]:8088\r\n", 0 },
		{ "/api/cluster", "Host: board.example:80\r\n", 0 },
		{ "/", "Host: evil.example\r\n", 421 },
		{ "/", "Host: 127.0.0.1.evil.example\r\n", 421 },
		{ "/", "Host: localhost.\r\n", 421 },
		{ "/", "Accept: */*\r\n", 421 },
		{ "/", "Host: [::1\r\n", 421 },
		{ "/", "Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 0 },
		{ "/", "Host: localhost:1\r\nOrigin: https://localhost:1\r\n", 0 },
		{ "/", "Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403 },
		{ "/", "Host: localhost:1\r\nOrigin: http://evil.example\r\n", 403 },
		{ "/", "Host: localhost:1\r\nOrigin: null\r\n", 403 },
		{ "/", "Host: localhost:1\r\nOrigin: ftp://localhost:1\r\n", 403 },
		{ "/", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 0 },
		{ "/api/node", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403 },
		{ "/api/node", "Host: localhost\r\nSec-Fetch-Site: same-site\r\n", 403 },
		{ "/api/node", "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n", 0 },
	};
	const struct request_rules rules = { .names = { "board.example" }, .n_names = 1 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].header);
		CHECK_UINT(refusal(&rules, rows[i].path, rows[i].header), rows[i].status);
	}
}

TEST(data_needs_the_token_and_the_page_does_not)
{
	const struct request_rules rules = { .token = STR("0123456789abcdef") };

	CHECK_INT(refusal(&rules, "/", "Host: localhost\r\n"), 0);
	CHECK_INT(refusal(&rules, "/api/cluster", "Host: localhost\r\n"), 401);
	CHECK_INT(refusal(&rules, "/api/cluster",
			  "Host: localhost\r\nAuthorization: Bearer 0123456789abcdeF\r\n"),
		  401);
	CHECK_INT(refusal(&rules, "/api/cluster",
			  "Host: localhost\r\nAuthorization: Bearer 0123456789abcdef\r\n"),
		  0);
}

static struct small_response answer(struct dashboard *d, const char *method, const char *path,
				    const char *header, struct str body, struct arena *a)
{
	struct small_request q = {
		.http = { .method = str_from(method), .body = body, .arena = a },
		.head = str_from(header),
	};
	struct small_response ret = { .http = { .status = 404 } };

	http_split_target(str_from(path), &q.http.path, &q.http.query);
	dashboard_handle(&q, &ret, d);
	return ret;
}

#define OWN "Host: localhost\r\n"

TEST(every_response_has_the_policy_and_no_route_writes)
{
	static const struct {
		const char *method, *path;
		unsigned status;
	} rows[] = {
		{ "GET", "/", 200 },
		{ "GET", "/app.js", 200 },
		{ "GET", "/style.css", 200 },
		{ "GET", "/nothing", 404 },
		{ "GET", "/../app.js", 404 },
		{ "POST", "/", 405 },
		{ "DELETE", "/api/cluster", 405 },
		{ "GET", "/api/cluster", 200 },
		{ "GET", "/api/events", 200 },
		{ "GET", "/api/node?name=no", 404 },
		{ "GET", "/api/pod?name=no", 404 },
		{ "GET", "/api/pods?text=%zz", 200 },
		{ "GET", "/api/history", 200 },
		{ "GET", "/api/profile", 404 },
		{ "GET", "/api/what-if", 405 },
		{ "POST", "/api/what-if", 415 },
		{ "PUT", "/api/what-if", 405 },
	};
	CLEANUP(arena_done) struct arena a;
	struct dashboard_config config = { 0 };
	struct dashboard d = { .config = &config };

	arena_init(&a, 0);
	shown_state_init(&d.state);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct small_response r =
			answer(&d, rows[i].method, rows[i].path, OWN, STR(""), &a);

		TEST_ROW("%s %s", rows[i].method, rows[i].path);
		CHECK_UINT(r.http.status, rows[i].status);
		CHECK(r.headers && strstr(r.headers, "script-src 'self'"));
		CHECK(!strstr(r.headers, "unsafe-inline"));
		CHECK(!strstr(r.headers, "Access-Control"));
		CHECK(!strstr(r.headers, "Set-Cookie"));
	}
	shown_state_done(&d.state);
}

TEST(the_page_has_no_inline_code_and_names_no_other_host)
{
	static const char *const paths[] = {
		"/",	    "/style.css", "/icon.svg",	 "/app.js",  "/data.js", "/dom.js",
		"/cpus.js", "/map.js",	  "/cluster.js", "/node.js", "/pod.js",	 "/whatif.js"
	};
	static const char *const banned[] = { "innerHTML",	"outerHTML", "insertAdjacent",
					      "document.write", "eval(",     "style=",
					      "onclick=",	"https://",  "//cdn" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const struct page_file *file = page_find(str_from(paths[i]));

		CHECK(file);
		for (size_t k = 0; k < ARRAY_LEN(banned); k++) {
			TEST_ROW("%s: %s", paths[i], banned[k]);
			CHECK(!strstr(file->text, banned[k]));
		}
	}
	CHECK(strstr(page_find(STR("/"))->text, "type=\"module\" src=\"app.js\""));
}

TEST(queries_are_decoded)
{
	CLEANUP(arena_done) struct arena a;
	const struct str query = STR("a=1&name=x%2Fy%20z+w&empty=&bad=%4");

	arena_init(&a, 0);
	CHECK_STR(http_query_get(query, STR("name"), &a), "x/y z w");
	CHECK_STR(http_query_get(query, STR("a"), &a), "1");
	CHECK_STR(http_query_get(query, STR("empty"), &a), "");
	CHECK_STR(http_query_get(query, STR("bad"), &a), "");
	CHECK_STR(http_query_get(query, STR("nam"), &a), "");
	CHECK_STR(http1_field(STR("GET / HTTP/1.1\r\nHost:  a \r\nHostile: b\r\n\r\n"), "host"),
		  "a");
	CHECK_STR(http1_field(STR("GET / HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1"), "");
}

/* --- the state --- */

#define CLUSTER_NODE                                                                               \
	"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"node-role.kubernetes.io/worker\":\"\"}},"    \
	"\"status\":{\"allocatable\":{\"management.workload.openshift.io/cores\":\"2k\"},"         \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastHeartbeatTime\":\"%s\"}]}}"

#define PARTITION(shared, guaranteed, rest)                                                        \
	"{\"apiVersion\":\"pinfold.io/v1alpha1\",\"kind\":\"NodePartition\",\"metadata\":{"        \
	"\"name\":\"n1\"},\"status\":{\"agentVersion\":\"0.2.0\",\"source\":\"Profile\","          \
	"\"profile\":{\"name\":\"ran\",\"generation\":1},\"cpus\":{\"management\":\"0-1\","        \
	"\"shared\":\"" shared "\",\"guaranteed\":\"" guaranteed "\",\"online\":\"0-7\"},"         \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"AsConfigured\","     \
	"\"message\":\"\",\"lastTransitionTime\":\"2025-11-17T00:00:00Z\"}]" rest "}}"

#define ASSIGNED(cpus)                                                                             \
	",\"assignments\":[{\"namespace\":\"ran\",\"pod\":\"vdu-0\",\"container\":\"l1\","         \
	"\"cpus\":\"" cpus "\"}]"

#define TOPOLOGY                                                                                   \
	",\"topology\":[{\"socket\":0,\"numaNode\":0,\"cache\":0,\"cores\":\"0-1 2-3\"},"          \
	"{\"socket\":0,\"numaNode\":0,\"cache\":1,\"cores\":\"4-5 6-7\"}]"

static void put_partition(struct shown_state *s, const char *json, struct arena *a)
{
	struct err err = { 0 };

	CHECK_OK(shown_state_put_partition(s, parse_text(json, a), &err));
}

static void put_pod(struct shown_state *s, const char *name, const char *node,
		    const struct shown_container *c)
{
	shown_state_put_pod(s, &(struct shown_pod){ .namespace = STR("ran"),
						    .name = str_from(name),
						    .node = str_from(node),
						    .state = STR("Running"),
						    .containers = c,
						    .n = 1 });
}

static const struct shown_container exclusive = { .name = STR_INIT("l1"),
						  .cpus = STR_INIT(""),
						  .pool = POOL_GUARANTEED,
						  .kind = CONTAINER_APP,
						  .is_exclusive = true,
						  .millicores = 2000,
						  .shares = 2048,
						  .period_us = 100000 };
static const struct shown_container shared = { .name = STR_INIT("web"),
					       .cpus = STR_INIT(""),
					       .pool = POOL_SHARED,
					       .kind = CONTAINER_APP,
					       .millicores = 500,
					       .shares = 512,
					       .quota_us = 50000,
					       .period_us = 100000 };

static void start(struct shown_state *s, struct arena *a)
{
	arena_init(a, 0);
	shown_state_init(s);
	s->is_cluster = true;
	s->is_partitioned = true;
	s->now_ms = INT64_C(1763352000000);
	shown_state_put_node(s, parse(str_printf(a, CLUSTER_NODE, "2025-11-17T04:00:00Z"), a));
	put_partition(s, PARTITION("2-3", "4-7", TOPOLOGY), a);
	put_pod(s, "vdu-0", "n1", &exclusive);
	put_pod(s, "web-0", "n1", &shared);
	s->is_complete = true;
}

TEST(a_change_is_reported_once_and_a_heartbeat_is_none)
{
	struct shown_state s;
	struct arena a;

	start(&s, &a);
	CHECK(str_has(view_changes(&s, &a), STR("\"name\":\"n1\"")));
	CHECK_STR(view_changes(&s, &a), "");
	shown_state_put_node(&s, parse(str_printf(&a, CLUSTER_NODE, "2025-11-17T04:05:00Z"), &a));
	put_partition(&s, PARTITION("2-3", "4-7", TOPOLOGY), &a);
	put_pod(&s, "web-0", "n1", &shared);
	CHECK_STR(view_changes(&s, &a), "");
	shown_state_remove_pod(&s, STR("ran"), STR("web-0"));
	CHECK(str_has(view_changes(&s, &a), STR("\"pods\":1")));
	shown_state_remove_pod(&s, STR("ran"), STR("vdu-0"));
	shown_state_remove_partition(&s, STR("n1"));
	shown_state_remove_node(&s, STR("n1"));
	CHECK(str_has(view_changes(&s, &a), STR("\"removed\":[\"n1\"]")));
	CHECK_UINT(s.n_nodes, 0);
	shown_state_done(&s);
	arena_done(&a);
}

TEST(a_list_removes_what_it_lacks)
{
	struct shown_state s;
	struct arena a;

	start(&s, &a);
	shown_state_begin_list(&s, SHOWN_PODS);
	shown_state_begin_list(&s, SHOWN_NODES); /* at the same time */
	put_pod(&s, "vdu-0", "n1", &exclusive);
	shown_state_end_list(&s, SHOWN_PODS);
	CHECK_UINT(s.n_pods, 1);
	shown_state_end_list(&s, SHOWN_NODES);
	CHECK(shown_state_find_node(&s, STR("n1"))); /* its partition is left */
	shown_state_begin_list(&s, SHOWN_PARTITIONS);
	shown_state_end_list(&s, SHOWN_PARTITIONS);
	CHECK(shown_state_find_node(&s, STR("n1"))); /* its pod is left */
	shown_state_begin_list(&s, SHOWN_PODS);
	shown_state_end_list(&s, SHOWN_PODS);
	CHECK(!shown_state_find_node(&s, STR("n1")));
	shown_state_done(&s);
	arena_done(&a);
}

static struct str whys(const struct shown_state *s, const char *pod, struct arena *a)
{
	const struct history_filter f = {
		.node = STR("n1"), .namespace = STR("ran"), .pod = str_from(pod), .max = 100
	};
	yyjson_val *root = parse(history_to_json(&s->history, &f, a), a), *v;
	struct strbuf b;

	strbuf_init(&b, a);
	DOC_EACH_ITEM (doc_get(root, STR("events")), v)
		strbuf_printf(&b, PRI_STR " " PRI_STR ">" PRI_STR "; ",
			      FMT_STR(doc_str(doc_get(v, STR("why")))),
			      FMT_STR(doc_str(doc_find(v, "/from/cpus"))),
			      FMT_STR(doc_str(doc_find(v, "/to/cpus"))));
	return strbuf_str(&b);
}

TEST(history_has_assignments_moves_and_pools)
{
	struct shown_state s;
	struct arena a;

	start(&s, &a);
	CHECK_STR(whys(&s, "vdu-0", &a), "");
	put_partition(&s, PARTITION("2-3", "4-7", TOPOLOGY ASSIGNED("4-5")), &a);
	CHECK_STR(whys(&s, "vdu-0", &a), "it was assigned other exclusive CPUs >4-5; ");
	/* The pod reports again, without CPUs: the NodePartition has them. */
	put_pod(&s, "vdu-0", "n1", &exclusive);
	put_partition(&s, PARTITION("2-5", "6-7", TOPOLOGY ASSIGNED("6-7")), &a);
	CHECK_STR(whys(&s, "vdu-0", &a), "it was assigned other exclusive CPUs >4-5; "
					 "it was assigned other exclusive CPUs 4-5>6-7; ");
	CHECK_STR(whys(&s, "", &a), "it was assigned other exclusive CPUs >4-5; "
				    "the profile gives the pool other CPUs 2-3>2-5; "
				    "the profile gives the pool other CPUs 4-7>6-7; "
				    "it was assigned other exclusive CPUs 4-5>6-7; ");
	put_pod(&s, "vdu-0", "n2", &exclusive);
	CHECK(str_has(whys(&s, "vdu-0", &a),
		      STR("removed, its exclusive CPUs are free again 6-7>; placed")));
	history_expire(&s.history, s.now_ms + HISTORY_MS + 1);
	CHECK_STR(whys(&s, "", &a), "");
	shown_state_done(&s);
	arena_done(&a);
}

TEST(history_is_bounded)
{
	struct history h;
	char name[1000];

	memset(name, 'x', sizeof(name));
	history_init(&h);
	for (int64_t i = 0; i < 50000; i++)
		history_add(&h, &(struct history_event){ .time_ms = i,
							 .node = { name, sizeof(name) },
							 .why = "test" });
	CHECK(h.bytes <= HISTORY_BYTES);
	CHECK(h.n > 10000);
	CHECK_INT(h.since_ms, 50000 - (int64_t)h.n - 1);
	history_done(&h);
}

TEST(a_node_is_shown_with_its_cores_and_containers)
{
	struct shown_state s;
	struct arena a;
	yyjson_val *v, *pod;

	start(&s, &a);
	put_partition(&s, PARTITION("2-3", "4-7", TOPOLOGY ASSIGNED("4-5")), &a);
	v = parse(view_node(&s, STR("n1"), &a), &a);
	CHECK(doc_bool(doc_get(v, STR("coresKnown")), false));
	CHECK_STR(doc_str(doc_find(v, "/groups/1/cores/1")), "6-7");
	CHECK_STR(doc_str(doc_get(v, STR("profile"))), "ran");
	CHECK_UINT(yyjson_arr_size(doc_get(v, STR("findings"))), 0);
	DOC_EACH_ITEM (doc_get(v, STR("podList")), pod)
		if (str_eq(doc_str(doc_get(pod, STR("name"))), STR("vdu-0")))
			CHECK_STR(doc_str(doc_find(pod, "/containers/0/cpus")), "4-5");
	CHECK_STR(view_node(&s, STR("n9"), &a), "");
	/* An agent that reports no topology: NUMA nodes only. */
	put_partition(&s,
		      PARTITION("2-3", "4-7",
				",\"numaNodes\":[{\"id\":0,\"cpus\":\"0-3\",\"freeCPUs\":0},"
				"{\"id\":1,\"cpus\":\"4-7\",\"freeCPUs\":4}]"),
		      &a);
	v = parse(view_node(&s, STR("n1"), &a), &a);
	CHECK(!doc_bool(doc_get(v, STR("coresKnown")), true));
	CHECK_STR(doc_str(doc_find(v, "/groups/1/cores/0")), "4");
	shown_state_done(&s);
	arena_done(&a);
}

TEST(findings_are_those_of_verify)
{
	struct shown_state s;
	struct arena a;

	start(&s, &a);
	put_partition(&s,
		      PARTITION("2-3", "4-7",
				",\"pending\":[{\"what\":\"Reboot\",\"reason\":\"FilesDiffer\","
				"\"message\":\"kernel arguments\",\"hash\":\"abc\"}]"),
		      &a);
	CHECK(str_has(view_cluster(&s, &a), STR("\"reason\":\"Pending\"")));
	CHECK(str_has(view_cluster(&s, &a), STR("\"what\":\"Reboot\"")));
	shown_state_remove_partition(&s, STR("n1"));
	CHECK(str_has(view_cluster(&s, &a), STR("\"reason\":\"NoPartition\"")));
	shown_state_done(&s);
	arena_done(&a);
}

TEST(pods_are_found_by_namespace_and_name)
{
	struct shown_state s;
	struct arena a;
	yyjson_val *v;

	start(&s, &a);
	for (int i = 0; i < 300; i++)
		put_pod(&s, str_printf(&a, "web-%d", i + 1).p, "n1", &shared);
	v = parse(view_pods(&s, STR("ran/vdu"), &a), &a);
	CHECK_UINT(yyjson_arr_size(doc_get(v, STR("pods"))), 1);
	v = parse(view_pods(&s, STR("web"), &a), &a);
	CHECK_UINT(yyjson_arr_size(doc_get(v, STR("pods"))), VIEW_PODS_MAX);
	CHECK_STR(doc_text(doc_get(v, STR("found"))), "301");
	shown_state_done(&s);
	arena_done(&a);
}

TEST(pods_of_the_api_server_are_read)
{
	static const char json[] =
		"{\"metadata\":{\"name\":\"<b>x</b>\","
		"\"namespace\":\"ran\",\"uid\":\"u\",\"creationTimestamp\":\"2025-11-17T00:00:"
		"00Z\","
		"\"deletionTimestamp\":\"2025-11-17T00:00:00Z\"},\"spec\":{\"nodeName\":\"n1\","
		"\"initContainers\":[{\"name\":\"i\"}],"
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"250m\"},"
		"\"limits\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}";
	CLEANUP(arena_done) struct arena a;
	struct shown_pod p;

	arena_init(&a, 0);
	CHECK(source_pod_of(parse_text(json, &a), &a, &p));
	CHECK_STR(p.name, "<b>x</b>");
	CHECK_STR(p.state, "Terminating");
	CHECK_UINT(p.n, 2);
	CHECK_INT(p.containers[0].kind, CONTAINER_INIT);
	CHECK_INT(p.containers[1].millicores, 250);
	CHECK_INT(p.containers[1].shares, 256);
	CHECK_INT(p.containers[1].quota_us, 100000);
	CHECK_INT(p.containers[1].pool, POOL_SHARED);
}

TEST(the_status_of_an_agent_becomes_a_node)
{
	static const char json[] =
		"{\"pools\":{\"management\":{\"cpus\":\"0-1\"},\"shared\":{\"cpus\":\"2-3\"},"
		"\"guaranteed\":{\"cpus\":\"4-7\"}},\"containers\":[{\"namespace\":\"ran\","
		"\"pod\":\"vdu-0\",\"container\":\"l1\",\"pool\":\"guaranteed\",\"exclusive\":true,"
		"\"cpus\":\"4-5\",\"shares\":2048,\"quotaUs\":-1},{\"namespace\":\"ran\","
		"\"pod\":\"vdu-0\",\"container\":\"log\",\"pool\":\"shared\",\"cpus\":\"2-3\"},"
		"{\"namespace\":\"x\",\"pod\":\"y\",\"container\":\"z\",\"pool\":\"later\"}]}";
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct topology t;
	struct shown_state s;
	const struct stored_pod *p;

	arena_init(&a, 0);
	shown_state_init(&s);
	CHECK_OK(topology_parse_synthetic(STR("core:4 pu:2"), &a, &t, &err));
	source_machine_put_status(&s, STR("m"), &t, parse_text(json, &a));
	CHECK_UINT(s.n_pods, 1);
	p = shown_state_find_pod(&s, STR("ran"), STR("vdu-0"));
	CHECK_UINT(p->pod.n, 2);
	CHECK_STR(p->pod.containers[0].cpus, "4-5");
	CHECK_INT(p->pod.containers[0].millicores, 2000);
	CHECK_INT(p->pod.containers[0].quota_us, 0);
	CHECK_STR(p->pod.containers[1].cpus, ""); /* follows its pool */
	CHECK(str_has(view_cluster(&s, &a), STR("\"exclusive\":\"4-5\",\"free\":2")));
	shown_state_done(&s);
}

/* --- what if --- */

#define PROFILE(reserved, shared, isolated)                                                        \
	"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata:\n  name: "   \
	"ran\nspec:\n  cpu:\n    reserved: \"" reserved "\"\n    shared: \"" shared                \
	"\"\n    isolated: \"" isolated                                                            \
	"\"\n  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n"

static yyjson_val *ask(const struct shown_state *s, const char *profile, struct arena *a)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(
		what_if(s, shown_state_find_node(s, STR("n1")), str_from(profile), a, &text, &err));
	return parse(text, a);
}

TEST(what_if_compares_pools_and_pods)
{
	struct shown_state s;
	struct arena a;
	yyjson_val *v;

	start(&s, &a);
	v = ask(&s, PROFILE("0-3", "4-5", "6-7"), &a);
	CHECK_STR(doc_str(doc_find(v, "/pools/management")), "0-3");
	CHECK_STR(doc_str(doc_find(v, "/pools/guaranteed")), "6-7");
	CHECK_STR(doc_str(doc_get(v, STR("effect"))), "reboot");
	CHECK_STR(doc_text(doc_get(v, STR("nodes"))), "1");
	CHECK_UINT(yyjson_arr_size(doc_get(v, STR("pods"))), 2);
	CHECK(yyjson_arr_size(doc_get(v, STR("files"))) > 0);
	/* Two CPUs are requested, and there is no other. */
	put_pod(&s, "vdu-1", "n1", &exclusive);
	v = ask(&s, PROFILE("0-3", "4-5", "6-7"), &a);
	CHECK(!doc_bool(doc_find(v, "/pods/2/fits"), true) ||
	      !doc_bool(doc_find(v, "/pods/1/fits"), true) ||
	      !doc_bool(doc_find(v, "/pods/0/fits"), true));
	v = ask(&s, PROFILE("0-1", "2-3", "4-7"), &a);
	CHECK_STR(doc_str(doc_get(v, STR("effect"))), "nothing");
	CHECK_UINT(yyjson_arr_size(doc_get(v, STR("files"))), 0);
	shown_state_done(&s);
	arena_done(&a);
}

TEST(what_if_names_the_fields_of_problems)
{
	static const struct {
		const char *profile, *field, *text;
	} rows[] = {
		{ PROFILE("0-1", "1-3", "4-7"), "spec.cpu", "overlap" },
		{ PROFILE("0-1", "2-3", "4-99"), "spec.cpu.isolated", "" },
		{ "kind: [", "", "" },
		{ "", "", "PerformanceProfile" },
		{ PROFILE("0-1", "2-3", "4-7") "---\n" PROFILE("0-1", "2-3", "4-7"), "", "2 Perf" },
	};
	struct shown_state s;
	struct arena a;

	start(&s, &a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		yyjson_val *v = ask(&s, rows[i].profile, &a), *p, *found = NULL;

		DOC_EACH_ITEM (doc_get(v, STR("problems")), p)
			if (str_eq(doc_str(doc_get(p, STR("level"))), STR("error")))
				found = p;
		TEST_ROW("row %zu", i);
		CHECK(found);
		CHECK(str_has(doc_str(doc_get(found, STR("field"))), str_from(rows[i].field)));
		CHECK(str_has(doc_str(doc_get(found, STR("text"))), str_from(rows[i].text)));
		CHECK(!doc_get(v, STR("pools")));
	}
	shown_state_done(&s);
	arena_done(&a);
}

TEST(the_present_profile_is_what_a_person_wrote)
{
	struct shown_state s;
	struct err err = { 0 };
	struct arena a;
	struct str text;

	start(&s, &a);
	CHECK_OK(what_if_present(&s, shown_state_find_node(&s, STR("n1")), &a, &text, &err));
	CHECK(str_has(text, STR("reserved: \"0-1\"")));
	shown_state_put_profile(
		&s,
		parse_text("{\"metadata\":{\"name\":\"ran\",\"managedFields\":[],\"uid\":\"u\"},"
			   "\"spec\":{\"cpu\":{\"reserved\":\"0-1\"}},\"status\":{}}",
			   &a));
	CHECK_OK(what_if_present(&s, shown_state_find_node(&s, STR("n1")), &a, &text, &err));
	CHECK(!str_has(text, STR("managedFields")));
	CHECK(!str_has(text, STR("status")));
	CHECK(str_has(text, STR("name: ran")));
	shown_state_done(&s);
	arena_done(&a);
}

TEST(what_if_refuses_large_and_foreign_bodies)
{
	CLEANUP(arena_done) struct arena a;
	struct dashboard_config config = { 0 };
	struct dashboard d = { .config = &config };
	char *large = malloc(WHAT_IF_MAX_BYTES + 100);
	struct arena other;
	struct strbuf b;

	arena_init(&a, 0);
	start(&d.state, &other);
	memset(large, 'a', WHAT_IF_MAX_BYTES + 100);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("{\"node\":\"n1\",\"profile\":\""));
	strbuf_add(&b, (struct str){ large, WHAT_IF_MAX_BYTES + 100 });
	strbuf_add(&b, STR("\"}"));
#define JSON OWN "Content-Type: application/json\r\n"
	CHECK_UINT(answer(&d, "POST", "/api/what-if", JSON, strbuf_str(&b), &a).http.status, 413);
	CHECK_UINT(answer(&d, "POST", "/api/what-if", JSON, STR("["), &a).http.status, 400);
	CHECK_UINT(answer(&d, "POST", "/api/what-if", JSON, STR("{}"), &a).http.status, 404);
	CHECK_UINT(answer(&d, "POST", "/api/what-if", OWN, STR("{}"), &a).http.status, 415);
	CHECK_UINT(answer(&d, "POST", "/api/what-if", JSON "Origin: http://evil.example\r\n",
			  STR("{}"), &a)
			   .http.status,
		   403);
	CHECK_UINT(answer(&d, "POST", "/api/what-if", JSON,
			  STR("{\"node\":\"n1\",\"profile\":\"x: 1\"}"), &a)
			   .http.status,
		   200);
	free(large);
	shown_state_done(&d.state);
	arena_done(&other);
}

/* --- small parts --- */

TEST(groups_of_cores_survive_both_ways)
{
	CLEANUP(arena_done) struct arena a;
	struct machine_group *groups;
	struct topology t, again;
	struct err err = { 0 };
	size_t n;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(STR("pack:2 numa:2 l3:2 core:2 pu:2"), &a, &t, &err));
	CHECK_OK(machine_groups_of(&t, &a, &groups, &n, &err));
	CHECK_UINT(n, 8);
	CHECK_STR(groups[0].cores, "0-1 2-3");
	CHECK_INT(groups[7].socket, 1);
	CHECK_OK(machine_groups_build(groups, n, &a, &again, &err));
	for (enum topology_level l = 0; l < TOPOLOGY__LEVELS; l++)
		if (l != TOPOLOGY_DIE)
			CHECK_INT(again.level[l].n, t.level[l].n);
	groups[0].cores = STR("0-1 1");
	CHECK(machine_groups_build(groups, n, &a, &again, &err) < 0);
	groups[0].cores = STR("x");
	CHECK(machine_groups_build(groups, n, &a, &again, &err) < 0);
}

TEST(a_pod_is_explained_with_the_state_of_the_cluster)
{
	static const char json[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
		"\"namespace\":\"ran\",\"uid\":\"u\",\"creationTimestamp\":\"2025-11-17T00:00:"
		"00Z\","
		"\"annotations\":{\"target.workload.openshift.io/management\":"
		"\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\"}},\"spec\":{\"containers\":"
		"[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}]}}";
	CLEANUP(arena_done) struct arena a;
	struct state_manifests cluster;
	struct err err = { 0 };
	yyjson_mut_doc *m;
	yyjson_mut_val *v;

	arena_init(&a, 0);
	m = doc_build(&a);
	state_manifests_init(&cluster, &a);
	state_manifests_seal(&cluster);
	CHECK_OK(explanation_of(&cluster.state, parse_text(json, &a), m, &a, &v, &err));
	CHECK_STR(doc_mut_str(yyjson_mut_obj_get(v, "outcome")), "missed");
	CHECK(yyjson_mut_arr_size(yyjson_mut_obj_get(v, "steps")) > 0);
	CHECK(yyjson_mut_obj_get(v, "result"));
	CHECK(yyjson_mut_obj_get(v, "patch"));
}
