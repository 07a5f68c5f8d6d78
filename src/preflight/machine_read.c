#include "machine_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/unix_socket.h"
#include "cpu/topology_read.h"
#include "cri_version.h"
#include "distro/distro_read.h"
#include "kube/names.h"
#include "pin/pools_source.h"
#include "pool/checkpoint.h"
#include "runtime_config.h"

#define VALUE_MAX ((size_t)64 << 10)
#define CONFIG_MAX ((size_t)1 << 20)
#define CONNECT_TIMEOUT_S 5

struct machine_reader {
	int root;
	const char *prefix; /* of paths for modules that take no descriptor: "" or the tree */
	bool is_live;
	struct arena *a;
	struct machine_facts *f;
};

/* The file's content, or "". `path` is absolute. */
static struct str read_text(const struct machine_reader *m, const char *path)
{
	struct str text;

	if (file_read_at(m->root, path + 1, VALUE_MAX, m->a, &text, NULL) < 0)
		return STR("");
	return text;
}

static bool exists(const struct machine_reader *m, const char *path)
{
	struct stat st;

	return fstatat(m->root, path + 1, &st, 0) == 0;
}

static uint64_t read_number(const struct machine_reader *m, const char *path)
{
	uint64_t n;

	return str_to_u64(str_trim(read_text(m, path)), UINT64_MAX, &n) ? n : 0;
}

static enum fact read_landlock(const struct machine_reader *m)
{
	struct str lsm;

	if (m->is_live) {
		long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
				       LANDLOCK_CREATE_RULESET_VERSION);

		return version > 0 ? FACT_YES : FACT_NO;
	}
	lsm = read_text(m, "/sys/kernel/security/lsm");
	return !lsm.n ? FACT_UNKNOWN : str_has(lsm, STR("landlock")) ? FACT_YES : FACT_NO;
}

static void read_kernel(const struct machine_reader *m)
{
	struct machine_facts *f = m->f;

	f->kernel = str_trim(read_text(m, "/proc/sys/kernel/osrelease"));
	f->controllers = str_trim(read_text(m, "/sys/fs/cgroup/cgroup.controllers"));
	f->cgroup_version = exists(m, "/sys/fs/cgroup/cgroup.controllers") ? 2 :
			    exists(m, "/sys/fs/cgroup/cpuset")		   ? 1 :
									     0;
	f->inotify_instances = read_number(m, "/proc/sys/fs/inotify/max_user_instances");
	f->inotify_watches = read_number(m, "/proc/sys/fs/inotify/max_user_watches");
	f->landlock = read_landlock(m);
	f->seccomp = f->kernel.n ? exists(m, "/proc/sys/kernel/seccomp/actions_avail") ? FACT_YES :
											 FACT_NO :
				   FACT_UNKNOWN;
	f->etc_is_read_only = !m->is_live ? FACT_UNKNOWN :
			      faccessat(m->root, "etc", W_OK, AT_EACCESS) < 0 && errno == EROFS ?
					    FACT_YES :
					    FACT_NO;
}

