# shellcheck shell=bash disable=SC2154  # "top" is the caller's
#
# What the kernels of the nodes of virtual-cluster.sh say, read by kernel_truth, and whether their agents are ready. Source that
# file first, then:
#
#	kernel_truth_build          $top/kernel_truth, and a copy on every node
#	node_truth NODE             its output for all pods of the node
#	siblings NODE CPU           the threads of the CPU's core, as a list
#	numa_of NODE CPU...         their NUMA nodes
#	agent_ready_on NODE         the agent is connected to the runtime and serves
#	agent_status_on NODE        what it prints as its status, JSON
#	agent_pid NODE              its process

kernel_truth_put() { on "$1" test -x /root/kernel_truth || guest_put "$top/$1" "$top/kernel_truth" /root/; }
kernel_truth_build() {
	gcc -O2 -static -D_GNU_SOURCE -o "$top/kernel_truth" "$e2e_lib/../kernel-truth/kernel_truth.c" && vc_each kernel_truth_put
}
node_truth() { on "$1" /root/kernel_truth /sys/fs/cgroup/kubepods.slice; }

siblings() { on "$1" "cat /sys/devices/system/cpu/cpu$2/topology/thread_siblings_list"; }
numa_of() { on "$1" "for cpu in ${*:2}; do basename /sys/devices/system/cpu/cpu\$cpu/node*; done | sort -u" | tr '\n' ' ' | sed 's/ $//'; }

agent_get() { on "$1" "printf 'GET $2 HTTP/1.0\r\n\r\n' | socat -t 20 - UNIX-CONNECT:/run/pinfold/agent.sock 2>/dev/null"; } # NODE PATH
agent_ready_on() { [[ $(agent_get "$1" /readyz | head -n 1) == *' 200 '* ]]; }
agent_status_on() { agent_get "$1" /status | sed '1,/^\r*$/d'; }
agent_pid() { on "$1" "pgrep -of '^/usr/local/bin/pinfold agent'"; }
