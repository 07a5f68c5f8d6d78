#pragma once

/* Address and credentials of an API server, from a kubeconfig file or from the files mounted into a
 * pod. Parsing is pure; files named by path are read by kubeconfig_read_credentials() repeatedly,
 * because tokens and certificates rotate. Programs (exec plugins, auth providers) are refused: a
 * daemon has a certificate or a token. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

#define KUBECONFIG_POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Texts and paths are NUL-terminated. A path is used only if the inline text is empty. */
struct kubeconfig {
	const char *host; /* without brackets */
	uint16_t port;
	const char *other_host; /* another address of the same server; NULL: none */
	uint16_t other_port;
	const char *prefix;   /* of every path: "" or "/k8s/clusters/c-1" */
	const char *tls_name; /* the name that the certificate must have; NULL: the host */
	bool insecure;
	struct str ca_pem, cert_pem, key_pem, token;
	const char *ca_path, *cert_path, *key_path, *token_path;
	const char *namespace; /* of the context or the pod; NULL: unknown */
};

/* Relative paths in the file are relative to `directory`. `context` NULL: the current context. */
int kubeconfig_parse(struct str text, struct str file, const char *directory, const char *context,
		     struct arena *a, struct kubeconfig *ret, struct err *err);

/* "https://host[:port][/prefix]" into host, port and prefix. */
int kubeconfig_parse_server(struct str url, struct arena *a, struct kubeconfig *ret,
			    struct err *err);

int kubeconfig_read(const char *path, const char *context, struct arena *a, struct kubeconfig *ret,
		    struct err *err);

/* The address alone, of a file whose credentials are those of another program, such as the
 * kubelet's. */
int kubeconfig_read_server(const char *path, struct arena *a, struct kubeconfig *ret,
			   struct err *err);

/* Inside a pod: host and port from the environment (NULL: not in a pod), the rest below
 * `directory`. Only the namespace is read here. */
int kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
			  struct arena *a, struct kubeconfig *ret, struct err *err);

/* The present content of the credentials. */
struct credentials {
	struct str ca_pem, cert_pem, key_pem, token;
};

int kubeconfig_read_credentials(const struct kubeconfig *kubeconfig, struct arena *a,
				struct credentials *ret, struct err *err);
