#!/usr/bin/env bash
# Support bundles and reports of a cluster, from a real API server: objects are trimmed, secrets stay in the cluster, what may not be
# read is named, and commands read the bundle after the cluster has ended.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/control-plane.sh
. tests/e2e/lib/control-plane.sh
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

pinfold=${PINFOLD:-$PWD/build/pinfold}
dir=$(mktemp -d /tmp/pinfold-bundle-XXXXXX)
cp=$dir/cp
trap 'cp_stop "$cp"; rm -rf "$dir"' EXIT

set_up() {
    cp_start "$cp"
    kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-nodepartitions.yaml -f deploy/base/crd-performanceprofiles.yaml
    kubectl wait --for condition=Established crd --all --timeout 120s
    cp_namespace "$cp" shop
    cp_namespace "$cp" pinfold
    cp_namespace "$cp" pinfold-agent
    kubectl annotate namespace shop workload.openshift.io/allowed=management example.com/token=verysecret
    kubectl -n shop create secret generic s --from-literal password=verysecret
    kubectl -n shop create configmap c --from-literal password=verysecret
    kubectl create -f - <<END
{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}
---
{apiVersion: v1, kind: Node, metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}}
---
{apiVersion: pinfold.io/v1alpha1, kind: NodePartition, metadata: {name: worker-0}}
---
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: worker}
spec: {cpu: {reserved: 0-1, shared: 2-3, isolated: 4-7}, nodeSelector: {node-role.kubernetes.io/worker: ""}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, annotations: {example.com/key: verysecret}, labels: {example.com/key: verysecret}}
spec:
  nodeName: worker-0
  containers:
  - {name: main, image: verysecret, command: [verysecret], env: [{name: TOKEN, value: verysecret}], resources: {requests: {cpu: 500m}}}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-x, namespace: pinfold-agent}
spec: {nodeName: worker-0, containers: [{name: agent, image: none}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: pinfold-agent, namespace: pinfold-agent, labels: {app.kubernetes.io/name: pinfold-agent}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: agent, image: none, env: [{name: PROXY, value: verysecret}]}]}
---
apiVersion: v1
kind: Event
metadata: {name: e, namespace: default}
involvedObject: {kind: Node, name: worker-0}
reason: DriftCorrected
message: a cgroup was restored
type: Warning
count: 2
lastTimestamp: "2026-11-17T05:00:00Z"
source: {component: pinfold-agent}
END
    kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"controlPlaneTopology":"HighlyAvailable","cpuPartitioning":"AllNodes"}}'
    kubectl patch nodepartition worker-0 --subresource status --type merge -p '{"status":{"agentVersion":"0.2.0","source":"Profile",
        "profile":{"name":"worker","generation":1},"cpus":{"management":"0-1","shared":"2-3","guaranteed":"4-7","online":"0-7"},
        "conditions":[{"type":"Ready","status":"True","reason":"Partitioned","lastTransitionTime":"2026-11-17T04:00:00Z"}]}}'
    kubectl -n pinfold-agent patch pod agent-x --subresource status --type merge -p '{"status":{"phase":"Running","containerStatuses":
        [{"name":"agent","image":"x","imageID":"x","ready":true,"restartCount":0,"state":{"running":{}}}]}}'
}
many_pods() { # more than one page of a list
    local i
    for i in $(seq 120); do
        printf -- '---\n{apiVersion: v1, kind: Pod, metadata: {name: p-%s, namespace: shop}, spec: {containers: [{name: c, image: x}]}}\n' "$i"
    done | kubectl create -f - >/dev/null
}
collect() { "$pinfold" bundle -q --scope cluster --kubeconfig "$cp/${2:-admin}.kubeconfig" "$dir/$1"; }
kinds() { find "$dir/saved/objects" -name '*.json' -printf '%f\n' | sort | paste -sd' '; }
omission() { jq -r --arg what "$1" '.leftOut[] | select(.what == $what) | .why' "$dir/${2:-saved}/index.json"; }
has_no_secret() { ! grep -r verysecret "$dir/saved"; }
viewer() { # may read Nodes only
    cp_kubeconfig "$cp" viewer /CN=viewer
    kubectl create clusterrole viewer --verb get,list --resource nodes
    kubectl create clusterrolebinding viewer --clusterrole viewer --user viewer
}

ok "a cluster with secrets in many places" set_up
ok "and more pods than a page has" many_pods
ok "a bundle is collected" collect saved
ok "a bundle is an archive, too" collect saved.tar
ok "no secret is in the bundle" has_no_secret
equals "the kinds of the bundle" \
    'daemonsets.json events.json infrastructures.json namespaces.json nodepartitions.json nodes.json performanceprofiles.json pods.json' kinds
equals "every pod is in it" 122 jq '.items | length' "$dir/saved/objects/pods.json"
says "kinds that are not served are named" 'does not serve' omission objects/machineconfigpools.json
says "a log that cannot be read is named" 'the API server responded' omission logs/pinfold-agent/agent-x/agent.log
ok "a user with few permissions" viewer
ok "gets a smaller bundle" collect few viewer
says "which names what is missing" 403 omission objects/pods.json few
says "and has the rest" worker-0 cat "$dir/few/objects/nodes.json"
ok "a report of the cluster" eval '"$pinfold" report -q --scope cluster --kubeconfig "$cp/admin.kubeconfig" "$dir/report.html" || [ $? = 1 ]'
cp_stop "$cp"
ok "the cluster has ended, and the report is well-formed" tests/golden/well-formed "$dir/report.html"
says "it has the history" 'a cgroup was restored (2 times' cat "$dir/report.html"
says "status reads the archive" 'worker-0  worker   0-1         2-3     4-7' eval '"$pinfold" status --cluster --bundle "$dir/saved.tar" || :'
says "explain reads it" 'CPUs 2-3 (profile worker)' "$pinfold" explain --bundle "$dir/saved.tar" shop/web
says "so does profile check" 'worker' "$pinfold" profile check --allow-split-cores "$dir/saved.tar"
tap_end
