#pragma once

/* Cgroups of ours that somebody has written to since we last looked (cgroup/lookout.h). Being
 * written to is not yet wrong: runtimes and we ourselves write, too. */

struct container_entry;
struct manager;
struct pod_entry;

/* Before its cgroup is read, so that nothing is missed in between. */
void change_watch_add(struct manager *m, struct container_entry *c);
void change_watch_add_pod(struct manager *m, struct pod_entry *pod); /* and its pause container */

/* Before it is removed from the registry. */
void change_watch_remove(struct manager *m, struct container_entry *c);
void change_watch_remove_pod(struct manager *m, struct pod_entry *pod); /* with its containers */
void change_watch_clear(struct manager *m);

/* Marks who was written to. Says so when not everybody can be watched, and when that is over. */
void change_watch_collect(struct manager *m);
