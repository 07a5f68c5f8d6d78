#pragma once

/* The lock of a local machine, on a directory so that no lock file remains. It is held as long as
 * any process has the descriptor open, including a forked child before exec: the next holder after
 * a crash therefore finds that child's process or none. */

/* Waits up to one second, then fails with -EBUSY. */
int lock_wait(int dir_fd);
