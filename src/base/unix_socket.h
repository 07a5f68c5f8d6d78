#pragma once

/* Connecting to a Unix socket with a time limit, for programs that wait for the response. */

/* The connected descriptor, whose reads and writes give up after `timeout_s`; or a negative errno.
 */
int unix_socket_connect(const char *path, unsigned timeout_s);
