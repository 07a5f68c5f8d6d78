#pragma once

/* The texts of scripts and units that a machine is given. POSIX shell, nothing but coreutils and
 * sed; every script does all of its work or says why it did none. Units are printf formats where
 * they hold a "%": the comment says with what. */

#define SCRIPT_OFFLINE                                                                             \
	"#!/bin/sh\n"                                                                              \
	"# Takes the CPUs in OFFLINE_CPUS (1,2,3) offline: all of them, or none.\n"                \
	"set -eu\n"                                                                                \
	"IFS=,\n"                                                                                  \
	"for cpu in $OFFLINE_CPUS; do\n"                                                           \
	"\tif [ ! -e \"/sys/devices/system/cpu/cpu$cpu/online\" ]; then\n"                         \
	"\t\techo \"CPU $cpu cannot be taken offline; nothing was changed\" >&2\n"                 \
	"\t\texit 1\n"                                                                             \
	"\tfi\n"                                                                                   \
	"done\n"                                                                                   \
	"for cpu in $OFFLINE_CPUS; do\n"                                                           \
	"\techo 0 >\"/sys/devices/system/cpu/cpu$cpu/online\"\n"                                   \
	"done\n"

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

#define SCRIPT_HUGEPAGES                                                                           \
	"#!/bin/sh\n"                                                                              \
	"# Gets HUGEPAGES_COUNT pages of HUGEPAGES_SIZE kB on NUMA node NUMA_NODE. Memory that "   \
	"is\n"                                                                                     \
	"# in use at boot becomes free: tries for a minute.\n"                                     \
	"set -eu\n"                                                                                \
	"file=/sys/devices/system/node/node$NUMA_NODE/hugepages/hugepages-${HUGEPAGES_SIZE}kB/"    \
	"nr_hugepages\n"                                                                           \
	"[ -e \"$file\" ] || { echo \"no such huge pages: $file\" >&2; exit 1; }\n"                \
	"tries=60\n"                                                                               \
	"while [ \"$(cat \"$file\")\" -ne \"$HUGEPAGES_COUNT\" ]; do\n"                            \
	"\techo \"$HUGEPAGES_COUNT\" >\"$file\"\n"                                                 \
	"\t[ \"$(cat \"$file\")\" -ne \"$HUGEPAGES_COUNT\" ] || break\n"                           \
	"\ttries=$((tries - 1))\n"                                                                 \
	"\tif [ $tries -eq 0 ]; then\n"                                                            \
	"\t\techo \"got only $(cat \"$file\") of $HUGEPAGES_COUNT pages\" >&2\n"                   \
	"\t\texit 1\n"                                                                             \
	"\tfi\n"                                                                                   \
	"\tsleep 1\n"                                                                              \
	"done\n"

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

#define SCRIPT_IRQBALANCE                                                                          \
	"#!/bin/sh\n"                                                                              \
	"# Forgets the CPUs that the runtime kept from interrupts before this boot.\n"             \
	"set -eu\n"                                                                                \
	"conf=${1:-/etc/sysconfig/irqbalance}\n"                                                   \
	"saved=${2:-/etc/sysconfig/orig_irq_banned_cpus}\n"                                        \
	"mask=${OVS_DPDK_CPUS:-0}\n"                                                               \
	"[ -e \"$conf\" ] || exit 0\n"                                                             \
	"sed -i '/^[[:space:]]*IRQBALANCE_BANNED_CPUS=/d' \"$conf\"\n"                             \
	"echo \"IRQBALANCE_BANNED_CPUS=$mask\" >>\"$conf\"\n"                                      \
	"if [ -e \"$saved\" ]; then\n"                                                             \
	"\techo \"$mask\" >\"$saved\"\n"                                                           \
	"fi\n"

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

#define SCRIPT_RPS_MASK                                                                            \
	"#!/bin/sh\n"                                                                              \
	"# Sets the steering mask of every receive queue of a network device.\n"                   \
	"set -eu\n"                                                                                \
	"device=$1 mask=$2\n"                                                                      \
	"for queue in /sys/class/net/\"$device\"/queues/rx-*; do\n"                                \
	"\t[ ! -e \"$queue/rps_cpus\" ] || echo \"$mask\" >\"$queue/rps_cpus\"\n"                  \
	"done\n"

#define UNIT_RPS_MASK                                                                              \
	"[Unit]\n"                                                                                 \
	"Description=Sets network devices RPS mask\n"                                              \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"ExecStart=/usr/local/bin/set-rps-mask.sh %I 0\n"

/* The runtime's drop-in sorts behind the pool's own; the marker stays as the pool has it, because
 * the Machine Config Daemon watches that file. */
#define SCRIPT_NODE_PINNING                                                                        \
	"#!/bin/sh\n"                                                                              \
	"# Gives this node its own CPUs for platform pods, where its pool has several kinds.\n"    \
	"set -eu\n"                                                                                \
	"own=/etc/pinfold/workload-pinning.d/${1:-$(uname -n)}\n"                                  \
	"conf=/etc/crio/crio.conf.d/99-workload-pinning.node.conf\n"                               \
	"if [ ! -e \"$own.conf\" ]; then\n"                                                        \
	"\trm -f \"$conf\"\n"                                                                      \
	"\texit 0\n"                                                                               \
	"fi\n"                                                                                     \
	"cp \"$own.conf\" \"$conf.new\"\n"                                                         \
	"mv \"$conf.new\" \"$conf\"\n"

#define UNIT_NODE_PINNING                                                                          \
	"[Unit]\n"                                                                                 \
	"Description=Platform CPUs of this node\n"                                                 \
	"Before=crio.service kubelet.service\n"                                                    \
	"\n[Service]\n"                                                                            \
	"Type=oneshot\n"                                                                           \
	"RemainAfterExit=true\n"                                                                   \
	"ExecStart=/usr/local/bin/pinfold-node-pinning.sh\n"                                       \
	"\n[Install]\n"                                                                            \
	"WantedBy=multi-user.target\n"
