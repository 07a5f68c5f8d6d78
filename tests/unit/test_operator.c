/* The decisions of the operator on snapshots that are written down as objects. */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "operator/reconcile.h"
#include "operator/writer.h"
#include "test.h"

struct fixture {
	struct arena a;
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct reconcile_memory memory;
	struct operator_snapshot snapshot;
	struct reconcile_result result;
	uint64_t now_ms;
	unsigned version;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ .now_ms = 1000000 };
	arena_init(&f->a, 0);
}

static void end(struct fixture *f)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&f->stores[i]);
	reconcile_memory_done(&f->memory);
	arena_done(&f->a);
}

/* Single quotes stand for double quotes. */
static void put(struct fixture *f, enum operator_kind kind, const char *key, const char *text)
{
	struct err err = { 0 };
	struct str kept, json = str_dup(&f->a, str_from(text));
	struct doc doc;

	for (size_t i = 0; i < json.n; i++)
		if (json.p[i] == '\'')
			((char *)json.p)[i] = '"';
	CHECK_OK(doc_parse(json, str_from(key), NULL, &f->a, &doc, &err));
	CHECK_OK(operator_object_trim(kind, doc.root, &f->a, &kept, &err));
	(void)object_store_put(&f->stores[kind], str_from(key),
			       str_printf(&f->a, "%u", ++f->version), kept);
}

static void put_profile(struct fixture *f, const char *annotations, const char *status)
{
	put(f, OPERATOR_PROFILES, "worker",
	    str_printf(&f->a,
		       "{'metadata':{'name':'worker','uid':'u1','generation':4,'annotations':{%s}},"
		       "'spec':{'nodeSelector':{'role':'worker'}},'status':{%s}}",
		       annotations, status)
		    .p);
}

static void put_node(struct fixture *f, const char *name, const char *annotations, const char *spec,
		     const char *ready)
{
	put(f, OPERATOR_NODES, name,
	    str_printf(&f->a,
		       "{'metadata':{'name':'%s','labels':{'role':'worker'},'annotations':{%s}},"
		       "'spec':{%s},'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
		       name, annotations, spec, ready)
		    .p);
}

static void put_partition(struct fixture *f, const char *name, const char *spec, int generation,
			  const char *ready, const char *pending)
{
	put(f, OPERATOR_PARTITIONS, name,
	    str_printf(&f->a,
		       "{'metadata':{'name':'%s'},'spec':{%s},'status':{'source':'Profile',"
		       "'profile':{'name':'worker','generation':%d},'pending':[%s],'conditions':["
		       "{'type':'Ready','status':'%s','reason':'Why','message':'because',"
		       "'lastTransitionTime':'2026-01-01T00:00:00Z'}]}}",
		       name, spec, generation, pending, ready)
		    .p);
}

#define RESTART "{'what':'KubeletRestart','reason':'Differs','message':'differs','hash':'aa'}"
#define RUNTIME "{'what':'RuntimeRestart','reason':'Differs','message':'differs','hash':'bb'}"
#define REBOOT "{'what':'Reboot','reason':'Differs','message':'kernel arguments','hash':'cc'}"

static void turn(struct fixture *f)
{
	operator_snapshot_build(f->stores, 1700000000, f->now_ms, &f->a, &f->snapshot);
	operator_reconcile(&f->snapshot, &f->memory, &f->result);
}

/* "" when there is no such write. */
static struct str body_of(const struct fixture *f, const char *key)
{
	for (size_t i = 0; i < f->result.writes.n; i++)
		if (str_eq(f->result.writes.items[i].key, str_from(key)))
			return f->result.writes.items[i].request.body;
	return STR("");
}

static bool writes(const struct fixture *f, const char *key)
{
	for (size_t i = 0; i < f->result.writes.n; i++)
		if (str_eq(f->result.writes.items[i].key, str_from(key)))
			return true;
	return false;
}

static struct condition condition_of(struct fixture *f, enum profile_condition c)
{
	struct profile_status status;
	struct rollout rollout;

	turn(f);
	rollout_plan(&f->snapshot, &f->a, &rollout);
	profile_status_compute(&f->snapshot, &rollout, &f->snapshot.profiles[0], &status);
	return status.conditions[c];
}

TEST(a_profile_without_nodes_is_not_available)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	CHECK_STR(condition_of(&f, PROFILE_AVAILABLE).reason, "NoNodesSelected");
	CHECK_INT(condition_of(&f, PROFILE_DEGRADED).status, CONDITION_FALSE);
	end(&f);
}

