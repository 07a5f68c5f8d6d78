#include "agent_confine.h"

#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "confine/confine.h"
#include "distro/distro.h"
#include "host/host_dirs.h"

/* Files of the agent, of cgroups and of the kubelet belong to root, so no capability is needed for
 * them. */
static uint64_t needed_capabilities(const struct agent_config *c)
{
	/* sched_setaffinity() of pause processes and monitors, which have other users. */
	uint64_t caps = CONFINE_CAP(CAP_SYS_NICE);

	if (c->isolated_partitions)
		caps |= CONFINE_CAP(CAP_SYS_ADMIN); /* the kernel requires it for partitions */
	return caps;
}

/* The directory of a socket, from which it is removed at the end. */
static const char *directory_of(const char *path, struct arena *a)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return ".";
	return slash == path ? "/" : str_cstr(a, (struct str){ path, (size_t)(slash - path) });
}

/* The agent holds /proc/irq open (host_open()): procfs gives a directory another inode when it was
 * dropped from the cache, and the rule would be about the old one. */
static void add_host(const struct agent_config *c, struct confine_files *files,
		     struct confine_path *writable, struct arena *a)
{
	static const char *const paths[] = { "/proc/irq", "/sys/devices/virtual/workqueue" };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const char *path =
			str_cstr(a, str_printf(a, "%s%s", host_prefix(c->host.root), paths[i]));

		if (access(path, F_OK) == 0) /* a mount may be missing; the host reports it */
			writable[files->n++] = (struct confine_path){ path, false };
	}
}

/* Host files, the kubelet's state, and the sentinel of a reboot. */
static void add_host_files(const struct agent_config *c, struct confine_files *files,
			   struct confine_path *writable, struct arena *a)
{
	const char *const paths[] = { "/etc",	   "/usr/local",
				      "/run",	   "/var/lib/rancher",
				      "/var/snap", c->host.distro->kubelet_root };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const char *path =
			str_cstr(a, str_printf(a, "%s%s", host_prefix(c->host.root), paths[i]));

		if (access(path, F_OK) == 0)
			writable[files->n++] = (struct confine_path){ path, false };
	}
}

static int confine_to_directories(const struct agent_config *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct confine_path writable[16] = { { c->cgroup_root, false }, { c->run_dir, false } };
	struct confine_files files = { .writable = writable, .n = 2 };

	arena_init(&a, 0);
	if (access(c->pools.state_dir, F_OK) == 0) /* without a cluster it may be missing */
		writable[files.n++] = (struct confine_path){ c->pools.state_dir, false };
	if (c->static_pods)
		writable[files.n++] = (struct confine_path){ c->static_pods, false };
	if (c->podres)
		writable[files.n++] = (struct confine_path){ directory_of(c->podres, &a), true };
	if (c->host.is_on)
		add_host(c, &files, writable, &a);
	if (c->host.manages_files)
		add_host_files(c, &files, writable, &a);
	return confine_files(&files, err);
}

int agent_confine(const struct agent_config *config, struct err *err)
{
	int version, r;

	if (config->is_unconfined) {
		log_warning("system calls, capabilities and files are not restricted");
		return 0;
	}
	version = confine_to_directories(config, err);
	r = version < 0 ? version : confine_capabilities(needed_capabilities(config), err);
	if (r == 0)
		r = confine_syscalls(CONFINE_AGENT, err);
	if (r < 0)
		return err_wrap(err, "cannot confine the agent (--no-confinement turns it off)");
	if (version == 0)
		log_warning("the kernel has no Landlock, write access to files is not restricted");
	log_info("process confined", LOG_INT("landlock", version));
	return 0;
}
