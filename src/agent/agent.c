#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agentclient/run_dir.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/notify.h"
#include "cgroup/cgroup.h"
#include "codec/doc.h"
#include "config_watch.h"
#include "cpu/topology_read.h"
#include "kube/names.h"
#include "net/loop.h"
#include "nodesync/pod_resources.h"
#include "oci/oci_containers.h"
#include "pin/isolate.h"
#include "pin/manager.h"
#include "podres/podres_server.h"
#include "pool/checkpoint.h"
#include "pool/store.h"
#include "status.h"
#include "status_server.h"

#define TICK_MS 1000
#define UNWATCHED_S 20 /* at most between two looks at a cgroup that cannot be watched */
#define MAX_CHECKPOINT ((size_t)4 << 20)

struct agent {
	const struct agent_config *config;
	int run_fd;
	struct arena settings; /* topology and what the configuration points to */
	struct topology topology;
	struct cgroup_fs cgroups;
	struct ledger ledger;
	struct store store;
	struct manager manager;
	struct nri_plugin *plugin;

	struct loop loop;
	int epoll_fd; /* stands for the plugin's socket, which changes */
	uv_poll_t plugin_poll;
	struct timer plugin_timer, tick;
	struct signal_source signals[3];
	struct status_server service;
	struct podres_server podres; /* when there is a socket for it */
	struct config_watch live;
	struct oci_containers oci; /* for containers from outside NRI */
	struct node_sync link;
	struct nrt_sync nrt_sync;
	uint64_t n_ticks;
	int failure;
};

static enum permission permitted(const void *data, struct str namespace)
{
	const struct agent *agent = data;
	const struct agent_config *c = agent->config;

	if (c->n_namespaces == 0)
		return node_sync_permission(&agent->link, namespace);
	for (size_t i = 0; i < c->n_namespaces; i++)
		if (str_eq(str_from(c->namespaces[i]), namespace))
			return PERMISSION_GRANTED;
	return PERMISSION_DENIED;
}

/* Set-up. */

/* Two managers of the same CPUs would fight (spec/cpumanager.md 7.10, 13). */
static bool kubelet_is_static(const struct agent *agent)
{
	CLEANUP(arena_done) struct arena a;
	struct checkpoint checkpoint;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	if (!agent->config->kubelet_state || file_read_at(AT_FDCWD, agent->config->kubelet_state,
							  MAX_CHECKPOINT, &a, &text, &err) < 0)
		return false;
	if (checkpoint_decode(text, str_from(agent->config->kubelet_state), &a, &checkpoint, &err) <
	    0) {
		log_warning("cannot read the kubelet's CPU manager state, ignoring", LOG_ERR(&err));
		return false;
	}
	return str_eq(checkpoint.policy, STR(CHECKPOINT_POLICY_STATIC));
}

static int choose_manager(struct agent *agent, struct err *err)
{
	const bool is_static = kubelet_is_static(agent);

	switch (agent->config->cpu_manager) {
	case AGENT_CPU_MANAGER_OWN:
		if (is_static)
			return err_set(
				err, EBUSY,
				"the kubelet's CPU manager has policy static: set it to none, "
				"or use --cpu-manager kubelet");
		break;
	case AGENT_CPU_MANAGER_KUBELET:
		agent->manager.kubelet_manages = true;
		break;
	case AGENT_CPU_MANAGER_AUTO:
		agent->manager.kubelet_manages = is_static;
		if (is_static)
			log_warning("the kubelet hands out CPUs (policy static); only the reserved "
				    "ones are ours");
		break;
	}
	return 0;
}

static void log_store(const struct store_report *report)
{
	log_info("ledger opened", LOG_STR("outcome", str_from(store_outcome_name(report->outcome))),
		 LOG_INT("assignments", report->n_restored));
	if (report->outcome == STORE_KEPT)
		log_error("the new pools do not fit what runs; the old ones go on",
			  LOG_ERR(&report->why));
	if (report->outcome == STORE_CORRUPT)
		log_error("the ledger was unreadable and is rebuilt from what runs",
			  LOG_STR("kept", str_from(report->aside)), LOG_ERR(&report->why));
}

static int open_run_dir(struct agent *agent, struct err *err)
{
	const char *path = agent->config->run_dir;
	int r;

	r = file_mkdirs_at(AT_FDCWD, path, 0700, err);
	if (r < 0)
		return r;
	agent->run_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return agent->run_fd < 0 ? err_set(err, errno, "open %s: %s", path, strerror(errno)) : 0;
}

