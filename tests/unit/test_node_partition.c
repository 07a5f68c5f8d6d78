/* NodePartition objects: what is written is read back, wrong objects are refused with the member,
 * and a difference in figures is told from others. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "partition/node_partition.h"
#include "test.h"

static const struct pool_use two_pools[] = {
	{ STR_INIT("management"), 7, 900, STR_INIT(""), -1 },
	{ STR_INIT("guaranteed"), 1, -1, STR_INIT("4-5"), 2 },
};
static const struct numa_use one_numa_node[] = { { 0, STR_INIT("0-7"), STR_INIT("4-5"), 2 } };
static const struct pending_change one_change[] = {
	{ .need = NEED_KUBELET_RESTART,
	  .reason = STR_INIT("KubeletConfigDiffers"),
	  .message = STR_INIT("reservedSystemCPUs"),
	  .hash = STR_INIT("ab12") },
};

static struct node_partition_status example(void)
{
	return (struct node_partition_status){
		.agent_version = STR("0.2.0"),
		.observed_generation = 3,
		.origin = POOLS_FROM_PROFILE,
		.profile = STR("worker"),
		.profile_generation = 4,
		.management = STR("0-1"),
		.shared = STR("2-3"),
		.guaranteed = STR("4-7"),
		.online = STR("0-7"),
		.pools = two_pools,
		.n_pools = ARRAY_LEN(two_pools),
		.numa = one_numa_node,
		.n_numa = 1,
		.pending = one_change,
		.n_pending = 1,
		.drift_corrected = 1,
		.drift_failed = 2,
		.refused = 3,
		.conditions = { [PARTITION_READY] = { CONDITION_TRUE, STR("Partitioned"), STR("m"),
						      STR("2026-11-16T01:34:14Z") } },
	};
}

static struct node_partition decode(const char *text, struct arena *a)
{
	struct node_partition p;
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(text), STR("object"), NULL, a, &doc, &err));
	CHECK_OK(node_partition_decode(doc.root, a, &p, &err));
	return p;
}

TEST(a_status_is_written_as_the_crd_has_it)
{
	const struct node_partition_status s = example();
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(node_partition_status_encode(&s, &a, &text, &err));
	CHECK_STR(text,
		  "{\"agentVersion\":\"0.2.0\",\"observedGeneration\":3,\"source\":\"Profile\","
		  "\"profile\":{\"name\":\"worker\",\"generation\":4},"
		  "\"cpus\":{\"management\":\"0-1\",\"shared\":\"2-3\","
		  "\"guaranteed\":\"4-7\",\"online\":\"0-7\"},"
		  "\"counters\":{\"driftCorrected\":1,\"driftFailed\":2,\"refused\":3},"
		  "\"pools\":[{\"name\":\"management\",\"containers\":7,"
		  "\"requestedMillicores\":900},{\"name\":\"guaranteed\",\"containers\":1,"
		  "\"exclusiveCPUs\":\"4-5\",\"freeCPUs\":2}],"
		  "\"numaNodes\":[{\"id\":0,\"cpus\":\"0-7\",\"exclusiveCPUs\":\"4-5\","
		  "\"freeCPUs\":2}],"
		  "\"pending\":[{\"what\":\"KubeletRestart\",\"reason\":"
		  "\"KubeletConfigDiffers\",\"message\":\"reservedSystemCPUs\","
		  "\"hash\":\"ab12\"}],"
		  "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
		  "\"Partitioned\",\"message\":\"m\",\"lastTransitionTime\":"
		  "\"2026-11-16T01:34:14Z\"}]}");
}

TEST(a_status_that_was_written_is_read_back)
{
	const struct node_partition_status s = example();
	CLEANUP(arena_done) struct arena a;
	struct node_partition p;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(node_partition_status_encode(&s, &a, &text, &err));
	p = decode(str_printf(&a, "{\"status\":" PRI_STR "}", FMT_STR(text)).p, &a);
	CHECK(p.has_status);
	CHECK_INT(node_partition_compare(&s, &p.status), STATUS_EQUAL);
	CHECK_STR(p.status.conditions[PARTITION_READY].since, "2026-11-16T01:34:14Z");
	CHECK_INT(p.status.conditions[PARTITION_CONFLICT].status, CONDITION_ABSENT);
	CHECK_INT(p.status.pools[0].free_cpus, -1);
	CHECK_INT(p.status.pending[0].need, NEED_KUBELET_RESTART);
}

TEST(a_new_object_belongs_to_its_node)
{
	CLEANUP(arena_done) struct arena a;
	struct node_partition p;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(node_partition_create(STR("worker-0"), STR("uid-1"), &a, &text, &err));
	CHECK_STR(text, "{\"apiVersion\":\"pinfold.io/v1alpha1\",\"kind\":\"NodePartition\","
			"\"metadata\":{\"name\":\"worker-0\",\"ownerReferences\":[{\"apiVersion\":"
			"\"v1\",\"kind\":\"Node\",\"name\":\"worker-0\",\"uid\":\"uid-1\"}]}}");
	p = decode(text.p, &a);
	CHECK_STR(p.name, "worker-0");
	CHECK_STR(p.owner_uid, "uid-1");
	CHECK(!p.has_status);
	CHECK_STR(p.granted, "");
}

TEST(an_object_with_wrong_types_is_refused)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"metadata\":1}", "metadata: not an object" },
		{ "{\"spec\":{\"granted\":1}}", "spec: granted: not a string" },
		{ "{\"status\":[]}", "status: not an object" },
		{ "{\"status\":{\"source\":\"Guess\"}}",
		  "status: source: unknown value \"Guess\"" },
		{ "{\"status\":{\"source\":1}}", "status: source: unknown value \"\"" },
		{ "{\"status\":{\"cpus\":{\"shared\":3}}}", "status: cpus: shared: not a string" },
		{ "{\"status\":{\"pools\":{}}}", "status: pools: not an array" },
		{ "{\"status\":{\"pools\":[{\"name\":\"x\",\"containers\":-1}]}}",
		  "status: pools[0]: containers: not a whole number from 0 on" },
		{ "{\"status\":{\"numaNodes\":[{\"id\":0},{\"id\":\"1\"}]}}",
		  "status: numaNodes[1]: id: not a whole number from 0 on" },
		{ "{\"status\":{\"pending\":[{\"reason\":\"Differs\"}]}}",
		  "status: pending[0]: what: required" },
		{ "{\"status\":{\"pending\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}",
		  "status: pending: more than 16 items" },
		{ "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Yes\"}]}}",
		  "status: conditions: Ready: unknown status \"Yes\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		struct node_partition p;
		struct err err = { 0 };
		struct doc doc;

		arena_init(&a, 0);
		TEST_ROW("%s", cases[i].text);
		CHECK_OK(doc_parse(str_from(cases[i].text), STR(""), NULL, &a, &doc, &err));
		CHECK_ERR(node_partition_decode(doc.root, &a, &p, &err), EINVAL, cases[i].message);
	}
}

TEST(a_change_that_only_a_newer_agent_knows_is_kept)
{
	CLEANUP(arena_done) struct arena a;
	struct node_partition p;
	struct err err = { 0 };
	struct doc doc;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(STR("{\"status\":{\"pending\":[{\"what\":\"FirmwareUpdate\","
			       "\"hash\":\"ab\"}]}}"),
			   STR(""), NULL, &a, &doc, &err));
	CHECK_OK(node_partition_decode(doc.root, &a, &p, &err));
	CHECK_INT(p.status.pending[0].need, NEED_OTHER);
	CHECK_STR(pending_change_what(&p.status.pending[0]), "FirmwareUpdate");
	CHECK_OK(node_partition_status_encode(&p.status, &a, &text, &err));
	CHECK(str_has(text, STR("{\"what\":\"FirmwareUpdate\",\"hash\":\"ab\"}")));
}

TEST(figures_are_told_from_other_differences)
{
	const struct pool_use busier[] = { { STR("management"), 8, 900, STR(""), -1 },
					   two_pools[1] };
	const struct node_partition_status s = example();
	struct node_partition_status other = s;

	CHECK_INT(node_partition_compare(&s, &other), STATUS_EQUAL);
	other.conditions[PARTITION_READY].since = STR("2026-11-17T00:00:00Z");
	CHECK_INT(node_partition_compare(&s, &other), STATUS_EQUAL);
	other.refused++;
	CHECK_INT(node_partition_compare(&s, &other), STATUS_FIGURES_DIFFER);
	other = s;
	other.pools = busier;
	CHECK_INT(node_partition_compare(&s, &other), STATUS_FIGURES_DIFFER);
	other.shared = STR("3");
	CHECK_INT(node_partition_compare(&s, &other), STATUS_DIFFERS);
	other = s;
	other.conditions[PARTITION_READY].reason = STR("Other");
	CHECK_INT(node_partition_compare(&s, &other), STATUS_DIFFERS);
	other = s;
	other.n_pending = 0;
	CHECK_INT(node_partition_compare(&s, &other), STATUS_DIFFERS);
}

TEST(a_condition_keeps_its_time_while_its_status_stays)
{
	const struct node_partition_status old = example();
	struct node_partition_status s = old;

	s.conditions[PARTITION_READY].since = STR("");
	s.conditions[PARTITION_READY].reason = STR("Other");
	s.conditions[PARTITION_CONFLICT].status = CONDITION_FALSE;
	node_partition_set_times(&s, &old, STR("now"));
	CHECK_STR(s.conditions[PARTITION_READY].since, "2026-11-16T01:34:14Z");
	CHECK_STR(s.conditions[PARTITION_CONFLICT].since, "now");
	s.conditions[PARTITION_READY].status = CONDITION_FALSE;
	node_partition_set_times(&s, &old, STR("now"));
	CHECK_STR(s.conditions[PARTITION_READY].since, "now");
	node_partition_set_times(&s, NULL, STR("later"));
	CHECK_STR(s.conditions[PARTITION_READY].since, "later");
}

TEST(topology_and_assignments_are_read_back_and_make_a_difference)
{
	static const struct machine_group groups[] = { { 0, 0, 0, STR_INIT("0,4 1,5") },
						       { 1, 1, 1, STR_INIT("2,6 3,7") } };
	static const struct assigned_cpus assigned[] = {
		{ STR_INIT("ran"), STR_INIT("vdu-0"), STR_INIT("l1"), STR_INIT("2,6") },
	};
	struct node_partition_status s = example(), plain = example();
	CLEANUP(arena_done) struct arena a;
	struct node_partition p;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	s.topology = groups;
	s.n_topology = ARRAY_LEN(groups);
	s.assignments = assigned;
	s.n_assignments = 1;
	CHECK_OK(node_partition_status_encode(&s, &a, &text, &err));
	p = decode(str_printf(&a, "{\"metadata\":{\"name\":\"n\"},\"status\":" PRI_STR "}",
			      FMT_STR(text))
			   .p,
		   &a);
	CHECK_UINT(p.status.n_topology, 2);
	CHECK_STR(p.status.topology[1].cores, "2,6 3,7");
	CHECK_INT(p.status.topology[1].socket, 1);
	CHECK_UINT(p.status.n_assignments, 1);
	CHECK_STR(p.status.assignments[0].pod, "vdu-0");
	CHECK_STR(p.status.assignments[0].cpus, "2,6");
	CHECK_INT(node_partition_compare(&s, &p.status), STATUS_EQUAL);
	/* A container with exclusive CPUs is worth a write at once. */
	CHECK_INT(node_partition_compare(&s, &plain), STATUS_DIFFERS);
}
