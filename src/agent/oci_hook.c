#include "oci_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cgroup/cgroup.h"
#include "cpu/topology_read.h"
#include "desk.h"
#include "manager.h"
#include "outside.h"
#include "pool/store.h"
#include "report.h"

#define MAX_CONFIG ((size_t)4 << 20)
#define MAX_PROC 65536
#define PATIENCE_MS                                                                                \
	5000 /* while the agent starts or stops, and so has the ledger but no socket               \
	      */
#define STEP_MS 50

struct hook {
	const struct oci_hook_config *config;
	enum oci_stage stage;
	struct arena *a;
	struct doc state;
	struct str id;
	int run_fd;
};

/* Without an agent: the ledger and everything around it, for the time of one container. */
struct own {
	struct cgroup_fs cgroups;
	struct topology topology;
	struct ledger ledger;
	struct store store;
	struct manager manager;
};

static enum permission permitted(const void *data, struct str namespace)
{
	const struct oci_hook_config *c = data;

	if (c->n_namespaces == 0)
		return PERMISSION_UNKNOWN;
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (str_eq(str_from(c->namespaces[i]), namespace))
			return PERMISSION_GRANTED;
	return PERMISSION_DENIED;
}

static int open_own(const struct hook *h, struct own *own, struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_settings settings = { .dir_fd = h->run_fd, .path = REPORT_LEDGER_FILE };
	char boot_id[STORE_BOOT_ID_MAX];
	struct store_report report;
	struct pool_config pools;
	const char *from;
	int r;

	r = pools_read(&h->config->pools, h->a, &pools, &from, err);
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

static int do_it_ourselves(const struct hook *h, struct str *ret, struct err *err)
{
	struct own own = { .cgroups = { .cpu_fd = -1, .cpuset_fd = -1 } };
	struct desk desk = { &own.manager, h->run_fd };
	int r;

	r = open_own(h, &own, err);
	if (r < 0)
		return r;
	manager_init(&own.manager, &own.ledger, &own.cgroups);
	own.manager.rules.permission = permitted;
	own.manager.rules.permission_data = h->config;
	desk_open(&desk, h->id); /* the others share with us, and must make room */
	if (h->stage == OCI_CREATE)
		r = desk_arrive(&desk, h->id, h->a, ret, err);
	else
		desk_leave(&desk, h->id);
	manager_done(&own.manager);
	ledger_done(&own.ledger);
	store_done(&own.store);
	cgroup_done(&own.cgroups);
	return r;
}

static int ask_the_agent(const struct hook *h, struct str *ret, struct err *err)
{
	return ask_agent(h->config->run_dir, h->stage == OCI_CREATE ? "POST" : "DELETE",
			 str_printf(h->a, "/oci/" PRI_STR, FMT_STR(h->id)), h->a, ret, err);
}

/* Whoever has the ledger decides: never two at once. */
static int settle(const struct hook *h, struct str *ret, struct err *err)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	int r = 0;

	for (unsigned waited_ms = 0; waited_ms <= PATIENCE_MS; waited_ms += STEP_MS) {
		r = ask_the_agent(h, ret, err);
		if (r != -ENOENT && r != -ECONNREFUSED)
			return r;
		r = do_it_ourselves(h, ret, err);
		if (r != -EBUSY)
			return r;
		(void)nanosleep(&step, NULL);
	}
	return r;
}

/* Records. */

static int read_json(const char *path, size_t max, struct arena *a, struct doc *ret,
		     struct err *err)
{
	struct str text;
	int r;

	r = file_read_at(AT_FDCWD, path, max, a, &text, err);
	return r < 0 ? r : doc_parse(text, str_from(path), NULL, a, ret, err);
}

