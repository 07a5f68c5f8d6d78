#pragma once

/* The names of a node's three CPU pools. Their CPUs are pool/config.h. */

enum pool {
	POOL_MANAGEMENT, /* host services and platform pods that opted in */
	POOL_SHARED,	 /* every container that does not own whole CPUs */
	POOL_GUARANTEED, /* CPUs assigned to one container each */
	POOL__COUNT
};

const char *pool_name(enum pool pool); /* "management", "shared", "guaranteed" */
