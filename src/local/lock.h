#pragma once

/* The lock of a local machine: on a directory, so that no file is left behind. It lives as long as
 * any process has the descriptor, also a child that has not reached exec yet: whoever gets the lock
 * after a crash will find that child's process, or none. */

/* Waits a second for it; -EBUSY then. */
int lock_wait(int dir_fd);
