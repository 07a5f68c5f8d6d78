#include "agent_host.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>

#include "agent.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/problems.h"
#include "cpu/topology.h"
#include "partition/node_partition.h"
#include "pin/crio.h"
#include "pin/manager.h"
#include "pool/store.h"
#include "profile/profile.h"
#include "profile_in_force.h"

static struct host_settings settings_of(const struct agent_config *config,
					const struct cgroup_fs *cgroups, const char *boot_id)
{
	return (struct host_settings){
		.root = config->host.root,
		.state_dir = config->pools.state_dir,
		.proc = "/proc",
		.cgroups = cgroups,
		.boot_id = str_from(boot_id),
		.keeps_interrupts = config->host.keeps_interrupts,
	};
}

void agent_host_open(struct host *h, const struct agent_config *config, const char *boot_id,
		     struct manager *m)
{
	const struct host_settings settings = settings_of(config, m->cgroups, boot_id);
	struct err problem = { 0 };

	if (config->host.is_on) {
		m->status.host = h;
		/* Containers are pinned all the same. */
		if (host_open(h, &settings, &problem) < 0)
			log_error("cannot configure the host, leaving it unchanged",
				  LOG_ERR(&problem));
	} else if (host_has_record(config->pools.state_dir) &&
		   host_restore(&settings, &problem) < 0)
		log_warning("cannot restore the host", LOG_ERR(&problem));
}

void agent_host_tick(struct host *h, struct manager *m)
{
	const struct ledger_frame *now = &m->ledger->now;
	struct cpuset management;

	if (!h->is_open)
		return;
	(void)ledger_cpus(m->ledger, POOL_MANAGEMENT, &management);
	host_tick(h, &(struct host_pools){ &management, &now->sets.guaranteed,
					   &now->topology->online });
	m->is_changed |= h->is_changed;
	h->is_changed = false;
}

void agent_host_follow(struct host *h, const struct agent_config *config, yyjson_val *object,
		       struct arena *a)
{
	struct problem_list ignored; /* it was checked before it was kept */
	struct profile profile = { 0 };

	problem_list_init(&ignored, a);
	if (object)
		(void)profile_read((struct manifest){ .object = object }, a, &profile, &ignored);
	host_keep_interrupts(h, config->host.keeps_interrupts || profile.keeps_interrupts);
}

static struct files_settings files_settings_of(const struct agent_config *config,
					       const char *boot_id)
{
	return (struct files_settings){
		.root = config->host.root,
		.state_dir = config->pools.state_dir,
		.boot_id = str_from(boot_id),
		.distro = config->host.distro,
		.may_write = config->host.manages_files,
		.kubelet_is_static = config->cpu_manager == AGENT_CPU_MANAGER_KUBELET,
	};
}

void agent_files_open(struct files_follow *f, const struct agent_config *config,
		      const char *boot_id)
{
	const struct files_settings settings = files_settings_of(config, boot_id);

	files_follow_init(f, &settings);
}

/* Until the API server has answered, and while other pools are in force, it is not known what the
 * host should have. */
static bool find_profile(const struct profile_in_force *in_force, const char *state_dir,
			 const struct manager *m, struct arena *a, yyjson_val **ret)
{
	*ret = in_force->has_pools ? profile_in_force_get(state_dir, m, a) : NULL;
	return *ret || (m->status.profile.state == PROFILE_NONE &&
			m->status.pools.origin != POOLS_FROM_PROFILE);
}

void agent_files_tick(struct files_follow *f, const struct agent_config *config,
		      const struct profile_in_force *in_force, const struct manager *m,
		      const char *granted)
{
	CLEANUP(arena_done) struct arena a;
	struct files_input input = { .topology = m->ledger->now.topology };

	arena_init(&a, 0);
	/* Flags and the pools file say nothing about the host. */
	f->is_awaited = m->status.pools.origin != POOLS_FROM_FLAGS &&
			m->status.pools.origin != POOLS_FROM_FILE;
	if (!config->host.is_on || !m->runtime.name[0] || !files_follow_tick(f, granted) ||
	    !find_profile(in_force, config->pools.state_dir, m, &a, &input.profile))
		return;
	input.has_crio = strcmp(m->runtime.name, CRIO_RUNTIME_NAME) == 0;
	files_follow_check(f, &input);
	/* Before malloc_trim() can return it: files are rendered anew for each check (D22). */
	arena_done(&a);
	(void)malloc_trim(0);
}

static struct condition condition(enum condition_status status, const char *reason,
				  struct str message)
{
	return (struct condition){ .status = status,
				   .reason = str_from(reason),
				   .message = message };
}

void agent_host_condition(const struct host *h, struct node_partition_status *s, struct arena *a)
{
	struct condition *ret = &s->conditions[PARTITION_HOST_CONFIGURED];
	const struct err *problem = host_problem(h);

	if (problem)
		*ret = condition(CONDITION_FALSE, "HostNotConfigured",
				 str_dup(a, str_from(problem->msg)));
	else if (!host_is_configured(h))
		*ret = condition(CONDITION_UNKNOWN, "HostNotChecked", STR(""));
	else
		*ret = condition(CONDITION_TRUE, "HostConfigured", STR(""));
}

int agent_host_restore(const struct agent_config *config, struct err *err)
{
	CLEANUP(cgroup_done) struct cgroup_fs fs = { .cpu_fd = -1, .cpuset_fd = -1 };
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char boot_id[STORE_BOOT_ID_MAX];
	struct files_settings files;
	struct host_settings settings;
	int r;

	r = store_read_boot_id(root, boot_id, err);
	if (r < 0)
		return r;
	files = files_settings_of(config, boot_id);
	r = files_restore(&files, err);
	if (r < 0)
		return r;
	if (!host_has_record(config->pools.state_dir))
		return 0;
	r = cgroup_open(&fs, config->cgroup_root, err);
	if (r < 0)
		return r;
	settings = settings_of(config, &fs, boot_id);
	r = host_restore(&settings, err);
	return r < 0 ? r : 0;
}
