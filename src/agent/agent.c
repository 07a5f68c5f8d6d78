/* Start-up, event loop and end of the agent. Once the ledger is locked, no OCI hook decides on its
 * own. Static pods are converted and standalone containers are loaded before READY=1, because
 * systemd starts the kubelet after it. */

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

#include "agent_confine.h"
#include "agent_host.h"
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
#include "confine/confine.h"
#include "cpu/topology_read.h"
#include "device_watch.h"
#include "kube/names.h"
#include "net/loop.h"
#include "net/tls.h"
#include "nodesync/pod_resources.h"
#include "oci/oci_containers.h"
#include "pin/enforce.h"
#include "pin/isolate.h"
#include "pin/manager.h"
#include "podres/podres_server.h"
#include "pool/checkpoint.h"
#include "pool/store.h"
#include "profile_follow.h"
#include "profile_in_force.h"
#include "status.h"
#include "status_server.h"

#define TICK_MS 1000		/* each resets the watchdog; far below WatchdogSec= of the unit */
#define UNWATCHED_INTERVAL_S 20 /* reconcile interval while not every cgroup can be watched */
#define FIRST_PROFILES_MS 10000 /* a list takes a second or two; a runtime waits for no plugin */
#define MAX_CHECKPOINT ((size_t)4 << 20)

struct agent {
	const struct agent_config *config;
	int run_fd;
	struct arena arena; /* topology and paths; replaced with the topology */
	struct pools_source pools;
	struct pools_in_force in_force; /* at start-up */
	struct topology topology;
	struct cgroup_fs cgroups;
	struct ledger ledger;
	struct store store;
	struct manager manager;
	struct nri_plugin *plugin;

	struct loop loop;
	int epoll_fd; /* contains the plugin's socket, which changes with each connection */
	uv_poll_t plugin_poll;
	struct timer plugin_timer, tick;
	struct signal_source signals[3];
	struct status_server status_server;
	struct podres_server podres; /* if config->podres is set */
	struct config_watch config_watch;
	struct profile_follow profile_follow;
	struct device_watch device_watch;
	struct oci_containers oci; /* standalone containers */
	struct node_sync node_sync;
	struct nrt_sync nrt_sync;
	struct host host; /* if config->host.is_on, like the next two */
	struct files_follow host_files;
	struct profile_in_force profile_in_force;
	char boot_id[STORE_BOOT_ID_MAX];
	struct cpuset own_cpus; /* where this process was put */
	uint64_t n_ticks;
	uint64_t plugin_deadline_ms; /* the plugin waits for profiles until then; 0: not at all */
	int failure;
};

/* Namespaces that are named on the node replace those of the cluster. */
static enum permission namespace_permission(const void *data, struct str namespace, struct str type)
{
	const struct agent *agent = data;
	const struct permission_flags *flags = &agent->config->allowed;

	return flags->n ? permission_from_flags(flags, namespace, type) :
			  node_sync_permission(&agent->node_sync, namespace, type);
}

/* --- start-up --- */

/* With policy static the kubelet assigns exclusive CPUs itself and rewrites cpusets every few
 * seconds, so only one of the two may assign them (docs/reference/pools.md#two-cpu-managers). */
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

static int choose_cpu_manager(struct agent *agent, struct err *err)
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
			log_warning("kubelet assigns exclusive CPUs (policy static), only keeping "
				    "containers off the management CPUs");
		break;
	}
	return 0;
}

static void log_store_report(const struct store_report *report)
{
	log_info("ledger opened", LOG_STR("outcome", str_from(store_outcome_name(report->outcome))),
		 LOG_INT("assignments", report->n_restored));
	if (report->outcome == STORE_KEPT)
		log_error("new pools conflict with running containers, keeping the old pools",
			  LOG_ERR(&report->why));
	if (report->outcome == STORE_CORRUPT)
		log_error("ledger was unreadable, rebuilding it from running containers",
			  LOG_STR("backup", str_from(report->aside)), LOG_ERR(&report->why));
}

/* A kept profile that is unreadable, or of another machine, is left out: the API server says which
 * one applies. Files of an administrator are an error. */