TEST(conditions_follow_what_the_agents_report)
{
	static const struct {
		int generation;
		const char *ready, *pending, *profile;
		const char *available, *progressing, *degraded, *upgradeable;
	} rows[] = {
		{ 4, "True", "", "", "AsExpected", "AsExpected", "AsExpected", "AsExpected" },
		{ 3, "True", "", "", "AsExpected", "NodesUpdating", "AsExpected", "AsExpected" },
		{ 4, "False", "", "", "NodesNotReady", "AsExpected", "NodesFailing", "Degraded" },
		{ 4, "True", RESTART, "", "AsExpected", "RolloutPending", "AsExpected",
		  "AsExpected" },
		{ 4, "True", RESTART, "'pinfold.io/paused':'true'", "AsExpected", "RolloutPaused",
		  "AsExpected", "AsExpected" },
		{ 4, "True", RESTART, "'pinfold.io/max-unavailable':'many'", "AsExpected",
		  "RolloutPaused", "InvalidAnnotation", "Degraded" },
		{ 4, "True", REBOOT, "", "AsExpected", "RebootRequired", "AsExpected",
		  "AsExpected" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		TEST_ROW("row %zu", i);
		begin(&f);
		put_profile(&f, rows[i].profile, "");
		put_node(&f, "a", "", "", "True");
		put_partition(&f, "a", "", rows[i].generation, rows[i].ready, rows[i].pending);
		CHECK_STR(condition_of(&f, PROFILE_AVAILABLE).reason, rows[i].available);
		CHECK_STR(condition_of(&f, PROFILE_PROGRESSING).reason, rows[i].progressing);
		CHECK_STR(condition_of(&f, PROFILE_DEGRADED).reason, rows[i].degraded);
		CHECK_STR(condition_of(&f, PROFILE_UPGRADEABLE).reason, rows[i].upgradeable);
		end(&f);
	}
}

TEST(a_node_of_two_profiles_is_a_conflict_of_both_and_is_not_changed)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put(&f, OPERATOR_PROFILES, "other",
	    "{'metadata':{'name':'other','generation':1},"
	    "'spec':{'nodeSelector':{'role':'worker'}}}");
	put_node(&f, "a", "", "", "True");
	put_partition(&f, "a", "", 4, "True", RUNTIME);
	CHECK_STR(condition_of(&f, PROFILE_DEGRADED).reason, "ProfilesConflict");
	CHECK(!writes(&f, "grant a"));
	CHECK(str_has(body_of(&f, "profile status other"), STR("\"conflicting\":1")));
	CHECK(str_has(body_of(&f, "profile status worker"), STR("\"conflicting\":1")));
	end(&f);
}

TEST(a_status_is_written_once_and_keeps_the_conditions_of_others)
{
	struct fixture f;
	struct str body;

	begin(&f);
	put_profile(&f, "", "'conditions':[{'type':'Foreign','status':'True'}]");
	put_node(&f, "a", "", "", "True");
	put_partition(&f, "a", "", 4, "True", "");
	turn(&f);
	body = body_of(&f, "profile status worker");
	CHECK(str_has(body, STR("\"nodes\":{\"selected\":1,\"ready\":1,\"pending\":0,"
				"\"conflicting\":0}")));
	CHECK(str_has(body, STR("\"Foreign\"")));
	CHECK(str_has(body, STR("\"resourceVersion\":\"1\"")));
	/* The server stores it; nothing is left to write. */
	(void)object_store_remove(&f.stores[OPERATOR_PROFILES], STR("worker"));
	put(&f, OPERATOR_PROFILES, "worker",
	    str_printf(&f.a,
		       "{'metadata':{'name':'worker','uid':'u1','generation':4},"
		       "'spec':{'nodeSelector':{'role':'worker'}},%.*s",
		       (int)(body.n - (size_t)(strstr(body.p, "\"status\"") - body.p)),
		       strstr(body.p, "\"status\""))
		    .p);
	turn(&f);
	CHECK(!writes(&f, "profile status worker"));
	end(&f);
}

