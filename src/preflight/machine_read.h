#pragma once

/* Reads the facts about a machine: this one, or one whose files are below a directory. What cannot
 * be read stays unknown. Sockets are connected to, and the agent is asked, only on this machine. */

#include "preflight_node.h"

struct arena;
struct err;

struct machine_source {
	const char *root;   /* NULL: this machine */
	const char *distro; /* NULL: as detected */
	const char *run_dir;
};

int machine_read(const struct machine_source *source, struct arena *a, struct machine_facts *ret,
		 struct err *err);
