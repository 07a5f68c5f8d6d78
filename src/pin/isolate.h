#pragma once

/* CPUs that a container owns, as an isolated partition of the kernel's (cgroup/partition.h): no
 * foreign task, no load balancing, no reboot. Where the kernel refuses, the container keeps its
 * plain cpuset and its entry says why. */

#include "codec/doc.h"

struct cgroup_fs;
struct container_entry;
struct manager;
struct pod_entry;
struct arena;

/* A running container whose cpuset is set. Nothing for those who own no CPUs, or when nobody asked
 * for it. May be called again: repairs what the kernel has taken away meanwhile. */
void isolate_container(struct manager *m, struct container_entry *c);

/* It is going away, or has gone. */
void isolate_release(struct manager *m, struct container_entry *c);
void isolate_release_pod(struct manager *m, const struct pod_entry *pod);

/* After we were away: CPUs that are announced for containers that are no more. */
void isolate_sweep(struct manager *m);

/* The member "isolation" of the status document; nothing when nobody asked for it. */
void isolate_describe(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
		      struct arena *a);

/* Gives back what a status document lists: its containers with "isolated". Returns how many could
 * not be. */
size_t isolate_undo(const struct cgroup_fs *fs, yyjson_val *containers, struct arena *a);
