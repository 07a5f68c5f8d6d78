#pragma once

/* Isolated partitions (cgroup/partition.h) for exclusive containers: no other task, no load
 * balancing, no reboot. Where the kernel refuses, the container keeps its cpuset and its entry has
 * the reason. */

#include "codec/doc.h"

struct cgroup_fs;
struct container_entry;
struct manager;
struct pod_entry;
struct arena;

/* For a running container whose cpuset is written; others are left as they are. Called again, it
 * restores a partition that the kernel has invalidated. */
void isolate_container(struct manager *m, struct container_entry *c);

/* Before the entry is removed; the cgroup may be gone already. */
void isolate_release(struct manager *m, struct container_entry *c);
void isolate_release_pod(struct manager *m, const struct pod_entry *pod);

/* After a synchronization: removes exclusive CPUs that ancestors still list for containers that are
 * gone. */
void isolate_remove_stale(struct manager *m);

/* The member "isolation" of the status document; none when isolation is not configured. */
void isolate_describe(const struct manager *m, yyjson_mut_doc *doc, yyjson_mut_val *root,
		      struct arena *a);

/* Removes the partitions of the containers in a status document that have "isolated". Returns how
 * many could not be removed. */
size_t isolate_undo(const struct cgroup_fs *fs, yyjson_val *containers, struct arena *a);
