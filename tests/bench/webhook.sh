#!/usr/bin/env bash
# Compares `pinfold webhook` with a Go webhook that uses controller-runtime: the same reviews of 9 KB over TLS with the
# same P-256 key, each server on one core, the client (wrk) on another, alternating in one run. Prints requests per
# second, latency, CPU time per request and memory of both, and ratios. ROUNDS and SECONDS_EACH set the length.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-6}
connections=25
port=19443
pinfold=${PINFOLD:-build/pinfold}

for tool in wrk taskset openssl curl; do
    command -v $tool >/dev/null || {
        echo "bench webhook: skipped, no $tool here"
        exit 0
    }
done
peer=$(tests/bench/peers/build webhook) || {
    echo "bench webhook: skipped, no peer"
    exit 0
}

dir=$(mktemp -d)
pid=
stop() {
    if [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null; then
        wait "$pid" 2>/dev/null || true
    fi
    pid=
}
trap 'stop; rm -rf "$dir"' EXIT
python3 tests/bench/webhook/generate.py "$dir"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost \
    -addext 'subjectAltName=IP:127.0.0.1' -keyout "$dir/tls.key" -out "$dir/tls.crt" 2>/dev/null

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
server_cpu=${cpus[0]}
client_cpu=${cpus[-1]}

start() { # SERVER STATE
    case $1 in
    pinfold)
        taskset -c "$server_cpu" "$pinfold" webhook --listen 127.0.0.1:$port --threads 1 \
            --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.key" --state "$dir/$2" 2>"$dir/log" &
        ;;
    go)
        GOMAXPROCS=1 taskset -c "$server_cpu" "$peer" --port $port --cert-dir "$dir" \
            --state "$dir/$2" 2>"$dir/log" &
        ;;
    esac
    pid=$!
    for _ in $(seq 300); do
        send_review >/dev/null 2>&1 && return
        sleep 0.1
    done
    cat "$dir/log" >&2
    exit 1
}

send_review() {
    curl -sf --http1.1 --cacert "$dir/tls.crt" -H 'Content-Type: application/json' \
        --data-binary "@$dir/review.json" https://127.0.0.1:$port/mutate/pods
}

cpu_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat"; }
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }

measure() { # SERVER: one line "requests/s p50_us p99_us cpu_us"
    local before after
    start "$1" state-small.json
    taskset -c "$client_cpu" wrk -t1 -c$connections -d1s -s "$dir/review.lua" https://127.0.0.1:$port/mutate/pods >/dev/null
    before=$(cpu_ticks)
    taskset -c "$client_cpu" wrk -t1 -c$connections -d"${seconds}s" --latency -s "$dir/review.lua" \
        https://127.0.0.1:$port/mutate/pods >"$dir/wrk"
    after=$(cpu_ticks)
    ! grep -q 'Non-2xx' "$dir/wrk" || { cat "$dir/wrk" >&2 && exit 1; }
    awk -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" '
        function us(t) { return t ~ /us$/ ? t + 0 : t ~ /ms$/ ? t * 1000 : t * 1000000 }
        $1 == "50%" { p50 = us($2) }
        $1 == "99%" { p99 = us($2) }
        / requests in / { n = $1 }
        /^Requests\/sec/ { rate = $2 }
        END { printf "%.0f %.0f %.0f %.1f\n", rate, p50, p99, ticks / hz * 1e6 / n }' "$dir/wrk"
    stop
}

memory() { # SERVER: "start_kib large_kib large_after_load_kib"
    start "$1" state-small.json
    printf '%s ' "$(rss_kib)"
    stop
    start "$1" state-large.json
    printf '%s ' "$(rss_kib)"
    taskset -c "$client_cpu" wrk -t1 -c$connections -d2s -s "$dir/review.lua" https://127.0.0.1:$port/mutate/pods >/dev/null
    rss_kib
    stop
}

# Both webhooks must produce the same pod: compare the patched objects, not the patches.
for server in pinfold go; do
    start $server state-small.json
    send_review >"$dir/response-$server"
    stop
done
python3 tests/bench/webhook/same.py "$dir/review.json" "$dir/response-pinfold" "$dir/response-go"

for _ in $(seq "$rounds"); do
    for server in pinfold go; do
        measure $server >>"$dir/result-$server"
    done
done
for server in pinfold go; do
    memory $server >"$dir/memory-$server"
done

python3 - "$dir" "$(stat -c %s "$dir/review.json")" <<'END'
import statistics, sys
directory, size = sys.argv[1:]
def rows(name): return [[float(x) for x in line.split()] for line in open(f"{directory}/{name}")]
def medians(name): return [statistics.median(c) for c in zip(*rows(name))]
ours, theirs = medians("result-pinfold"), medians("result-go")
mem_ours, mem_theirs = rows("memory-pinfold")[0], rows("memory-go")[0]
print(f"webhook: reviews of {size} bytes, TLS, 25 connections, one core each; medians of {len(rows('result-go'))} rounds")
print(f"{'':34}{'pinfold':>12}{'go':>12}{'ratio':>9}")
def line(what, a, b, unit, more_is_better):
    ratio = a / b if more_is_better else b / a
    print(f"{what:34}{a:>12,.0f}{b:>12,.0f}{ratio:>8.1f}x {unit}")
line("requests a second", ours[0], theirs[0], "", True)
line("latency p50", ours[1], theirs[1], "us", False)
line("latency p99", ours[2], theirs[2], "us", False)
line("CPU a request", ours[3], theirs[3], "us", False)
line("memory at start", mem_ours[0], mem_theirs[0], "KiB", False)
line("with 10,000 namespaces, 5,000 nodes", mem_ours[1], mem_theirs[1], "KiB", False)
line("the same, after load", mem_ours[2], mem_theirs[2], "KiB", False)
END
