/* Standalone containers: records of OCI hooks, and placing, keeping and removing their containers.
 */

#include "agent_node.h"
#include "nodesync/pod_resources.h"
#include "oci/oci_containers.h"
#include "oci/oci_record.h"
#include "pin/classify.h"

TEST(the_cgroup_of_a_process_is_read_from_proc)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "0::/machine.slice/libpod-1.scope\n", "/machine.slice/libpod-1.scope" },
		{ "12:cpu,cpuacct:/a\n5:cpuset:/b\n0::/c\n", "/b" },
		{ "4:pids,cpuset:/x:y\n", "/x:y" },
		{ "1:name=systemd:/only\n", "" },
		{ "cpuset\n1:cpuset\n", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].text);
		CHECK_STR(oci_record_cgroup(str_from(rows[i].text)), rows[i].want);
	}
}

TEST(an_id_is_safe_as_a_file_name)
{
	static const struct {
		const char *id;
		bool is_valid;
	} rows[] = {
		{ "0123abc", true }, { "web_1.2+3-x", true }, { "", false },	{ "../x", false },
		{ ".x", false },     { "a/b", false },	      { "a b", false }, { "-x", false },
	};
	char longest[OCI_RECORD_MAX_ID + 2];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].id);
		CHECK_INT(oci_record_id_is_valid(str_from(rows[i].id)), rows[i].is_valid);
	}
	memset(longest, 'a', sizeof(longest));
	CHECK(oci_record_id_is_valid((struct str){ longest, OCI_RECORD_MAX_ID }));
	CHECK(!oci_record_id_is_valid((struct str){ longest, OCI_RECORD_MAX_ID + 1 }));
}

static struct doc parse(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(text), STR("in"), NULL, a, &doc, &err));
	return doc;
}

#define KUBE_NAMES                                                                                 \
	"\"io.kubernetes.cri.container-name\":\"c\",\"io.kubernetes.cri.sandbox-name\":\"p\","     \
	"\"io.kubernetes.cri.sandbox-namespace\":\"n\",\"io.kubernetes.cri.sandbox-uid\":\"u\""

