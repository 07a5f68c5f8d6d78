#include "base/arena.h"
#include "base/macro.h"
#include "partition/cluster_nodes.h"
#include "test.h"

#define NOW INT64_C(1763352000) /* 2025-11-17T04:00:00Z */

static yyjson_val *parse(const char *json, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(json), STR("object"), NULL, a, &doc, &err));
	return doc.root;
}

/* A Node with this agent's condition, or none. */
static void add_node(struct cluster_nodes *c, const char *name, const char *condition)
{
	cluster_nodes_add_node(
		c, parse(str_printf(c->a,
				    "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{"
				    "\"management.workload.openshift.io/cores\":\"8k\"},"
				    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}%s]}}",
				    name, condition)
				 .p,
			 c->a));
}

static void add_partition(struct cluster_nodes *c, const char *name, const char *status)
{
	cluster_nodes_add_partition(
		c,
		parse(str_printf(
			      c->a,
			      "{\"apiVersion\":\"pinfold.io/v1alpha1\",\"kind\":\"NodePartition\","
			      "\"metadata\":{\"name\":\"%s\"}%s%s}",
			      name, *status ? ",\"status\":" : "", status)
			      .p,
		      c->a));
}

#define CONDITION(type, status, reason, message)                                                   \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason                    \
	"\",\"message\":\"" message "\",\"lastTransitionTime\":\"2025-11-17T00:00:00Z\"}"
#define READY CONDITION("Ready", "True", "AsConfigured", "")
#define STATUS(version, rest, conditions)                                                          \
	"{\"agentVersion\":\"" version "\",\"source\":\"Profile\"" rest                            \
	",\"conditions\":[" conditions "]}"
#define AGENT(status, time)                                                                        \
	",{\"type\":\"PartitioningReady\",\"status\":\"" status                                    \
	"\",\"reason\":\"RuntimeLost\",\"message\":\"no "                                          \
	"connection\",\"lastHeartbeatTime\":\"" time "\"}"

static struct str checked_text(struct cluster_nodes *c, bool is_strict)
{
	struct node_findings f;
	struct strbuf b;

	cluster_nodes_sort(c);
	cluster_nodes_check(c, NOW, is_strict, &f);
	strbuf_init(&b, c->a);
	for (size_t i = 0; i < f.n; i++)
		strbuf_printf(&b, PRI_STR " %s%s: " PRI_STR "\n", FMT_STR(f.items[i].node->name),
			      f.items[i].is_note ? "note " : "", node_fault_name(f.items[i].fault),
			      FMT_STR(f.items[i].text));
	return strbuf_str(&b);
}

static struct str findings_text(struct cluster_nodes *c)
{
	return checked_text(c, false);
}

TEST(a_node_that_is_partitioned_as_configured_has_no_finding)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_nodes c;

	arena_init(&a, 0);
	cluster_nodes_init(&c, &a);
	c.is_partitioned = true;
	add_partition(&c, "b", STATUS("1.0", "", READY));
	add_node(&c, "b", AGENT("True", "2025-11-17T03:50:00Z"));
	add_node(&c, "a", "");
	add_partition(&c, "a", STATUS("1.0", "", READY));
	CHECK_STR(findings_text(&c), "");
	CHECK_UINT(c.n, 2);
	CHECK_STR(c.items[0].name, "a");
	CHECK(c.items[1].has_partition && c.items[1].exists);
}

