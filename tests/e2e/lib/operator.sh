# shellcheck shell=bash
#
# Operators under test beside a control plane of control-plane.sh, with the identity and the rights that deploy/ gives them.
#
#	op_account CPDIR [PORT]           CPDIR/operator.kubeconfig, for the API server or a proxy at PORT
#	op_start DIR NAME CPDIR [FLAG...] one replica; DIR/NAME.port serves its metrics. op_environment has more variables for it
#	op_metric DIR NAME METRIC         the value of a metric, with its labels if it has some
#	op_leader DIR NAME...             the name of the replica that acts
#	op_kill DIR NAME                  SIGKILL

# shellcheck source=tests/e2e/lib/control-plane.sh
. "$(dirname "${BASH_SOURCE[0]}")/control-plane.sh"
# shellcheck source=tests/e2e/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

op_environment=()
pinfold=${PINFOLD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/build/pinfold}

op_install() { # CPDIR: CRDs, rights and policies of deploy/
    cp_kubectl "$1" get namespace pinfold >/dev/null 2>&1 || cp_kubectl "$1" create namespace pinfold >/dev/null
    cp_kubectl "$1" apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml \
        -f deploy/base/crd-nodepartitions.yaml -f deploy/operator/rbac.yaml -f deploy/operator/permissions.yaml \
        -f deploy/operator/checks-rbac.yaml -f deploy/operator/policy.yaml >/dev/null
    cp_kubectl "$1" wait --for condition=Established crd --all --timeout 60s >/dev/null
}

op_account() {
    cp_kubectl "$1" -n pinfold create token pinfold-operator --duration 2h >"$1/operator.token" || return
    cat >"$1/operator.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: operator}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:${2:-$(cat "$1/port")}", certificate-authority: pki/ca.crt}}]
users: [{name: operator, user: {tokenFile: operator.token}}]
END
}

op_is_ready() { curl -sf "http://127.0.0.1:$(cat "$1/$2.port")/readyz" >/dev/null; }

op_launch() { # as op_start, without waiting
    local dir=$1 name=$2 cp=$3
    shift 3
    [ -e "$dir/$name.port" ] || free_port >"$dir/$name.port"
    process_start "$dir" "$name" env POD_NAME="$name" "${op_environment[@]}" "$pinfold" operator --kubeconfig "$cp/operator.kubeconfig" \
        --listen "127.0.0.1:$(cat "$dir/$name.port")" "$@"
}

op_start() {
    op_launch "$@"
    wait_ready "$1" "$2" 180 op_is_ready "$1" "$2"
}

op_metric() { curl -sf "http://127.0.0.1:$(cat "$1/$2.port")/metrics" | grep -F -- "$3" | grep -v '^#' | awk '{ print $NF }'; }

op_leader() {
    local dir=$1 name
    shift
    for name; do
        [ "$(op_metric "$dir" "$name" 'pinfold_operator_leader ' 2>/dev/null)" != 1 ] || echo "$name"
    done
}

op_kill() {
    local pid
    read -r pid _ <"$1/$2.pid"
    kill -KILL "$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
    rm -f "$1/$2.pid"
}

op_rss_kib() { awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$1/$2.pid")/status"; }
op_peak_kib() { awk '/VmHWM/ { print $2 }' "/proc/$(cut -d' ' -f1 "$1/$2.pid")/status"; }
