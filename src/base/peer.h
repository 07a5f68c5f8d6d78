#pragma once

/* Who is at the other end of a Unix socket. */

#include <stdbool.h>

/* Whether the peer of a connected socket is this user or root. The mode of the socket file says the
 * same at the time of connect(); this also holds when the mode was wrong or a descriptor was passed
 * on. */
bool peer_is_trusted(int fd);
