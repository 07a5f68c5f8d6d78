#include "distro_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"

#define OS_RELEASE_MAX ((size_t)16 << 10)

static bool exists(int root_fd, const char *path)
{
	struct stat st;

	return fstatat(root_fd, path + 1, &st, 0) == 0;
}

struct distro_detection distro_read(int root_fd, struct arena *a)
{
	struct str paths[DISTRO__COUNT * DISTRO_EVIDENCE];
	struct distro_evidence e = { .paths = paths };

	for (int id = 0; id < DISTRO__COUNT; id++) {
		const struct distro *d = distro_get((enum distro_id)id);

		for (size_t i = 0; i < DISTRO_EVIDENCE && d->evidence[i]; i++)
			if (exists(root_fd, d->evidence[i]))
				paths[e.n++] = str_from(d->evidence[i]);
	}
	/* A link to an absolute path would leave the tree; the file itself is in /usr/lib. */
	if (file_read_at(root_fd, "etc/os-release", OS_RELEASE_MAX, a, &e.os_release, NULL) < 0 &&
	    file_read_at(root_fd, "usr/lib/os-release", OS_RELEASE_MAX, a, &e.os_release, NULL) < 0)
		e.os_release = STR("");
	return distro_detect(&e);
}

int distro_choose(const char *name, struct arena *a, struct distro_detection *ret, struct err *err)
{
	if (name) {
		const struct distro *d = distro_find(name);

		if (!d)
			return err_set(err, EINVAL, "--distro: \"%s\" is not one of %s", name,
				       DISTRO_CHOICES);
		*ret = (struct distro_detection){ d, true, NULL };
		return 0;
	}
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return err_set(err, errno, "cannot open /");
	*ret = distro_read(root, a);
	return 0;
}
