#!/bin/sh
# Gives this node its own CPUs for platform pods, where its pool has several kinds. The runtime's
# drop-in sorts behind the pool's own. The node's marker, for the agent, stands beside the pool's,
# which the Machine Config Operator keeps as it is.
set -eu
root=${PINFOLD_ROOT:-} # of a test
own=$root/etc/pinfold/workload-pinning.d/${1:-$(uname -n)}
conf=$root/etc/crio/crio.conf.d/99-workload-pinning.node.conf
marker=$root/etc/kubernetes/openshift-workload-pinning.node
if [ ! -e "$own.conf" ]; then
	rm -f "$conf" "$marker"
	exit 0
fi
cp "$own.conf" "$conf.new"
mv "$conf.new" "$conf"
(umask 077 && cp "$own.json" "$marker.new")
mv "$marker.new" "$marker"
