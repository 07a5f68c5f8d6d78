#pragma once

/* Certificate rotation of the webhook: a CA and a serving certificate in a Secret, the CA also in
 * the webhook configurations. Every replica reads; the holder of the Lease writes, and only while
 * there is something to write. cert_plan.h decides the next step. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"
#include "cert_plan.h"
#include "leader.h"
#include "pki.h"
#include "watch.h"

struct cert_rotation;

struct cert_rotation_config {
	const char *namespace, *secret, *lease;
	const char *configuration; /* name of both webhook configurations */
	const char *identity;	   /* of this replica */
	const char *const *names;  /* by which the API server reaches the webhook */
	size_t n_names;

	/* All on the loop's thread. A certificate to serve with from now on. */
	void (*on_certificate)(struct cert_rotation *k, struct str cert_pem, struct str key_pem);
	void (*on_action)(struct cert_rotation *k, const char *what); /* for the log */
	void (*on_configurations)(struct cert_rotation *k); /* both were read; may be NULL */
	void (*on_failure)(struct cert_rotation *k, const char *what, const struct err *err);
};

/* Why the webhook cannot be called yet. */
enum cert_state {
	CERT_STATE_NONE,
	CERT_STATE_NOT_REGISTERED,
	CERT_STATE_NOT_TRUSTED,
	CERT_STATE_OK
};

/* One webhook of a configuration. */
struct cert_hook {
	struct str name, bundle; /* PEM */
};

struct cert_configuration {
	struct cert_rotation *rotation;
	const char *resource;
	struct api_call call;
	struct arena arena;
	struct cert_hook *hooks;
	size_t n_hooks;
	bool is_known, exists, is_busy;
	bool has_node_hook; /* is called when a Node is created */
	char created[24];   /* as in the object */
};

#define CERT_CONFIGURATIONS 2
#define CERT_MUTATING 0 /* the first of them */

struct cert_rotation {
	struct api *api;
	const struct cert_rotation_config *config;
	struct leader_config leader_config;
	struct leader leader;
	struct watch_config watch_config;
	struct watch watch;
	struct arena paths;

	struct arena arena; /* of the content of the Secret */
	struct str version, bundle, ca_key, cert, key;
	struct str rotate; /* value of the annotation that requests a new CA */
	bool is_known, has_secret, wants_rotation;
	struct buffer served; /* the certificate last passed to on_certificate */

	struct cert_configuration configurations[CERT_CONFIGURATIONS];
	struct api_call write;
	const char *writing; /* what the write in flight does; NULL: none */
	struct timer timer;
	struct backoff backoff;
	_Atomic int state; /* enum cert_state; any thread */
};

void cert_rotation_init(struct cert_rotation *k, struct api *api,
			const struct cert_rotation_config *config);
void cert_rotation_close(struct cert_rotation *k);
void cert_rotation_done(struct cert_rotation *k); /* after the loop is done */