static int open_ledger(struct agent *agent, struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_report report;
	struct pool_config pools;
	char boot_id[STORE_BOOT_ID_MAX];
	const char *from;
	int r;

	r = pools_source_read(&agent->config->pools, &agent->settings, &pools, &from, err);
	if (r == 0)
		r = topology_read(agent->config->topology, &agent->settings, &agent->topology, err);
	if (r == 0)
		r = store_read_boot_id(root, boot_id, err);
	if (r == 0)
		r = open_run_dir(agent, err);
	if (r < 0)
		return r;
	r = store_open(&agent->store, &agent->ledger,
		       &(struct store_settings){ agent->run_fd, AGENT_LEDGER_FILE, boot_id,
						 &agent->topology, &pools },
		       &report, err);
	if (r < 0)
		return err_wrap(err, "pools of %s", from);
	log_store(&report);
	return 0;
}

static int open_plugin(struct agent *agent, struct err *err)
{
	const char *lock =
		str_cstr(&agent->settings, str_printf(&agent->settings, "%s/" AGENT_LOCK_FILE,
						      agent->config->run_dir));

	agent->plugin = nri_plugin_new(&(struct nri_options){
		.name = NAME_AGENT_PLUGIN,
		.index = agent->config->nri_index,
		.socket_path = agent->config->nri_socket,
		.lock_path = lock,
		.events = MANAGER_EVENTS,
		.handlers = &manager_handlers,
		.user = &agent->manager,
	});
	if (agent->plugin)
		return 0;
	if (errno == EBUSY)
		return err_set(err, EBUSY, "another agent runs (%s)", lock);
	return err_set(err, errno, "NRI plugin: %s",
		       errno == EINVAL ? "the index must be two digits" : strerror(errno));
}

/* The loop. */

static void write_status(struct agent *agent)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	agent->manager.is_changed = false;
	if (doc_write(status_describe(&agent->manager, doc_build(&a), &a), false, &a, &text, &err) <
		    0 ||
	    file_replace_at(agent->run_fd, AGENT_STATUS_FILE, text, 0600, &err) < 0)
		log_warning("cannot write the status file", LOG_ERR(&err));
	arena_done(&a);
	(void)malloc_trim(0); /* the document of a full node is as large as all else we keep */
}

static void watch_plugin(struct agent *agent)
{
	struct nri_poll want;
	struct epoll_event event = { 0 };

	nri_plugin_poll(agent->plugin, &want);
	if (want.fd >= 0) {
		event.events = (want.events & POLLIN ? EPOLLIN : 0u) |
			       (want.events & POLLOUT ? EPOLLOUT : 0u);
		/* A socket that was closed has left the set by itself. */
		if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_MOD, want.fd, &event) < 0)
			(void)epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, want.fd, &event);
	}
	timer_stop(&agent->plugin_timer);
	if (want.timeout_ms >= 0)
		timer_start(&agent->plugin_timer, (uint64_t)want.timeout_ms, 0);
}

static void turn_plugin(struct agent *agent, short revents)
{
	const int r = nri_plugin_dispatch(agent->plugin, revents);

	manager_flush(&agent->manager);
	if (r < 0) { /* the runtime that started us is gone */
		agent->failure = r == -ESHUTDOWN ? 0 : r;
		loop_stop(&agent->loop);
		return;
	}
	watch_plugin(agent);
}

static void on_plugin_ready(uv_poll_t *handle, int status, int events)
{
	struct agent *agent = container_of(handle, struct agent, plugin_poll);
	struct epoll_event event;
	short revents = 0;

	(void)status;
	(void)events;
	if (epoll_wait(agent->epoll_fd, &event, 1, 0) == 1)
		revents = (short)((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? POLLIN : 0) |
				  (event.events & EPOLLOUT ? POLLOUT : 0));
	turn_plugin(agent, revents);
}

static void on_plugin_timer(struct timer *t)
{
	turn_plugin(container_of(t, struct agent, plugin_timer), 0);
}

/* One small file says whether a CPU came or went. */
static bool online_changed(const struct agent *agent)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset online;
	struct str text;

	arena_init(&a, 0);
	return strcmp(agent->config->topology, "host") == 0 &&
	       file_read_at(AT_FDCWD, "/sys/devices/system/cpu/online", 4096, &a, &text, NULL) ==
		       0 &&
	       cpuset_parse_kernel(text, &online, NULL) == 0 &&
	       !cpuset_eq(&online, &agent->topology.online);
}

