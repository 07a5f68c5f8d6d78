/* One NUMA decision for every role (D17): on random machines, with random pools and policies, the
 * agent, the OCI hook and `pinfold local` give the same containers the same CPUs and memory nodes,
 * or refuse them with the same reason. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/manifests_text.h"
#include "base/log.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "local/local_plan.h"
#include "nri/nri.h"
#include "oci/oci_hook.h"
#include "pin/manager.h"
#include "pin/placement.h"
#include "prop.h"

#define N_PODS 6
#define ROUNDS 150 /* each runs the hook, with files, six times */

struct scene {
	struct arena a;
	char machine[64];
	struct topology topology;
	struct str reserved, shared, guaranteed;
	const char *policy;
	unsigned n_cpus[N_PODS];
	char dir[64];
};

/* "4-7 mems=1", or the reason of the refusal. */
static struct str describe(struct scene *s, const struct cpu_settings *settings)
{
	struct str mems = cpuset_format(&(struct cpuset){ .w = { settings->mems } }, &s->a);

	return str_printf(&s->a, PRI_STR " mems=" PRI_STR,
			  FMT_STR(cpuset_format(&settings->cpus, &s->a)), FMT_STR(mems));
}

/* Text before the message differs: it names the pod or the container. */
static struct str refusal(struct scene *s, struct str text)
{
	static const char *const starts[] = { "TopologyAffinityError", "SMT Alignment Error",
					      "not enough cpus" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		const char *found = strstr(str_cstr(&s->a, text), starts[i]);

		if (found)
			return str_from(found);
	}
	return text;
}

static void scene_init(struct scene *s, struct prop *p)
{
	static const char *const policies[] = { "none", "best-effort", "restricted",
						"single-numa-node" };
	struct cpuset sets[3] = { { { 0 } } };
	struct err err = { 0 };

	*s = (struct scene){ .policy = prop_pick(p, policies) };
	arena_init(&s->a, 0);
	(void)snprintf(s->machine, sizeof(s->machine), "pack:%d numa:%d core:%d pu:%d",
		       (int)prop_between(p, 1, 2), (int)prop_between(p, 1, 3),
		       (int)prop_between(p, 3, 5), (int)prop_between(p, 1, 2));
	CHECK_OK(topology_parse_synthetic(str_from(s->machine), &s->a, &s->topology, &err));
	cpuset_add(&sets[0], 0);
	cpuset_add(&sets[1], 1);
	for (unsigned cpu = 2; cpu < s->topology.n_cpus - 1; cpu++)
		cpuset_add(&sets[prop_one_in(p, 3) ? prop_below(p, 2) : 2], cpu);
	cpuset_add(&sets[2], s->topology.n_cpus - 1);
	s->reserved = cpuset_format(&sets[0], &s->a);
	s->shared = cpuset_format(&sets[1], &s->a);
	s->guaranteed = cpuset_format(&sets[2], &s->a);
	for (size_t i = 0; i < N_PODS; i++)
		s->n_cpus[i] = (unsigned)prop_between(p, 1, 6);
	(void)snprintf(s->dir, sizeof(s->dir), "/tmp/prop-numa-XXXXXX");
	CHECK(mkdtemp(s->dir) != NULL);
}

static void scene_done(struct scene *s)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	CHECK(system(command) == 0);
	arena_done(&s->a);
}

static struct pools_source source_of(const struct scene *s)
{
	static const char *const whole_cores[] = { "full-pcpus-only=true" };

	return (struct pools_source){
		.reserved = s->reserved.p,
		.shared = s->shared.p,
		.guaranteed = s->guaranteed.p,
		.topology_policy = s->policy,
		.policy_options = whole_cores,
		/* a profile with this policy implies it */
		.n_policy_options = strcmp(s->policy, "single-numa-node") == 0,
	};
}

static void ask_agent(struct scene *s, struct str ret[N_PODS])
{
	const struct pools_source source = source_of(s);
	struct pool_config config;
	struct manager m;
	struct ledger l;
	struct err err = { 0 };
	struct pools_found found;

	CHECK_OK(pools_source_read(&source, &s->a, &config, &found, &err));
	CHECK_OK(ledger_init(&l, &s->topology, &config, &err));
	manager_init(&m, &l, NULL);
	for (size_t i = 0; i < N_PODS; i++) {
		const char *name = str_cstr(&s->a, str_printf(&s->a, "p%zu", i));
		struct nri_cpu cpu = { .has_shares = true,
				       .shares = s->n_cpus[i] * UINT64_C(1024),
				       .has_quota = true,
				       .quota_us = s->n_cpus[i] * INT64_C(100000),
				       .has_period = true,
				       .period_us = 100000,
				       .cpus = "",
				       .mems = "" };
		struct nri_resources resources = { .cpu = &cpu };
		struct nri_container_linux on_linux = { .resources = &resources };
		struct nri_pod_linux pod_linux = { .cgroup_parent = "kubepods/pod" };
		const struct nri_pod pod = { .id = name,
					     .name = name,
					     .uid = name,
					     .pod_namespace = "ns",
					     .on_linux = &pod_linux };
		const struct nri_container c = {
			.id = name, .pod_id = name, .name = "c", .on_linux = &on_linux
		};
		struct placement placement;

		err = (struct err){ 0 };
		ret[i] = place_container(&m, &pod, &c, PLACE_NEW, &placement, &err) < 0 ?
				 refusal(s, str_from(err.msg)) :
				 describe(s, &placement.settings);
	}
	manager_done(&m);
	ledger_done(&l);
}

