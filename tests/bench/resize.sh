#!/usr/bin/env bash
# Resizes the pools of 400 containers with cgroups of this machine: microseconds in the agent, from the request to the
# last write that was read back. Needs root and two CPUs. The two pools swap their CPUs, so that every container is
# written, twice per round. Then the CPU time of an idle agent. RESIZE_UNDER="chrt -f 20" reduces the effect of other
# load.
set -euo pipefail
cd "$(dirname "$0")/../.."

n=${CONTAINERS:-400} rounds=${ROUNDS:-5}
ninja -C build pinfold tests/bench/nri_runtime >/dev/null
dir=$(mktemp -d /dev/shm/pinfold-resize-XXXXXX)
name=$(basename "$dir")
trees=(/sys/fs/cgroup/cpuset /sys/fs/cgroup/cpu)
[ -d "${trees[0]}" ] || trees=(/sys/fs/cgroup)

paths() {
    local i
    for ((i = 0; i < n; i++)); do printf 'kubepods/burstable/pod%08x-0000-4000-8000-%012x/%064x\n' "$i" "$i" "$i"; done
}
clean_up() {
    kill "${agent:-}" "${runtime:-}" 2>/dev/null || :
    wait 2>/dev/null || :
    for tree in "${trees[@]}"; do find "$tree/$name" -depth -type d -exec rmdir {} + 2>/dev/null || :; done
    rm -rf "$dir"
}
trap clean_up EXIT

# The agent's cgroup mount is a directory with only the containers of this test.
mkdir -p "$dir/mount"
for tree in "${trees[@]}"; do
    mkdir "$tree/$name"
    if [ -e "$tree/$name/cpuset.cpus" ] && [ "${#trees[@]}" = 2 ]; then
        echo 1 >"$tree/$name/cgroup.clone_children"
        cat "$tree/cpuset.mems" >"$tree/$name/cpuset.mems"
        cat "$tree/cpuset.cpus" >"$tree/$name/cpuset.cpus"
    fi
    paths | (cd "$tree/$name" && xargs mkdir -p)
    [ "${#trees[@]}" = 1 ] || ln -s "$tree/$name" "$dir/mount/$(basename "$tree")"
done
mount=$dir/mount
[ "${#trees[@]}" = 2 ] || mount=${trees[0]}/$name

pools() { echo "{\"reserved\":\"$1\",\"shared\":\"$2\"}" >"$dir/pools.new" && mv "$dir/pools.new" "$dir/pools"; }
resizes() { grep -c 'msg="pools resized"' "$dir/agent.log" || :; }
pools 0 1
build/tests/bench/nri_runtime "$dir/nri.sock" "$n" 0 >"$dir/runtime.out" &
runtime=$!
until [ -S "$dir/nri.sock" ]; do sleep 0.05; done
${RESIZE_UNDER:-} build/pinfold agent --nri-socket "$dir/nri.sock" --run-dir "$dir/run" --cgroup-root "$mount" --pools-file "$dir/pools" \
    --no-cluster --allow-namespace default --marker-file /nonexistent --kubelet-state /nonexistent 2>"$dir/agent.log" &
agent=$!
until grep -q 'msg="synchronized' "$dir/agent.log"; do kill -0 "$agent" || { cat "$dir/agent.log"; exit 1; }; sleep 0.1; done
for ((i = 1; i <= 2 * rounds; i++)); do
    pools "$((i % 2))" "$((1 - i % 2))"
    until [ "$(resizes)" -ge "$i" ]; do sleep 0.05; done
done
echo "load average $(cut -d' ' -f1 /proc/loadavg); CPU time of the agent in all: $(awk '{ print $14 * 10 " ms, and in the kernel " $15 * 10 }' "/proc/$agent/stat") ms"
sed -n 's/.*msg="pools resized".* us=\([0-9]*\) cgroups=\([0-9]*\).*/\1 us for \2 cgroups/p' "$dir/agent.log" | sort -n

# The agent checks every container once per --reconcile-interval.
cpu_us() { awk '{ print int($1 / 1000) }' "/proc/$agent/schedstat"; }
before=$(cpu_us)
sleep 20
echo "idle: $((($(cpu_us) - before) / 20)) us CPU a second"