static int find_cgroup(const struct hook *h, const char **ret, struct err *err)
{
	struct str text = { 0 }, path;
	int64_t pid = 0;
	int r;

	if (!doc_int(doc_get(h->state.root, STR("pid")), &pid) || pid <= 0)
		return doc_err(err, &h->state, h->state.root,
			       "no pid: the stage must be createRuntime or prestart");
	r = file_read_at(
		AT_FDCWD,
		str_cstr(h->a, str_printf(h->a, "%s/%lld/cgroup", h->config->proc, (long long)pid)),
		MAX_PROC, h->a, &text, err);
	if (r < 0)
		return r;
	path = outside_cgroup(text);
	if (path.n <= 1)
		return err_set(err, ENOENT, "process %lld is in no cgroup of its own",
			       (long long)pid);
	*ret = str_cstr(h->a, path);
	return 0;
}

/* Returns 1 for a container that is not ours to place. */
static int write_record(const struct hook *h, struct err *err)
{
	const struct str bundle = doc_str(doc_get(h->state.root, STR("bundle")));
	struct doc config = { 0 };
	struct str record = { 0 };
	const char *cgroup = "";
	int r;

	if (bundle.n == 0)
		return doc_err(err, &h->state, h->state.root, "no bundle");
	r = read_json(str_cstr(h->a, str_printf(h->a, PRI_STR "/config.json", FMT_STR(bundle))),
		      MAX_CONFIG, h->a, &config, err);
	if (r == 0)
		r = find_cgroup(h, &cgroup, err);
	if (r == 0)
		r = outside_describe(&h->state, &config, cgroup, h->a, &record, err);
	if (r == -EUCLEAN)
		return 1;
	return r < 0 ? r : outside_save(h->run_fd, h->id, record, err);
}

/* A rootless container's hook is root only in a user namespace: no cgroup here is its own. */
static bool is_rootless(const struct hook *h)
{
	const char *path = str_cstr(h->a, str_printf(h->a, "%s/self/uid_map", h->config->proc));
	struct str text = { 0 };

	if (file_read_at(AT_FDCWD, path, MAX_PROC, h->a, &text, NULL) < 0)
		return false;
	return !str_ends(str_trim(text), STR("4294967295"));
}

/* Neither an agent nor pools: the hook is installed on a machine that is not partitioned. */
static bool is_unconfigured(const struct hook *h)
{
	struct pool_config pools;
	const char *from;
	struct str answer;
	int r;

	r = pools_read(&h->config->pools, h->a, &pools, &from, NULL);
	return r == -ENOENT &&
	       ask_agent(h->config->run_dir, "GET", STR("/healthz"), h->a, &answer, NULL) < 0;
}

static int ignore(struct oci_hook_result *ret, struct str why)
{
	*ret = (struct oci_hook_result){ .is_ignored = true, .text = why };
	return 0;
}

static int read_state(struct hook *h, struct str input, struct err *err)
{
	int r = doc_parse(input, STR("state"), NULL, h->a, &h->state, err);

	if (r < 0)
		return r;
	h->id = doc_str(doc_get(h->state.root, STR("id")));
	if (!outside_id_is_valid(h->id))
		return doc_err(err, &h->state, h->state.root, "no container has the id %s",
			       quote(h->id).text);
	return 0;
}

int oci_hook_run(const struct oci_hook_config *config, enum oci_stage stage, struct str input,
		 struct arena *a, struct oci_hook_result *ret, struct err *err)
{
	struct hook h = { .config = config, .stage = stage, .a = a };
	AUTO_CLOSE int run_fd = -1;
	int r;

	r = read_state(&h, input, err);
	if (r < 0)
		return r;
	if (is_rootless(&h))
		return ignore(ret, STR("rootless containers are left alone"));
	if (is_unconfigured(&h))
		return ignore(ret, STR("no agent runs here, and no pools are configured"));
	r = file_mkdirs_at(AT_FDCWD, config->run_dir, 0700, err);
	if (r < 0)
		return r;
	h.run_fd = run_fd = open(config->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run_fd < 0)
		return err_set(err, errno, "open %s: %s", config->run_dir, strerror(errno));
	r = stage == OCI_CREATE ? write_record(&h, err) : 0;
	if (r == 1)
		return ignore(ret, STR("pause containers are left alone"));
	if (r == 0)
		r = settle(&h, &ret->text, err);
	if (r < 0 && stage == OCI_CREATE)
		outside_forget(h.run_fd, h.id);
	return r;
}