TEST(every_fault_of_a_node_is_a_finding)
{
	static const struct {
		const char *condition, *status, *want;
	} rows[] = {
		{ "", NULL,
		  "n NoPartition: there is no NodePartition: no agent reports for this node\n" },
		{ "", "", "n NotReady: the agent has not reported a status yet\n" },
		{ "", STATUS("1.0", "", ""), "n NotReady: not partitioned as configured\n" },
		{ "",
		  STATUS("1.0", "",
			 CONDITION("Ready", "False", "ResizeRefused", "pod x owns CPUs 4-5")),
		  "n NotReady: not partitioned as configured: ResizeRefused: pod x owns CPUs "
		  "4-5\n" },
		{ "",
		  STATUS("1.0", "",
			 READY "," CONDITION("Conflict", "True", "SeveralProfiles", "a, b")),
		  "n Conflict: several profiles select the node: SeveralProfiles: a, b\n" },
		{ "",
		  STATUS("1.0", "",
			 READY "," CONDITION("HostConfigured", "False", "FilesDiffer", "")),
		  "n HostNotConfigured: the host is not configured as the profile says: "
		  "FilesDiffer\n" },
		{ "",
		  STATUS("1.0",
			 ",\"pending\":[{\"what\":\"Reboot\",\"reason\":\"KernelArguments\"},"
			 "{\"what\":\"KubeletRestart\",\"message\":\"because\"},"
			 "{\"what\":\"FirmwareUpdate\",\"message\":\"of a newer agent\"}]",
			 READY),
		  "n Pending: a change waits for a Reboot: KernelArguments\n"
		  "n Pending: a change waits for a KubeletRestart: because\n"
		  "n Pending: a change waits for a FirmwareUpdate: of a newer agent\n" },
		{ "",
		  STATUS("1.0",
			 ",\"pending\":[{\"what\":\"Reboot\",\"reason\":\"KernelArguments\"},"
			 "{\"what\":\"KubeletRestart\",\"hash\":\"5f0c\"}]",
			 READY "," CONDITION("HostConfigured", "False", "HostFilesNotManaged", "")),
		  "n note HostNotConfigured: the host is not configured as the profile says: "
		  "HostFilesNotManaged\n"
		  "n note Pending: a change waits for a Reboot: KernelArguments\n"
		  "n Pending: a change waits for a KubeletRestart\n" },
		{ "", STATUS("1.0", ",\"counters\":{\"driftFailed\":2}", READY),
		  "n DriftNotCorrected: 2 external changes of CPU settings were not corrected\n" },
		{ AGENT("False", "2025-11-17T03:59:00Z"), STATUS("1.0", "", READY),
		  "n AgentNotReady: the agent is not ready: RuntimeLost: no connection\n" },
		{ AGENT("True", "2025-11-17T03:30:00Z"), STATUS("1.0", "", READY),
		  "n AgentSilent: the agent has not reported for 30 minutes\n" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cluster_nodes c;

		TEST_ROW("%zu", i);
		cluster_nodes_init(&c, &a);
		add_node(&c, "n", rows[i].condition);
		if (rows[i].status)
			add_partition(&c, "n", rows[i].status);
		CHECK_STR(findings_text(&c), rows[i].want);
	}
}

TEST(nodes_without_cores_and_partitions_without_nodes_are_findings)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_nodes c;

	arena_init(&a, 0);
	cluster_nodes_init(&c, &a);
	c.is_partitioned = true;
	add_partition(&c, "gone", STATUS("1.0", "", READY));
	add_partition(&c, "bare", STATUS("1.0", "", READY));
	cluster_nodes_add_node(&c, parse("{\"metadata\":{\"name\":\"bare\"}}", &a));
	CHECK_STR(findings_text(&c),
		  "bare NoCores: does not advertise management.workload.openshift.io/cores: "
		  "management pods are not scheduled here\n"
		  "gone NoNode: there is a NodePartition, but no Node\n");
}

TEST(agents_with_another_version_than_most_are_findings)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_nodes c;

	arena_init(&a, 0);
	cluster_nodes_init(&c, &a);
	for (int i = 0; i < 3; i++) {
		const char *name = str_printf(&a, "n%d", i).p;

		add_node(&c, name, "");
		add_partition(&c, name, i ? STATUS("2.0", "", READY) : STATUS("1.0", "", READY));
	}
	CHECK_STR(findings_text(&c),
		  "n0 VersionDiffers: the agent has version 1.0, most others have 2.0\n");
}

TEST(what_is_only_reported_is_a_finding_when_strict_and_other_changes_always)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_nodes c;

	arena_init(&a, 0);
	cluster_nodes_init(&c, &a);
	add_node(&c, "n", "");
	add_partition(&c, "n",
		      STATUS("1.0",
			     ",\"pending\":[{\"what\":\"KubeletRestart\",\"reason\":\"Differs\"},"
			     "{\"what\":\"Reboot\",\"reason\":\"BootParameterDiffers\"},"
			     "{\"what\":\"Resize\",\"reason\":\"ResizeDeferred\"}]",
			     CONDITION("Ready", "True", "SharedPoolEmpty",
				       "no CPU is left") "," CONDITION("HostConfigured", "False",
								       "HostFilesNotManaged", "")));
	CHECK_STR(checked_text(&c, false),
		  "n note SharedPoolEmpty: no CPU is left\n"
		  "n note HostNotConfigured: the host is not configured as the profile says: "
		  "HostFilesNotManaged\n"
		  "n note Pending: a change waits for a KubeletRestart: Differs\n"
		  "n Pending: a change waits for a Reboot: BootParameterDiffers\n"
		  "n Pending: a change waits for a Resize: ResizeDeferred\n");
	CHECK_STR(checked_text(&c, true),
		  "n SharedPoolEmpty: no CPU is left\n"
		  "n HostNotConfigured: the host is not configured as the profile says: "
		  "HostFilesNotManaged\n"
		  "n Pending: a change waits for a KubeletRestart: Differs\n"
		  "n Pending: a change waits for a Reboot: BootParameterDiffers\n"
		  "n Pending: a change waits for a Resize: ResizeDeferred\n");
}

TEST(a_partition_that_cannot_be_read_is_a_finding_of_its_node_alone)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_nodes c;

	arena_init(&a, 0);
	cluster_nodes_init(&c, &a);
	add_node(&c, "m", "");
	add_partition(&c, "m", STATUS("1.0", "", READY));
	add_node(&c, "n", "");
	add_partition(&c, "n", "7");
	CHECK_STR(findings_text(&c),
		  "n Unreadable: the NodePartition cannot be read: status: not an object\n");
}
