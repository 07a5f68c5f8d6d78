/* The record is written before the container is placed: it is how the agent learns about the
 * container, because a request has only its id, and it lets the next agent find the container
 * again. A hook that decides itself opens the same ledger as the agent, with the same lock. */

#include "oci_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentclient/run_dir.h"
#include "agentclient/status_client.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cgroup/cgroup.h"
#include "cpu/topology_read.h"
#include "oci_containers.h"
#include "oci_record.h"
#include "pin/manager.h"
#include "pin/namespace_allowlist.h"
#include "pool/store.h"
#include "precreate.h"

#define MAX_CONFIG ((size_t)4 << 20)
#define MAX_PROC 65536
/* While the agent starts or stops it holds the ledger's lock and has no socket yet. */
#define AGENT_WAIT_MS 5000
#define AGENT_RETRY_MS 50

struct hook {
	const struct oci_hook_config *config;
	enum oci_stage stage;
	struct arena *a;
	struct doc input; /* the container's state, or its configuration at precreate */
	struct str id;
	bool is_unnamed; /* the id is made up */
	int run_fd;
};

/* Ledger and manager of a hook that decides itself. */
struct standalone_manager {
	struct cgroup_fs cgroups;
	struct topology topology;
	struct ledger ledger;
	struct store store;
	struct manager manager;
};

struct hook_permissions {
	const struct permission_flags *flags;
	struct namespace_allowlist allowlist; /* the agent's last; unknown without one */
};

static enum permission namespace_permission(const void *data, struct str namespace, struct str type)
{
	const struct hook_permissions *p = data;

	return p->flags->n ? permission_from_flags(p->flags, namespace, type) :
			     namespace_allowlist_check(&p->allowlist, namespace, type);
}

static int open_manager(const struct hook *h, struct standalone_manager *own, struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_settings settings = { .dir_fd = h->run_fd, .path = AGENT_LEDGER_FILE };
	char boot_id[STORE_BOOT_ID_MAX];
	struct store_report report;
	struct pool_config pools;
	struct pools_found found;
	int r;

	r = pools_source_read(&h->config->pools, h->a, &pools, &found, err);
	if (r == 0)
		r = topology_read(h->config->topology, h->a, &own->topology, err);
	if (r == 0)
		r = store_read_boot_id(root, boot_id, err);
	if (r == 0)
		r = cgroup_open(&own->cgroups, h->config->cgroup_root, err);
	if (r < 0)
		return r;
	settings.boot_id = boot_id;
	settings.topology = &own->topology;
	settings.config = &pools;
	r = store_open(&own->store, &own->ledger, &settings, &report, err);
	if (r < 0)
		cgroup_done(&own->cgroups);
	return r;
}

static int decide_without_agent(const struct hook *h, struct str *ret, struct err *err)
{
	struct standalone_manager own = { .cgroups = { .cpu_fd = -1, .cpuset_fd = -1 } };
	struct oci_containers oci = { &own.manager, h->run_fd };
	struct hook_permissions permissions = { .flags = &h->config->allowed };
	int r;

	r = open_manager(h, &own, err);
	if (r < 0)
		return r;
	/* Without a readable file nothing is known, and no pod of the API server is permitted. */
	(void)namespace_allowlist_read(&permissions.allowlist, h->run_fd, STR(""), NULL);
	manager_init(&own.manager, &own.ledger, &own.cgroups);
	own.manager.rules.is_legacy = h->config->is_legacy;
	own.manager.rules.permission = namespace_permission;
	own.manager.rules.permission_data = &permissions;
	/* The manager starts empty and must know all containers: shared ones may have to leave CPUs
	 * that become exclusive. */
	oci_containers_load(&oci, h->id);
	if (h->stage == OCI_REMOVE)
		oci_containers_remove(&oci, h->id);
	else
		r = oci_containers_add(&oci, h->id, h->a, ret, err);
	namespace_allowlist_done(&permissions.allowlist);
	manager_done(&own.manager);
	ledger_done(&own.ledger);
	store_done(&own.store);
	cgroup_done(&own.cgroups);
	return r;
}

/* Whether the failure of a request means that no process listens on the agent's socket, in contrast
 * to an agent that does not respond. */
static bool is_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

static void wait_for_agent(void)
{
	const struct timespec step = { .tv_nsec = AGENT_RETRY_MS * 1000000L };

	(void)nanosleep(&step, NULL);
}

/* -EHOSTDOWN: an agent is responsible for this machine, and its decision is not known. */
static int agent_failure(struct err *err)
{
	(void)err_wrap(err, "the agent does not respond");
	if (err)
		err->code = EHOSTDOWN;
	return -EHOSTDOWN;
}

