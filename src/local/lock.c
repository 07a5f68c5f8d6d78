#include "lock.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

#define LOCK_ROUNDS 100 /* of 10 ms */

/* Polls, because flock() has no timeout. The wait is for a child that a killed supervisor has
 * forked and that has not reached exec yet, and for a supervisor that is about to end. */
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
