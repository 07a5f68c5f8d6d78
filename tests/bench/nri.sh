#!/usr/bin/env bash
# NRI calls to the agent and to a Go plugin that does the same, in one run: latency in the runtime (socket included),
# memory, and CPU time when idle.
set -euo pipefail
cd "$(dirname "$0")/../.."

ninja -C build pinfold tests/bench/nri_runtime >/dev/null
dir=$(mktemp -d /dev/shm/pinfold-nri-XXXXXX)
containers=${CONTAINERS:-400} calls=${CALLS:-5000}
trap 'kill "${plugin:-}" "${runtime:-}" 2>/dev/null || :; rm -rf "$dir"' EXIT

cpu_us() { cat "/proc/$1"/task/*/schedstat | awk '{ ns += $1 } END { print int(ns / 1000) }'; }

run() { # NAME COMMAND...
    local name=$1 before pid
    shift
    build/tests/bench/nri_runtime "$dir/nri.sock" "$containers" "$calls" >"$dir/$name.out" &
    runtime=$!
    until [ -S "$dir/nri.sock" ]; do sleep 0.05; done
    "$@" >"$dir/$name.log" 2>&1 &
    plugin=$!
    until grep -q '^create' "$dir/$name.out"; do
        kill -0 "$plugin" 2>/dev/null || { cat "$dir/$name.log"; exit 1; }
        sleep 0.1
    done
    pid=$plugin
    before=$(cpu_us "$pid")
    sleep "${IDLE_S:-20}"
    sed "s/^/$name: /" "$dir/$name.out"
    echo "$name: resident $(awk '/VmRSS/ { print $2 }' "/proc/$pid/status") kB with $containers containers;" \
        "idle: $((($(cpu_us "$pid") - before) / ${IDLE_S:-20})) us CPU a second"
    kill "$plugin" "$runtime"
    wait "$plugin" "$runtime" 2>/dev/null || :
    rm -f "$dir/nri.sock"
}

run pinfold build/pinfold agent --management 0 --run-dir "$dir/run" --nri-socket "$dir/nri.sock" \
    --kubelet-state /nonexistent --allow-namespace default --log-level error
if peer=$(tests/bench/peers/build nri-plugin); then
    run go "$peer" "$dir/nri.sock"
fi