/* Agent and hook never decide at the same time: the ledger has a lock, and -EBUSY means that the
 * agent or another hook holds it. Any response of an agent is final: a hook that decided after a
 * refusal would assign CPUs that the agent does not know of. */
static int decide(const struct hook *h, struct str *ret, struct err *err)
{
	const struct str target = str_printf(h->a, "/oci/" PRI_STR, FMT_STR(h->id));
	int r = 0;

	for (unsigned waited_ms = 0; waited_ms <= AGENT_WAIT_MS; waited_ms += AGENT_RETRY_MS) {
		r = status_client_request(h->config->run_dir,
					  h->stage == OCI_REMOVE ? "DELETE" : "POST", target, h->a,
					  ret, err);
		if (r == 0 || r == -ENOSPC)
			return r;
		if (!is_absent(r))
			return agent_failure(err);
		r = decide_without_agent(h, ret, err);
		if (r != -EBUSY)
			return r;
		wait_for_agent();
	}
	return r;
}

/* Releases the CPUs of a failed precreate. If this fails, they are released after
 * OCI_RECORD_PENDING_S. */
static void release(const struct hook *h)
{
	struct hook other = *h;
	struct str text;

	other.stage = OCI_REMOVE;
	(void)decide(&other, &text, NULL);
}

/* --- records --- */

static int read_json(const char *path, size_t max, struct arena *a, struct doc *ret,
		     struct err *err)
{
	struct str text;
	int r;

	r = file_read_at(AT_FDCWD, path, max, a, &text, err);
	return r < 0 ? r : doc_parse(text, str_from(path), NULL, a, ret, err);
}

/* From the process, because linux.cgroupsPath does not say where the runtime created the cgroup:
 * with the systemd driver it is "slice:prefix:name", and it may be missing. */
static int find_cgroup(const struct hook *h, const char **ret, struct err *err)
{
	struct str text = { 0 }, path;
	int64_t pid = 0;
	int r;

	if (!doc_int(doc_get(h->input.root, STR("pid")), &pid) || pid <= 0)
		return doc_err(err, &h->input, h->input.root,
			       "no pid: the stage must be createRuntime or prestart");
	r = file_read_at(
		AT_FDCWD,
		str_cstr(h->a, str_printf(h->a, "%s/%lld/cgroup", h->config->proc, (long long)pid)),
		MAX_PROC, h->a, &text, err);
	if (r < 0)
		return r;
	path = oci_record_cgroup(text);
	if (path.n <= 1)
		return err_set(err, ENOENT, "process %lld is in the root cgroup", (long long)pid);
	*ret = str_cstr(h->a, path);
	return 0;
}

static int read_source(const struct hook *h, struct doc *config, struct oci_record_source *given,
		       struct err *err)
{
	const struct str bundle = doc_str(doc_get(h->input.root, STR("bundle")));
	int r;

	if (h->stage == OCI_PRECREATE) {
		*config = h->input;
		given->cgroup = precreate_cgroup(config, h->a);
		given->is_unnamed = h->is_unnamed;
		given->is_precreated = true;
		given->precreated_at_s = oci_record_now_s();
		return 0;
	}
	if (bundle.n == 0)
		return doc_err(err, &h->input, h->input.root, "no bundle");
	r = read_json(str_cstr(h->a, str_printf(h->a, PRI_STR "/config.json", FMT_STR(bundle))),
		      MAX_CONFIG, h->a, config, err);
	return r < 0 ? r : find_cgroup(h, &given->cgroup, err);
}

/* Returns 1 for a pause container, which is not placed. Stage create replaces the record of
 * precreate, so that the container is no longer pending. */
static int write_record(const struct hook *h, struct err *err)
{
	struct oci_record_source given = { .id = h->id, .cgroup = "" };
	struct doc config = { 0 };
	struct str record = { 0 };
	int r;

	r = read_source(h, &config, &given, err);
	if (r == 0)
		r = oci_record_build(&config, &given, h->a, &record, err);
	if (r == -EUCLEAN)
		return 1;
	return r < 0 ? r : oci_record_save(h->run_fd, h->id, record, err);
}

/* In a user namespace that does not map all uids, cgroups are delegated and the ledger is another
 * user's. The map of the initial namespace is "0 0 4294967295" (user_namespaces(7)). */
static bool is_rootless(const struct hook *h)
{
	const char *path = str_cstr(h->a, str_printf(h->a, "%s/self/uid_map", h->config->proc));
	struct str text = { 0 };

	if (file_read_at(AT_FDCWD, path, MAX_PROC, h->a, &text, NULL) < 0)
		return false;
	return !str_ends(str_trim(text), STR("4294967295"));
}

