#pragma once

/* Cgroups by the names runtimes give them, as paths below the mount: "/kubepods/pod1/abc", or with
 * the systemd driver "kubepods-pod1.slice:cri-containerd:abc". Pure. */

#include "base/str.h"

struct arena;

/* The path of a cgroup, without a leading slash; "" for a name that is invalid or leads out of the
 * tree. */
const char *cgroup_path_of(const char *name, struct arena *a);

/* "a-b.slice" as the directories it lies in: "a.slice/a-b.slice". */
const char *cgroup_slice_path(struct str slice, struct arena *a);
