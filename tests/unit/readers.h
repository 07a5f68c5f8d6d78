#pragma once

/* Checks our output with the parsers of Python: tests/unit/readers.py. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static inline void readers_put(char *path, struct str text)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
	(void)close(fd);
}

/* `kind` is "yaml" or "toml"; `json` says what must be read. For YAML that is one line for every
 * document. */
static inline void readers_check(const char *kind, struct str text, struct str json)
{
	char text_path[] = "/tmp/pinfold-text-XXXXXX", json_path[] = "/tmp/pinfold-json-XXXXXX";
	char command[8192];
	int status;

	readers_put(text_path, text);
	readers_put(json_path, json);
	(void)snprintf(command, sizeof(command), "python3 '%s' %s %s %s >&2",
		       test_data("unit/readers.py"), kind, text_path, json_path);
	status = system(command);
	if (status == 0) {
		(void)unlink(text_path);
		(void)unlink(json_path);
	}
	CHECK_INT(status, 0);
}