static int read_pools(struct agent *agent, struct pool_config *ret, struct pools_found *found,
		      struct err *err)
{
	struct pools_source without;
	int r;

	agent->pools = agent->config->pools;
	agent->pools.or_whole_set = agent->node_sync.connection.is_configured;
	r = pools_source_read(&agent->pools, &agent->arena, ret, found, err);
	if (found->origin != POOLS_FROM_PROFILE)
		return r;
	if (r == 0)
		r = pool_config_check(ret, &agent->topology, err);
	if (r == 0)
		return 0;
	log_error("cannot use the last profile of the cluster, ignoring it", LOG_ERR(err));
	without = agent->pools;
	without.state_dir = NULL;
	return pools_source_read(&without, &agent->arena, ret, found, err);
}

/* Before the agent is confined to it. A read-only file system is no reason not to start: the
 * profile is then not kept, and that is reported when there is one. */
static void create_state_dir(const struct agent *agent)
{
	struct err err = { 0 };

	if (agent->pools.or_whole_set &&
	    file_mkdirs_at(AT_FDCWD, agent->pools.state_dir, 0700, &err) < 0)
		log_warning("cannot create the state directory, profiles of the cluster cannot be "
			    "applied",
			    LOG_ERR(&err));
}

static int open_ledger(struct agent *agent, struct err *err)
{
	AUTO_CLOSE int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store_report report;
	struct pools_found found = { 0 };
	struct pool_config pools;
	int r;

	r = topology_read(agent->config->topology, &agent->arena, &agent->topology, err);
	if (r == 0)
		r = read_pools(agent, &pools, &found, err);
	if (r == 0)
		r = store_read_boot_id(root, agent->boot_id, err);
	if (r == 0)
		create_state_dir(agent);
	if (r == 0)
		r = run_dir_open(agent->config->run_dir, &agent->run_fd, err);
	if (r < 0)
		return r;
	r = store_open(&agent->store, &agent->ledger,
		       &(struct store_settings){ agent->run_fd, AGENT_LEDGER_FILE, agent->boot_id,
						 &agent->topology, &pools },
		       &report, err);
	if (r < 0)
		return err_wrap(err, "pools of %s", found.from);
	log_store_report(&report);
	/* Otherwise the old pools are used, and their source is not known. */
	if (report.outcome != STORE_KEPT)
		pools_in_force_set(&agent->in_force, &found);
	return 0;
}

/* The lock is needed although the ledger has one: two connected plugins that set the same field
 * make the runtime fail every request (docs/reference/nri.md#replies). */
