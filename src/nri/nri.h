#pragma once

/* libnri: write a plugin for the Node Resource Interface of containerd and CRI-O in C. The library
 * connects to the runtime, registers, reconnects after a restart of the runtime, and calls your
 * handlers when pods and containers are created, updated, stopped and removed; a handler replies
 * with CPU settings. See nri(3) and examples/nri-pin.c.
 *
 * Single-threaded. The library never logs or exits. This header includes no other header of the
 * project; link with -lnri. Every string a handler gets is NUL-terminated, never NULL, and valid
 * until the handler returns.
 *
 * The library supports what a resource plugin needs: CPU settings, annotations, environment
 * variables, and all events. It ignores mounts, devices, hooks and seccomp. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NRI_DEFAULT_SOCKET "/var/run/nri/nri.sock"

enum nri_event {
	NRI_RUN_POD = 1,
	NRI_STOP_POD = 2,
	NRI_REMOVE_POD = 3,
	NRI_CREATE_CONTAINER = 4,
	NRI_POST_CREATE_CONTAINER = 5,
	NRI_START_CONTAINER = 6,
	NRI_POST_START_CONTAINER = 7,
	NRI_UPDATE_CONTAINER = 8,
	NRI_POST_UPDATE_CONTAINER = 9,
	NRI_STOP_CONTAINER = 10,
	NRI_REMOVE_CONTAINER = 11,
	/* Since NRI 0.10; older runtimes refuse a plugin that subscribes to them. */
	NRI_UPDATE_POD = 12,
	NRI_POST_UPDATE_POD = 13,
};

#define NRI_MASK(event) (1u << ((event)-1))
#define NRI_MASK_EVERYWHERE 0x7ffu /* the events that every runtime has */

const char *nri_event_name(enum nri_event event); /* "CreateContainer" */

struct nri_pair {
	const char *key, *value;
};

/* A value that is not set stays unchanged. In a request, an explicit zero means the same. */
struct nri_cpu {
	bool has_shares, has_quota, has_period;
	uint64_t shares;
	int64_t quota_us; /* -1: no limit */
	uint64_t period_us;
	const char *cpus, *mems; /* lists like "0-3,8"; NULL or "": not set, never "none" */
};

struct nri_memory {
	bool has_limit;
	int64_t limit_bytes;
};

struct nri_resources {
	struct nri_memory *memory; /* NULL when not present */
	struct nri_cpu *cpu;	   /* NULL when not present */
};

struct nri_pod_linux {
	struct nri_resources
		*pod_resources; /* sums over the containers, if the runtime sends them */
	const char *cgroup_parent;
	const char *cgroups_path; /* of the pause container */
};

struct nri_pod {
	const char *id, *name, *uid, *pod_namespace;
	struct nri_pair *labels, *annotations;
	size_t n_labels, n_annotations;
	size_t label_bytes, annotation_bytes; /* more than NRI_KEEP_MAX: dropped, see `keep` */
	const char *runtime_handler;
	struct nri_pod_linux *on_linux; /* may be NULL */
	uint32_t pid;			/* of the pause container; 0 when there is none */
};

enum nri_state { NRI_UNKNOWN, NRI_CREATED, NRI_PAUSED, NRI_RUNNING, NRI_STOPPED };

struct nri_container_linux {
	struct nri_resources *resources; /* as the runtime has them now */
	const char *cgroups_path;
};

struct nri_container {
	const char *id, *pod_id, *name;
	int32_t state; /* enum nri_state */
	struct nri_pair *labels, *annotations;
	size_t n_labels, n_annotations;
	size_t label_bytes, annotation_bytes; /* as in struct nri_pod */
	struct nri_container_linux *on_linux; /* may be NULL */
	uint32_t pid;
};

/* The value of a key, the last one of duplicates; NULL when it is absent. */
const char *nri_find(const struct nri_pair *pairs, size_t n, const char *key);

/* "" when the runtime did not send it. */
const char *nri_pod_cgroup_parent(const struct nri_pod *pod);
const char *nri_pod_cgroups_path(const struct nri_pod *pod);
const char *nri_container_cgroups_path(const struct nri_container *c);
const struct nri_cpu *nri_container_cpu(const struct nri_container *c); /* never NULL */

/* What the runtime reports about itself in Configure. */
struct nri_runtime {
	const char *config; /* only for plugins that the runtime started */
	const char *name, *version;
	int64_t registration_timeout_ms, request_timeout_ms;
	const char *nri_version; /* "" before 0.12 */
};

/* All pods and containers of the runtime, after the last part of a synchronization. */
struct nri_inventory {
	const struct nri_pod *pods;
	size_t n_pods;
	const struct nri_container *containers;
	size_t n_containers;
};

/* The reply that a handler fills in. */
struct nri_reply;

/* Settings for the container that is being created. Call in create_container only. */
void nri_adjust_cpu(struct nri_reply *reply, const struct nri_cpu *cpu);
void nri_adjust_annotation(struct nri_reply *reply, const char *key, const char *value);
void nri_adjust_env(struct nri_reply *reply, const char *name, const char *value);

/* Settings for an existing container: any other container, or, in update_container and synchronize,
 * the container itself. With `may_fail` the runtime ignores a failure to apply them. */
