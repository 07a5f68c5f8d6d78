#pragma once

/* Looks at a machine, or at a tree with the files of one, for distro_detect(). */

#include "distro.h"

/* `root_fd` is the machine's root directory. A file that cannot be read counts as absent. */
struct distro_detection distro_read(int root_fd, struct arena *a);

/* By name, or as found on this machine when `name` is NULL. -EINVAL for an unknown name. */
int distro_choose(const char *name, struct arena *a, struct distro_detection *ret, struct err *err);