TEST(a_record_parses_to_the_structs_of_nri)
{
	static const struct {
		const char *record, *names;
		bool is_guaranteed;
		int64_t milli;
	} rows[] = {
		/* podman run --cpus 2 --memory 1g: limits are requests, so class Guaranteed */
		{ "{\"id\":\"0123456789abcdef\",\"cgroup\":\"/machine.slice/x.scope\",\"quotaUs\":"
		  "200000,\"periodUs\":100000,\"memoryBytes\":1073741824}",
		  "oci/0123456789ab/0123456789ab oci-0123456789abcdef", true, 2000 },
		/* without memory it is not, with other shares neither */
		{ "{\"id\":\"a\",\"cgroup\":\"/x\",\"quotaUs\":200000,\"periodUs\":100000}",
		  "oci/a/a oci-a", false, 0 },
		{ "{\"id\":\"a\",\"cgroup\":\"/"
		  "x\",\"quotaUs\":200000,\"periodUs\":100000,\"shares\":"
		  "512,\"memoryBytes\":1}",
		  "oci/a/a oci-a", false, 500 },
		{ "{\"id\":\"a\",\"cgroup\":\"/x\"}", "oci/a/a oci-a", false, 0 },
		/* as precreate leaves it: still two CPUs of its own; but not if that does not fit
		 */
		{ "{\"id\":\"a\",\"cpus\":\"4-5\",\"shares\":2048,\"quotaUs\":-1,\"memoryBytes\":"
		  "1}",
		  "oci/a/a oci-a", true, 2000 },
		{ "{\"id\":\"a\",\"cpus\":\"4-6\",\"shares\":2048,\"quotaUs\":-1,\"memoryBytes\":"
		  "1}",
		  "oci/a/a oci-a", false, 2000 },
		{ "{\"id\":\"a\",\"cpus\":\"4-5\",\"shares\":2048,\"quotaUs\":-1}", "oci/a/a oci-a",
		  false, 2000 },
		{ "{\"id\":\"a\",\"cpus\":\"4-5\",\"shares\":2048,\"memoryBytes\":1}",
		  "oci/a/a oci-a", false, 2000 },
		{ "{\"id\":\"a\",\"cpus\":\"x\",\"shares\":2048,\"quotaUs\":-1,\"memoryBytes\":1}",
		  "oci/a/a oci-a", false, 2000 },
		/* a kubelet's containers by their cgroup */
		{ "{\"id\":\"a\",\"cgroup\":\"/kubepods/podu/a\",\"quotaUs\":100000,\"periodUs\":"
		  "100000,\"shares\":1024,\"annotations\":{" KUBE_NAMES "}}",
		  "n/p/c u", true, 1000 },
		{ "{\"id\":\"a\",\"cgroup\":\"/kubepods/burstable/podu/a\",\"shares\":1024,"
		  "\"annotations\":{" KUBE_NAMES "}}",
		  "n/p/c u", false, 1000 },
		/* its name comes from its resources annotation */
		{ "{\"id\":\"a\",\"cgroup\":\"/x\",\"annotations\":{"
		  "\"resources.workload.openshift.io/web\":\"{}\"}}",
		  "oci/a/web oci-a", false, 0 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc doc = parse(rows[i].record, &a);
		const struct classify_rules rules = { 0 };
		struct container_class class;
		struct err err = { 0 };
		struct oci_record o;

		TEST_ROW("%s", rows[i].record);
		CHECK_OK(oci_record_parse(&doc, &a, &o, &err));
		CHECK_STR(str_printf(&a, "%s/%s/%s %s", o.pod.pod_namespace, o.pod.name,
				     o.container.name, o.pod.uid),
			  rows[i].names);
		CHECK_INT(classify_is_guaranteed(&o.pod), rows[i].is_guaranteed);
		CHECK_OK(classify_container(&rules, &o.pod, &o.container, &a, &class, &err));
		CHECK_INT(class.demand.cpu_milli, rows[i].milli);
	}
}

/* CRI-O copies every annotation of a pod into the configuration of its containers, so a pod can
 * have the keys of containerd there, and with annotation passthrough the other way round. */
#define CRIO_NAMES                                                                                 \
	"\"io.kubernetes.container.name\":\"c\",\"io.kubernetes.pod.name\":\"p\","                 \
	"\"io.kubernetes.pod.namespace\":\"tenant\",\"io.kubernetes.pod.uid\":\"u\""
#define FORGED_CRIO_NAMES                                                                          \
	"\"io.kubernetes.container.name\":\"x\",\"io.kubernetes.pod.name\":\"x\","                 \
	"\"io.kubernetes.pod.namespace\":\"openshift-dns\",\"io.kubernetes.pod.uid\":\"x\""
#define FORGED_KUBE_NAMES                                                                          \
	"\"io.kubernetes.cri.container-name\":\"x\",\"io.kubernetes.cri.sandbox-name\":\"x\","     \
	"\"io.kubernetes.cri.sandbox-namespace\":\"openshift-dns\","                               \
	"\"io.kubernetes.cri.sandbox-uid\":\"x\""

TEST(attack_a_pod_forges_its_namespace_with_the_keys_of_another_runtime)
{
	static const struct {
		const char *cgroup, *annotations, *names;
	} rows[] = {
		{ "/kubepods/burstable/podu/crio-a", CRIO_NAMES "," FORGED_KUBE_NAMES,
		  "tenant/p/c u" },
		{ "/kubepods.slice/kubepods-podu.slice/crio-a.scope",
		  FORGED_KUBE_NAMES "," CRIO_NAMES, "tenant/p/c u" },
		{ "/kubepods.slice/kubepods-podu.slice/crio-a.scope", FORGED_KUBE_NAMES,
		  "oci/a/a oci-a" },
		{ "/kubepods.slice/kubepods-podu.slice/cri-containerd-a.scope",
		  KUBE_NAMES "," FORGED_CRIO_NAMES, "n/p/c u" },
		{ "/kubepods/podu/a", FORGED_CRIO_NAMES, "oci/a/a oci-a" },
		{ "/machine.slice/libpod-a.scope", FORGED_CRIO_NAMES "," FORGED_KUBE_NAMES,
		  "oci/a/a oci-a" },
		{ "", FORGED_KUBE_NAMES, "oci/a/a oci-a" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc doc =
			parse(str_cstr(&a, str_printf(&a,
						      "{\"id\":\"a\",\"cgroup\":\"%s\","
						      "\"annotations\":{%s}}",
						      rows[i].cgroup, rows[i].annotations)),
			      &a);
		struct err err = { 0 };
		struct oci_record o;

		TEST_ROW("%s %s", rows[i].cgroup, rows[i].annotations);
		CHECK_OK(oci_record_parse(&doc, &a, &o, &err));
		CHECK_STR(str_printf(&a, "%s/%s/%s %s", o.pod.pod_namespace, o.pod.name,
				     o.container.name, o.pod.uid),
			  rows[i].names);
	}
}

/* A pause container is not placed, and would run on all CPUs. */
TEST(attack_a_pod_forges_the_type_of_its_container)
{
	static const struct {
		const char *cgroup, *config;
		bool is_pause;
	} rows[] = {
		{ "/kubepods.slice/crio-a.scope",
		  "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"}}", false },
		{ "/kubepods.slice/crio-a.scope",
		  "{\"annotations\":{\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"}}", true },
		{ "/kubepods.slice/cri-containerd-a.scope",
		  "{\"annotations\":{\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"}}", false },
		{ "/kubepods/podu/a",
		  "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"}}", true },
		{ "/machine.slice/libpod-a.scope",
		  "{\"annotations\":{\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"}}", true },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct oci_record_source given = { .id = STR("a"), .cgroup = rows[i].cgroup };
		struct doc config = parse(rows[i].config, &a);
		struct err err = { 0 };
		struct str text;

		TEST_ROW("%s %s", rows[i].cgroup, rows[i].config);
		CHECK_INT(oci_record_build(&config, &given, &a, &text, &err),
			  rows[i].is_pause ? -EUCLEAN : 0);
	}
}

