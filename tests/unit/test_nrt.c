/* NodeResourceTopology: the document from a ledger, and the memory of NUMA nodes from sysfs. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "cpu/topology_read.h"
#include "cpus.h"
#include "podres/nrt.h"
#include "podres/response.h"
#include "pool/ledger.h"
#include "test.h"

static struct arena arena;
static struct topology topology;
static struct ledger ledger;

static const struct podres_pod pods[] = { { "ran", "du", NULL, 0 },
					  { "kube-system", "dns", NULL, 0 } };
static struct podres_snapshot two_pods = { .pods = pods, .n_pods = 2 };

/* 2 NUMA nodes of 4 CPUs each; one pod owns two CPUs. */
static void set_up(const char *machine)
{
	static const uint32_t distances[] = { 10, 21, 21, 10 };
	struct ledger_request r = { .pod_uid = STR("u1"),
				    .pod_namespace = STR("ran"),
				    .pod_name = STR("du"),
				    .container = STR("l1"),
				    .demand = { CONTAINER_APP, true, 2000 } };
	struct ledger_grant grant;
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&arena, 0);
	CHECK_OK(topology_read(machine, &arena, &topology, &err));
	topology.distances = distances;
	pool_config_init(&c);
	c.reserved = cpus("0");
	c.shared = cpus("1,4");
	c.guaranteed = cpus("2-3,5-7");
	CHECK_OK(ledger_init(&ledger, &topology, &c, &err));
	CHECK_OK(ledger_allocate(&ledger, &r, &grant, &err));
	two_pods.allocatable = c.guaranteed;
}

static void tear_down(void)
{
	ledger_done(&ledger);
	arena_done(&arena);
}

static struct doc write_object(const struct nrt_settings *s, const struct nrt_memories *m)
{
	const struct nrt_input in = { s, &ledger, &two_pods, m };
	struct err err = { 0 };
	struct doc doc;
	struct str text;

	CHECK_OK(nrt_write(&in, &arena, &text, &err));
	CHECK_OK(doc_parse(text, STR("nrt"), NULL, &arena, &doc, &err));
	return doc;
}

static struct str amounts(const struct doc *doc, unsigned zone, unsigned resource)
{
	char at[64];
	yyjson_val *v;

	(void)snprintf(at, sizeof(at), "/zones/%u/resources/%u", zone, resource);
	v = doc_find(doc->root, at);
	return str_printf(&arena, PRI_STR " " PRI_STR " " PRI_STR " " PRI_STR,
			  FMT_STR(doc_str(doc_get(v, STR("name")))),
			  FMT_STR(doc_str(doc_get(v, STR("capacity")))),
			  FMT_STR(doc_str(doc_get(v, STR("allocatable")))),
			  FMT_STR(doc_str(doc_get(v, STR("available")))));
}

TEST(zones_count_capacity_allocatable_and_available)
{
	struct nrt_memory memory[] = { { 0, STR("hugepages-2Mi"), 4 << 20 },
				       { 0, STR("memory"), 1 << 30 },
				       { 1, STR("memory"), 1 << 20 } };
	const struct nrt_memories memories = { memory, 3 };
	struct nrt_settings s = { STR("worker-0"), STR("uid-1"), "single-numa-node", "pod", false };
	struct doc doc;

	set_up("numa:2 core:4 pu:1");
	doc = write_object(&s, &memories);
	CHECK_STR(doc_str(doc_find(doc.root, "/metadata/name")), "worker-0");
	CHECK_STR(doc_str(doc_find(doc.root, "/metadata/ownerReferences/0/uid")), "uid-1");
	CHECK_STR(doc_str(doc_find(doc.root, "/attributes/0/value")), "single-numa-node");
	CHECK_STR(doc_str(doc_find(doc.root, "/attributes/1/value")), "pod");
	CHECK_STR(doc_str(doc_find(doc.root, "/zones/0/name")), "node-0");
	CHECK_STR(doc_str(doc_find(doc.root, "/zones/1/type")), "Node");
	CHECK_STR(doc_str(doc_find(doc.root, "/zones/0/costs/1/name")), "node-1");
	CHECK_STR(doc_text(doc_find(doc.root, "/zones/0/costs/0/value")), "10");
	CHECK_STR(doc_text(doc_find(doc.root, "/zones/0/costs/1/value")), "21");
	CHECK_STR(amounts(&doc, 0, 0), "cpu 4 2 0"); /* the pod owns both */
	CHECK_STR(amounts(&doc, 0, 1), "openshift.io/guaranteed-cpus 4000 2000 0");
	CHECK_STR(amounts(&doc, 0, 2), "hugepages-2Mi 4194304 4194304 4194304");
	CHECK_STR(amounts(&doc, 0, 3), "memory 1073741824 1073741824 1073741824");
	CHECK_STR(amounts(&doc, 1, 0), "cpu 4 3 3");
	CHECK_STR(amounts(&doc, 1, 2), "memory 1048576 1048576 1048576");
	cpuset_del(&two_pods.allocatable, 7); /* a standalone container owns it */
	doc = write_object(&s, &memories);
	CHECK_STR(amounts(&doc, 1, 0), "cpu 4 2 2");
	s.cpu_is_every_cpu = true; /* fractional pods of class Guaranteed are not held back */
	s.node_uid = STR("");
	doc = write_object(&s, &memories);
	CHECK_STR(amounts(&doc, 0, 0), "cpu 4 3 1");
	CHECK_STR(amounts(&doc, 0, 1), "openshift.io/guaranteed-cpus 4000 2000 0");
	CHECK(!doc_find(doc.root, "/metadata/ownerReferences"));
	tear_down();
}

