#pragma once

/* The OpenShift objects of a layout: the Infrastructure object when an install-config was given,
 * MachineConfigs, KubeletConfigs, Tuneds and RuntimeClasses, with the file names of OpenShift's
 * Node Tuning Operator (docs/reference/openshift-render.md#render). */

#include <stdbool.h>

#include "kubelet_config.h"
#include "object_build.h"

struct arena;
struct err;
struct file_set;
struct layout;
struct problem_list;

struct openshift_options {
	enum owner_mode owner;
	bool quota_keys;
	struct kubelet_options kubelet;
};

/* Adds the files; problems of the input go to `p`. Fails only when memory does. */
int openshift_render(const struct layout *layout, const struct openshift_options *options,
		     struct file_set *files, struct problem_list *p, struct err *err);
