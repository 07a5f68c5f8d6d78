/* Landlock by system calls: the C library has no functions for it, and the headers of the build may
 * be older than the kernel, so newer constants are defined here. */

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "confine.h"

/* struct landlock_ruleset_attr of version 6; older kernels take its beginning. */
struct ruleset {
	uint64_t files, ports, scopes;
};

#define SINCE_1_EXECUTE LANDLOCK_ACCESS_FS_EXECUTE
#define SINCE_1_WRITES                                                                             \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG)
#define SINCE_1_NODES                                                                              \
	(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK |                             \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                            \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)
#define SINCE_2_REFER LANDLOCK_ACCESS_FS_REFER /* rename() into another directory */
#define SINCE_3_TRUNCATE (UINT64_C(1) << 14)
#define SINCE_4_BIND_TCP (UINT64_C(1) << 0)
#define SINCE_5_IOCTL_DEV (UINT64_C(1) << 15)
#define SINCE_6_ABSTRACT_SOCKET (UINT64_C(1) << 0)
#define SINCE_6_SIGNAL (UINT64_C(1) << 1)

/* The service manager's socket may be an abstract one (notify.h). */
static uint64_t scopes(void)
{
	const char *notify = getenv("NOTIFY_SOCKET");

	return SINCE_6_SIGNAL | (notify && *notify == '@' ? 0 : SINCE_6_ABSTRACT_SOCKET);
}

/* Everything that the kernel can restrict, and that is not reading. */
static struct ruleset ruleset_of(int version, bool may_bind, size_t *ret_size)
{
	struct ruleset all = { .files = SINCE_1_EXECUTE | SINCE_1_WRITES | SINCE_1_NODES |
					(version >= 2 ? SINCE_2_REFER : 0) |
					(version >= 3 ? SINCE_3_TRUNCATE : 0) |
					(version >= 5 ? SINCE_5_IOCTL_DEV : 0),
			       .ports = version >= 4 && !may_bind ? SINCE_4_BIND_TCP : 0,
			       .scopes = version >= 6 ? scopes() : 0 };

	*ret_size = version >= 6 ? sizeof(all) :
		    version >= 4 ? offsetof(struct ruleset, scopes) :
				   offsetof(struct ruleset, ports);
	return all;
}

static int allow(int rules, const struct confine_path *p, int version, struct err *err)
{
	AUTO_CLOSE int fd = open(p->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = p->is_for_sockets ?
					  LANDLOCK_ACCESS_FS_MAKE_SOCK |
						  LANDLOCK_ACCESS_FS_REMOVE_FILE :
					  SINCE_1_WRITES | LANDLOCK_ACCESS_FS_MAKE_SOCK |
						  (version >= 3 ? SINCE_3_TRUNCATE : 0),
		.parent_fd = fd,
	};

	if (fd < 0 ||
	    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return err_set(err, errno, "cannot keep %s writable: %s", p->path, strerror(errno));
	return 0;
}

int confine_files(const struct confine_files *files, struct err *err)
{
	const int version =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	AUTO_CLOSE int rules = -1;
	struct ruleset all;
	size_t size;

	if (version < 1) /* not compiled in, not enabled, or refused by an outer filter */
		return 0;
	all = ruleset_of(version, files->may_bind, &size);
	rules = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
	if (rules < 0)
		return err_set(err, errno, "landlock: %s", strerror(errno));
	for (size_t i = 0; i < files->n; i++) {
		int r = allow(rules, &files->writable[i], version, err);

		if (r < 0)
			return r;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return err_set(err, errno, "landlock: %s", strerror(errno));
	return version;
}
