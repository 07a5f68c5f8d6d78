/* pinfold agent --uninstall. The Node is last: what is local is undone even if the API server
 * cannot be reached, and the whole command can be repeated. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent.h"
#include "agent_host.h"
#include "agentclient/run_dir.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/doc.h"
#include "nodesync/node_sync.h"
#include "pin/isolate.h"
#include "pin/kept_profile.h"
#include "pin/namespace_allowlist.h"
#include "staticpod/static_pods.h"
#include "status.h"

/* Gives every cgroup in the list the effective CPUs and memory nodes of its parent: on v1 an empty
 * cpuset would not inherit them. Cgroups that are gone are skipped. Returns how many failed. */
static size_t widen_cpusets(const struct cgroup_fs *fs, yyjson_val *list, struct str key,
			    struct arena *a)
{
	yyjson_val *item;
	size_t failed = 0;

	DOC_EACH_ITEM (list, item) {
		const char *path = str_cstr(a, doc_str(doc_get(item, key)));
		const char *slash = strrchr(path, '/');
		struct cgroup_cpu parent;
		struct err err = { 0 };

		if (!slash || !cgroup_exists(fs, path))
			continue;
		if (cgroup_read(fs, str_cstr(a, (struct str){ path, (size_t)(slash - path) }),
				CGROUP_CPUS | CGROUP_MEMS, &parent, &err) < 0 ||
		    cgroup_set_cpus(fs, path, &parent.effective, &err) < 0 ||
		    (doc_get(item, STR("mems")) &&
		     cgroup_set_mems(fs, path, parent.effective_mems, &err) < 0)) {
			log_warning("cannot widen the cpuset of a cgroup",
				    LOG_STR("cgroup", str_from(path)), LOG_ERR(&err));
			failed++;
		}
	}
	return failed;
}

static int restore_static_pods(const char *path, struct err *err)
{
	CLEANUP(static_pods_done) struct static_pods s;
	int r;

	r = static_pods_open(&s, path, err);
	if (r == 0)
		r = static_pods_restore(&s, err);
	if (r < 0)
		return err_wrap(err, "static pods of %s", path);
	log_info("static pods restored", LOG_INT("count", r));
	return 0;
}

/* A running agent would restore all settings. The lock is released again, so it does not keep
 * an agent from starting later. */
static int check_no_agent_runs(int dir, struct err *err)
{
	AUTO_CLOSE int fd = openat(dir, AGENT_LOCK_FILE, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(err, EBUSY, "an agent is running, stop it first");
	return 0;
}

/* Widens everything that the status file lists. Without a status file there is nothing to widen. */
static int release_containers(const struct agent_config *config, int dir, size_t *ret_failed,
			      struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(cgroup_done) struct cgroup_fs fs = { .cpu_fd = -1, .cpuset_fd = -1 };
	struct doc doc = { 0 };
	struct str text;
	int r;

	arena_init(&a, 0);
	*ret_failed = 0;
	if (faccessat(dir, AGENT_STATUS_FILE, F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	r = file_read_at(dir, AGENT_STATUS_FILE, DOC_MAX_SIZE, &a, &text, err);
	if (r == 0)
		r = doc_parse(text, STR(AGENT_STATUS_FILE), NULL, &a, &doc, err);
	if (r == 0)
		r = cgroup_open(&fs, config->cgroup_root, err);
	if (r < 0)
		return r;
	/* Partitions first: their CPUs are missing from the effective CPUs of the ancestors, with
	 * which the cpusets are widened. */
	*ret_failed = isolate_undo(&fs, doc_get(doc.root, STR("containers")), &a);
	*ret_failed += widen_cpusets(&fs, doc_get(doc.root, STR("containers")), STR("cgroup"), &a);
	*ret_failed += widen_cpusets(&fs, doc_get(doc.root, STR("pods")), STR("pauseCgroup"), &a);
	return 0;
}

static int delete_state(int dir, struct err *err)
{
	/* A killed agent leaves its socket, and with it OCI hooks expect an agent. */
	static const char *const files[] = { AGENT_LEDGER_FILE, AGENT_STATUS_FILE, ALLOWLIST_FILE,
					     AGENT_SOCKET };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (unlinkat(dir, files[i], 0) < 0 && errno != ENOENT)
			return err_set(err, errno, "remove %s: %s", files[i], strerror(errno));
	return 0;
}

int agent_uninstall(const struct agent_config *config, struct err *err)
{
	AUTO_CLOSE int dir = open(config->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t failed = 0;
	int r = 0;

	if (dir < 0 && errno != ENOENT)
		return err_set(err, errno, "open %s: %s", config->run_dir, strerror(errno));
	if (dir >= 0)
		r = check_no_agent_runs(dir, err);
	if (r == 0 && config->static_pods)
		r = restore_static_pods(config->static_pods, err);
	if (r == 0 && dir >= 0)
		r = release_containers(config, dir, &failed, err);
	if (r == 0)
		r = agent_host_restore(config, err);
	if (r == 0 && dir >= 0)
		r = delete_state(dir, err);
	if (r == 0)
		r = kept_profile_remove(config->pools.state_dir, err);
	if (r == 0)
		r = node_sync_uninstall(&config->cluster, err);
	if (r == 0 && failed > 0)
		return err_set(err, EIO, "%zu cgroups could not be widened", failed);
	return r;
}
