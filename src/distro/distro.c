/* A row states what the distribution's own defaults are; a machine that was installed with other
 * directories needs flags. */

#include "distro.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "os_release.h"

#define NRI_SOCKET "/var/run/nri/nri.sock" /* containerd's and CRI-O's default */
#define CRIO_SOCKET "/var/run/crio/crio.sock"
#define CRIO_DROPINS "/etc/crio/crio.conf.d"
#define CRIO_CONFIG "/etc/crio/crio.conf"
#define CRIO_UNIT "crio.service"
#define KUBELET_IN_PROCESS(what)                                                                   \
	{                                                                                          \
		"the kubelet runs inside " what ": no unit starts before it alone",                \
			"none is needed: containers that start before the agent are corrected "    \
			"when it connects"                                                         \
	}
#define CONTROL_PLANE_IN_PROCESS(unit)                                                             \
	{                                                                                          \
		"the control plane is a process and not static pods: it is not pinned as a pod",   \
			"keep it on the management CPUs with AllowedCPUs= of " unit                \
	}

static const struct distro table[] = {
	[DISTRO_OPENSHIFT] = {
		.name = "openshift",
		.title = "OpenShift",
		.evidence = { "/etc/machine-config-daemon/currentconfig" },
		.os_id = NULL,
		.runtime = DISTRO_CRIO,
		.nri_socket = NRI_SOCKET,
		.cri_socket = CRIO_SOCKET,
		.runtime_dropin_dir = CRIO_DROPINS,
		.runtime_config = CRIO_CONFIG,
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_config = "/etc/kubernetes/kubelet.conf",
		.kubelet_kubeconfig = "/var/lib/kubelet/kubeconfig",
		.static_pod_dir = "/etc/kubernetes/manifests",
		.cni_dir = "/etc/kubernetes/cni/net.d",
		.kubelet_units = { "kubelet.service" },
		.runtime_unit = CRIO_UNIT,
		.limits = {
			{ "the Machine Config Operator owns /etc and reverts other changes",
			  "apply the objects of `pinfold render` instead of a host bundle" },
		},
	},
	[DISTRO_MICROSHIFT] = {
		.name = "microshift",
		.title = "MicroShift",
		.evidence = { "/var/lib/microshift", "/etc/microshift" },
		.runtime = DISTRO_CRIO,
		.nri_socket = NRI_SOCKET,
		.cri_socket = CRIO_SOCKET,
		.runtime_dropin_dir = CRIO_DROPINS,
		.runtime_config = CRIO_CONFIG,
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_config = "/var/lib/microshift/resources/kubelet/config/config.yaml",
		.kubelet_kubeconfig = "/var/lib/microshift/resources/kubelet/kubeconfig",
		.cni_dir = "/etc/cni/net.d",
		.kubelet_units = { "microshift.service" },
		.runtime_unit = CRIO_UNIT,
		.control_plane_is_process = true,
		.limits = {
			KUBELET_IN_PROCESS("microshift"),
			CONTROL_PLANE_IN_PROCESS("microshift.service"),
			{ "MicroShift writes the kubelet's configuration at each start",
			  "set kubelet options below `kubelet:` in /etc/microshift/config.d" },
		},
	},
	[DISTRO_TALOS] = {
		.name = "talos",
		.title = "Talos Linux",
		.os_id = "talos",
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/run/containerd/containerd.sock",
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_config = "/etc/kubernetes/kubelet.yaml",
		.kubelet_kubeconfig = "/etc/kubernetes/kubeconfig-kubelet",
		.cni_dir = "/etc/cni/net.d",
		.etc_is_read_only = true,
		.limits = {
			{ "/etc is read-only: there are no drop-ins and no pools file",
			  "apply the machine configuration patches of `pinfold render --target host "
			  "--distro talos`; pools come from the cluster or from the agent's flags" },
			{ "there is no systemd and no unit can be installed",
			  "use the DaemonSet (deploy/overlays/talos)" },
			{ "static pods come from the machine configuration and not from a directory",
			  "do not use --static-pods: control-plane pods stay unconverted" },
		},
	},
	[DISTRO_RKE2] = {
		.name = "rke2",
		.title = "RKE2",
		.evidence = { "/var/lib/rancher/rke2/agent", "/etc/rancher/rke2" },
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/run/k3s/containerd/containerd.sock",
		.runtime_dropin_dir = "/var/lib/rancher/rke2/agent/etc/containerd/config-v3.toml.d",
		.runtime_config = "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_dropin_dir = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
		.kubelet_kubeconfig = "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
		.static_pod_dir = "/var/lib/rancher/rke2/agent/pod-manifests",
		.cni_dir = "/etc/cni/net.d",
		.kubelet_units = { "rke2-server.service", "rke2-agent.service" },
		.kubelet_reads_dropins = true,
		.limits = {
			KUBELET_IN_PROCESS("rke2"),
			{ "rke2 writes its static pods at each start and reverts converted ones",
			  "let the agent convert them again (--static-pods), or leave them" },
		},
	},
	[DISTRO_K3S] = {
		.name = "k3s",
		.title = "k3s",
		.evidence = { "/var/lib/rancher/k3s/agent", "/etc/rancher/k3s" },
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/run/k3s/containerd/containerd.sock",
		.runtime_dropin_dir = "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d",
		.runtime_config = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_dropin_dir = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
		.kubelet_kubeconfig = "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
		.static_pod_dir = "/var/lib/rancher/k3s/agent/pod-manifests",
		.cni_dir = "/var/lib/rancher/k3s/agent/etc/cni/net.d",
		.kubelet_units = { "k3s.service", "k3s-agent.service" },
		.kubelet_reads_dropins = true,
		.control_plane_is_process = true,
		.limits = {
			KUBELET_IN_PROCESS("k3s"),
			CONTROL_PLANE_IN_PROCESS("k3s.service"),
		},
	},
	[DISTRO_MICROK8S] = {
		.name = "microk8s",
		.title = "MicroK8s",
		.evidence = { "/var/snap/microk8s/common" },
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/var/snap/microk8s/common/run/containerd.sock",
		.runtime_config = "/var/snap/microk8s/current/args/containerd-template.toml",
		.kubelet_root = "/var/snap/microk8s/common/var/lib/kubelet",
		.kubelet_dropin_dir = "/var/snap/microk8s/current/args/kubelet.conf.d",
		.kubelet_args_file = "/var/snap/microk8s/current/args/kubelet",
		.kubelet_kubeconfig = "/var/snap/microk8s/current/credentials/kubelet.config",
		.cni_dir = "/var/snap/microk8s/current/args/cni-network",
		.kubelet_units = { "snap.microk8s.daemon-kubelite.service" },
		.runtime_unit = "snap.microk8s.daemon-containerd.service",
		.control_plane_is_process = true,
		.limits = {
			KUBELET_IN_PROCESS("kubelite"),
			CONTROL_PLANE_IN_PROCESS("snap.microk8s.daemon-kubelite.service"),
			{ "the kubelet reads a configuration directory only with a flag",
			  "--config-dir=/var/snap/microk8s/current/args/kubelet.conf.d in "
			  "/var/snap/microk8s/current/args/kubelet; the host bundle adds it" },
		},
	},
	[DISTRO_KIND] = {
		.name = "kind",
		.title = "kind",
		.evidence = { "/kind/version", "/kind/kubeadm.conf" },
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/run/containerd/containerd.sock",
		.runtime_dropin_dir = "/etc/containerd/conf.d",
		.runtime_config = "/etc/containerd/config.toml",
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_config = "/var/lib/kubelet/config.yaml",
		.kubelet_dropin_dir = "/etc/kubernetes/kubelet.conf.d",
		.kubelet_kubeconfig = "/etc/kubernetes/kubelet.conf",
		.static_pod_dir = "/etc/kubernetes/manifests",
		.cni_dir = "/etc/cni/net.d",
		.kubelet_units = { "kubelet.service" },
		.runtime_unit = "containerd.service",
		.limits = {
			{ "nodes are containers that share the CPUs of one machine",
			  "give each node CPUs of its own, or use kind for trials only" },
			{ "kernel arguments and the host's slices cannot be set in a container",
			  "set them on the machine that runs kind" },
		},
	},
	[DISTRO_KUBEADM] = {
		.name = "kubeadm",
		.title = "kubeadm",
		.evidence = { "/var/lib/kubelet/kubeadm-flags.env", "/etc/kubernetes/kubelet.conf" },
		.runtime = DISTRO_CONTAINERD,
		.nri_socket = NRI_SOCKET,
		.cri_socket = "/run/containerd/containerd.sock",
		.runtime_dropin_dir = "/etc/containerd/conf.d",
		.runtime_config = "/etc/containerd/config.toml",
		.kubelet_root = "/var/lib/kubelet",
		.kubelet_config = "/var/lib/kubelet/config.yaml",
		.kubelet_dropin_dir = "/etc/kubernetes/kubelet.conf.d",
		.kubelet_kubeconfig = "/etc/kubernetes/kubelet.conf",
		.static_pod_dir = "/etc/kubernetes/manifests",
		.cni_dir = "/etc/cni/net.d",
		.kubelet_units = { "kubelet.service" },
		.runtime_unit = "containerd.service",
	},
};
_Static_assert(sizeof(table) / sizeof(table[0]) == DISTRO__COUNT, "every distribution has a row");