#define GOOD                                                                                       \
	"'observedGeneration':4,'nodes':{'selected':1,'ready':1},'conditions':["                   \
	"{'type':'Available','status':'True','reason':'AsExpected','message':'x',"                 \
	"'lastTransitionTime':'2025-01-01T00:00:00Z'},"                                            \
	"{'type':'Degraded','status':'False','reason':'AsExpected','message':'x',"                 \
	"'lastTransitionTime':'2025-01-01T00:00:00Z'}]"

TEST(a_short_failure_of_a_node_is_not_reported)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", GOOD);
	put_node(&f, "a", "", "", "True");
	put_partition(&f, "a", "", 4, "False", "");
	turn(&f);
	CHECK(!str_has(body_of(&f, "profile status worker"), STR("NodesFailing")));
	f.now_ms += PROFILE_SETTLE_MS - 1;
	turn(&f);
	CHECK(!str_has(body_of(&f, "profile status worker"), STR("NodesFailing")));
	/* It ends, and begins again: the time starts over. */
	put_partition(&f, "a", "", 4, "True", "");
	turn(&f);
	put_partition(&f, "a", "", 4, "False", "");
	f.now_ms += 1000;
	turn(&f);
	CHECK(!str_has(body_of(&f, "profile status worker"), STR("NodesFailing")));
	f.now_ms += PROFILE_SETTLE_MS;
	turn(&f);
	CHECK(str_has(body_of(&f, "profile status worker"), STR("NodesFailing")));
	end(&f);
}

TEST(the_time_of_a_condition_changes_only_with_its_status)
{
	struct fixture f;
	struct str body;

	begin(&f);
	put_profile(&f, "", GOOD);
	put_node(&f, "a", "", "", "True");
	put_partition(&f, "a", "", 3, "True", "");
	turn(&f);
	body = body_of(&f, "profile status worker");
	CHECK(str_has(body, STR("\"type\":\"Available\",\"status\":\"True\"")));
	CHECK(str_has(body, STR("2025-01-01T00:00:00Z"))); /* Available and Degraded stay */
	CHECK(str_has(body, STR("2023-11-14T22:13:20Z"))); /* Progressing is new */
	end(&f);
}

TEST(a_restart_of_the_runtime_is_granted_without_a_drain)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True");
	put_node(&f, "b", "", "", "True");
	put_partition(&f, "a", "", 4, "True", RUNTIME);
	turn(&f);
	CHECK(str_has(body_of(&f, "grant a"), STR("\"granted\":\"bb\"")));
	end(&f);
}

TEST(a_node_is_cordoned_drained_and_granted_in_this_order)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True");
	put_node(&f, "b", "", "", "True");
	put_partition(&f, "a", "", 4, "True", RESTART);
	turn(&f);
	CHECK(str_has(body_of(&f, "cordon a"), STR("\"unschedulable\":true")));
	CHECK(!writes(&f, "pods of a"));
	put_node(&f, "a", "'pinfold.io/rollout':'cordoned'", "'unschedulable':true", "True");
	turn(&f);
	CHECK(writes(&f, "pods of a"));
	CHECK(!writes(&f, "grant a"));
	(void)object_store_put(&f.stores[OPERATOR_NODE_PODS], STR("a"), STR(""),
			       STR("{\"pods\":[{\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\","
				   "\"controller\":\"ReplicaSet\"}]}"));
	turn(&f);
	CHECK(str_has(body_of(&f, "eviction of n/p"), STR("\"preconditions\":{\"uid\":\"u\"}")));
	CHECK(!writes(&f, "grant a"));
	(void)object_store_put(&f.stores[OPERATOR_NODE_PODS], STR("a"), STR(""),
			       STR("{\"pods\":[]}"));
	turn(&f);
	CHECK(str_has(body_of(&f, "grant a"), STR("\"granted\":\"aa\"")));
	CHECK(f.result.n_drained == 1);
	put_partition(&f, "a", "'granted':'aa'", 4, "True", RESTART);
	turn(&f);
	CHECK(f.result.n_drained == 0); /* the pods are read again for a later change */
	CHECK(!writes(&f, "grant withdrawal a"));
	put_partition(&f, "a", "'granted':'aa'", 4, "True", "");
	turn(&f);
	CHECK(str_has(body_of(&f, "grant withdrawal a"), STR("\"granted\":null")));
	CHECK(!writes(&f, "uncordon a"));
	put_partition(&f, "a", "", 4, "True", "");
	turn(&f);
	CHECK(str_has(body_of(&f, "uncordon a"), STR("\"unschedulable\":null")));
	end(&f);
}

