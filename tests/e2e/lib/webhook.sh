# shellcheck shell=bash
#
# A webhook under test beside a control plane of control-plane.sh. Its tests print TAP (tap.sh).
#
#	wh_start DIR CPDIR [FLAG...]      serves on a free port, with a certificate of the control plane's CA
#	wh_configure DIR CPDIR [FLAG...]  applies what --print-config prints
#	wh_overlay NAME                   the mutating configuration of deploy/overlays/NAME, as JSON
#	wh_metric DIR CPDIR NAME          the sum of a metric over all of its labels
#	wh_partition_cluster CPDIR        creates the Infrastructure object, with cpuPartitioning AllNodes, and a partitioned Node
#	wh_account CPDIR                  CPDIR/pinfold.kubeconfig with the rights that deploy/ gives the webhook
#	wh_no_errors DIR...               the webhooks of these directories logged, and logged no error
#	wh_stop DIR

# shellcheck source=tests/e2e/lib/control-plane.sh
. "$(dirname "${BASH_SOURCE[0]}")/control-plane.sh"
# shellcheck source=tests/e2e/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

pinfold=${PINFOLD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/build/pinfold}

wh_url() { echo "https://127.0.0.1:$(cat "$1/port")"; }
wh_pid() { cut -d' ' -f1 "$1/webhook.pid"; }
wh_is_ready() { curl -sf --cacert "$2/pki/ca.crt" "$(wh_url "$1")/readyz" >/dev/null; }

wh_start() {
    local dir=$1 cp=$2
    shift 2
    mkdir -p "$dir"
    [ -e "$dir/port" ] || free_port >"$dir/port"
    [ -e "$cp/pki/webhook.crt" ] || cp_cert "$cp" webhook /CN=pinfold-webhook IP:127.0.0.1 || return
    process_start "$dir" webhook "$pinfold" webhook --listen "127.0.0.1:$(cat "$dir/port")" \
        --tls-cert "$cp/pki/webhook.crt" --tls-key "$cp/pki/webhook.key" "$@"
    wait_ready "$dir" webhook 180 wh_is_ready "$dir" "$cp"
}

# Tests that send one request at a time use the time-out that --print-config prints. Where an API server under
# load shares the few CPUs with the webhook, seconds may pass before the webhook is even scheduled, and its
# latency is not what the test is about: WH_TIMEOUT_SECONDS sets another time-out there.
wh_timeout() { sed "s/timeoutSeconds: 5\$/timeoutSeconds: ${WH_TIMEOUT_SECONDS:-5}/"; }

wh_configure() {
    local dir=$1 cp=$2
    shift 2
    "$pinfold" webhook --print-config --url "$(wh_url "$dir")" --ca "$cp/pki/ca.crt" "$@" | wh_timeout |
        cp_kubectl "$cp" apply -f - >/dev/null
}

wh_overlay() {
    kubectl kustomize "deploy/overlays/$1" | awk 'BEGIN { RS = "---\n" } /\nkind: MutatingWebhookConfiguration\n/' |
        kubectl create --dry-run=client -o json -f -
}

# Status is a subresource: the API server drops it from what is created.
wh_partition_cluster() {
    cp_kubectl "$1" apply -f deploy/base/crd-infrastructures.yaml >/dev/null
    cp_kubectl "$1" wait --for condition=Established crd --all --timeout 60s >/dev/null
    cp_kubectl "$1" create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    cp_kubectl "$1" patch infrastructure cluster --subresource status --type merge -p \
        '{"status":{"cpuPartitioning":"AllNodes"}}' >/dev/null
    cp_kubectl "$1" create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: partitioned}, status:
        {allocatable: {management.workload.openshift.io/cores: "8000"}, capacity: {management.workload.openshift.io/cores: "8000"}}}'
}

# A client certificate with the user name that the ServiceAccount's token would give.
wh_account() {
    cp_kubectl "$1" get namespace pinfold >/dev/null 2>&1 || cp_kubectl "$1" create namespace pinfold >/dev/null
    cp_kubectl "$1" apply -f deploy/base/rbac.yaml >/dev/null
    cp_kubeconfig "$1" pinfold /CN=system:serviceaccount:pinfold:pinfold-webhook
}

wh_no_errors() {
    local dir
    for dir in "$@"; do
        grep -q level=info "$dir/logs/webhook.log" && ! grep level=error "$dir/logs/webhook.log" || return
    done
}

wh_metric() {
    curl -sf --cacert "$2/pki/ca.crt" "$(wh_url "$1")/metrics" |
        awk -v name="$3" '{ n = $1; sub(/{.*/, "", n) } n == name { sum += $2 } END { print sum + 0 }'
}

wh_stop() { process_stop "$1" webhook; }