TEST(an_invalid_record_is_refused)
{
	static const struct {
		const char *record, *sentence;
	} rows[] = {
		{ "{}", "in:1:1: invalid container id \"\"" },
		{ "[]", "in:1:1: invalid container id \"\"" },
		{ "{\"id\":\"a/b\"}", "in:1:1: invalid container id \"a/b\"" },
		{ "{\"id\":\"a\",\"shares\":\"2\"}",
		  "in:1:20: shares: want a whole number, not a string" },
		{ "{\"id\":\"a\",\"periodUs\":-1}", "in:1:1: shares and periodUs are not below 0" },
		{ "{\"id\":\"a\",\"annotations\":{\"x\":1}}",
		  "in:1:30: annotation \"x\": want a string, not a number" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc doc = parse(rows[i].record, &a);
		struct err err = { 0 };
		struct oci_record o;

		TEST_ROW("%s", rows[i].record);
		CHECK_ERR(oci_record_parse(&doc, &a, &o, &err), EINVAL, rows[i].sentence);
	}
}

TEST(a_record_keeps_only_relevant_annotations)
{
	const struct oci_record_source given = { .id = STR("web"), .cgroup = "/x/web" };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc config;
	struct str text;

	arena_init(&a, 0);
	config = parse(
		"{\"annotations\":{\"org.example/note\":\"x\","
		"\"target.workload.openshift.io/management\":\"{}\"},\"linux\":{\"resources\":"
		"{\"cpu\":{\"shares\":2,\"quota\":-1,\"period\":100000,\"cpus\":\"0-3\"},"
		"\"memory\":{\"limit\":4096}}}}",
		&a);
	CHECK_OK(oci_record_build(&config, &given, &a, &text, &err));
	CHECK_STR(text, "{\n  \"id\": \"web\",\n  \"cgroup\": \"/x/web\",\n  \"annotations\": {\n"
			"    \"target.workload.openshift.io/management\": \"{}\"\n  },\n"
			"  \"cpus\": \"0-3\",\n  \"shares\": 2,\n  \"quotaUs\": -1,\n"
			"  \"periodUs\": 100000,\n  \"memoryBytes\": 4096\n}");
	config = parse("{\"annotations\":{\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"}}", &a);
	CHECK_ERR(oci_record_build(&config, &given, &a, &text, &err), EUCLEAN, "a pause container");
}