TEST(a_node_whose_agent_is_silent_is_not_drained)
{
	const int64_t dead_s = 1700000000 - 3600;
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True");
	put_node(&f, "b", "", "", "True");
	put_partition(&f, "a", "", 4, "True", RESTART);
	put_partition(&f, "b", "", 4, "True", RESTART);
	object_store_see(&f.stores[OPERATOR_NODES], STR("a"), dead_s);
	object_store_see(&f.stores[OPERATOR_NODES], STR("b"), 1700000000 - 300);
	turn(&f);
	CHECK(!writes(&f, "cordon a"));
	CHECK(writes(&f, "cordon b")); /* it is no reason for others to wait */
	CHECK_STR(condition_of(&f, PROFILE_DEGRADED).reason, "AgentsSilent");
	CHECK(str_ends(condition_of(&f, PROFILE_DEGRADED).message, STR(": a")));
	/* It died while the node was being drained: pods may return. */
	put_node(&f, "b", "", "", "False");
	put_node(&f, "a", "'pinfold.io/rollout':'cordoned'", "'unschedulable':true", "True");
	turn(&f);
	CHECK(writes(&f, "uncordon a") && !writes(&f, "pods of a"));
	/* What was granted may still be applied. */
	put_partition(&f, "a", "'granted':'aa'", 4, "True", RESTART);
	turn(&f);
	CHECK(!writes(&f, "uncordon a") && !writes(&f, "grant withdrawal a"));
	/* An older heartbeat does not count, a newer one does. */
	object_store_see(&f.stores[OPERATOR_NODES], STR("a"), dead_s - 10);
	put_partition(&f, "a", "", 4, "True", RESTART);
	turn(&f);
	CHECK(writes(&f, "uncordon a"));
	object_store_see(&f.stores[OPERATOR_NODES], STR("a"), 1700000000);
	turn(&f);
	CHECK(!writes(&f, "uncordon a") && writes(&f, "pods of a"));
	end(&f);
}

static void put_host(struct fixture *f, const char *status, const char *reason)
{
	put(f, OPERATOR_PARTITIONS, "a",
	    str_printf(&f->a,
		       "{'metadata':{'name':'a'},'spec':{'granted':'aa'},'status':{"
		       "'source':'Profile','profile':{'name':'worker','generation':4},"
		       "'conditions':[{'type':'Ready','status':'True'},"
		       "{'type':'HostConfigured','status':'%s','reason':'%s','message':'m'}]}}",
		       status, reason)
		    .p);
}

/* Nothing waits in the status of an agent that has just started, or cannot read its record. */
TEST(a_grant_is_withdrawn_only_when_the_host_was_looked_at)
{
	static const struct {
		const char *status, *reason, *degraded;
		bool is_withdrawn;
	} rows[] = {
		{ "True", "HostConfigured", "AsExpected", true },
		{ "False", "HostFilesNotManaged", "AsExpected", true },
		{ "Unknown", "HostNotChecked", "AsExpected", false },
		{ "False", "HostFilesFail", "NodesFailing", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		TEST_ROW("%s", rows[i].reason);
		begin(&f);
		put_profile(&f, "", "");
		put_node(&f, "a", "'pinfold.io/rollout':'cordoned'", "'unschedulable':true",
			 "True");
		put_node(&f, "b", "", "", "True");
		put_host(&f, rows[i].status, rows[i].reason);
		turn(&f);
		CHECK_INT(writes(&f, "grant withdrawal a"), rows[i].is_withdrawn);
		CHECK(!writes(&f, "uncordon a"));
		CHECK_STR(condition_of(&f, PROFILE_DEGRADED).reason, rows[i].degraded);
		end(&f);
	}
}

TEST(a_change_of_an_unknown_kind_is_not_granted)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True");
	put_node(&f, "b", "", "", "True");
	put_partition(&f, "a", "", 4, "True", "{'what':'FirmwareUpdate','hash':'dd'}");
	turn(&f);
	CHECK(!writes(&f, "cordon a") && !writes(&f, "grant a"));
	end(&f);
}

