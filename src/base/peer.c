#include "peer.h"

#include <sys/socket.h>
#include <unistd.h>

bool peer_is_trusted(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}
