#include "lock.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

#define LOCK_ROUNDS 100 /* of 10 ms */

int lock_wait(int dir_fd)
{
	const struct timespec pause_10ms = { .tv_nsec = 10000000 };

	for (int round = 0; round < LOCK_ROUNDS; round++) {
		if (flock(dir_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		(void)nanosleep(&pause_10ms, NULL);
	}
	return -EBUSY;
}
