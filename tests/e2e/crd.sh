#!/usr/bin/env bash
# The CRDs of deploy/base on a real API server: what they accept, refuse, default and preserve. Every CPU set is also
# given to `pinfold profile check`, so that schema and parser agree.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/control-plane.sh
. tests/e2e/lib/control-plane.sh
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

pinfold=${PINFOLD:-build/pinfold}
dir=$(mktemp -d /tmp/pinfold-crd-XXXXXX)
cp=$dir/cp
trap 'cp_stop "$cp"; rm -rf "$dir"' EXIT

profile() { # CPU: the members of spec.cpu in flow style
    printf '{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: p},\n spec: {cpu: {%s}, nodeSelector: {node-role.kubernetes.io/worker: ""}}}\n' "$1"
}
crd_accepts() { profile "$1" | kubectl create --dry-run=server -f - >"$dir/out" 2>&1; }
check_accepts() {
    profile "$1" >"$dir/profile.yaml"
    "$pinfold" profile check --allow-split-cores --topology 'numa:2 core:8 pu:2' "$dir/profile.yaml" >"$dir/out" 2>&1
}
both_accept() { crd_accepts "$1" && check_accepts "$1"; }
both_refuse() { ! crd_accepts "$1" && grep -q 'spec.cpu' "$dir/out" && ! check_accepts "$1"; }

profiles() {
    local cpu
    for cpu in 'reserved: 0-1, isolated: 2-31' 'reserved: 0-1' 'reserved: 0-1, shared: 2-31' \
        'reserved: "0", isolated: "1,3,5-7"' 'reserved: 0-1, isolated: rest' 'reserved: 10%, isolated: rest' \
        'reserved: first 1 core of each numa, shared: 10%, isolated: rest' 'reserved: 10%, shared: 10%, isolated: rest' \
        'reserved: 2 cpus, isolated: all of numa 1, shared: rest' \
        'reserved: "0-1 and last 1 core of socket 0", isolated: rest' 'reserved: 1 thread of each l3, isolated: last 2 cores of each die' \
        'reserved: 0-1, isolated: 2-27, ovsDpdk: 28-29, offlined: 30-31' \
        'reserved: 0-1, isolated: 2-31, workloads: [Infrastructure]' 'reserved: 0-1, isolated: 2-31, workloads: []'; do
        ok "accepted: $cpu" both_accept "$cpu"
    done
    for cpu in 'isolated: 2-31' 'reserved: 0-x' 'reserved: ""' 'reserved: "0-1,"' 'reserved: " 0-1"' 'reserved: "0-1\n"' \
        'reserved: half' 'reserved: first core' 'reserved: 0-1, isolated: rest of each' 'reserved: 0-1, isolated: ""' \
        'reserved: 0-1, isolated: 0-1' 'reserved: 0-1, shared: 0-1' 'reserved: 3' 'reserved: 0-1, workloads: [Database]' \
        'reserved: 0-1, isolated: 2-3, ovsDpdk: x'; do
        ok "refused: $cpu" both_refuse "$cpu"
    done
    profile 'reserved: 0-1, isolated: 2-27, ovsDpdk: 28-31' | kubectl create -f - >/dev/null
    equals "a stored profile keeps all CPU sets" 28-31 kubectl get performanceprofiles p -o 'jsonpath={.spec.cpu.ovsDpdk}'
}

infrastructure() {
    kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"controlPlaneTopology":"HighlyAvailable"}}' >/dev/null
    equals "the cluster flag is None by default" None kubectl get infrastructure cluster -o 'jsonpath={.status.cpuPartitioning}'
    refused "an unknown flag is refused" cpuPartitioning kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"allnodes"}}'
    ok "the flag can be turned on" kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"AllNodes"}}'
    refused "the flag cannot be turned off" 'can not be turned off' kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"None"}}'
    refused "the flag cannot be removed" 'can not be turned off' kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":null}}'
}

set_status() { kubectl patch np w --subresource status --type json -p "[{\"op\":\"add\",\"path\":\"/status\",\"value\":$1}]"; }
columns() { kubectl get np w --no-headers | awk '{$NF = ""; print}' | sed 's/ *$//'; }
partitions() {
    local full
    full=$(python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["status"]))' tests/fuzz/corpus/node_partition/full.json)
    full=${full/', {"type": "Other", "status": "x"}'/}
    kubectl create -f - >/dev/null <<<'{apiVersion: pinfold.io/v1alpha1, kind: NodePartition, metadata: {name: w}, spec: {granted: ab12}, status: {source: Flags}}'
    equals "status is a subresource" "" kubectl get np w -o 'jsonpath={.status}'
    ok "a whole status is accepted" set_status "$full"
    equals "the columns are an overview" "w worker 0-1 2-3 4-7 True KubeletRestart" columns
    ok "a status replaces the one before it" set_status '{"source":"None","cpus":{"management":"0-7"},"pools":[],"conditions":[]}'
    equals "nothing of the old status stays" '{"conditions":[],"cpus":{"management":"0-7"},"pools":[],"source":"None"}' kubectl get np w -o 'jsonpath={.status}'
    refused "an unknown source is refused" source set_status '{"source":"Guess"}'
    refused "a CPU list must be one" management set_status '{"cpus":{"management":"0-x"}}'
    refused "an unknown pending change is refused" pending set_status '{"pending":[{"what":"Coffee"}]}'
    refused "a condition needs a reason" reason set_status '{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-16T01:34:14Z"}]}'
    refused "a grant is a hash" granted kubectl patch np w --type merge -p '{"spec":{"granted":"everything"}}'
}

cp_start "$cp"
kubectl apply -f deploy/base/crd-performanceprofiles.yaml -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-nodepartitions.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
profiles
infrastructure
partitions
tap_end
