#pragma once

/* Every name that Pinfold shares with a cluster: annotations, labels, resources, kinds, files. No
 * other file spells them. String literals, so that they concatenate: a name that ends in
 * "_PREFIX" is followed by a type or a container, one that ends in "_SUFFIX" follows a type.
 * "Ours" marks names that Pinfold introduced. Names of programs, flags and metrics are not here.
 * */

/* Opting in. */
#define NAME_TARGET_PREFIX "target.workload.openshift.io/" /* pod annotation + workload type */
#define NAME_EFFECT_KEY "effect"			   /* of its JSON value */
#define NAME_EFFECT_PREFERRED "PreferredDuringScheduling"
#define NAME_TARGET_VALUE "{\"" NAME_EFFECT_KEY "\":\"" NAME_EFFECT_PREFERRED "\"}"
#define NAME_ALLOWED                                                                               \
	"workload.openshift.io/allowed"	  /* namespace annotation: comma-separated types */
#define NAME_TYPE_MANAGEMENT "management" /* the workload type that always exists */

/* Written by admission. */
#define NAME_RESOURCES_PREFIX "resources.workload.openshift.io/" /* pod annotation + container */
#define NAME_CPUSHARES_KEY "cpushares"				 /* of its JSON value */
#define NAME_CPULIMIT_KEY "cpulimit"				 /* likewise, in millicores */
#define NAME_WARNING "workload.openshift.io/warning"		 /* pod annotation */

#define NAME_STAMP "pinfold.io/cpus" /* pod annotation (ours): the CPU stamp */
#define NAME_STAMP_KIND_KEY "kind"   /* of its JSON value, for each container */
#define NAME_STAMP_MILLI_KEY "milli"
#define NAME_STAMP_POOL_KEY "pool"
#define NAME_KIND_INIT "init"
#define NAME_KIND_SIDECAR "sidecar"
#define NAME_KIND_APP "app"
#define NAME_POOL_SHARED "shared"
#define NAME_POOL_GUARANTEED "guaranteed"

/* OpenShift's admission plugins, as they appear in messages. */
#define NAME_PLUGIN_PODS "autoscaling.openshift.io/ManagementCPUsOverride"
#define NAME_PLUGIN_NODES "autoscaling.openshift.io/ManagedNode"

/* Resources. One unit of cores and of the pools is one millicore. */
#define NAME_CORES_SUFFIX ".workload.openshift.io/cores" /* type + this */
#define NAME_CORES "workload.openshift.io/cores"	 /* the end of every such name */
#define NAME_MANAGEMENT_CORES NAME_TYPE_MANAGEMENT NAME_CORES_SUFFIX
#define NAME_SHARED_CPUS "openshift.io/shared-cpus"
#define NAME_GUARANTEED_CPUS "openshift.io/guaranteed-cpus"
#define NAME_CPU "cpu"
#define NAME_MEMORY "memory"

/* Annotations of other components. */
#define NAME_CONFIG_SOURCE "kubernetes.io/config.source" /* static pods: "file", "http" */
#define NAME_CONFIG_SOURCE_API "api"
#define NAME_CONFIG_MIRROR "kubernetes.io/config.mirror"
#define NAME_DEBUG_SOURCE "debug.openshift.io/source-resource" /* set by `oc debug` */
#define NAME_NODES_GROUP "system:nodes"			       /* the group of kubelets */

/* The cluster flag: Infrastructure "cluster", /status/cpuPartitioning. */
#define NAME_CONFIG_API "config.openshift.io/v1"
#define NAME_INFRASTRUCTURE_KIND "Infrastructure"
#define NAME_INFRASTRUCTURE "cluster"
#define NAME_PARTITIONING_KEY "cpuPartitioning"
#define NAME_PARTITIONING_NONE "None"
#define NAME_PARTITIONING_ALL "AllNodes"
#define NAME_TOPOLOGY_KEY "controlPlaneTopology"
#define NAME_TOPOLOGY_SINGLE "SingleReplica"
#define NAME_TOPOLOGY_DUAL "DualReplica"
#define NAME_TOPOLOGY_HA "HighlyAvailable"
#define NAME_TOPOLOGY_ARBITER "HighlyAvailableArbiter"
#define NAME_TOPOLOGY_INFRA_KEY "infrastructureTopology"
#define NAME_INFRASTRUCTURE_TOPOLOGY_KEY "infrastructureTopology"

