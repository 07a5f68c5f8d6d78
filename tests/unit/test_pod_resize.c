/* In-place resize of running pods: which changes of the kubelet pass, which are refused, and that
 * ledger, registry and kernel agree afterwards. */

#include "agent_node.h"

#include "pin/enforce.h"

enum outcome { PASSES, REFUSED, CORRECTED };

struct row {
	const char *name, *class;
	uint64_t shares; /* as created */
	int64_t quota_us;
	uint64_t new_shares; /* of the resize; 0: unchanged */
	int64_t new_quota_us;
	const char *new_cpus;
	enum outcome outcome;
	const char *says;
};

static const struct row rows[] = {
	{ "burstable, more", "burstable/", 102, 0, 512, 60000, "", PASSES, NULL },
	{ "burstable, a whole CPU", "burstable/", 102, 0, 1024, 100000, "", PASSES, NULL },
	{ "burstable, onto other CPUs", "burstable/", 102, 0, 512, 0, "4-7", CORRECTED, NULL },
	{ "guaranteed, fraction to fraction", "", 512, 50000, 768, 75000, "", PASSES, NULL },
	{ "guaranteed, fraction to whole", "", 512, 50000, 1024, 100000, "", REFUSED,
	  "container \"c\" runs in the shared pool and cannot get exclusive CPUs while it runs: "
	  "recreate the pod" },
	{ "guaranteed, whole to fraction", "", 2048, 200000, 1536, 150000, "", REFUSED,
	  "container \"c\" owns 2 CPUs and cannot change to 1500 millicores while it runs: "
	  "recreate "
	  "the pod" },
	{ "guaranteed, more", "", 2048, 200000, 3072, 300000, "", REFUSED,
	  "container \"c\" owns 2 CPUs and cannot change to 3000 millicores while it runs: "
	  "recreate "
	  "the pod" },
	{ "guaranteed, fewer", "", 2048, 200000, 1024, 100000, "", REFUSED,
	  "container \"c\" owns 2 CPUs and cannot change to 1000 millicores while it runs: "
	  "recreate "
	  "the pod" },
	{ "guaranteed, the same", "", 2048, 200000, 2048, 200000, "", CORRECTED, NULL },
	{ "guaranteed, onto other CPUs", "", 2048, 200000, 0, 0, "0-7", CORRECTED, NULL },
	{ "guaranteed, only a quota", "", 2048, 200000, 0, 100000, "", CORRECTED, NULL },
	{ "memory only", "", 2048, 200000, 0, 0, "", PASSES, NULL },
};

static void check_row(const struct row *row)
{
	CLEANUP(node_done) struct node n;
	struct nri_cpu wanted = { .has_shares = row->new_shares != 0,
				  .shares = row->new_shares,
				  .has_quota = row->new_quota_us != 0,
				  .quota_us = row->new_quota_us,
				  .has_period = true,
				  .period_us = 100000,
				  .cpus = row->new_cpus };
	struct ttrpc_response r;
	struct nri_cpu cpu;
	const char *before;
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", row->class, row->shares, row->quota_us);
	make_cgroup(&n, b.pod_cgroup, "0-7");
	before = create(&n, &b).cpus;
	make_cgroup(&n, b.cgroup + 1, before);
	r = ask(&n, "UpdateContainer", &b, &wanted);
	CHECK((r.status != NULL) == (row->outcome == REFUSED));
	if (r.status) {
		CHECK_STR(r.status->message,
			  str_printf(&n.a, "pinfold: ns/b, container c: %s", row->says));
	} else {
		cpu = response_cpu(&n, &r, &nri_updated_message);
		CHECK((*cpu.cpus || cpu.has_quota || cpu.has_shares) ==
		      (row->outcome == CORRECTED));
		if (*cpu.cpus)
			CHECK_STR(cpu.cpus, before);
		if (cpu.has_quota)
			CHECK_INT(cpu.quota_us, -1);
		CHECK(!cpu.has_shares); /* those are the kubelet's */
	}
	/* Ledger, registry and kernel have the same CPUs in every case. */
	CHECK_STR(settings_cpus(&n, n.manager.registry.containers[0]->id), before);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), before);
	if (ledger_find(&n.ledger, STR("b"), STR("c")))
		CHECK_STR(cpuset_format(&ledger_find(&n.ledger, STR("b"), STR("c"))->cpus, &n.a),
			  before);
	CHECK_UINT(n.manager.counters.resizes_refused, row->outcome == REFUSED);
	CHECK_UINT(n.manager.counters.refused, 0);
}

TEST(a_resize_passes_is_corrected_or_is_refused)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].name);
		check_row(&rows[i]);
	}
	TEST_NOTE("%zu rows", ARRAY_LEN(rows));
}

TEST(the_cgroup_of_the_pod_is_corrected_at_once)
{
	CLEANUP(node_done) struct node n;
	struct nri_cpu more = { .has_shares = true, .shares = 3072, .cpus = "" };
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	make_cgroup(&n, b.pod_cgroup, "0-7");
	(void)create(&n, &b);
	write_at(&n, b.pod_cgroup, "cpu.max",
		 "300000 100000"); /* the kubelet writes it before its update */
	CHECK(ask(&n, "UpdateContainer", &b, &more).status != NULL);
	CHECK_STR(read_at(&n, b.pod_cgroup, "cpu.max"), "max 100000");
}

/* Without the agent nothing refuses the resize: the container keeps its CPUs until it ends. */
TEST(a_container_resized_without_the_agent_keeps_its_cpus)
{
	CLEANUP(node_done) struct node n;
	struct nri_sync sync = { .n_pods = 1, .n_containers = 1 };
	struct box b;

	node_init(&n, "0-1", "2-3", "4-7");
	box_init(&b, "b", "", 2048, 200000);
	make_cgroup(&n, b.pod_cgroup, "0-7");
	make_cgroup(&n, b.cgroup + 1, create(&n, &b).cpus);
	b.cpu.shares = 1536;
	b.cpu.quota_us = 150000;
	sync.pods = &b.pod;
	sync.containers = &b.container;
	CHECK(!synchronize(&n, &sync).status);
	CHECK_STR(read_at(&n, b.cgroup + 1, "cpuset.cpus"), "4-5");
	CHECK_STR(settings_cpus(&n, n.manager.registry.containers[0]->id), "4-5");
	CHECK_UINT(n.ledger.n, 1);
}