void nri_update_cpu(struct nri_reply *reply, const char *container_id, const struct nri_cpu *cpu,
		    bool may_fail);

/* Makes the runtime's request fail with this text. Returns a negative number, so that a handler can
 * `return nri_refuse(...)`. */
int nri_refuse(struct nri_reply *reply, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum nri_metadata {
	NRI_POD_LABEL,
	NRI_POD_ANNOTATION,
	NRI_CONTAINER_LABEL,
	NRI_CONTAINER_ANNOTATION,
};

/* With a `keep` handler, what is kept of one map of labels or annotations: keys and values, as they
 * are encoded. */
#define NRI_KEEP_MAX 32768

struct nri_plugin;

/* Handlers return 0, or a negative number to refuse. Any may be NULL: the request then succeeds
 * without changes. They must be quick: a runtime drops a plugin that takes longer than 2 s and
 * continues without it. */
struct nri_handlers {
	/* First on each connection; may change the events to subscribe to. */
	int (*configure)(void *user, const struct nri_runtime *runtime, uint32_t *events,
			 struct nri_reply *reply);
	int (*synchronize)(void *user, const struct nri_inventory *all, struct nri_reply *reply);
	int (*create_container)(void *user, const struct nri_pod *pod,
				const struct nri_container *c, struct nri_reply *reply);
	int (*update_container)(void *user, const struct nri_pod *pod,
				const struct nri_container *c, const struct nri_cpu *requested,
				struct nri_reply *reply);
	int (*stop_container)(void *user, const struct nri_pod *pod, const struct nri_container *c,
			      struct nri_reply *reply);
	/* Every other event. `c` is NULL for events of pods. Refusing NRI_RUN_POD or
	 * NRI_START_CONTAINER stops the pod or container; the runtime only logs other refusals. */
	int (*event)(void *user, enum nri_event event, const struct nri_pod *pod,
		     const struct nri_container *c, struct nri_reply *reply);

	/* Called by the library itself: */

	/* Whether the plugin uses this label or annotation; NULL: it gets all of them. The users of
	 * a cluster choose how many there are and how long: with this handler the library needs
	 * little memory whatever they write. All others are skipped. When the kept ones of one map
	 * exceed NRI_KEEP_MAX bytes, or one contains a NUL, none of that map is kept and
	 * label_bytes or annotation_bytes is larger than NRI_KEEP_MAX. Keys are at most 511 bytes
	 * long; a longer one is not offered. */
	bool (*keep)(void *user, enum nri_metadata kind, const char *key);
	void (*connected)(void *user);			   /* synchronized; events follow */
	void (*disconnected)(void *user, const char *why); /* or the connection attempt failed */
	/* A response is queued; `ns` is the time since the last byte of its request. */
	void (*handled)(void *user, const char *method, uint64_t ns);
};

struct nri_options {
	const char *name;	 /* letters, digits, _ . + -; "pinfold" */
	const char *index;	 /* two digits: the order in which plugins are called */
	const char *socket_path; /* NULL: NRI_DEFAULT_SOCKET */
	const char *lock_path;	 /* locked until nri_plugin_free(): with two instances of a plugin
				  * every request fails. NULL: no lock */
	uint32_t events;	 /* NRI_MASK(...) bits to subscribe to; 0: all with a handler */
	const struct nri_handlers *handlers;
	void *user;
};

/* NULL with errno set: EINVAL for a bad name or index, EBUSY when another instance holds the lock.
 * When the runtime started this process (/opt/nri/plugins), name, index and socket come from the
 * environment and override the options. */
struct nri_plugin *nri_plugin_new(const struct nri_options *options);
void nri_plugin_free(struct nri_plugin *p); /* accepts NULL */

/* Connects, serves and reconnects until nri_plugin_stop() (returns 0) or a fatal failure (returns a
 * negative errno). For a plugin that the runtime started it also returns when the runtime closes
 * the connection. */
int nri_plugin_run(struct nri_plugin *p);
void nri_plugin_stop(struct nri_plugin *p); /* from a handler, or from a signal handler */

/* The same with your own event loop: poll `fd` (unless it is -1) for `events`, at most `timeout_ms`
 * (-1: no limit), then pass poll's revents to nri_plugin_dispatch(). */
struct nri_poll {
	int fd;
	short events;
	int timeout_ms;
};
void nri_plugin_poll(struct nri_plugin *p, struct nri_poll *ret);
int nri_plugin_dispatch(struct nri_plugin *p, short revents);

bool nri_plugin_is_connected(const struct nri_plugin *p);
const char *nri_plugin_problem(const struct nri_plugin *p); /* why not; "" when connected */

/* Registers again, after which the runtime lists all pods and containers. This is how running
 * containers are changed safely with every runtime. */
void nri_plugin_resync(struct nri_plugin *p);

/* True when containers may be updated outside a handler. Before NRI 0.12.1 the runtime can deadlock
 * when such an update coincides with an event. */
bool nri_plugin_can_update(const struct nri_plugin *p);

/* Requests an update of one container now. -EOPNOTSUPP unless nri_plugin_can_update(), -ENOTCONN
 * without a connection. Whether the runtime applied it is not reported. */
int nri_plugin_update_cpu(struct nri_plugin *p, const char *container_id,
			  const struct nri_cpu *cpu);

#ifdef __cplusplus
}
#endif
