#pragma once

/* `pinfold dashboard`: serves a page that shows a cluster or a machine, and the data for it. It
 * reads and never writes (D53). One thread; the state is shown_state.h. */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "base/str.h"
#include "source_machine.h"

struct admission_state;
struct err;
struct kubeconfig;
struct manifest_list;
struct saved_bundle;

struct dashboard_config {
	const char *listen; /* HOST:PORT */
	const char *token_file;
	bool user_tokens; /* of a cluster: clients are users of its API server (user_access.h) */
	struct option_list hosts; /* further names in the Host of requests */
	const char *version;
	bool is_unconfined;
	void (*print)(struct str text); /* to standard output */

	/* A cluster, a bundle, or a machine. */
	const struct kubeconfig *kubeconfig; /* NULL: a machine */
	const struct saved_bundle *bundle;   /* its objects are `manifests` */
	struct source_machine_config machine;

	/* Of a machine: the manifests of its pods and profiles, and the state that admits them; or
	 * NULL. */
	const struct manifest_list *manifests;
	const struct admission_state *admission;
};

/* Until SIGTERM or SIGINT. */
int dashboard_run(const struct dashboard_config *config, struct err *err);
