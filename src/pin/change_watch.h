#pragma once

/* Which cgroups of the registry were written since the last check, by inotify (cgroup_watch.h). A
 * write is not drift yet: the runtime and the agent itself write, too. */

struct container_entry;
struct manager;
struct pod_entry;

/* Called before the cgroup is read, so that no write in between is missed. */
void change_watch_add(struct manager *m, struct container_entry *c);
void change_watch_add_pod(struct manager *m, struct pod_entry *pod); /* and its pause container */

/* Called before the entry is removed from the registry. */
void change_watch_remove(struct manager *m, struct container_entry *c);
void change_watch_remove_pod(struct manager *m, struct pod_entry *pod); /* with its containers */
void change_watch_clear(struct manager *m);

/* Sets `was_written` of the entries. Logs when not every cgroup can be watched, and when all can be
 * again. */
void change_watch_collect(struct manager *m);
