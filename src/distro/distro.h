#pragma once

/* Distributions of Kubernetes as one table: where their sockets, kubelets and manifests are, which
 * units run them and what they do not allow. Which one a machine has follows from files that exist.
 * Pure; distro_read.h looks at a machine. Facts: docs/distributions.md. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena;
struct err;

/* In the order of detection: the more specific first. */
enum distro_id {
	DISTRO_OPENSHIFT,
	DISTRO_MICROSHIFT,
	DISTRO_TALOS,
	DISTRO_RKE2,
	DISTRO_K3S,
	DISTRO_MICROK8S,
	DISTRO_KIND,
	DISTRO_KUBEADM,
	DISTRO__COUNT,
};

/* For the rows of option tables. */
#define DISTRO_CHOICES "kubeadm|k3s|rke2|microk8s|talos|kind|microshift|openshift"

enum distro_runtime { DISTRO_CONTAINERD, DISTRO_CRIO };

/* What a distribution does not allow, and what to do instead. */
struct distro_limit {
	const char *what, *remedy;
};

#define DISTRO_LIMITS 4
#define DISTRO_EVIDENCE 3

struct distro {
	const char *name; /* "k3s" */
	const char *title;
	const char *evidence[DISTRO_EVIDENCE]; /* a path that exists only there */
	const char *os_id;		       /* ID of /etc/os-release; NULL: any */

	const char *nri_socket, *cri_socket;
	const char *runtime_dropin_dir; /* for files that NRI is configured with; NULL: none */
	const char *runtime_config;	/* the main file, which k3s and RKE2 generate; NULL: none */

	const char *kubelet_root;
	const char *kubelet_config;	/* the KubeletConfiguration; NULL: not a file */
	const char *kubelet_dropin_dir; /* KubeletConfiguration drop-ins; NULL: not read */
	const char *kubelet_args_file;	/* a file of flags, one in each line; NULL: none */
	const char *kubelet_kubeconfig;
	const char *static_pod_dir; /* NULL: none */
	const char *cni_dir;

	/* The units that run the kubelet and the runtime; a server may have another one than a
	 * node. NULL: no systemd, or none of its own. */
	const char *kubelet_units[2];
	const char *runtime_unit;

	enum distro_runtime runtime;
	bool etc_is_read_only;
	bool kubelet_reads_dropins;    /* without further configuration */
	bool control_plane_is_process; /* not static pods */
	struct distro_limit limits[DISTRO_LIMITS];
};

const struct distro *distro_get(enum distro_id id);

/* NULL when there is no distribution of this name. */
const struct distro *distro_find(const char *name);

/* What was found on a machine. */
struct distro_evidence {
	const struct str *paths; /* those of the table that exist */
	size_t n;
	struct str os_release; /* content of /etc/os-release */
};

struct distro_detection {
	const struct distro *distro; /* never NULL: kubeadm's paths when nothing was found */
	bool is_detected;
	const char *also; /* name of a second distribution that left files; NULL: none */
};

struct distro_detection distro_detect(const struct distro_evidence *e);

/* The same with CRI-O instead of containerd, which kubeadm leaves to the administrator. */
struct distro distro_on_crio(const struct distro *d);

/* "<kubelet root>/<name>". */
const char *distro_kubelet_path(const struct distro *d, const char *name, struct arena *a);