/* Feature gates: FeatureGate "cluster", /spec/featureSet and /spec/customNoUpgrade/enabled. */
#define NAME_FEATURE_GATE_KIND "FeatureGate"
#define NAME_FEATURE_SET_TECH_PREVIEW "TechPreviewNoUpgrade"
#define NAME_FEATURE_SET_DEV_PREVIEW "DevPreviewNoUpgrade"
#define NAME_GATE_POOLS "GuaranteedCPUPool"

/* Where the shipped manifests run the webhook and the agent (ours). */
#define NAME_NAMESPACE_WEBHOOK "pinfold"
#define NAME_NAMESPACE_AGENT "pinfold-agent"
#define NAME_AGENT "pinfold-agent" /* label app.kubernetes.io/name of the agent's pods */

/* The digest of namespace permissions, which the operator writes and agents read (ours, D33): a
 * ConfigMap with one key for each workload type. It is not in a namespace of Pinfold: where Pinfold
 * is installed without one of them, a user who may create namespaces could create it. */
#define NAME_PERMISSIONS_NAMESPACE "kube-system"
#define NAME_PERMISSIONS "pinfold-permissions"
#define NAME_FIELD_MANAGER "pinfold"		       /* of server-side apply (ours) */
#define NAME_MANAGED_BY "app.kubernetes.io/managed-by" /* label of what the operator applies */
#define NAME_OF_PROFILE "pinfold.io/profile"	       /* annotation of what belongs to a profile */
#define NAME_RENEWED                                                                               \
	"pinfold.io/renewed" /* its annotation: when the operator last confirmed it                \
			      */

/* The policy that only an installation with policies in place of the webhook, or before it, has
 * (ours). */
#define NAME_POLICY_WARNINGS "pinfold-warnings"

/* The parameters of the admission policies, which the operator writes (ours, D49): a ConfigMap in
 * the namespace of the digest, for the same reason. */
#define NAME_PARAMETERS "pinfold-admission"
#define NAME_PARAMETER_WORKLOADS "workloads"
#define NAME_WORKLOADS_ON "on"	       /* the cluster flag is set */
#define NAME_WORKLOADS_OFF "off"       /* it is not set */
#define NAME_WORKLOADS_SINGLE "single" /* nor on this single node: only the types it reports */
#define NAME_PARAMETER_TYPES "types"   /* that pods are converted to now, comma-separated */
#define NAME_PARAMETER_REPORTED "reported-types" /* that some node advertises */
#define NAME_PARAMETER_POOLS "pools"		 /* "on" or "off" */
#define NAME_POOLS_ON "on"
#define NAME_POOLS_OFF "off"
/* Nodes without the shared pool: a line for each set of taints, separated by blanks. */
#define NAME_PARAMETER_WITHOUT_POOL "taints-without-pool"

/* The taint of nodes that joined without the resource (ours, D7). */
#define NAME_TAINT_UNPARTITIONED "pinfold.io/unpartitioned"
#define NAME_TAINT_EFFECT "NoSchedule"

/* The condition that the agent sets on its Node (ours). */
#define NAME_CONDITION_READY "PartitioningReady"

/* NRI's default validator: a list of plugins without which a container is not created; the key
 * may continue with "/pod" or "/container.<name>". Pods with "true" in the second annotation are
 * exempt. */
#define NAME_REQUIRED_PLUGINS "required-plugins.noderesource.dev"
#define NAME_TOLERATE_PLUGINS "tolerate-missing-nri-plugins.noderesource.dev"
#define NAME_AGENT_PLUGIN "pinfold" /* the agent's name as a plugin */

