#pragma once

/* MachineConfig objects: an Ignition 3.2 configuration with files as data URLs and systemd units,
 * with the empty members that OpenShift's own tools write
 * (docs/reference/openshift-render.md#empty-members). */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "file_set.h"

struct arena;

struct systemd_unit {
	struct str name;
	struct str contents;
	bool enabled;
};

/* What a machine of a pool is given. */
struct node_config {
	struct file_set files; /* absolute paths, in the order they are written */
	struct systemd_unit *units;
	size_t n_units, cap_units;
	const char *kernel_type; /* "default", "realtime", "64k-pages"; "" when not set */
};

void node_config_init(struct node_config *c, struct arena *a);
/* The path is not copied. */
void node_config_add(struct node_config *c, const char *path, unsigned mode, struct str bytes);
void node_config_add_unit(struct node_config *c, const char *name, struct str contents);

/* "data:text/plain;charset=utf-8;base64,..." */
struct str data_url(struct str bytes, struct arena *a);

/* The object without labels; the caller adds the role. */
yyjson_mut_val *machine_config_build(yyjson_mut_doc *m, struct str name,
				     const struct node_config *config, struct arena *a);
