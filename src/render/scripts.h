#pragma once

/* The texts of the units that a machine is given; the scripts they run are files in node/, which
 * the build turns into macros. Units are printf formats where they take something: the comment
 * says what. */

#include "render/node_scripts.h"

/* The CPUs, twice. */
#define UNIT_OFFLINE                                                                               \
	"[Unit]\n"                                                                                 \
	"Description=Set cpus offline: " PRI_STR "\n"                                              \
	"Before=kubelet.service\n"                                                                 \
	"\n[Service]\n"                                                                            \
	"Environment=OFFLINE_CPUS=" PRI_STR "\n"                                                   \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/set-cpus-offline.sh\n"                                           \
	"\n[Install]\n"                                                                            \
	"WantedBy=multi-user.target\n"

/* Size in kB, node, count, size, node. */
#define UNIT_HUGEPAGES                                                                             \
	"[Unit]\n"                                                                                 \
	"Description=Hugepages-%ldkB allocation on the node %lld\n"                                \
	"Before=kubelet.service\n"                                                                 \
	"\n[Service]\n"                                                                            \
	"Environment=HUGEPAGES_COUNT=%lld\n"                                                       \
	"Environment=HUGEPAGES_SIZE=%ld\n"                                                         \
	"Environment=NUMA_NODE=%lld\n"                                                             \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/hugepages-allocation.sh\n"                                       \
	"\n[Install]\n"                                                                            \
	"WantedBy=multi-user.target\n"

/* A line of [Service], or nothing. */
#define UNIT_IRQBALANCE                                                                            \
	"[Unit]\n"                                                                                 \
	"Description=Clear the IRQBalance Banned CPU mask early in the boot\n"                     \
	"Before=kubelet.service\n"                                                                 \
	"Before=irqbalance.service\n"                                                              \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/clear-irqbalance-banned-cpus.sh\n" PRI_STR "\n[Install]\n"       \
	"WantedBy=multi-user.target\n"

/* The CPUs, the kind of partition. */
#define UNIT_OVS_DPDK                                                                              \
	"[Unit]\n"                                                                                 \
	"Description=CPUs of the poll threads of Open vSwitch\n"                                   \
	"Requires=ovs-vswitchd.service\n"                                                          \
	"After=ovs-vswitchd.service\n"                                                             \
	"Before=kubelet.service\n"                                                                 \
	"\n[Service]\n"                                                                            \
	"Environment=OVS_DPDK_CPUS=" PRI_STR "\n"                                                  \
	"Environment=OVS_DPDK_PARTITION=%s\n"                                                      \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/ovs-dpdk-cpus-configure.sh\n"                                    \
	"\n[Install]\n"                                                                            \
	"WantedBy=multi-user.target\n"

#define UNIT_RPS_MASK                                                                              \
	"[Unit]\n"                                                                                 \
	"Description=Sets network devices RPS mask\n"                                              \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"ExecStart=/usr/local/bin/set-rps-mask.sh %I 0\n"

#define UNIT_NODE_PINNING                                                                          \
	"[Unit]\n"                                                                                 \
	"Description=Platform CPUs of this node\n"                                                 \
	"Before=crio.service kubelet.service pinfold-agent.service\n"                              \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/pinfold-node-pinning.sh\n"                                       \
	"\n[Install]\n"                                                                            \
	"WantedBy=multi-user.target\n"
