#pragma once

/* Readers of topologies. topology_parse_* take bytes and do no I/O; topology_read_* read a machine:
 * this one through hwloc, or a copied one through its sysfs tree below a directory descriptor. The
 * sysfs reader shares no code with hwloc; tests compare the two. */

#include <stdbool.h>

#include "base/str.h"
#include "codec/doc.h"
#include "topology.h"

/* Pinfold's JSON form: {"cpus":[{"cpu":0,"core":0,"socket":0,"numa":0,"uncore":0},...]}, with the
 * optional members "die" and "type" ("performance", "efficiency") of a CPU, and beside "cpus" the
 * lists "offline" and "isolated" and "nodes":[{"id":0,"distances":[10,21]},...]. */
int topology_parse_json(struct str text, struct str file, struct arena *a, struct topology *ret,
			struct err *err);
int topology_from_doc(const struct doc *doc, struct arena *a, struct topology *ret,
		      struct err *err);

/* The output of `lstopo --of xml`, and hwloc's synthetic strings ("pack:2 numa:2 core:8 pu:2"). */
int topology_parse_xml(struct str text, struct str file, struct arena *a, struct topology *ret,
		       struct err *err);
int topology_parse_synthetic(struct str text, struct arena *a, struct topology *ret,
			     struct err *err);

/* Any of the three: "{" begins JSON, "<" XML. */
int topology_parse(struct str text, struct str file, struct arena *a, struct topology *ret,
		   struct err *err);

/* The same in a child process, for untrusted bytes: hwloc crashes on some damaged XML. */
int topology_parse_child(struct str text, struct str file, struct arena *a, struct topology *ret,
			 struct err *err);

/* This machine, through hwloc; which CPUs are offline or isolated, through sysfs. */
int topology_read_host(struct arena *a, struct topology *ret, struct err *err);

/* The machine whose /sys/devices/system is open as `system_fd`. */
int topology_read_sysfs(int system_fd, struct arena *a, struct topology *ret, struct err *err);

/* "host", a file, a directory that holds a captured /sys/devices/system, or a synthetic string. */
int topology_read(const char *from, struct arena *a, struct topology *ret, struct err *err);

/* The JSON form of a topology. Reading it back gives the same topology. */
yyjson_mut_val *topology_to_doc(const struct topology *t, yyjson_mut_doc *m, struct arena *a);
