#pragma once

/* Bugs that the model checker has to find. Each replaces one function of the agent by a wrong one
 * (--wrap, see meson.build) while it is selected. */

enum seeded_bug {
	BUG_NONE,
	BUG_STATE_NOT_WRITTEN, /* a transaction succeeds without a write */
	BUG_SHARED_NOT_MOVED,  /* classic mode: shared containers stay on exclusive CPUs */
	BUG_NOT_RELEASED,      /* the CPUs of a removed pod stay assigned */
	BUG_NOT_ADOPTED,       /* a synchronization forgets which CPUs a container has */
	BUG_ANY_PERMISSION,    /* the namespace's permission is ignored */
	BUG_SAME_CPU,	       /* every container gets the highest CPU */
	BUG_DRIFT_IGNORED,     /* differences are not written */
	BUG__COUNT
};

extern enum seeded_bug seeded_bug;

extern const char *const seeded_names[BUG__COUNT];