/* spec/cpumanager.md 7.9 */
static void check_hotplug(struct agent *agent)
{
	struct arena a;
	struct topology now;
	struct err err = { 0 };

	if (!online_changed(agent))
		return;
	arena_init(&a, 0);
	if (topology_read("host", &a, &now, &err) < 0 ||
	    ledger_hotplug(&agent->ledger, &now, &err) < 0) {
		log_error("CPUs came or went, and the ledger cannot follow", LOG_ERR(&err));
		arena_done(&a);
		return;
	}
	arena_done(&agent->settings); /* nothing but the topology is used after the start */
	agent->settings = a;
	agent->topology = now;
	agent->ledger.now.topology = &agent->topology;
	config_watch_check_boot(&agent->live);
	log_warning("CPUs came or went",
		    LOG_STR("online", cpuset_format(&agent->topology.online, &agent->settings)));
	manager_repin(&agent->manager);
}

static size_t per_tick(const struct agent *agent)
{
	const struct registry *r = &agent->manager.registry;
	const size_t n = r->n_containers > r->n_pods ? r->n_containers : r->n_pods;
	unsigned seconds =
		agent->config->reconcile_interval_s ? agent->config->reconcile_interval_s : 1;

	if (agent->manager.cgroup_watch.why_short && seconds > UNWATCHED_S)
		seconds = UNWATCHED_S;
	return (n + seconds - 1) / seconds;
}

static void on_tick(struct timer *t)
{
	struct agent *agent = container_of(t, struct agent, tick);
	struct nrt_node node;

	manager_reconcile(&agent->manager, per_tick(agent));
	config_watch_tick(&agent->live);
	if (agent->manager.is_changed)
		write_status(agent);
	if (++agent->n_ticks % 10 == 0) {
		check_hotplug(agent);
		oci_containers_sweep(&agent->oci);
	}
	node_sync_tick(&agent->link);
	if (node_sync_get_node(&agent->link, &node))
		nrt_sync_tick(&agent->nrt_sync, &node);
	notify_manager("WATCHDOG=1");
}

static void on_signal(struct signal_source *s, int number)
{
	if (number == SIGHUP) {
		config_watch_reload(&container_of(s, struct agent, signals[2])->live);
		return;
	}
	loop_stop(number == SIGTERM ? &container_of(s, struct agent, signals[0])->loop :
				      &container_of(s, struct agent, signals[1])->loop);
}

static int start_podres(struct agent *agent, struct err *err)
{
	const struct agent_config *c = agent->config;
	const bool asks = c->kubelet_podres && *c->kubelet_podres;

	if (!c->podres)
		return 0;
	return podres_server_init(
		&agent->podres, &agent->loop,
		&(struct podres_settings){ c->podres, asks ? c->kubelet_podres : NULL,
					   pod_resources_snapshot, &agent->manager },
		err);
}

/* Before the namespaces were known, a pod was accepted that its namespace does not allow. The
 * runtime reports all pods again, and each is classified anew. */
static void on_untrusted_pod(struct node_sync *s)
{
	struct agent *agent = container_of(s, struct agent, link);

	log_warning(
		"a namespace does not allow its pod on the management CPUs, synchronizing again");
	nri_plugin_resync(agent->plugin);
	turn_plugin(agent, 0);
}

static int start_loop(struct agent *agent, struct err *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	const char *path =
		str_cstr(&agent->settings,
			 str_printf(&agent->settings, "%s/" AGENT_SOCKET, agent->config->run_dir));
	int r;

	r = loop_init(&agent->loop, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		r = signal_source_init(&agent->signals[i], &agent->loop, numbers[i], on_signal,
				       err);
	if (r == 0)
		r = status_server_init(&agent->service, &agent->loop, &agent->manager, path,
				       agent->config->listen, err);
	agent->service.oci = &agent->oci;
	if (r == 0)
		r = start_podres(agent, err);
	if (r < 0)
		return r;
	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->epoll_fd < 0 ||
	    uv_poll_init(&agent->loop.uv, &agent->plugin_poll, agent->epoll_fd) < 0 ||
	    uv_poll_start(&agent->plugin_poll, UV_READABLE, on_plugin_ready) < 0)
		return err_set(err, errno ? errno : EIO, "event loop: %s", strerror(errno));
	timer_init(&agent->plugin_timer, &agent->loop, on_plugin_timer);
	timer_init(&agent->tick, &agent->loop, on_tick);
	timer_start(&agent->tick, TICK_MS, TICK_MS);
	config_watch_start(&agent->live, &agent->loop);
	agent->link.on_untrusted_pod = on_untrusted_pod;
	node_sync_start(&agent->link, &agent->loop, &agent->manager);
	turn_plugin(agent, 0);
	return 0;
}