static void ask_hook(struct scene *s, struct str ret[N_PODS])
{
	const struct oci_hook_config config = {
		.pools = source_of(s),
		.run_dir = str_cstr(&s->a, str_printf(&s->a, "%s/run", s->dir)),
		.cgroup_root = s->dir,
		.topology = s->machine,
		.proc = "/proc",
	};
	char file[128];
	FILE *f;

	(void)snprintf(file, sizeof(file), "%s/cgroup.controllers", s->dir);
	f = fopen(file, "w");
	CHECK(f != NULL);
	(void)fputs("cpuset cpu\n", f);
	(void)fclose(f);
	for (size_t i = 0; i < N_PODS; i++) {
		struct str input = str_printf(
			&s->a,
			"{\"linux\":{\"cgroupsPath\":\"/machine/p%zu\",\"resources\":{\"cpu\":"
			"{\"quota\":%u00000,\"period\":100000},\"memory\":{\"limit\":4096}}}}",
			i, s->n_cpus[i]);
		struct oci_hook_result result = { 0 };
		struct cpu_settings settings;
		struct err err = { 0 };
		struct doc doc;

		if (oci_hook_run(&config, OCI_PRECREATE, input, &s->a, &result, &err) < 0) {
			ret[i] = refusal(s, str_from(err.msg));
			continue;
		}
		CHECK(!result.is_ignored);
		CHECK_OK(doc_parse(result.text, STR("placement"), NULL, &s->a, &doc, &err));
		CHECK_OK(cpu_settings_get(doc.root, &settings, &err));
		ret[i] = describe(s, &settings);
	}
}

static void ask_local(struct scene *s, struct str ret[N_PODS])
{
	struct manifests *m = arena_new(&s->a, struct manifests);
	struct local_plan_input in = { .manifests = m, .topology = &s->topology };
	struct pool_config config;
	struct problem_list p;
	struct local_plan plan;
	struct ledger l;
	struct err err = { 0 };
	struct strbuf b;

	strbuf_init(&b, &s->a);
	strbuf_printf(&b,
		      "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"
		      "metadata: {name: p}\nspec: {cpu: {reserved: \"" PRI_STR
		      "\", shared: \"" PRI_STR "\", isolated: \"" PRI_STR "\"}, "
		      "numa: {topologyPolicy: %s}, "
		      "nodeSelector: {node-role.kubernetes.io/worker: \"\"}}\n",
		      FMT_STR(s->reserved), FMT_STR(s->shared), FMT_STR(s->guaranteed), s->policy);
	for (size_t i = 0; i < N_PODS; i++)
		strbuf_printf(&b,
			      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%zu, namespace: "
			      "ns}\nspec: {containers: [{name: c, command: [x], resources: "
			      "{limits: {cpu: %u, memory: 1Mi}}}]}\n",
			      i, s->n_cpus[i]);
	manifests_init(m, &s->a);
	problem_list_init(&p, &s->a);
	manifests_from_text(m, strbuf_str(&b), STR("t.yaml"), &p);
	if (!local_plan_config(&in, &s->a, &config, &p))
		CHECK_STR(p.items[0].text, "");
	CHECK_OK(ledger_init(&l, &s->topology, &config, &err));
	CHECK(local_plan_make(&in, &config, &l, &s->a, &plan, &p) >= 0);
	for (size_t i = 0; i < plan.n; i++)
		ret[plan.containers[i].pod.p[1] - '0'] = describe(s, &plan.containers[i].settings);
	for (size_t i = 0; i < plan.n_refusals; i++)
		ret[plan.refusals[i].pod.p[1] - '0'] = refusal(s, plan.refusals[i].text);
	ledger_rollback(&l);
	ledger_done(&l);
}

TEST(agent_hook_and_local_decide_the_same)
{
	struct prop p = prop_start();
	size_t n_refused = 0, n_mems = 0;
	/* The hook reads the boot id below /, and an emulator opens another directory for it. */
	const bool has_hook = !getenv("MESON_EXE_WRAPPER");

	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	for (p.round = 0; p.round < (p.runs < ROUNDS ? p.runs : ROUNDS); p.round++) {
		struct str agent[N_PODS], hook[N_PODS], local[N_PODS];
		CLEANUP(scene_done) struct scene s;

		scene_init(&s, &p);
		ask_agent(&s, agent);
		if (has_hook)
			ask_hook(&s, hook);
		ask_local(&s, local);
		for (size_t i = 0; i < N_PODS; i++) {
			TEST_ROW("seed %llu round %u: %s, %s, guaranteed " PRI_STR ", pod %zu of "
				 "%u CPUs",
				 (unsigned long long)p.seed, p.round, s.machine, s.policy,
				 FMT_STR(s.guaranteed), i, s.n_cpus[i]);
			if (has_hook)
				CHECK_STR(hook[i], agent[i]);
			CHECK_STR(local[i], agent[i]);
			n_refused += str_starts(agent[i], STR("TopologyAffinityError"));
			n_mems += !str_ends(agent[i], STR("mems="));
		}
	}
	CHECK(n_refused > 0 && n_mems > n_refused); /* all outcomes occur */
}
