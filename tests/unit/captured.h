#pragma once

/* A temporary directory with files of a machine (sysfs, cgroupfs), created by shell commands. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

struct captured {
	char dir[32];
	int fd; /* of the directory */
};

static inline struct captured captured_make(const char *script)
{
	struct captured c = { .dir = "/tmp/captured-XXXXXX" };
	char command[2048];

	CHECK(mkdtemp(c.dir) != NULL);
	CHECK((size_t)snprintf(command, sizeof(command), "cd %s && %s", c.dir, script) <
	      sizeof(command));
	CHECK(system(command) == 0);
	c.fd = open(c.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(c.fd >= 0);
	return c;
}

static inline void captured_remove(const struct captured *c)
{
	char command[64];

	(void)close(c->fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", c->dir);
	CHECK(system(command) == 0);
}
