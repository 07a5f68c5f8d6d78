#!/bin/bash
#
# critest, the test suite of the container runtime interface, against a real runtime of this machine, without the agent and with it:
# the results have to be the same (lib/suite.sh). Needs root; runs in a network namespace of its own, so that no bridge stays on the machine.
#
#	RUNTIME=containerd-1.7      or containerd, crio
#	FOCUS=REGEX                 only these specs
#	LOGS=DIR                    reports and logs are copied there
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# Not run (skip below): what pulls images, because no registry can be reached; streaming and port mapping, which want a network outside
# of the namespace; seccomp, AppArmor and SELinux profiles, which need the host's. Images that specs name themselves are made here, with
# the few programs that the specs call.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=${RUNTIME:-containerd-1.7}
if [ -z "${CRITEST_INSIDE:-}" ]; then
	# What comes from outside comes before the namespace.
	"$here/components/build" "$RUNTIME" crictl critest >/dev/null
	packages=(runc busybox-static containernetworking-plugins iproute2 iptables jq curl)
	[ "$RUNTIME" != crio ] || packages+=(conmon skopeo)
	"$here/components/host-packages" "${packages[@]}"
	# Also its own shared memory: specs leave segments.
	CRITEST_INSIDE=1 exec unshare -n -i "$here/critest.sh"
fi
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"
# shellcheck source=tests/e2e/lib/suite.sh
. "$here/lib/suite.sh"

skip='[Ii]mage [Mm]anager|[Ii]mage.*(pull|Pull)|[Ss]treaming|port mapping|portforward|[Ss]eccomp|[Aa]pp[Aa]rmor|SELinux|[Bb]enchmark'
skip+='|Image (Identifier )?Consistency'
dir=$(mktemp -d /tmp/pinfold-critest-XXXXXX)
critest=$("$e2e_build" critest)/bin/critest
end() {
	process_stop "$dir" agent
	native_stop "$dir"
	[ -z "${LOGS:-}" ] || install -D -m 644 -t "$LOGS" "$dir"/*.json "$dir"/critest-*.log || :
	rm -rf "$dir"
}
trap end EXIT
explain() { tail -n 20 "$dir"/critest-*.log; }

ip link set lo up
mkdir -p "$dir/cni"
echo '{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cri0","isGateway":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.99.0.0/16"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}' >"$dir/cni/10-pods.conflist"
[ "$RUNTIME" != crio ] || ln -s /usr/lib/cni/* "$dir/cni/" # its only directory of plugins
# shellcheck disable=SC2034  # read by native-runtime.sh
NATIVE_CONFIG="[plugins.\"io.containerd.grpc.v1.cri\".cni]
  bin_dir = \"/usr/lib/cni\"
  conf_dir = \"$dir/cni\""
for name in defaultTestContainerImage webServerTestImage hostNetWebServerTestImage; do
	echo "$name: localhost/critest:1"
done >"$dir/images.yaml"

script() { printf '%s\n' '#!/bin/sh' "$2" >"$root/bin/$1" && chmod 755 "$root/bin/$1"; } # NAME TEXT
# One tree of files is in all images. Specs look for processes with pgrep, and for a server called nginx with a "master process", they hide
# ls from sh, and run a program that shows whether it has got root.
make_root() {
	mkdir -p "$root/www" && image_busybox_root "$root" && cp --remove-destination "$root/bin/busybox" "$root/bin/ls" || return
	printf '%s\n' root:x:0:0::/:/bin/sh nobody:x:65534:65534::/:/bin/sh default-user:x:1000:1000::/:/bin/sh >"$root/etc/passwd"
	printf '%s\n' root:x:0: nobody:x:65534: default-user:x:1000: group-defined-in-image:x:50000:default-user >"$root/etc/group"
	echo it works >"$root/www/index.html"
	# shellcheck disable=SC2016  # expanded by the script
	script pgrep 'ps -o pid,comm | awk -v name="$1" "\$2 == name { print \$1 }"' && script ipcs 'cat /proc/sysvipc/shm' &&
		script nginx 'mkdir -p /var/run; echo $$ >/var/run/nginx.pid; trap "exit 0" TERM; sleep 1000000 & wait' &&
		script web 'echo httpd; exec httpd -f -p 80 -h /www' || return
	gcc -O2 -static -o "$root/bin/effective" -x c - <<-'EOF' && chmod 4755 "$root/bin/effective"
	#include <stdio.h>
	#include <unistd.h>
	int main(void) { return printf("Effective uid: %d\n", (int)geteuid()) < 0; }
	EOF
}
image() { # NAME WORD...
	image_make "$root" "localhost/$1" "$dir/image.tar" "${@:2}" && native_load "$dir" "$dir/image.tar" && rm "$dir/image.tar"
}
images() {
	local root=$dir/files tests=e2e-test-images
	make_root && image critest:1 -- sh && image $tests/nginx:1.14-2 /bin/nginx "master process" && image $tests/httpd:2.4.39-4 /bin/web &&
		image $tests/nonewprivs:1.3 /bin/effective && image k8s-staging-cri-tools/test-image-predefined-group:latest -- sh
}

# run NAME FOCUS: critest's own status says that specs failed, which the comparison decides.
run() {
	"$critest" --runtime-endpoint "unix://$dir/cri.sock" --image-endpoint "unix://$dir/cri.sock" --test-images-file "$dir/images.yaml" \
		--ginkgo.focus "$2" --ginkgo.skip "$skip" --ginkgo.no-color --ginkgo.json-report "$dir/$1.json" >"$dir/critest-$1.log" 2>&1 || :
	[ -s "$dir/$1.json" ] || die "critest wrote no report"
}
# both NAME FOCUS: without the agent, then with it.
both() {
	run "$1-without" "$2"
	agent_up
	run "$1-with" "$2"
	agent_status '.counters' >"$dir/counters"
	agent_down
}
native_start "$dir" "$RUNTIME"
images || die "an image is not made"
agent_flags=(--management 0 --nri-socket "$dir/nri.sock" --no-cluster)
e2e_say "critest with $RUNTIME"
suite_same "${FOCUS:-.}"
jq -e '[.[] | numbers] | add > 0' "$dir/counters" >/dev/null || die "the agent saw no container: $(cat "$dir/counters")"
suite_result "$RUNTIME" critest