/* On a workload, its pod template or its namespace (ours): "ignore" excludes it from `lint`. */
#define NAME_LINT "pinfold.io/lint"
#define NAME_LINT_IGNORE "ignore"

/* On a Node (ours), written by the operator: whether it cordoned the node for a change, and the
 * change that waits for a reboot. */
#define NAME_ROLLOUT "pinfold.io/rollout"
#define NAME_ROLLOUT_CORDONED "cordoned" /* the operator did, and will undo it */
#define NAME_ROLLOUT_KEPT "kept"	 /* it was cordoned before, and stays so */
#define NAME_REBOOT_REQUIRED "pinfold.io/reboot-required"

/* Prefix of annotations, labels and taints of Pinfold's own. */
#define NAME_OWN_PREFIX "pinfold.io/"

/* On the webhook's Secret (ours): requests a new CA. */
#define NAME_ROTATE "pinfold.io/rotate"

/* The profile: spec.cpu.{reserved,isolated,shared,workloads}. */
#define NAME_PROFILE_GROUP "performance.openshift.io"
#define NAME_PROFILE_API NAME_PROFILE_GROUP "/v2"
#define NAME_PROFILE_RESOURCE "performanceprofiles"
#define NAME_PROFILE_KIND "PerformanceProfile"
#define NAME_PROFILE_RESERVED "reserved"
#define NAME_PROFILE_ISOLATED "isolated"
#define NAME_PROFILE_SHARED "shared"
#define NAME_PROFILE_WORKLOADS "workloads"
#define NAME_PROFILE_OFFLINED "offlined"
#define NAME_PROFILE_OVS_DPDK "ovsDpdk"
#define NAME_WORKLOAD_INFRASTRUCTURE "Infrastructure"	       /* the only value of `workloads` */
#define NAME_PROFILE_ANNOTATION "performance.openshift.io/"    /* + feature */
#define NAME_KUBELET_EXPERIMENTAL "kubeletconfig.experimental" /* JSON, on the profile */
#define NAME_RESIZE "pinfold.io/resize"	       /* on the profile (ours): "refuse" or "defer" */
#define NAME_TYPES "pinfold.io/workload-types" /* on the profile (ours): {"ran":"2-3"} */
#define NAME_WEAK_OWNER "performance.openshift.io/weak-owner-reference-name"

/* On the profile (ours): how the nodes that it selects are changed. */
#define NAME_HOST_CONFIGURATION "pinfold.io/host-configuration"
#define NAME_HOST_CONFIGURATION_REPORT "report" /* the default */
#define NAME_HOST_CONFIGURATION_MANAGED "managed"
/* Reason of the condition HostConfigured: files differ, and the profile asks for reports only. */
#define NAME_REASON_NOT_MANAGED "HostFilesNotManaged"
#define NAME_REASON_SHARED_EMPTY "SharedPoolEmpty"
#define NAME_MAX_UNAVAILABLE "pinfold.io/max-unavailable" /* nodes at a time: "1", "10%" */
#define NAME_PAUSED "pinfold.io/paused"			  /* "true": no further node begins */
#define NAME_REBOOT "pinfold.io/reboot"			  /* who reboots nodes */
#define NAME_REBOOT_SENTINEL "sentinel"			  /* the default */
#define NAME_REBOOT_OPERATOR "operator"

/* The state of a node (ours): one object for each node, with the node's name. */
#define NAME_PARTITION_GROUP "pinfold.io"
#define NAME_PARTITION_API NAME_PARTITION_GROUP "/v1alpha1"
#define NAME_PARTITION_KIND "NodePartition"
#define NAME_PARTITION_RESOURCE "nodepartitions"

#define NAME_PROFILE_RESOURCE "performanceprofiles"