static int create_plugin(struct agent *agent, struct err *err)
{
	const char *lock = str_cstr(&agent->arena, str_printf(&agent->arena, "%s/" AGENT_LOCK_FILE,
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
		return err_set(err, EBUSY, "another agent is running (lock %s)", lock);
	return err_set(err, errno, "NRI plugin: %s",
		       errno == EINVAL ? "the index must be two digits" : strerror(errno));
}

/* --- event loop --- */

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
	/* Not left to CLEANUP: the memory has to be free before malloc_trim() can return it. The
	 * document of a full node is as large as the agent's other memory (D22). */
	arena_done(&a);
	(void)malloc_trim(0);
}

/* Registers what the plugin waits for: its socket and its next timeout. */
static void update_plugin_poll(struct agent *agent)
{
	struct nri_poll want;
	struct epoll_event event = { 0 };

	nri_plugin_poll(agent->plugin, &want);
	if (want.fd >= 0) {
		event.events = (want.events & POLLIN ? EPOLLIN : 0u) |
			       (want.events & POLLOUT ? EPOLLOUT : 0u);
		/* The kernel removes a closed socket from the epoll set, so MOD fails for a new
		 * connection even if it has the same number. */
		if (epoll_ctl(agent->epoll_fd, EPOLL_CTL_MOD, want.fd, &event) < 0)
			(void)epoll_ctl(agent->epoll_fd, EPOLL_CTL_ADD, want.fd, &event);
	}
	timer_stop(&agent->plugin_timer);
	if (want.timeout_ms >= 0)
		timer_start(&agent->plugin_timer, (uint64_t)want.timeout_ms, 0);
}

static void dispatch_plugin(struct agent *agent, short revents)
{
	const int r = nri_plugin_dispatch(agent->plugin, revents);

	/* After the replies: the runtime waits for them and not for these writes. */
	manager_flush(&agent->manager);
	if (r < 0) { /* a runtime that launched the plugin itself has closed its connection */
		agent->failure = r == -ESHUTDOWN ? 0 : r;
		loop_stop(&agent->loop);
		return;
	}
	update_plugin_poll(agent);
}

static void on_plugin_ready(uv_poll_t *handle, int status, int events)
{
	struct agent *agent = container_of(handle, struct agent, plugin_poll);
	struct epoll_event event;
	short revents = 0;

	(void)status;
	(void)events;
	/* An error or hang-up is passed on as readable: the plugin's read then returns it. */
	if (epoll_wait(agent->epoll_fd, &event, 1, 0) == 1)
		revents = (short)((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? POLLIN : 0) |
				  (event.events & EPOLLOUT ? POLLOUT : 0));
	dispatch_plugin(agent, revents);
}

static void on_plugin_timer(struct timer *t)
{
	dispatch_plugin(container_of(t, struct agent, plugin_timer), 0);
}

/* Reads one small file, so that the topology is read again only after a change. */
static bool online_cpus_changed(const struct agent *agent)
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

static void check_hotplug(struct agent *agent)
{
	struct arena a;
	struct topology now;
	struct err err = { 0 };

	if (!online_cpus_changed(agent))
		return;
	arena_init(&a, 0);
	if (topology_read("host", &a, &now, &err) < 0 ||
	    ledger_hotplug(&agent->ledger, &now, &err) < 0) {
		log_error("online CPUs changed and the ledger cannot be adapted", LOG_ERR(&err));
		arena_done(&a);
		return;
	}
	arena_done(&agent->arena); /* paths in it are only used at start-up */
	agent->arena = a;
	agent->topology = now;
	agent->ledger.now.topology = &agent->topology; /* it was `now`, on the stack */
	config_watch_check_boot(&agent->config_watch);
	node_sync_recheck_profiles(&agent->node_sync);
	if (agent->config->host.is_on)
		files_follow_soon(&agent->host_files);
	log_warning("online CPUs changed",
		    LOG_STR("online", cpuset_format(&agent->topology.online, &agent->arena)));
	manager_repin(&agent->manager);
}

/* Containers to check per tick, so that all are checked once per interval. Writes to cgroups are
 * detected by inotify within a tick; this finds what raises no event (cgroup/cgroup_watch.h). */
static size_t checks_per_tick(const struct agent *agent)
{
	const struct registry *r = &agent->manager.registry;
	const size_t n = r->n_containers > r->n_pods ? r->n_containers : r->n_pods;
	unsigned seconds =
		agent->config->reconcile_interval_s ? agent->config->reconcile_interval_s : 1;

	if (agent->manager.cgroup_watch.unwatched_errno && seconds > UNWATCHED_INTERVAL_S)
		seconds = UNWATCHED_INTERVAL_S;
	return (n + seconds - 1) / seconds;
}

/* The agent runs on the management CPUs, too, and does not wait for admission for that (D18). In a
 * container the cpuset has to allow it: after the first synchronization it does. */
static void pin_self(struct agent *agent)
{
	struct cpuset management;
	struct err err = { 0 };

	(void)ledger_cpus(&agent->ledger, POOL_MANAGEMENT, &management);
	if (cpuset_is_empty(&management) || cpuset_eq(&management, &agent->own_cpus))
		return;
	if (enforce_own_threads(&management, &err) < 0)
		log_warning("cannot move the agent to the management CPUs", LOG_ERR(&err));
	agent->own_cpus = management;
}

/* An agent that learns its pools from the cluster alone waits for the first list of profiles. With
 * the containers the runtime reports, Guaranteed ones get exclusive CPUs at once, and CPUs that are
 * in use cannot be taken back by the profile. Not for long: without an API server containers are
 * placed, too. A runtime that started the plugin has connected it and does not wait for it. */
static void start_plugin(struct agent *agent)
{
	struct nri_poll poll;

	nri_plugin_poll(agent->plugin, &poll);
	if (agent->in_force.origin == POOLS_FROM_NOTHING && agent->pools.or_whole_set &&
	    poll.fd < 0) {
		agent->plugin_deadline_ms = loop_now_ms(&agent->loop) + FIRST_PROFILES_MS;
		return;
	}
	dispatch_plugin(agent, 0); /* begins to connect; containers are reported from now on */
}

static void end_plugin_wait(struct agent *agent)
{
	if (!agent->plugin_deadline_ms)
		return;
	agent->plugin_deadline_ms = 0;
	dispatch_plugin(agent, 0);
}

static void resync(struct agent *agent)
{
	agent->manager.wants_sync = false;
	if (agent->plugin_deadline_ms)
		return;
	nri_plugin_resync(agent->plugin);
	dispatch_plugin(agent, 0);
}

/* Also without an API server: the profile is on disk. */
static void follow_host(struct agent *agent)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *profile;

	arena_init(&a, 0);
	if (!agent->config->host.is_on ||
	    !profile_in_force_read(&agent->profile_in_force, agent->config->pools.state_dir,
				   &agent->manager, &a, &profile))
		return;
	if (agent->host.is_open)
		agent_host_follow(&agent->host, agent->config, profile, &a);
	files_follow_soon(&agent->host_files);
}