/* An agent before us may have isolated CPUs; nobody wants that any more. */
static void undo_isolation(const struct agent *agent)
{
	CLEANUP(arena_done) struct arena a;
	struct doc doc;
	struct str text;

	arena_init(&a, 0);
	if (file_read_at(agent->run_fd, AGENT_STATUS_FILE, DOC_MAX_SIZE, &a, &text, NULL) == 0 &&
	    doc_parse(text, STR(AGENT_STATUS_FILE), NULL, &a, &doc, NULL) == 0)
		(void)isolate_undo(&agent->cgroups, doc_get(doc.root, STR("containers")), &a);
}

static int agent_open(struct agent *agent, struct err *err)
{
	int r;

	r = node_sync_init(&agent->link, &agent->config->cluster, err);
	if (r == 0)
		r = open_ledger(agent, err);
	if (r == 0)
		r = cgroup_open(&agent->cgroups, agent->config->cgroup_root, err);
	if (r < 0)
		return r;
	manager_init(&agent->manager, &agent->ledger, &agent->cgroups);
	agent->manager.rules.permission = permitted;
	agent->manager.rules.permission_data = agent;
	agent->manager.isolates = agent->config->isolated_partitions;
	if (!agent->manager.isolates)
		undo_isolation(agent);
	config_watch_init(
		&agent->live,
		&(struct config_watch_settings){ &agent->config->pools, agent->config->static_pods,
						 strcmp(agent->config->topology, "host") == 0 },
		&agent->manager);
	agent->manager.node = agent->link.connection.node_name;
	nrt_sync_init(&agent->nrt_sync, &agent->config->topology_object, &agent->manager);
	agent->manager.crio_dir = agent->config->crio_dir;
	agent->oci = (struct oci_containers){ &agent->manager, agent->run_fd };
	agent->manager.add_inventory = oci_containers_merge;
	agent->manager.add_inventory_data = &agent->oci;
	r = choose_manager(agent, err);
	if (r == 0)
		r = open_plugin(agent, err);
	if (r == 0)
		oci_containers_load(&agent->oci, STR(""));
	return r < 0 ? r : start_loop(agent, err);
}

int agent_run(const struct agent_config *config, struct err *err)
{
	struct agent agent = { .config = config, .run_fd = -1, .epoll_fd = -1 };
	struct cpuset management;
	int r;

	agent.cgroups.cpu_fd = agent.cgroups.cpuset_fd = -1;
	arena_init(&agent.settings, 0);
	(void)signal(SIGPIPE, SIG_IGN); /* whoever asks for the status may hang up */
	r = agent_open(&agent, err);
	if (r < 0) {
		arena_done(&agent.settings);
		node_sync_done(&agent.link);
		return r; /* the process ends; the kernel takes back what was opened */
	}
	(void)ledger_cpus(&agent.ledger, POOL_MANAGEMENT, &management);
	log_info("agent started",
		 LOG_STR("management", cpuset_format(&management, &agent.manager.scratch)));
	arena_reset(&agent.manager.scratch);
	node_sync_send_ready(&agent.link);
	loop_run(&agent.loop);
	notify_manager("STOPPING=1");
	node_sync_leave(&agent.link);
	log_info("agent stops; containers keep their CPUs");
	write_status(&agent);
	config_watch_done(&agent.live);
	status_server_done(&agent.service);
	if (config->podres)
		podres_server_done(&agent.podres);
	nri_plugin_free(agent.plugin);
	nrt_sync_close(&agent.nrt_sync);
	node_sync_close(&agent.link);
	loop_done(&agent.loop);
	node_sync_done(&agent.link);
	(void)close(agent.epoll_fd);
	manager_done(&agent.manager);
	ledger_done(&agent.ledger);
	store_done(&agent.store);
	cgroup_done(&agent.cgroups);
	(void)close(agent.run_fd);
	arena_done(&agent.settings);
	return agent.failure;
}
