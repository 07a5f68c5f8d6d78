#pragma once

/* How to reach an API server and who we are there: read from a kubeconfig file, or from what a pod
 * finds mounted. Parsing is pure; what is named by path is read by kubeconfig_find(), again and
 * again, because tokens and certificates rotate. Programs that a kubeconfig would have us run (exec
 * plugins, auth providers) are refused: a daemon has a certificate or a token. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

#define KUBECONFIG_POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Texts and paths are NUL-terminated. A path counts only where the inline text is empty. */
struct kubeconfig {
	const char *host; /* without brackets */
	uint16_t port;
	const char *prefix;   /* of every path: "" or "/k8s/clusters/c-1" */
	const char *tls_name; /* what the certificate must be for; NULL: the host */
	bool insecure;
	struct str ca_pem, cert_pem, key_pem, token;
	const char *ca_path, *cert_path, *key_path, *token_path;
	const char *namespace; /* of the context or the pod; NULL when not told */
};

/* `directory` is what relative paths in the file are relative to. `context` NULL: the current. */
int kubeconfig_parse(struct str text, struct str file, const char *directory, const char *context,
		     struct arena *a, struct kubeconfig *ret, struct err *err);

/* "https://host[:port][/prefix]" into host, port and prefix. */
int kubeconfig_parse_server(struct str url, struct arena *a, struct kubeconfig *ret,
			    struct err *err);

/* The file, by its path. */
int kubeconfig_read(const char *path, const char *context, struct arena *a, struct kubeconfig *ret,
		    struct err *err);

/* Inside a pod: host and port from the environment (NULL: not in a pod), the rest below
 * `directory`. Nothing is read but the namespace. */
int kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
			  struct arena *a, struct kubeconfig *ret, struct err *err);

/* The secrets as they are at this moment. */
struct credentials {
	struct str ca_pem, cert_pem, key_pem, token;
};

int kubeconfig_find(const struct kubeconfig *kubeconfig, struct arena *a, struct credentials *ret,
		    struct err *err);
