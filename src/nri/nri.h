#pragma once

/* libnri: write a plugin for the Node Resource Interface of containerd and CRI-O in C. The library
 * connects to the runtime, registers, keeps up with restarts of either side, and calls your
 * functions when pods and containers come and go; you answer with CPU settings. See nri(3) and
 * examples/nri-pin.c.
 *
 * One thread. Nothing here logs or exits. This header stands alone; link with -lnri. Every text a
 * handler gets is NUL-terminated, never NULL, and valid until the handler returns.
 *
 * Covered is what a resource plugin needs: CPU settings, annotations, environment, and all events.
 * Mounts, devices, hooks and seccomp are passed over. */

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
	/* Only for runtimes of NRI 0.10 and later; others refuse a plugin that asks for them. */
	NRI_UPDATE_POD = 12,
	NRI_POST_UPDATE_POD = 13,
};

#define NRI_MASK(event) (1u << ((event)-1))
#define NRI_MASK_EVERYWHERE 0x7ffu /* every runtime knows these */

const char *nri_event_name(enum nri_event event); /* "CreateContainer" */

struct nri_pair {
	const char *key, *value;
};

/* What is not set is left alone. In a request, zero may be said explicitly and means the same. */
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
	struct nri_memory *memory; /* NULL when nothing is said about it */
	struct nri_cpu *cpu;	   /* likewise */
};

struct nri_pod_linux {
	struct nri_resources *pod_resources; /* sums over the containers, where the runtime knows */
	const char *cgroup_parent;
	const char *cgroups_path; /* of the pause container */
};

struct nri_pod {
	const char *id, *name, *uid, *pod_namespace;
	struct nri_pair *labels, *annotations;
	size_t n_labels, n_annotations;
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
	struct nri_container_linux *on_linux; /* may be NULL */
	uint32_t pid;
};

/* The value of a key, of several equal ones the last; NULL when it is not there. */
const char *nri_find(const struct nri_pair *pairs, size_t n, const char *key);

/* "" where the runtime said nothing. */
const char *nri_pod_cgroup_parent(const struct nri_pod *pod);
const char *nri_pod_cgroups_path(const struct nri_pod *pod);
const char *nri_container_cgroups_path(const struct nri_container *c);
const struct nri_cpu *nri_container_cpu(const struct nri_container *c); /* never NULL */

/* The runtime, as it introduced itself. */
struct nri_runtime {
	const char *config; /* only for plugins that the runtime started itself */
	const char *name, *version;
	int64_t registration_timeout_ms, request_timeout_ms;
	const char *nri_version; /* "" before 0.12 */
};

/* Everything that runs, after all its parts have come. */
struct nri_inventory {
	const struct nri_pod *pods;
	size_t n_pods;
	const struct nri_container *containers;
	size_t n_containers;
};

/* The answer under construction. */
struct nri_reply;

/* Settings for the container that is being created. Call in create_container only. */
void nri_adjust_cpu(struct nri_reply *reply, const struct nri_cpu *cpu);
void nri_adjust_annotation(struct nri_reply *reply, const char *key, const char *value);
void nri_adjust_env(struct nri_reply *reply, const char *name, const char *value);

/* Settings for a container that exists: any other one, or in update_container and synchronize this
 * one. The runtime goes on when it fails for a container with `may_fail`. */
void nri_update_cpu(struct nri_reply *reply, const char *container_id, const struct nri_cpu *cpu,
		    bool may_fail);

/* Makes the runtime's request fail with this text. Returns a negative number for the handler to
 * return. */
int nri_refuse(struct nri_reply *reply, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct nri_plugin;

/* Handlers answer 0, or a negative number to refuse. Any may be NULL: nothing changes then. They
 * must be quick: a runtime drops a plugin that takes longer than 2 s, and goes on without it. */
struct nri_handlers {
	/* Before anything else; the plugin's events may be changed here. */
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
	/* Every other event. `c` is NULL for those of pods. Refusing NRI_RUN_POD or
	 * NRI_START_CONTAINER stops the pod or container; elsewhere it is only logged. */
	int (*event)(void *user, enum nri_event event, const struct nri_pod *pod,
		     const struct nri_container *c, struct nri_reply *reply);

	/* Not from the runtime: */
	void (*connected)(void *user);			   /* synchronised; events follow */
	void (*disconnected)(void *user, const char *why); /* or never got that far */
	/* An answer is on its way; `ns` is what it took from the last byte of the request. */
	void (*answered)(void *user, const char *method, uint64_t ns);
};

struct nri_options {
	const char *name;	 /* letters, digits, _ . + -; "pinfold" */
	const char *index;	 /* two digits: the order in which plugins are asked */
	const char *socket_path; /* NULL: NRI_DEFAULT_SOCKET */
	const char *lock_path; /* held while we run: two instances of a plugin break every request.
				* NULL: no lock */
	uint32_t events;       /* NRI_MASK(...) of what is wanted; 0: what has a handler */
	const struct nri_handlers *handlers;
	void *user;
};

/* NULL with errno set: EINVAL for a bad name or index, EBUSY when another instance has the lock.
 * When the runtime started this process (/opt/nri/plugins), name, index and socket are taken from
 * the environment and the options' are ignored. */
struct nri_plugin *nri_plugin_new(const struct nri_options *options);
void nri_plugin_free(struct nri_plugin *p); /* NULL is fine */

/* Connects, serves and reconnects until nri_plugin_stop(), or a fatal failure: a negative errno. A
 * plugin that the runtime started also ends when the runtime closes the connection. */
int nri_plugin_run(struct nri_plugin *p);
void nri_plugin_stop(struct nri_plugin *p); /* from a handler, or from a signal handler */

/* The same in an event loop of yours: poll `fd` (when it is not -1) for `events`, at most
 * `timeout_ms` long (-1: for ever), then dispatch with what poll said. */
struct nri_poll {
	int fd;
	short events;
	int timeout_ms;
};
void nri_plugin_poll(struct nri_plugin *p, struct nri_poll *ret);
int nri_plugin_dispatch(struct nri_plugin *p, short revents);

bool nri_plugin_is_connected(const struct nri_plugin *p);
const char *nri_plugin_problem(const struct nri_plugin *p); /* why it is not; "" when it is */

/* Has the runtime list everything again, by registering anew: the way to change running containers
 * that is safe with every runtime. */
void nri_plugin_resync(struct nri_plugin *p);

/* True when containers may be updated outside a handler: NRI before 0.12.1 can lock up for good
 * when an update meets an event. */
bool nri_plugin_can_update(const struct nri_plugin *p);

/* Asks for an update of one container now. -EOPNOTSUPP when nri_plugin_can_update() says no,
 * -ENOTCONN when there is no runtime. Whether it succeeded is not told. */
int nri_plugin_update_cpu(struct nri_plugin *p, const char *container_id,
			  const struct nri_cpu *cpu);

#ifdef __cplusplus
}
#endif
