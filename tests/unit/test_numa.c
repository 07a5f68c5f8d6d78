/* NUMA policies in the agent, from the runtime's request to the reply: which nodes a container's CPUs
 * and memory come from. The decision itself is in test_ledger.c. */

#include "agent_node.h"

TEST(exclusive_cpus_come_from_as_few_numa_nodes_as_possible)
{
	CLEANUP(node_done) struct node n;
	struct box a, b;
	struct ttrpc_response r;

	/* CPU 3 is on node 0, 6-7 are on node 1. */
	node_init_on(&n, "numa:2 core:4 pu:1", "0-2", "4-5", "3,6-7");
	box_init(&a, "a", "", 2048, 200000);
	CHECK_STR(create(&n, &a).cpus, "6-7");
	CHECK(!ask(&n, "RemovePodSandbox", &a, NULL).status);
	n.ledger.now.config.topology.policy = HINT_POLICY_SINGLE_NUMA_NODE;
	box_init(&b, "b", "", 3072, 300000);
	r = ask(&n, "CreateContainer", &b, NULL);
	CHECK(r.status != NULL);
	CHECK_STR(r.status->message,
		  "pinfold: ns/b, container c: TopologyAffinityError: Resources cannot be "
		  "allocated with Topology locality: policy single-numa-node, scope container, 3 "
		  "CPUs; free CPUs: 1 on node 0, 2 on node 1");
}