TEST(the_fingerprint_is_an_attribute_and_names_the_pods)
{
	const struct nrt_settings s = { STR("n"), STR(""), "none", "container", false };
	const struct nrt_memories none = { 0 };
	struct doc doc;
	struct str mark;

	set_up("numa:2 core:4 pu:1");
	doc = write_object(&s, &none);
	mark = doc_str(doc_find(doc.root, "/attributes/2/value"));
	CHECK(str_starts(mark, STR("pfp0v001")));
	CHECK_UINT(mark.n, 24);
	CHECK_STR(doc_str(doc_find(doc.root, "/attributes/2/name")), "nodeTopologyPodsFingerprint");
	CHECK_STR(doc_str(doc_find(doc.root, "/attributes/3/name")),
		  "nodeTopologyPodsFingerprintMethod");
	CHECK_STR(doc_str(doc_find(doc.root,
				   "/metadata/annotations/topology.node.k8s.io~1fingerprint")),
		  mark);
	tear_down();
}

static void put(int root, const char *path, const char *text)
{
	char dir[256];
	struct err err = { 0 };

	(void)snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	CHECK_OK(file_mkdirs_at(root, dir, 0700, &err));
	CHECK_OK(file_create_at(root, path, str_from(text), 0600, &err));
}

TEST(memory_does_not_count_huge_pages)
{
	char name[] = "/tmp/pinfold-nrt-XXXXXX", clean[64];
	struct nrt_memories m;
	struct err err = { 0 };
	int root;

	CHECK(mkdtemp(name) != NULL);
	root = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	arena_init(&arena, 0);
	CHECK_OK(nrt_memory_read(root, &arena, &m, &err));
	CHECK_UINT(m.n, 0);
#define NODES "sys/devices/system/node/"
	put(root, NODES "online", "0,2\n");
	put(root, NODES "node0/meminfo",
	    "Node 0 MemTotal:       3145728 kB\nNode 0 MemFree: 1 kB\n");
	put(root, NODES "node0/hugepages/hugepages-1048576kB/nr_hugepages", "2\n");
	put(root, NODES "node0/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
	put(root, NODES "node2/meminfo", "Node 2 MemTotal:       1024 kB\n");
	CHECK_OK(nrt_memory_read(root, &arena, &m, &err));
	CHECK_UINT(m.n, 4);
	CHECK_STR(m.items[0].name, "hugepages-1Gi");
	CHECK_UINT(m.items[0].bytes, (uint64_t)2 << 30);
	CHECK_STR(m.items[1].name, "hugepages-2Mi");
	CHECK_STR(m.items[2].name, "memory");
	CHECK_UINT(m.items[2].bytes, 1 << 30);
	CHECK_UINT(m.items[3].node, 2);
	CHECK_UINT(m.items[3].bytes, 1 << 20);
	put(root, NODES "node3/meminfo", "nothing\n");
	CHECK_ERR(nrt_memory_read(root, &arena, &m, &err), EINVAL,
		  NODES "node3/meminfo: no MemTotal");
	arena_done(&arena);
	(void)close(root);
	(void)snprintf(clean, sizeof(clean), "rm -rf %s", name);
	CHECK_INT(system(clean), 0);
}
