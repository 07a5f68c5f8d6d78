#!/usr/bin/env bash
# What the identities of webhook and agent, and users who may bind pods or write their status, try beyond their tasks: the
# shipped policies refuse it, and allow the tasks. Only an API server is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d)
cp=$dir/cp
cores=management.workload.openshift.io/cores
trap 'cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

# --- set-up ---

cp_start "$cp"
kubectl kustomize deploy >"$dir/deploy.yaml"
applied() { kubectl apply -f "$dir/deploy.yaml" >"$dir/apply.log" 2>&1; }
wait_for 120 applied || { cat "$dir/apply.log" >&2; exit 1; } # CRDs take a moment
cp_namespace "$cp" shop >/dev/null
kubectl create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: bare}}' # no kubelet has written to it
for name in own other; do
    kubectl create -f - >/dev/null <<<"{apiVersion: v1, kind: Node, metadata: {name: $name}}"
    kubectl patch node $name --subresource status --type merge -p \
        '{"status":{"capacity":{"cpu":"8"},"allocatable":{"cpu":"8"},"nodeInfo":{"kubeletVersion":"v1.37.0"}}}' >/dev/null
done

# A kubeconfig for a token.
token_kubeconfig() { # NAME TOKEN
    sed "/^users:/,\$d" "$cp/admin.kubeconfig" >"$dir/$1"
    printf 'users: [{name: it, user: {token: %s}}]\ncontexts: [{name: test, context: {cluster: test, user: it}}]\n' "$2" >>"$dir/$1"
}
token_kubeconfig webhook "$(kubectl -n pinfold create token pinfold-webhook)"
token_kubeconfig agent "$(kubectl -n pinfold-agent create token pinfold-agent --bound-object-kind Node --bound-object-name own)"
token_kubeconfig bare "$(kubectl -n pinfold-agent create token pinfold-agent --bound-object-kind Node --bound-object-name bare)"
as() { "$(cp_bin "$cp" kubectl)" --kubeconfig "$dir/$1" "${@:2}"; } # IDENTITY ARG...
# kubectl patch reads the object first, which needs more rights than the request itself.
patch_as() { # IDENTITY TYPE PATH BODY
    curl -s --fail-with-body --cacert "$cp/pki/ca.crt" -X PATCH -H "Content-Type: application/$2-patch+json" \
        -H "Authorization: Bearer $(sed -n 's/.*token: \(.*\)}}\]$/\1/p' "$dir/$1")" -d "$4" "https://127.0.0.1:$(cat "$cp/port")$3"
}
# A request that the policy of the identity refuses. The text counts: without its role an identity is refused, too. A dry run: a label that
# was stored before the policy is in force would make the next request one that changes nothing, which is allowed.
in_force() { [[ $(patch_as "$1" merge '/api/v1/nodes/own?dryRun=All' '{"metadata":{"labels":{"probe":"1"}}}') == *"$2"* ]]; } # IDENTITY TEXT
ok "the policy of agents is in force" wait_for 120 in_force agent 'may not change labels'
ok "the policy of the webhook is in force" wait_for 120 in_force webhook 'may not change the metadata'

# --- the agent ---

node=/api/v1/nodes/own
# attack: agent-finalizer: a compromised agent keeps its Node from being deleted
refused "an agent cannot add a finalizer to its Node" 'may not change labels, annotations, finalizers' \
    patch_as agent merge $node '{"metadata":{"finalizers":["example.com/stay"]}}'
# attack: agent-owner: a compromised agent has its Node deleted with another object
refused "an agent cannot add an owner to its Node" 'may not change labels, annotations, finalizers' \
    patch_as agent merge $node '{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"other","uid":"x"}]}}'
# attack: agent-provider-id: a compromised agent takes the identity of another machine of the cloud
refused "an agent cannot set the providerID" 'only change the taint' patch_as agent merge $node '{"spec":{"providerID":"aws:///other"}}'
# attack: agent-pod-cidr: a compromised agent gets the addresses of other pods routed to its node
refused "an agent cannot set the podCIDR" 'only change the taint' \
    patch_as agent merge $node '{"spec":{"podCIDR":"10.9.0.0/24","podCIDRs":["10.9.0.0/24"]}}'
