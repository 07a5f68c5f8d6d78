#!/bin/bash
#
# libnri as other programs use it: installed into a directory, the example of nri(3) compiled with the command in
# its comment, and run beside a real containerd (1.7 and 2.x). Needs root and two CPUs. RUNTIMES="containerd" runs
# one of them only.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"

explain() { cat "$dir/logs/pin.log"; }

compile() {
	local pc
	ninja -C "$here/../../build" --quiet product
	meson install -C "$here/../../build" --no-rebuild --quiet --destdir "$dir/root"
	pc=$(find "$dir/root" -name nri.pc)
	export PKG_CONFIG_SYSROOT_DIR=$dir/root PKG_CONFIG_PATH=${pc%/*}
	LD_LIBRARY_PATH=$dir/root$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir nri)
	export LD_LIBRARY_PATH
	# shellcheck disable=SC2046 # several words, as in the example
	cc -Wall -Wextra -Werror -o "$dir/nri-pin" "$here/../../examples/nri-pin.c" $(pkg-config --cflags --libs nri)
}

# cpus NAME: the CPUs that a new container of that pod sees.
cpus() {
	local id
	id=$(native_container "$dir" "$1" '"cpu_shares":102,"cpu_period":100000') || return
	native_crictl "$dir" logs "$id" | cut -f2
}
pinned() {
	native_pod "$dir" "$1" burstable/ '"example.org/cpus":"1"' >/dev/null
	cpus "$1"
}
# The runtime does not tell whether a plugin is connected; a pinned container does. Each attempt creates a pod.
tries=0
plugin_works() {
	tries=$((tries + 1))
	[ "$(pinned "try-$tries")" = 1 ]
}

test_pins() {
	local id
	is "control: CPUs without the plugin" "$(pinned before)" 0-1
	process_start "$dir" pin "$dir/nri-pin" "$dir/nri.sock"
	wait_for 60 plugin_works || die "the plugin does not pin containers"

	native_pod "$dir" plain burstable/ >/dev/null
	is "CPUs of a pod without the annotation" "$(cpus plain)" 0-1
	native_pod "$dir" pinned burstable/ '"example.org/cpus":"1"' >/dev/null
	id=$(native_container "$dir" pinned '"cpu_shares":102,"cpu_period":100000')
	is "CPUs of a pod with the annotation" "$(native_crictl "$dir" logs "$id" | cut -f2)" 1
	native_crictl "$dir" update --cpuset-cpus 0-1 "$id" >/dev/null
	is "CPUs after an update" "$(native_crictl "$dir" exec "$id" grep Cpus_allowed_list /proc/self/status | cut -f2)" 1
}

test_refuses() {
	local out
	native_pod "$dir" empty burstable/ '"example.org/cpus":""' >/dev/null
	out=$(cpus empty 2>&1) && die "an empty annotation is accepted"
	[[ $out == *"empty/c: annotation example.org/cpus is empty"* ]] || die "refused for another reason: $out"
	checks=$((checks + 1))
}

test_reconnects() {
	process_stop "$dir" containerd
	wait_for 30 grep -q ', retrying' "$dir/logs/pin.log" || die "the plugin does not report the lost connection"
	native_daemon "$dir"
	wait_for 60 plugin_works || die "the plugin does not reconnect"
	checks=$((checks + 2))
}

[ "$(nproc)" -ge 2 ] || { echo "nri-library.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd-1.7 containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-nri-XXXXXX")
	# Expanded now: when the trap runs, "dir" may be the next runtime's.
	# shellcheck disable=SC2064
	trap "process_stop '$dir' pin; native_stop '$dir'; rm -rf '$dir'" EXIT
	compile
	native_start "$dir" "$runtime"
	for t in pins refuses reconnects; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	process_stop "$dir" pin
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "nri-library.sh: $checks checks passed"
