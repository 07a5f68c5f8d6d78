#pragma once

/* How the nodes of a profile are changed: the annotations pinfold.io/host-configuration,
 * max-unavailable, paused and reboot. Read in one place, so that `profile check`, the webhook, the
 * operator and the agents accept the same values. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/doc.h"

enum change_annotation {
	CHANGE_HOST_CONFIGURATION,
	CHANGE_MAX_UNAVAILABLE,
	CHANGE_PAUSED,
	CHANGE_REBOOT,
	CHANGE_ANNOTATION__COUNT
};

struct change_settings {
	bool manages_host;	  /* agents write host files; false: they report differences */
	uint64_t max_unavailable; /* nodes at a time, */
	bool is_share;		  /* or percent of the nodes */
	bool is_paused;
	bool operator_reboots; /* false: others do, from a sentinel */
};

/* The settings, with defaults for annotations that are missing or invalid. `ret_invalid`, which may
 * be NULL, says which ones are. Returns how many are invalid. */
size_t change_settings_read(yyjson_val *annotations, struct change_settings *ret,
			    bool ret_invalid[CHANGE_ANNOTATION__COUNT]);

const char *change_annotation_name(enum change_annotation c);	/* "pinfold.io/paused" */
const char *change_annotation_values(enum change_annotation c); /* "true, false" */
