#pragma once

/* Parts of applying and undoing changes of host files. Only for src/hostfiles. */

#include <stdbool.h>
#include <stddef.h>

#include "host_files.h"

struct arena;
struct err;
struct files_settings;
struct systemd_call;

/* The kubelet does not start when its CPU and memory managers find the state of another policy or
 * reservation (docs/reference/cpu-manager.md). The files are moved to the state directory, unless
 * both the state and the kubelet that will start have policy none. */
int files_forget_kubelet_state(const struct files_settings *settings, bool will_be_static,
			       struct arena *a, struct err *err);

/* Removes what was moved there. */
void files_remove_kubelet_state(const struct files_settings *settings, struct arena *a);

/* What systemd has to do after files were written, one call in each line: "reload", "enable UNIT",
 * "disable UNIT", "try-restart UNIT". `owed` is what it had to do before; of two calls for a unit
 * the later one counts. */
struct str files_unit_calls(const struct host_files *files, struct str owed, struct arena *a);

/* Whether every line is such a call. */
bool files_are_calls(struct str lines);

/* The first lines as calls. Returns how many. */
size_t files_parse_calls(struct str lines, struct systemd_call *calls, size_t max, struct arena *a);

/* /run/reboot-required, for daemons that reboot nodes. A file of another program stays. */
int files_put_sentinel(const char *root, bool is_needed, struct arena *a, struct err *err);
