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

/* What systemd has to do after units and TuneD's files were written. Returns how many calls. */
size_t files_unit_calls(const struct host_files *files, struct systemd_call *calls, size_t max,
			struct arena *a);

/* /run/reboot-required, for daemons that reboot nodes. A file of another program stays. */
int files_put_sentinel(const char *root, bool is_needed, struct arena *a, struct err *err);
