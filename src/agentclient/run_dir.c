/* The mode has no permissions for others: the directory contains the agent's socket, over which
 * CPUs are assigned, and records of containers. Under systemd it exists already
 * (RuntimeDirectory=). */

#include "run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

int run_dir_open(const char *path, int *ret_fd, struct err *err)
{
	int r = file_mkdirs_at(AT_FDCWD, path, 0700, err);

	if (r < 0)
		return r;
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(err, errno, "open %s: %s", path, strerror(errno)) : 0;
}
