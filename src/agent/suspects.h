#pragma once

/* Cgroups of ours that somebody has written to since we last looked (cgroup/lookout.h). Being
 * written to is not yet wrong: runtimes and we ourselves write, too. */

struct container_entry;
struct manager;
struct pod_entry;

/* Before its cgroup is read, so that nothing is missed in between. */
void suspects_follow(struct manager *m, struct container_entry *c);
void suspects_follow_pod(struct manager *m, struct pod_entry *pod); /* and its pause container */

/* Before it is removed from the registry. */
void suspects_drop(struct manager *m, struct container_entry *c);
void suspects_drop_pod(struct manager *m, struct pod_entry *pod); /* with its containers */
void suspects_drop_all(struct manager *m);

/* Marks who was written to. Says so when not everybody can be watched, and when that is over. */
void suspects_mark(struct manager *m);