/* The kubelet was restarted with another policy, as host files may say (D44). What the agent does
 * with containers differs in too many places for a change while it runs, so it is started anew. */
static void check_cpu_manager(struct agent *agent)
{
	const char *state = agent->config->kubelet_state;

	if (agent->config->cpu_manager != AGENT_CPU_MANAGER_AUTO || !state ||
	    access(state, F_OK) < 0 || kubelet_is_static(agent) == agent->manager.kubelet_manages)
		return;
	log_warning("the kubelet's CPU manager policy has changed, ending to be started again");
	loop_stop(&agent->loop);
}

static void on_tick(struct timer *t)
{
	struct agent *agent = container_of(t, struct agent, tick);
	struct nrt_node node;

	manager_reconcile(&agent->manager, checks_per_tick(agent));
	config_watch_tick(&agent->config_watch);
	profile_follow_tick(&agent->profile_follow, &agent->node_sync);
	pin_self(agent); /* the pools may have changed */
	if (agent->manager.wants_sync) {
		log_info("synchronizing again, the runtime moves the agent's own container");
		resync(agent);
	}
	follow_host(agent);
	agent_host_tick(&agent->host, &agent->manager);
	agent_files_tick(&agent->host_files, agent->config, &agent->profile_in_force,
			 &agent->manager, agent->node_sync.partition.observed.granted);
	if (agent->manager.is_changed)
		write_status(agent);
	/* Rare, and each costs system calls even when nothing changed. */
	if (++agent->n_ticks % 10 == 0) {
		check_hotplug(agent);
		check_cpu_manager(agent);
		oci_containers_sweep(&agent->oci);
	}
	node_sync_tick(&agent->node_sync);
	if (agent->plugin_deadline_ms && loop_now_ms(&agent->loop) >= agent->plugin_deadline_ms) {
		log_warning("the profiles of the cluster are not known yet, placing containers "
			    "without them");
		end_plugin_wait(agent);
	}
	if (node_sync_get_node(&agent->node_sync, &node))
		nrt_sync_tick(&agent->nrt_sync, &node);
	notify_manager("WATCHDOG=1"); /* last: a tick that hangs must not reset the watchdog */
}

static void on_signal(struct signal_source *s, int number)
{
	if (number == SIGHUP) {
		config_watch_reload(&container_of(s, struct agent, signals[2])->config_watch);
		return;
	}
	loop_stop(number == SIGTERM ? &container_of(s, struct agent, signals[0])->loop :
				      &container_of(s, struct agent, signals[1])->loop);
}

static int start_podres(struct agent *agent, struct err *err)
{
	const struct agent_config *c = agent->config;
	const bool reads_kubelet = c->kubelet_podres && *c->kubelet_podres;

	if (!c->podres)
		return 0;
	return podres_server_init(
		&agent->podres, &agent->loop,
		&(struct podres_settings){ c->podres, reads_kubelet ? c->kubelet_podres : NULL,
					   pod_resources_snapshot, &agent->manager },
		err);
}

