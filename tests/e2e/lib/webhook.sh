# shellcheck shell=bash
#
# A webhook under test next to a control plane of lib/control-plane.sh, and the words of its tests.
#
#	wh_start DIR CPDIR [FLAG...]   serves on a free port, with a certificate of the control plane's CA
#	wh_configure DIR CPDIR [FLAG...]  applies what --print-config prints
#	wh_stop DIR
#	ok SENTENCE COMMAND...         runs COMMAND; a failure ends the test and shows its output
#	refused SENTENCE TEXT COMMAND...  COMMAND must fail, and say TEXT
#	says SENTENCE TEXT COMMAND...  COMMAND must succeed, and say TEXT
#
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$(dirname "${BASH_SOURCE[0]}")/control-plane.sh"

pinfold=${PINFOLD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/build/pinfold}
passed=0

tell() { # passed or failed, sentence, output
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok $passed - $2"
    else
        printf 'not ok - %s\n%s\n' "$2" "$3"
        exit 1
    fi
}

ok() {
    local sentence=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    tell $status "$sentence" "$out"
}

says() {
    local sentence=$1 text=$2 out status=0
    shift 2
    out=$("$@" 2>&1) || status=$?
    [[ $out == *"$text"* ]] || status=1
    tell $status "$sentence" "wanted: $text
got: $out"
}

refused() {
    local sentence=$1 text=$2 out status=1
    shift 2
    out=$("$@" 2>&1) || status=0
    [[ $out == *"$text"* ]] || status=1
    tell $status "$sentence" "wanted a refusal: $text
got: $out"
}

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
    wait_ready "$dir" webhook 60 wh_is_ready "$dir" "$cp"
}

# What is printed for a user says 1 s, and one request at a time is tested with that. Where a whole API
# server is kept busy beside us on the same few CPUs, a second may pass before anybody is even
# scheduled, and how long an answer takes is not the point: WH_TIMEOUT_SECONDS sets another time there.
wh_timeout() { sed "s/timeoutSeconds: 1\$/timeoutSeconds: ${WH_TIMEOUT_SECONDS:-1}/"; }

wh_configure() {
    local dir=$1 cp=$2
    shift 2
    "$pinfold" webhook --print-config --url "$(wh_url "$dir")" --ca "$cp/pki/ca.crt" "$@" | wh_timeout |
        cp_kubectl "$cp" apply -f - >/dev/null
}

wh_metric() { # DIR CPDIR NAME: the sum over all of its labels
    curl -sf --cacert "$2/pki/ca.crt" "$(wh_url "$1")/metrics" |
        awk -v name="$3" '{ n = $1; sub(/{.*/, "", n) } n == name { sum += $2 } END { print sum + 0 }'
}

wh_stop() { process_stop "$1" webhook; }
