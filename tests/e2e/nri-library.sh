#!/bin/bash
#
# libnri as other programs get it: installed into a directory, the example of nri(3) compiled as its first lines
# say, and run beside a real containerd (1.7 and 2.x). Needs root and two CPUs. RUNTIMES="containerd" runs one.

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
	# shellcheck disable=SC2046 # words, as the example says
	cc -Wall -Wextra -Werror -o "$dir/nri-pin" "$here/../../examples/nri-pin.c" $(pkg-config --cflags --libs nri)
}

# cpus NAME: where a new container of that pod runs, as it sees it itself.
cpus() {
	local id
	id=$(native_container "$dir" "$1" '"cpu_shares":102,"cpu_period":100000') || return
	native_crictl "$dir" logs "$id" | cut -f2
}
pinned() {
	native_pod "$dir" "$1" burstable/ '"example.org/cpus":"1"' >/dev/null
	cpus "$1"
}
# The runtime has no other sign for a plugin that is there. Each try is a pod of its own.
tries=0
is_there() {
	tries=$((tries + 1))
	[ "$(pinned "try-$tries")" = 1 ]
}

test_pins() {
	local id
	is "control: without the plugin" "$(pinned before)" 0-1
	process_start "$dir" pin "$dir/nri-pin" "$dir/nri.sock"
	wait_for 60 is_there || die "the plugin does nothing"

	native_pod "$dir" plain burstable/ >/dev/null
	is "a pod without the annotation" "$(cpus plain)" 0-1
	native_pod "$dir" pinned burstable/ '"example.org/cpus":"1"' >/dev/null
	id=$(native_container "$dir" pinned '"cpu_shares":102,"cpu_period":100000')
	is "a pod with it" "$(native_crictl "$dir" logs "$id" | cut -f2)" 1
	native_crictl "$dir" update --cpuset-cpus 0-1 "$id" >/dev/null
	is "after an update" "$(native_crictl "$dir" exec "$id" grep Cpus_allowed_list /proc/self/status | cut -f2)" 1
}

test_refuses() {
	local words
	native_pod "$dir" empty burstable/ '"example.org/cpus":""' >/dev/null
	words=$(cpus empty 2>&1) && die "an empty annotation is taken"
	[[ $words == *"empty/c: which CPUs?"* ]] || die "refused with other words: $words"
	checks=$((checks + 1))
}

test_comes_back() {
	process_stop "$dir" containerd
	wait_for 30 grep -q 'trying again' "$dir/logs/pin.log" || die "the plugin did not notice"
	native_daemon "$dir"
	wait_for 60 is_there || die "the plugin does not come back"
	checks=$((checks + 2))
}

[ "$(nproc)" -ge 2 ] || { echo "nri-library.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd-1.7 containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-nri-XXXXXX")
	# Expanded now: at the end of a failed function "dir" may be another.
	# shellcheck disable=SC2064
	trap "process_stop '$dir' pin; native_stop '$dir'; rm -rf '$dir'" EXIT
	compile
	native_start "$dir" "$runtime"
	for t in pins refuses comes_back; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	process_stop "$dir" pin
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "nri-library.sh: $checks checks passed"