/* The runtime reports all pods again, and each is classified anew. Registering again works with
 * every runtime; UpdateContainers does not (docs/reference/nri.md#locking). */
static void on_permissions_changed(struct node_sync *s)
{
	struct agent *agent = container_of(s, struct agent, node_sync);

	log_info("permissions of namespaces have changed, synchronizing again");
	resync(agent);
}

static void describe_host(void *data, struct node_partition_status *s, struct arena *a)
{
	const struct agent *agent = data;

	if (!agent->config->host.is_on)
		return;
	agent_host_condition(&agent->host, s, a);
	files_follow_describe(&agent->host_files, s, a);
}

static void on_profiles_changed(struct node_sync *s)
{
	struct agent *agent = container_of(s, struct agent, node_sync);

	profile_follow_update(&agent->profile_follow, s);
	end_plugin_wait(agent);
}

/* The plugin's descriptor changes with every connection, and a uv_poll_t is bound to one descriptor
 * for its lifetime. So libuv polls an epoll set that contains it. */
static int watch_plugin(struct agent *agent, struct err *err)
{
	int r;

	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->epoll_fd < 0)
		return err_set(err, errno, "epoll: %s", strerror(errno));
	r = uv_poll_init(&agent->loop.uv, &agent->plugin_poll, agent->epoll_fd);
	if (r == 0)
		r = uv_poll_start(&agent->plugin_poll, UV_READABLE, on_plugin_ready);
	/* libuv returns its error, a negative errno, and does not set errno. */
	return r < 0 ? err_set(err, -r, "event loop: %s", uv_strerror(r)) : 0;
}

static int start_loop(struct agent *agent, struct err *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	const char *path = str_cstr(&agent->arena, str_printf(&agent->arena, "%s/" AGENT_SOCKET,
							      agent->config->run_dir));
	int r = agent->config->is_unconfined ? 0 : confine_io_uring(err);

	if (r == 0)
		r = loop_init(&agent->loop, err);
	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		r = signal_source_init(&agent->signals[i], &agent->loop, numbers[i], on_signal,
				       err);
	if (r == 0)
		r = status_server_init(&agent->status_server, &agent->loop, &agent->manager, path,
				       agent->config->listen, err);
	if (r == 0)
		r = start_podres(agent, err);
	if (r == 0)
		r = watch_plugin(agent, err);
	if (agent->node_sync.connection.is_configured)
		tls_load_providers();
	if (r == 0) /* from here on bytes of others are parsed, and threads may be started */
		r = agent_confine(agent->config, err);
	if (r < 0)
		return r;
	agent->status_server.oci = &agent->oci;
	device_watch_init(&agent->device_watch, &agent->loop, agent->config->kubelet_podres,
			  &agent->manager);
	timer_init(&agent->plugin_timer, &agent->loop, on_plugin_timer);
	timer_init(&agent->tick, &agent->loop, on_tick);
	if (agent->host.is_open)
		host_start(&agent->host, &agent->loop);
	if (agent->config->host.is_on)
		files_follow_start(&agent->host_files, &agent->loop);
	timer_start(&agent->tick, TICK_MS, TICK_MS);
	config_watch_start(&agent->config_watch, &agent->loop);
	agent->node_sync.run_fd = agent->run_fd;
	agent->node_sync.on_permissions_changed = on_permissions_changed;
	agent->node_sync.on_profiles_changed = on_profiles_changed;
	agent->node_sync.partition_source.describe = describe_host;
	agent->node_sync.partition_source.describe_data = agent;
	node_sync_start(&agent->node_sync, &agent->loop, &agent->manager);
	start_plugin(agent);
	return 0;
}