TEST(a_node_that_was_cordoned_before_stays_so)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "'unschedulable':true", "True");
	put_node(&f, "b", "", "", "True");
	put_partition(&f, "a", "", 4, "True", RESTART);
	turn(&f);
	CHECK(str_has(body_of(&f, "cordon a"), STR("\"pinfold.io/rollout\":\"kept\"")));
	put_node(&f, "a", "'pinfold.io/rollout':'kept'", "'unschedulable':true", "True");
	put_partition(&f, "a", "", 4, "True", "");
	turn(&f);
	CHECK(writes(&f, "uncordon a"));
	CHECK(!str_has(body_of(&f, "uncordon a"), STR("unschedulable")));
	end(&f);
}

TEST(a_reboot_is_granted_only_when_the_operator_is_to_reboot)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True"); /* the only node: there is nowhere to drain to */
	put_partition(&f, "a", "", 4, "True", REBOOT);
	turn(&f);
	CHECK(!writes(&f, "grant a"));
	CHECK(str_has(body_of(&f, "reboot sentinel a"),
		      STR("\"pinfold.io/reboot-required\":\"cc\"")));
	put_profile(&f, "'pinfold.io/reboot':'operator'", "");
	put_partition(&f, "a", "", 4, "True",
		      "{'what':'Reboot','reason':'KernelArgumentsDiffer','message':'missing'}");
	turn(&f);
	CHECK(!writes(&f, "grant a")); /* the boot loader is not configured: it would not help */
	CHECK(!writes(&f, "reboot sentinel a"));
	put_partition(&f, "a", "", 4, "True",
		      "{'what':'Reboot','reason':'BootParameterDiffers','message':'isolcpus'}");
	turn(&f);
	CHECK(!writes(&f, "grant a")); /* the agent has nothing to apply itself */
	CHECK(str_has(body_of(&f, "reboot sentinel a"),
		      STR("\"pinfold.io/reboot-required\":\"true\"")));
	put_partition(&f, "a", "", 4, "True", REBOOT);
	turn(&f);
	CHECK(str_has(body_of(&f, "grant a"), STR("\"granted\":\"cc\"")));
	CHECK(!writes(&f, "reboot sentinel a"));
	end(&f);
}

TEST(places_are_a_number_or_a_share_of_the_nodes)
{
	static const struct {
		const char *value;
		size_t nodes, want;
		bool is_paused;
	} rows[] = {
		{ "", 10, 1, false },	{ "3", 10, 3, false },	   { "25%", 10, 2, false },
		{ "1%", 10, 1, false }, { "100%", 10, 10, false }, { "0", 10, 0, false },
		{ "0%", 10, 0, false }, { "101%", 10, 1, true },   { "-1", 10, 1, true },
		{ "two", 10, 1, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rollout_settings s;
		struct fixture f;

		TEST_ROW("%s", rows[i].value);
		begin(&f);
		put_profile(&f,
			    str_printf(&f.a, "'pinfold.io/max-unavailable':'%s'", rows[i].value).p,
			    "");
		turn(&f);
		s = rollout_settings_of(&f.snapshot.profiles[0], rows[i].nodes);
		CHECK_UINT(s.max_unavailable, rows[i].want);
		CHECK(s.is_paused == rows[i].is_paused);
		end(&f);
	}
}

TEST(no_place_is_given_while_another_node_is_unavailable)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put_node(&f, "a", "", "", "True");
	put_node(&f, "b", "", "", "False");
	put_partition(&f, "a", "", 4, "True", RUNTIME);
	put_partition(&f, "b", "", 4, "True", "");
	turn(&f);
	CHECK(!writes(&f, "grant a"));
	put_partition(&f, "b", "", 4, "True", RUNTIME);
	turn(&f);
	CHECK(!writes(&f, "grant a"));
	CHECK(writes(&f, "grant b")); /* it is unavailable anyway */
	end(&f);
}

TEST(pools_of_nodes_follow_one_another)
{
	struct fixture f;

	begin(&f);
	put_profile(&f, "", "");
	put(&f, OPERATOR_PROFILES, "edge",
	    "{'metadata':{'name':'edge','generation':1},"
	    "'spec':{'nodeSelector':{'role':'edge'}}}");
	put_node(&f, "a", "", "", "True");
	put(&f, OPERATOR_NODES, "z",
	    "{'metadata':{'name':'z','labels':{'role':'edge'}},"
	    "'status':{'conditions':[{'type':'Ready','status':'True'}]}}");
	put_partition(&f, "a", "", 4, "True", RUNTIME);
	put_partition(&f, "z", "", 4, "True", RUNTIME);
	turn(&f);
	CHECK(writes(&f, "grant z")); /* profile edge is before worker */
	CHECK(!writes(&f, "grant a"));
	put_partition(&f, "z", "'granted':'bb'", 4, "True", RUNTIME);
	turn(&f);
	CHECK(!writes(&f, "grant a"));
	put_partition(&f, "z", "", 4, "True", "");
	turn(&f);
	CHECK(writes(&f, "grant a"));
	end(&f);
}