/* Returns 1 when the machine is not partitioned, so that containers pass unchanged: no pools, and
 * no socket of an agent. A socket means that there is an agent, whose pools may be in its flags
 * only. It may restart at this moment, or have too many clients; a container that starts meanwhile
 * would run on the CPUs of others, so this is a failure (-EHOSTDOWN). */
static int is_unconfigured(const struct hook *h, struct err *err)
{
	struct pool_config pools;
	struct str response;
	struct pools_found found;
	int r;

	if (pools_source_read(&h->config->pools, h->a, &pools, &found, NULL) != -ENOENT)
		return 0; /* an error in the pools is reported where they are used */
	for (unsigned waited_ms = 0;; waited_ms += AGENT_RETRY_MS) {
		r = status_client_request(h->config->run_dir, "GET", STR("/healthz"), h->a,
					  &response, err);
		if (r == 0 || r == -ENOENT)
			return r == -ENOENT;
		if (r != -ECONNREFUSED || waited_ms >= AGENT_WAIT_MS)
			return agent_failure(err);
		wait_for_agent();
	}
}

static int ignore_container(struct oci_hook_result *ret, const struct hook *h, struct str why)
{
	*ret = (struct oci_hook_result){ .is_ignored = true,
					 .text = why,
					 .adjusted = h->input.text };
	return 0;
}

/* A configuration without an id gets a temporary one, for the duration of this call. No later stage
 * could release CPUs under it, so such a container gets no exclusive CPUs. */
static void choose_id(struct hook *h)
{
	struct timespec now;

	h->id = h->config->id ? str_from(h->config->id) : precreate_id(&h->input);
	if (h->id.n > 0 || h->config->id)
		return;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	h->is_unnamed = true;
	h->id = str_printf(h->a, "unnamed-%d-%lld-%ld", (int)getpid(), (long long)now.tv_sec,
			   now.tv_nsec);
}

static int read_input(struct hook *h, struct str input, struct err *err)
{
	const bool is_config = h->stage == OCI_PRECREATE;
	int r;

	r = doc_parse(input, is_config ? STR("config") : STR("state"), NULL, h->a, &h->input, err);
	if (r == 0 && is_config)
		r = precreate_check(&h->input, h->a, err);
	if (r < 0)
		return r;
	if (is_config)
		choose_id(h);
	else
		h->id = doc_str(doc_get(h->input.root, STR("id")));
	if (!oci_record_id_is_valid(h->id))
		return doc_err(err, &h->input, h->input.root, "invalid container id %s",
			       quote(h->id).text);
	return 0;
}

static int handle_stage(const struct hook *h, struct oci_hook_result *ret, struct err *err)
{
	int r;

	r = h->stage == OCI_REMOVE ? 0 : write_record(h, err);
	if (r == 1)
		return ignore_container(ret, h, STR("pause container, not placed"));
	if (r == 0)
		r = decide(h, &ret->text, err);
	/* A remove that failed keeps the record: a sweep of the agent or a later hook finds that
	 * the cgroup is gone and releases the CPUs. */
	if (r < 0 && h->stage != OCI_REMOVE)
		oci_record_delete(h->run_fd, h->id);
	if (r < 0 || h->stage != OCI_PRECREATE)
		return r;
	r = precreate_adjust(&h->input, ret->text, h->a, &ret->adjusted, err);
	if (r < 0 || h->is_unnamed)
		release(h);
	return r;
}

static int run_hook(struct hook *h, struct oci_hook_result *ret, struct err *err)
{
	int r = is_unconfigured(h, err);

	/* Before the run directory is created: an ignored container leaves no trace. */
	if (r == 1)
		return ignore_container(ret, h,
					STR("no agent is running and no pools are configured, "
					    "container not placed"));
	if (r == 0)
		r = run_dir_open(h->config->run_dir, &h->run_fd, err);
	if (r < 0)
		return r;
	r = handle_stage(h, ret, err);
	(void)close(h->run_fd);
	return r;
}

int oci_hook_run(const struct oci_hook_config *config, enum oci_stage stage, struct str input,
		 struct arena *a, struct oci_hook_result *ret, struct err *err)
{
	struct hook h = { .config = config, .stage = stage, .a = a, .run_fd = -1 };
	int r;

	r = read_input(&h, input, err);
	if (r < 0)
		return r;
	if (is_rootless(&h))
		return ignore_container(ret, &h, STR("rootless container, not placed"));
	r = run_hook(&h, ret, err);
	if (r == -EHOSTDOWN && config->allows_unpinned)
		return ignore_container(ret, &h,
					STR("the agent does not respond, container not placed"));
	return r;
}
