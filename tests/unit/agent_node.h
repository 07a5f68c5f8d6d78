#pragma once

/* The Manager between a runtime and a cgroup tree, both ours: whole stories, no socket. The tree is
 * a plain directory with the files of cgroup v2. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/status.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/doc.h"
#include "cpu/topology_read.h"
#include "nri_runtime.h"
#include "pin/manager.h"

struct node {
	struct arena a;
	char dir[64];
	struct cgroup_fs cgroups;
	struct topology topology;
	struct ledger ledger;
	struct manager manager;
	struct session session;
	uint32_t stream;
};

static inline void write_at(const struct node *n, const char *path, const char *file,
			    const char *text)
{
	char full[1024];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s/%s/%s", n->dir, path, file);
	f = fopen(full, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

static inline const char *read_at(struct node *n, const char *path, const char *file)
{
	char full[1024];
	struct err err = { 0 };
	struct str text;

	(void)snprintf(full, sizeof(full), "%s/%s/%s", n->dir, path, file);
	CHECK_OK(file_read_at(AT_FDCWD, full, 4096, &n->a, &text, &err));
	return str_cstr(&n->a, str_trim(text));
}

/* A cgroup as a runtime or a kubelet makes it. "effective" follows by itself only in a kernel. */
static inline void make_cgroup(struct node *n, const char *path, const char *cpus)
{
	char full[1024];
	struct err err = { 0 };

	(void)snprintf(full, sizeof(full), "%s/%s", n->dir, path);
	CHECK_OK(file_mkdirs_at(AT_FDCWD, full, 0755, &err));
	write_at(n, path, "cpuset.cpus", cpus);
	write_at(n, path, "cpuset.cpus.effective", cpus);
	write_at(n, path, "cpuset.mems", "");
	write_at(n, path, "cpuset.mems.effective", "0-1");
	write_at(n, path, "cpu.weight", "1");
	write_at(n, path, "cpu.max", "max 100000");
	write_at(n, path, "cgroup.procs", "");
}

/* As if every namespace allowed every workload type. */
static inline enum permission permit_all(const void *data, struct str namespace, struct str type)
{
	(void)data;
	(void)namespace;
	(void)type;
	return PERMISSION_GRANTED;
}

static inline void node_init_on(struct node *n, const char *topology, const char *reserved,
				const char *shared, const char *guaranteed)
{
	struct pool_config pools;
	struct err err = { 0 };

	*n = (struct node){ .stream = 1 };
	arena_init(&n->a, 0);
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	(void)snprintf(n->dir, sizeof(n->dir), "/tmp/manager-test-XXXXXX");
	CHECK(mkdtemp(n->dir) != NULL);
	write_at(n, ".", "cgroup.controllers", "cpuset cpu\n");
	make_cgroup(n, ".", "0-7");
	CHECK_OK(cgroup_open(&n->cgroups, n->dir, &err));
	CHECK_OK(topology_parse_synthetic(str_from(topology), &n->a, &n->topology, &err));
	pool_config_init(&pools);
	pools.is_classic = !shared;
	CHECK_OK(cpuset_parse(str_from(reserved), &pools.reserved, &err));
	CHECK_OK(cpuset_parse(str_from(shared), &pools.shared, &err));
	CHECK_OK(cpuset_parse(str_from(guaranteed), &pools.guaranteed, &err));
	CHECK_OK(ledger_init(&n->ledger, &n->topology, &pools, &err));
	manager_init(&n->manager, &n->ledger, &n->cgroups);
	n->manager.rules.permission = permit_all;
	session_init(&n->session, &manager_handlers, &n->manager);
	n->session.name = "pinfold";
	n->session.index = "90";
	session_start(&n->session);
	(void)runtime_take(&n->session, MUX_CONN_RUNTIME, &n->a);
}

/* Gives a workload type a part of the management pool. */
static inline void node_set_type(struct node *n, const char *name, const char *list)
{
	struct pool_config pools = n->ledger.now.config;
	struct err err = { 0 };
	struct cpuset cpus;

	CHECK_OK(cpuset_parse(str_from(list), &cpus, &err));
	CHECK_OK(pool_config_set_type(&pools, str_from(name), &cpus, &err));
	CHECK_OK(ledger_resize(&n->ledger, &pools, &err));
}

static inline void node_init(struct node *n, const char *reserved, const char *shared,
			     const char *guaranteed)
{
	node_init_on(n, "pack:1 core:4 pu:2", reserved, shared, guaranteed);
}

static inline void node_done(struct node *n)
{
	char command[128];

	session_done(&n->session);
	manager_done(&n->manager);
	ledger_done(&n->ledger);
	cgroup_done(&n->cgroups);
	(void)snprintf(command, sizeof(command), "rm -rf %s", n->dir);
	CHECK(system(command) == 0);
	arena_done(&n->a);
}

