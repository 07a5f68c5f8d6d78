#!/usr/bin/env bash
# Shows what Pinfold does, on this machine and on a simulated one; exits 0 only if every check passes.
# SERVE=1 keeps the pods running and serves a dashboard while the pools change, until interrupted.
set -euo pipefail
cd "$(dirname "$0")/.."

pinfold=${PINFOLD:-$PWD/build/pinfold}
work=$(mktemp -d)
name=demo-$$
checks=0 failed=0
bold='' plain='' good='' bad=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
    bold=$'\e[1m' plain=$'\e[0m' good=$'\e[32m' bad=$'\e[1;31m'
fi

machine() {
    local command=$1
    shift
    "$pinfold" local "$command" --name "$name" --run-dir "$work/run" "$@"
}

clean() {
    machine down >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

part() { printf '\n%s=== %s %s%s\n' "$bold" "$1" "$(printf '=%.0s' $(seq $((74 - ${#1}))))" "$plain"; }
step() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

# check SENTENCE COMMAND...
check() {
    local sentence=$1
    shift
    checks=$((checks + 1))
    if "$@" >"$work/check" 2>&1; then
        echo "  ${good}ok${plain}  $sentence"
    else
        echo "  ${bad}FAILED${plain}  $sentence"
        sed 's/^/      /' "$work/check"
        failed=$((failed + 1))
    fi
}

# --- this machine ---

# The CPUs that this process may use; in a container not all CPUs of the machine.
mapfile -t cpus < <("$pinfold" cpuset --format list "$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)" |
    tr , '\n')

# profile DIR RESERVED SHARED ISOLATED; with an empty SHARED for classic mode.
profile() {
    cat >"$1/profile.yaml" <<END
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: demo}
spec:
  cpu:
    reserved: "$2"
    isolated: "$4"
  nodeSelector: {node-role.kubernetes.io/worker: ""}
END
    [ -z "$3" ] || sed -i "s/^    isolated:/    shared: \"$3\"\n&/" "$1/profile.yaml"
}

list() { local IFS=,; "$pinfold" cpuset "$*"; }

# core_of CPU: the CPU and its hyperthreads that this process may use.
core_of() {
    local threads
    threads=$(cat "/sys/devices/system/cpu/cpu$1/topology/thread_siblings_list" 2>/dev/null) || threads=$1
    "$pinfold" cpuset "$threads & $(list "${cpus[@]}")"
}

# Three pools of whole cores; the resize moves the last core. Fails when there are too few cores.
whole_cores() {
    local all rest last
    all=$(list "${cpus[@]}")
    reserved=$(core_of "${cpus[0]}")
    rest=$("$pinfold" cpuset "$all - $reserved")
    [ -n "$rest" ] || return 1
    shared=$(core_of "${rest%%[-,]*}")
    last=$(core_of "${cpus[${#cpus[@]} - 1]}")
    isolated=$("$pinfold" cpuset "$rest - $shared")
    [ -n "$isolated" ] || return 1
    isolated_after=$("$pinfold" cpuset "$isolated - $last")
    shared_after=$("$pinfold" cpuset "$shared + $last")
    [ -n "$isolated_after" ] && [ "$isolated" != "$isolated_after" ]
}