/* An earlier agent with --isolated-partitions may have left partitions. */
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

	/* First, because it only checks flags: a mistake there changes nothing on the node. */
	r = node_sync_init(&agent->node_sync, &agent->config->cluster, err);
	if (r == 0)
		r = open_ledger(agent, err);
	if (r == 0)
		r = cgroup_open(&agent->cgroups, agent->config->cgroup_root, err);
	if (r < 0)
		return r;
	manager_init(&agent->manager, &agent->ledger, &agent->cgroups);
	agent->manager.status.pools = agent->in_force;
	agent->manager.rules.is_legacy = agent->config->is_legacy;
	agent->manager.rules.permission = namespace_permission;
	agent->manager.rules.permission_data = agent;
	agent->manager.rules.own_pid = (uint32_t)getpid();
	agent->manager.isolates = agent->config->isolated_partitions;
	if (!agent->manager.isolates)
		undo_isolation(agent);
	config_watch_init(&agent->config_watch,
			  &(struct config_watch_settings){
				  .pools = &agent->pools,
				  .static_pods = agent->config->static_pods,
				  .is_legacy = agent->config->is_legacy,
				  .is_host = strcmp(agent->config->topology, "host") == 0,
				  .moves_services = agent->config->host.is_on },
			  &agent->manager);
	agent->profile_follow =
		(struct profile_follow){ .state_dir = agent->config->pools.state_dir,
					 .manager = &agent->manager,
					 .pools = &agent->config_watch };
	agent->manager.status.node = agent->node_sync.connection.node_name;
	nrt_sync_init(&agent->nrt_sync, &agent->config->topology_object, &agent->manager);
	agent->manager.crio_dir = agent->config->crio_dir;
	agent->oci = (struct oci_containers){ &agent->manager, agent->run_fd };
	agent->manager.add_inventory = oci_containers_merge;
	agent->manager.add_inventory_data = &agent->oci;
	r = choose_cpu_manager(agent, err);
	if (r == 0)
		r = create_plugin(agent, err);
	if (r == 0) /* may write cgroups, so only when this is the only agent */
		oci_containers_load(&agent->oci, STR(""));
	if (r == 0)
		agent_host_open(&agent->host, agent->config, agent->boot_id, &agent->manager);
	if (r == 0 && agent->config->host.is_on)
		agent_files_open(&agent->host_files, agent->config, agent->boot_id);
	return r < 0 ? r : start_loop(agent, err);
}

int agent_run(const struct agent_config *config, struct err *err)
{
	/* Static: reachable after a failed start, which frees nothing, and zero without a write, so
	 * that the parts that are turned off take no memory. */
	static struct agent agent;
	struct cpuset management;
	int r;

	agent.config = config;
	agent.run_fd = agent.epoll_fd = -1;
	agent.cgroups.cpu_fd = agent.cgroups.cpuset_fd = -1;
	arena_init(&agent.arena, 0);
	(void)signal(SIGPIPE, SIG_IGN); /* a status client may disconnect early */
	r = agent_open(&agent, err);
	if (r < 0)
		return r; /* the process exits and the kernel closes its descriptors */
	pin_self(&agent);
	(void)ledger_cpus(&agent.ledger, POOL_MANAGEMENT, &management);
	log_info("agent started",
		 LOG_STR("management", cpuset_format(&management, &agent.manager.scratch)));
	arena_reset(&agent.manager.scratch);
	node_sync_send_ready(&agent.node_sync);
	loop_run(&agent.loop);
	notify_manager("STOPPING=1");
	/* These two need the loop and the manager. The status file then serves `status` and
	 * `verify` while no agent runs. */
	node_sync_leave(&agent.node_sync);
	log_info("agent stopping, containers keep their CPUs");
	write_status(&agent);
	config_watch_done(&agent.config_watch);
	status_server_done(&agent.status_server);
	if (config->podres)
		podres_server_done(&agent.podres);
	device_watch_done(&agent.device_watch);
	host_done(&agent.host);
	if (config->host.is_on)
		files_follow_done(&agent.host_files);
	nri_plugin_free(agent.plugin);
	nrt_sync_close(&agent.nrt_sync);
	node_sync_close(&agent.node_sync);
	/* Sources close asynchronously: their owners' memory stays until the loop is done. */
	loop_done(&agent.loop);
	node_sync_done(&agent.node_sync);
	(void)close(agent.epoll_fd);
	manager_done(&agent.manager);
	ledger_done(&agent.ledger);
	store_done(&agent.store); /* unlocks the ledger: OCI hooks decide from here on */
	cgroup_done(&agent.cgroups);
	(void)close(agent.run_fd);
	arena_done(&agent.arena);
	return agent.failure;
}