# attack: agent-node-info: a compromised agent reports another kubelet version
refused "an agent cannot change nodeInfo" 'only change the condition' patch_as agent merge $node/status '{"status":{"nodeInfo":{"kubeletVersion":"v9"}}}'
# attack: agent-endpoint: a compromised agent has the API server connect to another port for logs and exec
refused "an agent cannot change the kubelet's port" 'only change the condition' \
    patch_as agent merge $node/status '{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":1}}}}'
# attack: agent-volumes: a compromised agent claims volumes of other nodes
refused "an agent cannot claim volumes" 'only change the condition' patch_as agent merge $node/status '{"status":{"volumesInUse":["a/b"]}}'
# attack: agent-other-node: a compromised agent writes the Node of another machine
refused "an agent cannot write another Node" 'may not write objects of another node' \
    patch_as agent merge /api/v1/nodes/other/status "{\"status\":{\"capacity\":{\"$cores\":\"1k\"}}}"
ok "an agent publishes resources and its condition" patch_as agent strategic-merge $node/status \
    "{\"status\":{\"capacity\":{\"$cores\":\"8k\"},\"allocatable\":{\"$cores\":\"8k\"},\"conditions\":[{\"type\":\"PartitioningReady\",\"status\":\"True\",
     \"reason\":\"Pinning\",\"message\":\"m\",\"lastHeartbeatTime\":\"2026-01-01T00:00:00Z\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}"
kubectl taint node own pinfold.io/unpartitioned:NoSchedule >/dev/null
at=$(kubectl get node own -o json | jq '.spec.taints | map(.key) | index("pinfold.io/unpartitioned")')
ok "an agent removes its taint" patch_as agent json $node "[{\"op\":\"remove\",\"path\":\"/spec/taints/$at\"}]"
# attack: agent-first-resources: a compromised agent invents CPUs on a Node that the kubelet has not written yet
refused "an agent cannot set the CPUs of a Node without resources" 'only change the resources of CPU partitioning' \
    patch_as bare merge /api/v1/nodes/bare/status '{"status":{"capacity":{"cpu":"512"},"allocatable":{"cpu":"512"}}}'
ok "an agent publishes the first resources of a Node" patch_as bare merge /api/v1/nodes/bare/status \
    "{\"status\":{\"capacity\":{\"$cores\":\"8k\"},\"allocatable\":{\"$cores\":\"8k\"}}}"
uninstall() { "$pinfold" agent --uninstall --run-dir "$dir/run" --state-dir "$dir/state" --node-name bare --kubeconfig "$dir/bare"; }
resources() { kubectl get node bare -o json | jq -c '[.status.capacity // {}, .status.allocatable // {}]'; }
ok "--uninstall removes them from a Node that has no others" uninstall
equals "none is left" '[{},{}]' resources

# --- the webhook ---

hooks=/apis/admissionregistration.k8s.io/v1
rewrite() { # KIND PATCH
    patch_as webhook json "$hooks/$1webhookconfigurations/pinfold" "$2"
}
for kind in mutating validating; do
    # attack: webhook-rules: a compromised webhook has the API server send it every object
    refused "the webhook cannot change the rules of its $kind configuration" 'only change the CA bundle' \
        rewrite $kind '[{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["*"]}]'
    # attack: webhook-url: a compromised webhook sends admission to another server
    refused "the webhook cannot change where its $kind configuration is served" 'only change the CA bundle' \
        rewrite $kind '[{"op":"remove","path":"/webhooks/0/clientConfig/service"},{"op":"add","path":"/webhooks/0/clientConfig/url","value":"https://127.0.0.1:1/"}]'
    # attack: webhook-policy: a compromised webhook blocks the cluster by failurePolicy Fail
    refused "the webhook cannot change the failurePolicy of its $kind configuration" 'only change the CA bundle' \
        rewrite $kind '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]'
    # attack: webhook-hooks: a compromised webhook takes hooks out of its configuration
    refused "the webhook cannot remove a hook from its $kind configuration" 'only change the CA bundle' \
        rewrite $kind '[{"op":"remove","path":"/webhooks/0"}]'
    ok "the webhook publishes the CA in its $kind configuration" \
        rewrite $kind '[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"'"$(base64 -w0 "$cp/pki/ca.crt")"'"}]'
