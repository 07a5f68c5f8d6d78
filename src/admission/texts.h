#pragma once

/* Texts of the admission decisions that users see in warnings and refusals. The webhook formats
 * them in C, the policies of src/policy in CEL; both say the same because they take them from
 * here. A text with a variable part is cut in two at that part. */

#include "kube/names.h"

#define TEXT_NO_PERMISSION_HEAD "skipping pod CPUs requests modifications because the "
#define TEXT_NO_PERMISSION_TAIL                                                                    \
	" namespace is not annotated with " NAME_ALLOWED " to allow workload partitioning"
#define TEXT_SKIP "skip pod CPUs requests modifications because "
#define TEXT_GUARANTEED TEXT_SKIP "it has guaranteed QoS class"
#define TEXT_QOS_CHANGE TEXT_SKIP "it will change the pod QoS class from " /* X to Y */
#define TEXT_POD_LEVEL TEXT_SKIP "it has pod-level cpu resources"
#define TEXT_NODE_LACKS TEXT_SKIP "the node does not report the resource " /* resource */
/* Followed by the resource. */
#define TEXT_NO_READY_NODE TEXT_SKIP "no node that is ready advertises the resource "

#define TEXT_TYPE_REFUSED_HEAD "the pod namespace \""		      /* namespace */
#define TEXT_TYPE_REFUSED_TAIL "\" does not allow the workload type " /* type */
#define TEXT_TWO_TYPES "the pod can not have more than one workload annotations"
#define TEXT_EMPTY_TYPE                                                                            \
	"the workload annotation key should have format " NAME_TARGET_PREFIX                       \
	"<workload_type>, when <workload_type> is non empty string"
#define TEXT_UNTARGETED_RESOURCES                                                                  \
	"the pod without workload annotation can not have resource annotation"
#define TEXT_UNTARGETED_CORES                                                                      \
	"the pod without workload annotations can not have containers with workload resources \""
#define TEXT_DEBUG_ADVICE                                                                          \
	"You must pass --keep-annotations parameter to the debug command or upgrade the oc tool "  \
	"to the latest version when trying to debug a pod with workload partitioning resources."

/* metadata.annotations[KEY]: Forbidden: may not be added... */
#define TEXT_UPDATE_HEAD "metadata.annotations["
#define TEXT_UPDATE_MIDDLE "]: Forbidden: may not be "
#define TEXT_UPDATE_TAIL " after the pod was created: delete the pod and create it again"
#define TEXT_RESIZE_HEAD "Forbidden: the CPU of container "
#define TEXT_RESIZE_TAIL                                                                           \
	" is counted in a CPU pool and cannot be resized in place: delete the pod and create it "  \
	"with the new CPU"

#define TEXT_NODE_REQUIRED                                                                         \
	"node does not contain resource information, this is required for clusters with workload " \
	"partitioning enabled"
#define TEXT_TURN_OFF                                                                              \
	"workload partitioning can not be turned off once it is " NAME_PARTITIONING_ALL            \
	"; change the CPU sets in the profiles instead"
