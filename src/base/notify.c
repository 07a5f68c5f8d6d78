/* systemd's notification protocol without libsystemd: one datagram to the socket in NOTIFY_SOCKET.
 * Failures are ignored, because the program works the same without a service manager. */

#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "macro.h"

void notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_CLOSE int fd = -1;
	size_t n;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	n = strlen(path);
	memcpy(address.sun_path, path, n);
	if (*path == '@')
		address.sun_path[0] = 0; /* the abstract namespace */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* The length is exact: an abstract name has no terminating NUL, a NUL would be part of it.
	 */
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}