/* The CPUs in the settings of one container, as a list. */
static inline const char *settings_cpus(struct node *n, const char *id)
{
	const struct container_entry *c = registry_find(&n->manager.registry, id);

	CHECK(c);
	return str_cstr(&n->a, cpuset_format(&c->settings->cpus, &n->a));
}

/* One container in a pod of its own. */
struct box {
	struct nri_pod_linux pod_linux;
	struct nri_pair annotations[2];
	struct nri_pod pod;
	struct nri_cpu cpu;
	struct nri_resources resources;
	struct nri_container_linux on_linux;
	struct nri_container container;
	char pod_cgroup[64], cgroup[96], pause[96];
};

static inline void box_init(struct box *b, const char *name, const char *class, uint64_t shares,
			    int64_t quota_us)
{
	*b = (struct box){ 0 };
	(void)snprintf(b->pod_cgroup, sizeof(b->pod_cgroup), "kubepods/%spod-%s", class, name);
	(void)snprintf(b->cgroup, sizeof(b->cgroup), "/%s/%s", b->pod_cgroup, name);
	(void)snprintf(b->pause, sizeof(b->pause), "/%s/pause", b->pod_cgroup);
	b->pod_linux =
		(struct nri_pod_linux){ .cgroup_parent = b->pod_cgroup, .cgroups_path = b->pause };
	b->pod = (struct nri_pod){ .id = name,
				   .name = name,
				   .uid = name,
				   .pod_namespace = "ns",
				   .annotations = b->annotations,
				   .on_linux = &b->pod_linux };
	b->cpu = (struct nri_cpu){ .has_shares = true,
				   .shares = shares,
				   .has_quota = quota_us != 0,
				   .quota_us = quota_us,
				   .has_period = true,
				   .period_us = 100000 };
	b->resources.cpu = &b->cpu;
	b->on_linux = (struct nri_container_linux){ .resources = &b->resources,
						    .cgroups_path = b->cgroup };
	b->container = (struct nri_container){ .id = name,
					       .pod_id = name,
					       .name = "c",
					       .state = NRI_RUNNING,
					       .on_linux = &b->on_linux };
}

static inline void box_manage(struct box *b, const char *own)
{
	b->annotations[0] = (struct nri_pair){ "target.workload.openshift.io/management", "{}" };
	b->annotations[1] = (struct nri_pair){ "resources.workload.openshift.io/c", own };
	b->pod.n_annotations = 2;
}

static inline struct ttrpc_response ask(struct node *n, const char *method, const struct box *b,
					struct nri_cpu *requested)
{
	struct nri_resources resources = { .cpu = requested };
	struct nri_call call = { .pod = (struct nri_pod *)&b->pod,
				 .container = (struct nri_container *)&b->container,
				 .resources = requested ? &resources : NULL };
	const struct str payload = runtime_encode(&nri_call_message, &call, &n->a);
	struct err err = { 0 };

	n->stream += 2;
	CHECK_OK(session_feed(&n->session, runtime_request(method, n->stream, payload, &n->a),
			      &err));
	manager_flush(&n->manager);
	return runtime_response(&n->session, n->stream, &n->a);
}

/* The response to Synchronize. Not flushed: cgroups may be written after it. */
static inline struct ttrpc_response synchronize(struct node *n, const struct nri_sync *sync)
{
	const struct str payload = runtime_encode(&nri_sync_message, sync, &n->a);
	struct err err = { 0 };

	n->stream += 2;
	CHECK_OK(session_feed(&n->session,
			      runtime_request("Synchronize", n->stream, payload, &n->a), &err));
	return runtime_response(&n->session, n->stream, &n->a);
}

/* The CPU settings of a response; all unset when there are none. */
static inline struct nri_cpu response_cpu(struct node *n, const struct ttrpc_response *r,
					  const struct pb_message *m)
{
	struct nri_response response = { 0 };
	struct err err = { 0 };
	struct nri_resources *resources = NULL;

	CHECK(!r->status);
	CHECK_OK(pb_decode(m, r->payload, &n->a, &response, &err));
	if (response.adjustment)
		resources = response.adjustment->on_linux->resources;
	else if (response.n_updates == 1)
		resources = response.updates[0].on_linux->resources;
	return resources ? *resources->cpu : (struct nri_cpu){ .cpus = "" };
}

static inline struct nri_cpu create(struct node *n, const struct box *b)
{
	const struct ttrpc_response r = ask(n, "CreateContainer", b, NULL);

	return response_cpu(n, &r, &nri_created_message);
}