/* Effective affinities: where the kernel delivers, which may differ from where it may. */
static void read_irqs(const struct machine_reader *m)
{
	struct str *names;
	size_t n;

	if (file_list_at(m->root, "proc/irq", m->a, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct cpuset cpus;
		uint64_t irq;

		if (str_to_u64(names[i], UINT32_MAX, &irq) &&
		    cpuset_parse_kernel(read_text(m, str_printf(m->a,
								"/proc/irq/" PRI_STR
								"/effective_affinity_list",
								FMT_STR(names[i]))
							     .p),
					&cpus, NULL) == 0)
			cpuset_union(&m->f->irq_cpus, &cpus);
	}
}

static void read_cpus(const struct machine_reader *m)
{
	struct machine_facts *f = m->f;
	struct str cmdline = read_text(m, "/proc/cmdline");
	struct str mask = str_trim(read_text(m, "/proc/irq/default_smp_affinity"));
	AUTO_CLOSE int system =
		openat(m->root, "sys/devices/system", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	f->has_topology = system >= 0 && topology_read_sysfs(system, m->a, &f->topology, NULL) == 0;
	f->has_isolcpus = cmdline_cpus(cmdline, STR("isolcpus"), &f->isolcpus);
	f->has_irqaffinity = cmdline_cpus(cmdline, STR("irqaffinity"), &f->irqaffinity);
	f->has_irq_default = mask.n && cpuset_parse_words(mask, &f->irq_default, NULL) == 0;
	read_irqs(m);
}

static void read_pools(const struct machine_reader *m)
{
	struct machine_facts *f = m->f;
	const struct pools_source source = {
		.pools_file = str_printf(m->a, "%s" NAME_POOLS_FILE, m->prefix).p,
		.state_dir = str_printf(m->a, "%s" AGENT_STATE_DIR, m->prefix).p,
		.marker_file = str_printf(m->a, "%s" NAME_KUBELET_MARKER, m->prefix).p,
	};
	struct pools_found found = { 0 };
	struct err err = { 0 };
	int r = pools_source_read(&source, m->a, &f->pools, &found, &err);

	if (r == -ENOENT)
		return;
	if (r == 0 && f->has_topology)
		r = pool_config_check(&f->pools, &f->topology, &err);
	f->has_pools = r == 0;
	if (r < 0)
		f->pools_error = err;
	else if (found.origin == POOLS_FROM_PROFILE)
		f->pools_from = str_printf(m->a, "profile " PRI_STR, FMT_STR(found.profile)).p;
	else
		f->pools_from = found.from + strlen(m->prefix);
}

static void read_socket(const struct machine_reader *m, const char *path, struct socket_fact *ret)
{
	*ret = (struct socket_fact){ .path = path, .exists = exists(m, path) };
	if (!m->is_live || !ret->exists)
		return;
	AUTO_CLOSE int fd = unix_socket_connect(path, CONNECT_TIMEOUT_S);

	ret->accepts = fd >= 0 ? FACT_YES : FACT_NO;
	ret->error = fd >= 0 ? 0 : -fd;
}

typedef int (*config_fn)(const struct machine_reader *m, struct str text, struct str file,
			 struct err *err);

/* The main file, then those of the drop-in directory with this suffix, in their order. The first
 * failure, if any, is in *err. */
static void each_config(const struct machine_reader *m, const char *main_file, const char *dir,
			const char *suffix, config_fn fn, struct err *err)
{
	struct str text, *names;
	size_t n = 0;
	int r = 0;

	if (main_file && file_read_at(m->root, main_file + 1, CONFIG_MAX, m->a, &text, NULL) == 0)
		r = fn(m, text, str_from(main_file), err);
	if (!dir || file_list_at(m->root, dir + 1, m->a, &names, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n && r == 0; i++) {
		struct str path = str_printf(m->a, "%s/" PRI_STR, dir, FMT_STR(names[i]));

		if (str_ends(names[i], str_from(suffix)) &&
		    file_read_at(m->root, path.p + 1, CONFIG_MAX, m->a, &text, NULL) == 0)
			r = fn(m, text, path, err);
	}
}

static int apply_runtime(const struct machine_reader *m, struct str text, struct str file,
			 struct err *err)
{
	return runtime_config_read(m->f->distro.distro->runtime, text, file, m->a,
				   &m->f->nri_setting, err);
}

static int apply_kubelet(const struct machine_reader *m, struct str text, struct str file,
			 struct err *err)
{
	return kubelet_config_apply(text, file, m->a, &m->f->kubelet, err);
}

/* kubeadm leaves the runtime to the administrator: CRI-O is used where only its files exist. */
static void choose_runtime(const struct machine_reader *m)
{
	const struct distro *d = m->f->distro.distro;
	struct distro crio = distro_on_crio(d), *copy;

	if (d != distro_get(DISTRO_KUBEADM) || exists(m, d->cri_socket) ||
	    exists(m, d->runtime_config) ||
	    !(exists(m, crio.cri_socket) || exists(m, crio.runtime_dropin_dir)))
		return;
	copy = arena_new(m->a, struct distro);
	*copy = crio;
	m->f->distro.distro = copy;
}

static void read_runtime(const struct machine_reader *m)
{
	const struct distro *d;

	choose_runtime(m);
	d = m->f->distro.distro;
	read_socket(m, d->cri_socket, &m->f->cri);
	read_socket(m, d->nri_socket, &m->f->nri);
	if (m->f->cri.accepts == FACT_YES)
		(void)cri_version_read(d->cri_socket, m->a, &m->f->runtime, &m->f->runtime_version,
				       NULL);
	/* MicroK8s' template is not TOML before its variables are replaced: unknown then. */
	each_config(m, d->runtime_config, d->runtime_dropin_dir,
		    d->runtime == DISTRO_CRIO ? "" : ".toml", apply_runtime, NULL);
}

static void read_kubelet(const struct machine_reader *m)
{
	const struct distro *d = m->f->distro.distro;
	const char *state = distro_kubelet_path(d, "cpu_manager_state", m->a);
	struct str text = read_text(m, state);
	struct checkpoint checkpoint;
	struct err err = { 0 };

	each_config(m, d->kubelet_config, d->kubelet_dropin_dir, ".conf", apply_kubelet, &err);
	if (err.code)
		m->f->kubelet.config_error = str_dup(m->a, str_from(err.msg));
	if (text.n && checkpoint_decode(text, str_from(state), m->a, &checkpoint, NULL) == 0)
		m->f->kubelet.state_policy = checkpoint.policy;
}

/* The pools in force where no file has them: from flags, or from the cluster. */
static void use_agent_pools(struct machine_facts *f, yyjson_val *status)
{
	struct pool_config c;

	if (f->has_pools || f->pools_error.code)
		return;
	pool_config_init(&c);
	c.is_classic = !str_eq(doc_str(doc_get(status, STR("mode"))), STR("pools"));
	if (cpuset_parse(doc_str(doc_find(status, "/pools/management/cpus")), &c.reserved, NULL) <
		    0 ||
	    cpuset_parse(doc_str(doc_find(status, "/pools/shared/cpus")), &c.shared, NULL) < 0 ||
	    cpuset_parse(doc_str(doc_find(status, "/pools/guaranteed/cpus")), &c.guaranteed, NULL) <
		    0)
		return;
	f->pools = c;
	f->pools_from = "the running agent";
	f->has_pools = true;
}

static void read_agent(const struct machine_reader *m, const char *run_dir)
{
	struct machine_facts *f = m->f;
	struct agent_status status;
	struct err err = { 0 };

	if (!m->is_live)
		return;
	f->agent_runs = FACT_NO;
	if (status_client_read(run_dir, m->a, &status, &err) < 0) {
		f->agent_error = str_dup(m->a, str_from(err.msg));
		return;
	}
	f->agent_runs = status.is_running ? FACT_YES : FACT_NO;
	f->agent_connected = doc_bool(doc_find(status.doc.root, "/runtime/connected"), false) ?
				     FACT_YES :
				     FACT_NO;
	if (status.is_running)
		use_agent_pools(f, status.doc.root);
}

int machine_read(const struct machine_source *source, struct arena *a, struct machine_facts *ret,
		 struct err *err)
{
	const char *root = source->root ? source->root : "/";
	AUTO_CLOSE int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct machine_reader m = { fd, source->root ? source->root : "",
					  source->root == NULL, a, ret };
	int r;

	*ret = (struct machine_facts){ 0 };
	if (fd < 0)
		return err_set(err, errno, "%s: %s", root, strerror(errno));
	if (source->distro) {
		r = distro_choose(source->distro, a, &ret->distro, err);
		if (r < 0)
			return r;
	} else {
		ret->distro = distro_read(fd, a);
	}
	read_kernel(&m);
	read_cpus(&m);
	read_pools(&m);
	read_agent(&m, source->run_dir);
	read_runtime(&m);
	read_kubelet(&m);
	return 0;
}