TEST(a_record_of_precreate_has_its_time)
{
	const struct oci_record_source given = { STR("web"), "", true, true, 7 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;
	struct oci_record o;
	struct str text;

	arena_init(&a, 0);
	doc = parse("{}", &a);
	CHECK_OK(oci_record_build(&doc, &given, &a, &text, &err));
	doc = parse(str_cstr(&a, text), &a);
	CHECK_OK(oci_record_parse(&doc, &a, &o, &err));
	CHECK(o.is_unnamed && o.is_precreated);
	CHECK_INT(o.precreated_at_s, 7);
	doc = parse("{\"id\":\"a\",\"precreatedAtS\":\"soon\"}", &a);
	CHECK_ERR(oci_record_parse(&doc, &a, &o, &err), EINVAL,
		  "in:1:27: precreatedAtS: want a whole number, not a string");
}

TEST(a_precreated_container_is_pending_for_a_minute)
{
	static const struct {
		int64_t precreated_at_s, now_s;
		bool holds;
	} rows[] = {
		{ 100, 100, true },
		{ 100, 100 + OCI_RECORD_PENDING_S - 1, true },
		{ 100, 100 + OCI_RECORD_PENDING_S, false },
		{ 100, 99, false }, /* of an earlier boot */
		{ 0, 0, true },
		{ INT64_MIN, 0, false },
		{ INT64_MAX, 100, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%" PRId64 " at %" PRId64, rows[i].precreated_at_s, rows[i].now_s);
		CHECK_INT(oci_record_is_pending(rows[i].precreated_at_s, rows[i].now_s),
			  rows[i].holds);
	}
	CHECK(oci_record_now_s() > 0);
}

/* Standalone containers of a node, with records in its run directory. */
static void fixture_start(struct node *n, struct oci_containers *d, const char *reserved,
			  const char *shared, const char *guaranteed)
{
	node_init(n, reserved, shared, guaranteed);
	*d = (struct oci_containers){ &n->manager,
				      open(n->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
}

static void fixture_end(struct node *n, struct oci_containers *d)
{
	(void)close(d->run_fd);
	node_done(n);
}

static struct str arrive(struct node *n, struct oci_containers *d, const char *id)
{
	struct err err = { 0 };
	struct str text;

	CHECK_OK(oci_containers_add(d, str_from(id), &n->a, &text, &err));
	return text;
}

static void remove_cgroup(struct node *n, const char *id)
{
	CHECK_INT(system(str_cstr(&n->a, str_printf(&n->a, "rm -r %s/oci/%s.cg", n->dir, id))), 0);
}

/* Without CPUs it has no cgroup yet. */
static void record(struct node *n, const struct oci_containers *d, const char *id, const char *cpus,
		   const char *more)
{
	struct err err = { 0 };
	struct str path = str_printf(&n->a, "oci/%s.cg", id);

	if (cpus)
		make_cgroup(n, str_cstr(&n->a, path), cpus);
	CHECK_OK(oci_record_save(d->run_fd, str_from(id),
				 str_printf(&n->a, "{\"id\":\"%s\",\"cgroup\":\"/" PRI_STR "\"%s}",
					    id, FMT_STR(path), more),
				 &err));
}

#define TWO ",\"quotaUs\":200000,\"periodUs\":100000,\"memoryBytes\":1"
#define MANAGED                                                                                    \
	",\"annotations\":{\"target.workload.openshift.io/management\":\"{}\","                    \
	"\"resources.workload.openshift.io/x\":\"{\\\"cpushares\\\":200}\"}"

TEST(a_standalone_container_keeps_its_cpus_until_it_is_removed)
{
	struct err err = { 0 };
	struct cpuset free_cpus;
	struct oci_containers d;
	struct node n;
	struct str text;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	record(&n, &d, "own", "4-5", TWO);
	record(&n, &d, "plain", "2-3", "");
	record(&n, &d, "mgmt", "0-1", MANAGED);
	record(&n, &d, "more", "6-7", TWO);
	record(&n, &d, "late", "0-7", TWO);
	CHECK_STR(arrive(&n, &d, "own"),
		  "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"4-5\","
		  "\"quotaUs\":-1}");
	CHECK_STR(arrive(&n, &d, "plain"),
		  "{\"pool\":\"shared\",\"exclusive\":false,\"cpus\":\"2-3\"}");
	CHECK_STR(arrive(&n, &d, "mgmt"),
		  "{\"pool\":\"management\",\"exclusive\":false,\"cpus\":\"0-1\","
		  "\"shares\":200}");
	CHECK_STR(arrive(&n, &d, "more"),
		  "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"6-7\","
		  "\"quotaUs\":-1}");
	CHECK_ERR(oci_containers_add(&d, STR("late"), &n.a, &text, &err), ENOSPC,
		  "not enough cpus available to satisfy request: requested=2, available=0");
	CHECK_UINT(n.ledger.n, 2);
	(void)arrive(&n, &d, "own"); /* a second request has the same result */
	CHECK_UINT(n.ledger.n, 2);
	CHECK_UINT(n.manager.registry.n_containers, 4);
	CHECK_STR(read_at(&n, "oci/own.cg", "cpuset.cpus"), "4-5");

	oci_containers_remove(&d, STR("own"));
	oci_containers_remove(&d, STR("own"));
	CHECK_UINT(n.ledger.n, 1);
	ledger_free(&n.ledger, &free_cpus);
	CHECK_STR(cpuset_format(&free_cpus, &n.a), "4-5");
	fixture_end(&n, &d);
}

TEST(synchronizing_with_the_runtime_keeps_standalone_containers)
{
	const struct nri_inventory nothing = { 0 };
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	n.manager.add_inventory = oci_containers_merge;
	n.manager.add_inventory_data = &d;
	record(&n, &d, "own", "4-5", TWO);
	record(&n, &d, "gone", "6-7", TWO);
	(void)arrive(&n, &d, "own");
	(void)arrive(&n, &d, "gone");
	remove_cgroup(&n, "gone");
	oci_containers_sweep(&d);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_INT(manager_handlers.synchronize(&n.manager, &nothing, NULL), 0);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_UINT(n.manager.registry.n_containers, 1);
	CHECK_STR(settings_cpus(&n, n.manager.registry.containers[0]->id), "4-5");

	/* A new agent takes them in before any runtime is there... */
	registry_clear(&n.manager.registry);
	oci_containers_load(&d, STR(""));
	CHECK_UINT(n.manager.registry.n_containers, 1);
	CHECK_UINT(n.ledger.n, 1);
	/* ...and releases what ended meanwhile, even if only the ledger remembers it. */
	registry_clear(&n.manager.registry);
	remove_cgroup(&n, "own");
	oci_containers_load(&d, STR(""));
	CHECK_UINT(n.ledger.n, 0);
	record(&n, &d, "own", "4-5", TWO);
	(void)arrive(&n, &d, "own");
	registry_clear(&n.manager.registry);
	oci_containers_remove(&d, STR("own"));
	CHECK_UINT(n.ledger.n, 0);
	fixture_end(&n, &d);
}

TEST(standalone_containers_are_not_counted_as_pods_of_the_cluster)
{
	struct podres_snapshot s;
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	record(&n, &d, "own", "4-5", TWO);
	record(&n, &d, "plain", "2-3", "");
	record(&n, &d, "cri-containerd-kube", "6",
	       ",\"shares\":1024,\"quotaUs\":100000,\"periodUs\":100000,\"memoryBytes\":1,"
	       "\"annotations\":{" KUBE_NAMES "}");
	(void)arrive(&n, &d, "own");
	(void)arrive(&n, &d, "plain");
	(void)arrive(&n, &d, "cri-containerd-kube");
	pod_resources_snapshot(&n.manager, &n.a, &s);
	CHECK_STR(cpuset_format(&s.allocatable, &n.a), "6-7");
	CHECK_UINT(s.n_pods, 1);
	CHECK_STR(s.pods[0].name, "p");
	CHECK_UINT(s.pods[0].n_containers, 1);
	CHECK_STR(cpuset_format(s.pods[0].containers[0].cpus, &n.a), "6");
	fixture_end(&n, &d);
}

TEST(shared_containers_leave_cpus_that_become_exclusive_in_classic_mode)
{
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", NULL, "");
	record(&n, &d, "plain", "2-7", "");
	record(&n, &d, "own", "2-3", TWO);
	(void)arrive(&n, &d, "plain");
	(void)arrive(&n, &d, "own");
	CHECK_STR(read_at(&n, "oci/plain.cg", "cpuset.cpus"), "4-7");
	oci_containers_remove(&d, STR("own"));
	CHECK_STR(read_at(&n, "oci/plain.cg", "cpuset.cpus"), "2-7");
	fixture_end(&n, &d);
}

/* Writes a record of precreate, `age_s` seconds old. */
static void write_pending(struct node *n, const struct oci_containers *d, const char *id,
			  int64_t age_s)
{
	record(n, d, id, NULL,
	       str_cstr(&n->a, str_printf(&n->a, TWO ",\"precreatedAtS\":%" PRId64,
					  oci_record_now_s() - age_s)));
}

TEST(a_pending_container_keeps_its_cpus)
{
	const struct nri_inventory nothing = { 0 };
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	n.manager.add_inventory = oci_containers_merge;
	n.manager.add_inventory_data = &d;
	write_pending(&n, &d, "own", 0);
	(void)arrive(&n, &d, "own");
	CHECK(!registry_find(&n.manager.registry, "own")->is_started);
	/* A sweep, the runtime's list, and a new agent leave it alone. */
	oci_containers_sweep(&d);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_INT(manager_handlers.synchronize(&n.manager, &nothing, NULL), 0);
	oci_containers_sweep(&d);
	registry_clear(&n.manager.registry);
	oci_containers_load(&d, STR(""));
	oci_containers_sweep(&d);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_UINT(n.manager.registry.n_containers, 1);
	/* It comes, with what precreate left of its configuration. */
	record(&n, &d, "own", "4-5",
	       ",\"cpus\":\"4-5\",\"shares\":2048,\"quotaUs\":-1,\"memoryBytes\":1");
	CHECK_STR(arrive(&n, &d, "own"),
		  "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"4-5\","
		  "\"quotaUs\":-1}");
	CHECK(registry_find(&n.manager.registry, "own")->is_started);
	CHECK_UINT(n.ledger.n, 1);
	CHECK_UINT(n.manager.counters.placed[POOL_GUARANTEED], 2); /* once by each agent */
	oci_containers_remove(&d, STR("own"));
	CHECK_UINT(n.ledger.n, 0);
	fixture_end(&n, &d);
}

TEST(cpus_of_a_container_that_is_never_created_are_released)
{
	struct oci_record o;
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
		TEST_ROW("restarted %d", is_restarted);
		write_pending(&n, &d, "own", 0);
		(void)arrive(&n, &d, "own");
		write_pending(&n, &d, "own", OCI_RECORD_PENDING_S); /* no longer pending */
		if (is_restarted) {
			registry_clear(&n.manager.registry);
			oci_containers_load(&d, STR(""));
		} else {
			oci_containers_sweep(&d);
		}
		CHECK_UINT(n.ledger.n, 0);
		CHECK_UINT(n.manager.registry.n_containers, 0);
		CHECK_INT(oci_record_load(d.run_fd, STR("own"), &n.a, &o, NULL), -ENOENT);
	}
	/* A late create hook gets CPUs like a new container. */
	record(&n, &d, "own", "4-5",
	       ",\"cpus\":\"6-7\",\"shares\":2048,\"quotaUs\":-1,\"memoryBytes\":1");
	CHECK_STR(arrive(&n, &d, "own"),
		  "{\"pool\":\"guaranteed\",\"exclusive\":true,\"cpus\":\"4-5\","
		  "\"quotaUs\":-1}");
	fixture_end(&n, &d);
}

TEST(a_container_without_a_create_hook_is_adopted_when_its_cgroup_exists)
{
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	write_pending(&n, &d, "own", 0);
	(void)arrive(&n, &d, "own");
	make_cgroup(&n, "oci/own.cg", "4-5");
	oci_containers_sweep(&d);
	CHECK(!registry_find(&n.manager.registry, "own")->is_started);
	write_pending(&n, &d, "own", OCI_RECORD_PENDING_S);
	oci_containers_sweep(&d);
	CHECK(registry_find(&n.manager.registry, "own")->is_started);
	remove_cgroup(&n, "own");
	oci_containers_sweep(&d);
	CHECK_UINT(n.ledger.n, 0);
	fixture_end(&n, &d);
}

TEST(a_container_in_the_cgroup_of_a_pending_one_replaces_it)
{
	struct err err = { 0 };
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-5", "6-7");
	write_pending(&n, &d, "own", 0);
	(void)arrive(&n, &d, "own");
	make_cgroup(&n, "oci/own.cg", "6-7");
	CHECK_OK(oci_record_save(d.run_fd, STR("box-own"),
				 STR("{\"id\":\"box-own\",\"cgroup\":\"/oci/own.cg\"" TWO "}"),
				 &err));
	(void)arrive(&n, &d, "box-own");
	CHECK_UINT(n.ledger.n, 1);
	CHECK_UINT(n.manager.registry.n_containers, 1);
	CHECK_STR((const char *)n.manager.registry.containers[0]->id, "box-own");
	fixture_end(&n, &d);
}

TEST(a_refused_container_loses_the_cpus_of_precreate)
{
	struct err err = { 0 };
	struct oci_containers d;
	struct node n;
	struct str text;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	write_pending(&n, &d, "own", 0);
	(void)arrive(&n, &d, "own");
	record(&n, &d, "own", NULL, TWO); /* create, and no cgroup */
	CHECK_ERR(oci_containers_add(&d, STR("own"), &n.a, &text, &err), ENOENT,
		  "cgroup oci/own.cg is not there");
	CHECK_UINT(n.ledger.n, 0);
	CHECK_UINT(n.manager.registry.n_containers, 0);
	fixture_end(&n, &d);
}

TEST(exclusive_cpus_without_a_container_id_are_refused)
{
	static const struct {
		const char *more, *cpus; /* NULL: refused */
	} rows[] = {
		{ TWO, NULL },
		{ "", "2-3" },
		{ MANAGED, "0-1" },
	};
	struct oci_containers d;
	struct node n;

	fixture_start(&n, &d, "0-1", "2-3", "4-7");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };
		struct str text = { 0 };

		TEST_ROW("%s", rows[i].more);
		record(&n, &d, "x", NULL,
		       str_cstr(&n.a,
				str_printf(&n.a, "%s,\"unnamed\":true,\"precreatedAtS\":%" PRId64,
					   rows[i].more, oci_record_now_s())));
		if (rows[i].cpus)
			text = arrive(&n, &d, "x");
		else
			CHECK_ERR(oci_containers_add(&d, STR("x"), &n.a, &text, &err), EPERM,
				  "exclusive CPUs need a container id, and linux.cgroupsPath has "
				  "none: "
				  "pass --id");
		CHECK(!rows[i].cpus || str_has(text, str_from(rows[i].cpus)));
		CHECK_UINT(n.ledger.n, 0);
		oci_containers_remove(&d, STR("x"));
		CHECK_UINT(n.manager.registry.n_containers, 0);
	}
	fixture_end(&n, &d);
}