TEST(a_drain_spares_what_kubectl_drain_spares)
{
	static const char pods[] =
		"{\"items\":["
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"daemon\",\"ownerReferences\":"
		"[{\"controller\":true,\"kind\":\"DaemonSet\"}]}},"
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"static\",\"annotations\":"
		"{\"kubernetes.io/config.mirror\":\"x\"}}},"
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"done\"},\"status\":"
		"{\"phase\":\"Succeeded\"}},"
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"bare\"},\"status\":"
		"{\"phase\":\"Running\"}},"
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"going\",\"deletionTimestamp\":"
		"\"2026-01-01T00:00:00Z\"}},"
		"{\"metadata\":{\"namespace\":\"n\",\"name\":\"web\",\"uid\":\"u\","
		"\"ownerReferences\":[{\"controller\":true,\"kind\":\"ReplicaSet\"}]}}]}";
	struct err err = { 0 };
	struct drain_plan plan;
	struct str text;
	struct doc doc;
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(str_from(pods), STR("pods"), NULL, &a, &doc, &err));
	CHECK_OK(drain_pods_trim(doc.root, &a, &text, &err));
	CHECK_OK(doc_parse(text, STR("kept"), NULL, &a, &doc, &err));
	drain_plan(doc.root, &a, &plan);
	CHECK_UINT(plan.n_evict, 1);
	CHECK_STR(plan.evict[0].name, "web");
	CHECK_UINT(plan.n_leaving, 1);
	CHECK_STR(drain_describe(&plan, &a),
		  "2 pods have to leave, 1 pod has no controller and must be deleted by hand: "
		  "n/bare");
	drain_plan(NULL, &a, &plan);
	CHECK(!drain_is_complete(&plan));
	arena_done(&a);
}

TEST(an_older_version_of_an_object_is_ignored)
{
	struct object_store s = { 0 };

	CHECK(object_store_put(&s, STR("a"), STR("9"), STR("nine")));
	CHECK(object_store_update(&s, STR("a"), STR("10"), STR("ten")));
	CHECK(!object_store_put(&s, STR("a"), STR("9"), STR("nine")));
	CHECK_STR(object_store_find(&s, STR("a"))->text, "ten");
	CHECK(!object_store_update(&s, STR("b"), STR("1"), STR("one"))); /* it was deleted */
	object_store_begin_list(&s);
	CHECK(object_store_put(&s, STR("c"), STR("11"), STR("eleven")));
	CHECK(object_store_end_list(&s));
	CHECK(!object_store_find(&s, STR("a")));
	object_store_done(&s);
}

TEST(a_write_that_is_refused_is_retried_rarely)
{
	struct write_pace p = { 0 };
	uint64_t last = 0;

	for (int i = 0; i < 20; i++)
		last = operator_write_delay_ms(WRITE_REFUSED, &p, 0);
	CHECK_UINT(last, BACKOFF_FORBIDDEN_MS);
	CHECK_UINT(operator_write_delay_ms(WRITE_BUSY, &p, 0), 2 * (uintmax_t)WRITER_BUSY_MS);
}

TEST(a_server_that_refuses_after_an_outage_is_asked_again_soon)
{
	static const enum write_result before[] = { WRITE_FAILED, WRITE_CONFLICT, WRITE_OK };

	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		struct write_pace p = { 0 };

		TEST_ROW("%s", write_result_name(before[i]));
		for (int n = 0; n < 20; n++)
			(void)operator_write_delay_ms(before[i], &p, 0);
		for (int n = 0; n < BACKOFF_SURE_FAILURES; n++)
			CHECK_UINT(operator_write_delay_ms(WRITE_REFUSED, &p, 0), BACKOFF_MAX_MS);
		CHECK_UINT(operator_write_delay_ms(WRITE_REFUSED, &p, 0), BACKOFF_FORBIDDEN_MS);
		CHECK_UINT(operator_write_delay_ms(before[i], &p, 0), BACKOFF_MAX_MS);
	}
}
