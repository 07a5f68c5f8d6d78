#include "host_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "host_live.h"

/* Where SetUnitProperties() with runtime writes (systemd.unit(5)). */
#define DROP_IN_DIR "%s/run/systemd/system.control/%s.d"
#define DROP_IN DROP_IN_DIR "/50-AllowedCPUs.conf"

const char *host_prefix(const char *root)
{
	return strcmp(root, "/") == 0 ? "" : root;
}

static int open_below(const char *root, const char *path)
{
	char full[4096];

	(void)snprintf(full, sizeof(full), "%s%s", host_prefix(root), path);
	return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int host_dirs_open(struct host_dirs *d, const struct host_settings *settings, struct err *err)
{
	int r;

	*d = (struct host_dirs){ -1, -1, -1, -1 };
	r = file_mkdirs_at(AT_FDCWD, settings->state_dir, 0700, err);
	if (r < 0)
		return r;
	d->state = open(settings->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->state < 0)
		return err_set(err, errno, "open %s: %s", settings->state_dir, strerror(errno));
	/* Processes of the host are in the agent's own /proc: its container has their PID
	 * namespace. Its /proc/irq is read-only. */
	d->proc = open(settings->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->irq = open_below(settings->root, "/proc/irq");
	d->workqueue = open_below(settings->root, "/sys/devices/virtual/workqueue");
	return 0;
}

void host_dirs_close(struct host_dirs *d)
{
	const int all[] = { d->state, d->proc, d->irq, d->workqueue };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] >= 0)
			(void)close(all[i]);
	*d = (struct host_dirs){ -1, -1, -1, -1 };
}

bool host_has_drop_in(const char *root, const char *unit)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), DROP_IN, host_prefix(root), unit);
	return access(path, F_OK) == 0;
}

int host_remove_drop_in(const char *root, const char *unit, struct err *err)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), DROP_IN, host_prefix(root), unit);
	if (unlink(path) < 0)
		return errno == ENOENT ?
			       0 :
			       err_set(err, errno, "remove %s: %s", path, strerror(errno));
	(void)snprintf(path, sizeof(path), DROP_IN_DIR, host_prefix(root), unit);
	(void)rmdir(path);
	return 1;
}