const struct distro *distro_get(enum distro_id id)
{
	assert(id < DISTRO__COUNT);
	return &table[id];
}

const struct distro *distro_find(const char *name)
{
	for (size_t i = 0; i < DISTRO__COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

static bool has_evidence(const struct distro *d, const struct distro_evidence *e)
{
	if (d->os_id)
		return str_eq(os_release_get(e->os_release, STR("ID")), str_from(d->os_id));
	for (size_t i = 0; i < DISTRO_EVIDENCE && d->evidence[i]; i++)
		for (size_t k = 0; k < e->n; k++)
			if (str_eq(e->paths[k], str_from(d->evidence[i])))
				return true;
	return false;
}

struct distro_detection distro_detect(const struct distro_evidence *e)
{
	struct distro_detection found = { &table[DISTRO_KUBEADM], false, NULL };

	for (size_t i = 0; i < DISTRO__COUNT; i++) {
		if (!has_evidence(&table[i], e))
			continue;
		if (!found.is_detected)
			found = (struct distro_detection){ &table[i], true, NULL };
		/* kind nodes are made by kubeadm, and /etc/kubernetes/kubelet.conf is another file
		 * on OpenShift. */
		else if (!found.also && i != DISTRO_KUBEADM)
			found.also = table[i].name;
	}
	return found;
}

struct distro distro_on_crio(const struct distro *d)
{
	struct distro copy = *d;

	copy.runtime = DISTRO_CRIO;
	copy.cri_socket = CRIO_SOCKET;
	copy.runtime_dropin_dir = CRIO_DROPINS;
	copy.runtime_config = CRIO_CONFIG;
	copy.runtime_unit = CRIO_UNIT;
	return copy;
}

const char *distro_kubelet_path(const struct distro *d, const char *name, struct arena *a)
{
	return str_printf(a, "%s/%s", d->kubelet_root, name).p;
}