# Profiles before and after the resize, depending on the number of CPUs.
prepare() {
    local n=${#cpus[@]} reserved shared isolated shared_after isolated_after
    mkdir "$work/before" "$work/after"
    cp examples/local/{cluster,namespaces,pods}.yaml "$work/before"
    [ "$n" -lt 3 ] || cp examples/du.yaml "$work/before"
    cp "$work/before"/*.yaml "$work/after"
    if whole_cores; then
        profile "$work/before" "$reserved" "$shared" "$isolated"
        profile "$work/after" "$reserved" "$shared_after" "$isolated_after"
    elif [ "$n" -ge 4 ]; then
        profile "$work/before" "${cpus[0]}" "${cpus[1]}" "$(list "${cpus[@]:2}")"
        profile "$work/after" "${cpus[0]}" "${cpus[1]},${cpus[n - 1]}" "$(list "${cpus[@]:2:n-3}")"
    elif [ "$n" = 3 ]; then
        profile "$work/before" "${cpus[0]}" "" "${cpus[1]},${cpus[2]}"
        profile "$work/after" "${cpus[2]}" "" "${cpus[0]},${cpus[1]}"
    else
        profile "$work/before" "${cpus[0]}" "" "${cpus[1]}"
        profile "$work/after" "${cpus[1]}" "" "${cpus[0]}"
    fi
}

# "PID CONTAINER" of every process: the environment has the container's name.
processes() {
    grep -aozHs "^PINFOLD_CONTAINER=$work/run:.*" /proc/[0-9]*/environ | tr '\0' '\n' |
        sed 's|^/proc/\([0-9]*\)/environ:PINFOLD_CONTAINER=[^:]*:|\1 |' | sort -k2 || true # environments of other users are not readable
}

allowed() { sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/status"; }

show_processes() {
    local pid id dir
    while read -r pid id; do
        dir=/sys/fs/cgroup/cpuset/pinfold-$name
        [ -d "$dir" ] || dir=/sys/fs/cgroup/pinfold-$name
        dir=$dir/${id%%/*}_${id#*/}
        printf '  %-12s pid %-8s Cpus_allowed_list: %-5s' "${id#*/}" "$pid" "$(allowed "$pid")"
        [ ! -e "$dir/cpuset.cpus" ] || printf ' cpuset.cpus: %s' "$(cat "$dir/cpuset.cpus")"
        echo
    done < <(processes)
}

# Compares `status` with the kernel, first in this script, then with `verify`.
kernel_agrees() {
    local pid id
    [ "$(processes | wc -l)" = "$1" ] || return 1
    while read -r pid id; do
        machine status | awk -v pod="${id%/*}" -v c="${id##*/}" -v cpus="$(allowed "$pid")" \
            '$1 == pod && $2 == c && $4 == cpus { found = 1 } END { exit !found }' || return 1
    done < <(processes)
    machine verify
}

is_separate() { # no process of the platform shares a CPU with another process
    local platform others
    platform=$(processes | awk '$2 ~ /^platform\// { print $1 }')
    others=$(processes | awk '$2 !~ /^platform\// { print $1 }')
    for platform in $platform; do
        for others in $others; do
            [ -z "$("$pinfold" cpuset "$(allowed "$platform") & $(allowed "$others")")" ] || return 1
        done
    done
}

is_unchanged() { [ "$(processes)" = "$1" ]; }

is_gone_after_down() {
    machine down && [ -z "$(processes)" ] && [ ! -e "$work/run" ] && ! compgen -G "/sys/fs/cgroup/*/pinfold-$name" >/dev/null &&
        [ ! -e "/sys/fs/cgroup/pinfold-$name" ]
}

show_admission() {
    step "Admission: a pod of the platform opts in to the management CPUs"
    "$pinfold" admit --state "$work/before/cluster.yaml" --state "$work/before/namespaces.yaml" -f examples/local/pods.yaml -o diff 2>/dev/null >"$work/diff" || true
    # The limits change like the requests.
    awk '/^(---|[+][+][+])/ { next } /^ +limits:$/ { exit } /^[-+]/ || /^ +requests:$/ { print "  " substr($0, 1, 1) " " substr($0, 6) }' \
        "$work/diff" | head -12 | sed -E 's/[\]"/"/g; s/^(.{77}).{4,}/\1.../'
    check "its CPU request is converted to management cores and shares" \
        grep -q '^+.*management.workload.openshift.io/cores' "$work/diff"
}

# "CONTAINER CPUS" of every process, from the kernel.
allowed_cpus() {
    local pid id
    while read -r pid id; do
        echo "$id $(allowed "$pid")"
    done < <(processes)
}

changed_lines() { # MARK-OF-DIFF MARK
    { diff "$work/before/profile.yaml" "$work/after/profile.yaml" || true; } | sed -n "s/^$1 *//p" | paste -sd '|' |
        sed "s/|/, /g; s/^/  $2 /"
}

show_resize() {
    local before count
    before=$(processes)
    count=$(echo "$before" | wc -l)
    allowed_cpus >"$work/allowed"
    step "Live resize: other CPUs, the same processes"
    changed_lines '<' -
    changed_lines '>' +
    check "the new profile is applied" machine apply "$work/after"
    join "$work/allowed" <(allowed_cpus) | awk '$2 != $3 { sub("^[^/]*/", ""); printf "  %-12s Cpus_allowed_list: %s, was %s\n", $1, $3, $2 }'
    check "no process was restarted" is_unchanged "$before"
    check "all processes run on their new CPUs, and pinfold local verify agrees" kernel_agrees "$count"
}

this_machine() {
    local count
    part "This machine: ${#cpus[@]} CPU$([ ${#cpus[@]} = 1 ] || echo s)"
    if [ ${#cpus[@]} -lt 2 ]; then
        echo "One CPU: there is nothing to separate."
        return
    fi
    prepare
    show_admission
    machine up -d "$work/before" >"$work/up" 2>"$work/notes" || { cat "$work/notes"; failed=$((failed + 1)); return; }
    step "Up: $(head -1 "$work/up"), each command on the CPUs of its pool"
    grep -v ': warning: ' "$work/notes" || true
    grep '^notice' "$work/up" | fold -s -w 76 | sed 's/^/  /' || true
    machine map
    count=$(processes | wc -l)
    step "Proof from the kernel"
    show_processes
    check "all $count processes run on their CPUs, and pinfold local verify agrees" kernel_agrees "$count"
    check "platform and other pods share no CPU" is_separate
    show_resize
    [ -z "${SERVE-}" ] || serve
    step "Down"
    check "no process, no cgroup and no file is left" is_gone_after_down
}

# Changes between the two profiles every few seconds and serves the dashboard.
serve() {
    (while sleep 4; do
        machine apply "$work/before" >/dev/null 2>&1 || true
        sleep 4
        machine apply "$work/after" >/dev/null 2>&1 || true
    done) &
    local changing=$!
    step "Serving until interrupted: open this address in a browser, or run the command below for a map in a terminal"
    echo "  $pinfold local map --watch --run-dir $work/run"
    trap : INT # ends only the dashboard; the script continues with "down"
    "$pinfold" dashboard --local "$work/run" -f "$work/after" --listen "${LISTEN:-127.0.0.1:0}" || true
    trap 'exit 130' INT
    kill "$changing" 2>/dev/null || true
}

# --- a RAN node ---

ran_node() {
    local topology='numa:2 pack:1 l3:1 core:16 pu:2'
    part "A RAN node: 77 pods on 64 simulated CPUs"
    mkdir "$work/ran"
    cp examples/ran/*.yaml examples/local/{namespaces,pods}.yaml "$work/ran"
    "$pinfold" local plan --topology "$topology" "$work/ran" 2>/dev/null || failed=$((failed + 1))
    "$pinfold" local plan --topology "$topology" -o json "$work/ran" >"$work/plan.json" 2>/dev/null || true
    check "all 77 pods (303 containers) placed, no exclusive CPU assigned twice" ran_check placed
    check "each pod has its exclusive CPUs and its memory on one NUMA node" ran_check one_node
    check "no two containers share a core" ran_check whole_cores
}

# ran_check WHAT: a property of the plan; the topology has 32 CPUs per NUMA node and 2 per core.
ran_check() {
    python3 - "$work/plan.json" "$1" <<'END'
import collections, json, sys

def cpus(text):
    return {n for part in text.split(",") for a, _, b in [part.partition("-")] for n in range(int(a), int(b or a) + 1)}

containers = json.load(open(sys.argv[1]))["containers"]
owners = [c for c in containers if c["pool"] == "guaranteed"]
owned = [cpus(c["cpus"]) for c in owners]
if sys.argv[2] == "placed":
    assert len({(c["namespace"], c["pod"]) for c in containers}) == 77 and len(containers) == 303
    others = set().union(*(cpus(c["cpus"]) for c in containers if c["pool"] != "guaranteed"))
    assert sum(map(len, owned)) == len(set().union(*owned)) == 44 and not others & set().union(*owned)
elif sys.argv[2] == "one_node":
    nodes = collections.defaultdict(set)
    for c in owners:
        nodes[c["pod"]] |= {n // 32 for n in cpus(c["cpus"])} | cpus(c["mems"])
    assert len(nodes) == 6 and all(len(n) == 1 for n in nodes.values()), nodes
else:
    cores = [core for s in owned for core in {n // 2 for n in s}]
    assert len(cores) == len(set(cores)) == 22, cores
END
}

this_machine
ran_node
echo
if [ "$failed" = 0 ]; then
    echo "${good}All $checks checks passed.${plain}"
else
    echo "${bad}$failed of $checks checks failed.${plain}"
    exit 1
fi