done
# attack: webhook-secret: a compromised webhook creates a Secret with the token of a ServiceAccount
refused "the webhook cannot create another Secret" 'only write the Secret pinfold-webhook-tls' as webhook -n pinfold create -f - <<<'
    {apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
     metadata: {name: stolen, annotations: {kubernetes.io/service-account.name: default}}}'
ok "the webhook creates its Secret" as webhook -n pinfold create -f - <<<'{apiVersion: v1, kind: Secret, metadata: {name: pinfold-webhook-tls}}'
# attack: webhook-node: a compromised webhook removes taints or labels of nodes
refused "the webhook cannot cordon a node" 'only add the taint' patch_as webhook merge $node '{"spec":{"unschedulable":true}}'
refused "the webhook cannot remove the taints of a node" 'only add the taint' patch_as webhook merge $node '{"spec":{"taints":null}}'
refused "the webhook cannot label a node" 'may not change the metadata' patch_as webhook merge $node '{"metadata":{"labels":{"a":"b"}}}'
ok "the webhook taints a node" patch_as webhook json $node '[{"op":"add","path":"/spec/taints/-","value":{"key":"pinfold.io/unpartitioned","effect":"NoSchedule"}}]'

# --- flow control ---

flow() { # IDENTITY: the FlowSchema that its requests have
    local uid
    uid=$(curl -s -o /dev/null -D - --cacert "$cp/pki/ca.crt" -H "Authorization: Bearer $(sed -n 's/.*token: \(.*\)}}\]$/\1/p' "$dir/$1")" \
        "https://127.0.0.1:$(cat "$cp/port")/api/v1/nodes/own" | sed -n 's/^x-kubernetes-pf-flowschema-uid: *//Ip' | tr -d '\r')
    kubectl get flowschemas -o json | jq -r --arg uid "$uid" '.items[] | select(.metadata.uid == $uid) | .metadata.name'
}
has_flow() { [ "$(flow "$1")" = "$2" ]; }
ok "requests of agents have a priority level of their own" wait_for 60 has_flow agent pinfold-agents
ok "so have those of the webhook" wait_for 60 has_flow webhook pinfold

# --- annotations past the webhook ---

kubectl create clusterrole mallory --verb '*' --resource pods,pods/status,pods/binding,bindings >/dev/null
kubectl create clusterrolebinding mallory --clusterrole mallory --user mallory >/dev/null
user() { kubectl --as mallory "$@"; }
ok "the user's role is in force" wait_for 120 user auth can-i create pods --subresource binding -n shop
pod() { kubectl -n shop create -f - >/dev/null <<<"{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {containers: [{name: c, image: i}]}}"; }
for name in status bound plain; do pod $name; done
forged='{"metadata":{"annotations":{"resources.workload.openshift.io/c":"{\"cpushares\":262144}"}}}'
# attack: status-annotation: a user who may write pod status adds a CPU weight that admission never saw
refused "a status update cannot add an annotation of workload partitioning" 'set only when a pod is created' \
    user -n shop patch pod status --subresource status --type merge -p "$forged"
ok "a status update can add another annotation" user -n shop patch pod status --subresource status --type merge -p '{"metadata":{"annotations":{"a":"b"}}}'
binding() { # POD KIND ANNOTATIONS
    printf '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s","annotations":{%s}},"target":{"apiVersion":"v1","kind":"Node","name":"own"}}' "$1" "$2"
}
# attack: binding-annotation: a user who may bind pods opts a pod in past admission
refused "a binding cannot add an annotation of workload partitioning" 'set only when a pod is created' \
    user create --raw /api/v1/namespaces/shop/pods/bound/binding -f - <<<"$(binding bound '"target.workload.openshift.io/management":"{}"')"
# attack: legacy-binding-annotation: the same by the former path of bindings
refused "nor can a binding by its former path" 'set only when a pod is created' \
    user create --raw /api/v1/namespaces/shop/bindings -f - <<<"$(binding bound '"pinfold.io/cpus":"{}"')"
ok "a binding can add another annotation" user create --raw /api/v1/namespaces/shop/pods/plain/binding -f - <<<"$(binding plain '"a":"b"')"
tap_end
