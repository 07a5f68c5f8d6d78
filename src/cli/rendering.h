#pragma once

/* The options that decide what is rendered, and the rendering itself: for render, which writes the
 * files, and plan, which compares them. */

#include <stdbool.h>

#include "base/options.h"
#include "manifest_paths.h"

struct err;
struct file_set;
struct layout_input;

struct rendering_options {
	struct option_list files;
	const char *input_dir;
	const char *owner_ref;
	const char *target;
	const char *distro;
	const char *agent_program;
	const char *cpu_manager;
	struct option_list topologies;
	bool quota_keys;
	bool allow_split_cores;
};

#define RENDERING_OPTIONS(type, field)                                                             \
	MANIFESTS_OPTION(type, field.files),                                                       \
		{ OPT_STR,                                                                         \
		  0,                                                                               \
		  "asset-input-dir",                                                               \
		  "DIR[,DIR]",                                                                     \
		  "manifests: install-config, Infrastructure, machine config pools, profiles "     \
		  "(default: /assets)",                                                            \
		  NULL,                                                                            \
		  offsetof(type, field.input_dir) },                                               \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "target",                                                                        \
		  "WHAT",                                                                          \
		  "objects for OpenShift, or files for any host (default: openshift)",             \
		  "openshift|host",                                                                \
		  offsetof(type, field.target) },                                                  \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "distro",                                                                        \
		  "NAME",                                                                          \
		  "distribution of the hosts, for --target host (default: kubeadm)",               \
		  "kubeadm|k3s|rke2|microk8s|talos|kind|microshift",                               \
		  offsetof(type, field.distro) },                                                  \
		{ OPT_STR,                                                                         \
		  0,                                                                               \
		  "agent-program",                                                                 \
		  "FILE",                                                                          \
		  "also install the agent as a unit of the hosts: the program pinfold for their "  \
		  "architecture (default: no agent in the bundle)",                                \
		  NULL,                                                                            \
		  offsetof(type, field.agent_program) },                                           \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "owner-ref",                                                                     \
		  "MODE",                                                                          \
		  "how objects refer to their profile: by label, by owner reference, not at all "  \
		  "(default: "                                                                     \
		  "label-name)",                                                                   \
		  "none|k8s|label-name",                                                           \
		  offsetof(type, field.owner_ref) },                                               \
		TOPOLOGY_OPTION(type, field.topologies),                                           \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "cpu-manager",                                                                   \
		  "POLICY",                                                                        \
		  "what assigns exclusive CPUs: the kubelet (static) or the agent (none) "         \
		  "(default: the "                                                                 \
		  "agent for profiles with a shared set, else the kubelet)",                       \
		  "static|none",                                                                   \
		  offsetof(type, field.cpu_manager) },                                             \
		{ OPT_FLAG,                                                                        \
		  0,                                                                               \
		  "quota-keys",                                                                    \
		  NULL,                                                                            \
		  "write cpuquota and cpuperiod into CRI-O's drop-in",                             \
		  NULL,                                                                            \
		  offsetof(type, field.quota_keys) },                                              \
		SPLIT_CORES_OPTION(type, field.allow_split_cores)

bool rendering_is_for_hosts(const struct rendering_options *o);

/* The value of a flag, or else of a variable of OpenShift's bootstrap that is not empty. */
const char *rendering_or_environment(const char *given, const char *name, const char *otherwise);

/* Reads the input, resolves it and renders into *files. Problems are in in->problems; when one of
 * them is an error, the files are not to be used. */
int rendering_run(const struct rendering_options *o, struct layout_input *in,
		  struct file_set *files, struct err *err);

/* Its steps, for input that has other sources, too: the options and topologies; the manifests; what
 * they say. */
int rendering_prepare(const struct rendering_options *o, struct layout_input *in, struct err *err);
int rendering_read(const struct rendering_options *o, struct layout_input *in, struct err *err);
int rendering_render(const struct rendering_options *o, struct layout_input *in,
		     struct file_set *files, struct err *err);