/* Machine Config Operator. */
#define NAME_MACHINE_API "machineconfiguration.openshift.io/v1"
#define NAME_POOL_KIND "MachineConfigPool"
#define NAME_MACHINE_CONFIG_KIND "MachineConfig"
#define NAME_KUBELET_CONFIG_KIND "KubeletConfig"
#define NAME_MACHINE_ROLE "machineconfiguration.openshift.io/role" /* label: the pool's name */
#define NAME_POOL_LABEL_PREFIX "pools.operator.machineconfiguration.openshift.io/"
#define NAME_NODE_ROLE_PREFIX "node-role.kubernetes.io/"
#define NAME_TUNED_API "tuned.openshift.io/v1"
#define NAME_TUNED_NAMESPACE "openshift-cluster-node-tuning-operator"

/* install-config. */
#define NAME_INSTALL_PARTITIONING_KEY "cpuPartitioningMode"

/* Files on the node. */
#define NAME_KUBELET_MARKER "/etc/kubernetes/openshift-workload-pinning"
#define NAME_NODE_MARKER_SUFFIX ".node" /* after the marker: ours, for one node of a pool */
#define NAME_MARKER_CPUSET_KEY "cpuset" /* {"management":{"cpuset":"0-1"}} */
#define NAME_POOLS_FILE "/etc/kubernetes/openshift-cpu-pools" /* ours */
#define NAME_POOLS_RESERVED_KEY "reserved"
#define NAME_POOLS_SHARED_KEY "shared"
#define NAME_POOLS_GUARANTEED_KEY "guaranteed"
#define NAME_KUBELET_SCOPE "topologyManagerScope" /* of a kubelet's configuration */
#define NAME_POOLS_POLICY_KEY "topologyPolicy"
#define NAME_POOLS_SCOPE_KEY "topologyScope"
#define NAME_POOLS_OPTIONS_KEY "cpuManagerPolicyOptions" /* as in a kubelet's configuration */
#define NAME_POOLS_TYPES_KEY "types"   /* {"ran":"2-3"}: workload types with CPUs of their own */
#define NAME_POOLS_RESIZE_KEY "resize" /* when containers run on CPUs that leave their pool */
#define NAME_POOLS_RESIZE_REFUSE "refuse"
#define NAME_POOLS_RESIZE_DEFER "defer"
#define NAME_CRIO_DIR "/etc/crio/crio.conf.d/"
#define NAME_CRIO_DEFAULT "01-workload-pinning-default.conf"	   /* bootstrap: every CPU */
#define NAME_CRIO_DEFAULT_EARLY "00-workload-pinning-default.conf" /* ...before a user's */
#define NAME_CRIO_PINNING "99-workload-pinning.conf"		   /* from a profile */
#define NAME_CRIO_RUNTIMES "99-runtimes.conf"
#define NAME_MIXED_CPUS_FILE "/etc/kubernetes/openshift-workload-mixed-cpus"

/* The names of 2021 (D2): accepted as input with the legacy setting, never written. */
#define NAME_LEGACY_TARGET "workload.openshift.io/target"   /* pod label: type */
#define NAME_LEGACY_ALLOWED "workload.openshift.io/allowed" /* namespace label: type */
#define NAME_LEGACY_MANAGEMENT                                                                     \
	"io.openshift.management" /* pod annotation, pod and namespace label */
#define NAME_LEGACY_CPU_PREFIX "cpu.workload.openshift.io/"	/* + type, or + container */
#define NAME_LEGACY_MARKER "/etc/kubernetes/management-pinning" /* contains only a CPU list */
#define NAME_LEGACY_CRIO "01-workload-partitioning"		/* the hand-written drop-in */
#define NAME_LEGACY_CRIO_CPUS "cpu_set = "			/* in CRI-O's workload table */
#define NAME_LEGACY_SETTINGS_KEY "workloadSettings"		/* [{name, cpuIDs}] */
#define NAME_LEGACY_POOLS_KEY "workloadCPUPools" /* likewise, an alternative of the enhancement */
#define NAME_LEGACY_SETTINGS_NODES_KEY "nodes"	 /* only on these nodes */
#define NAME_LEGACY_SETTINGS_NAME_KEY "name"
#define NAME_LEGACY_SETTINGS_CPUS_KEY "cpuIDs"
