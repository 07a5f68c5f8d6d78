# shellcheck shell=bash
#
# Shared by build and guest-image: where things are cached, one builder at a time, and Debian packages
# of another suite than the machine's. Sourced, with `set -euo pipefail` in force.

components_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/components/versions
. "$components_dir/versions"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/components
mkdir -p "$cache"

say() { echo "$(basename "$0"): $*" >&2; }
die() { say "$*"; exit 1; }

# Builders of one component wait for each other; the lock goes away with the process that holds it.
lock() {
	exec {lock_fd}>"$cache/.lock-$1"
	flock "$lock_fd"
}

# scratch NAME: an empty directory in the cache's file system, so that the final rename is atomic.
# Call it with the lock held: it removes what an interrupted build left.
scratch() {
	rm -rf "$cache/.tmp-$1"
	mkdir "$cache/.tmp-$1"
	echo "$cache/.tmp-$1"
}

# host_packages PACKAGE...: installs what is missing on this machine.
host_packages() {
	local package missing=()
	for package; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' ||
			missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return
	say "installing ${missing[*]}"
	[ "$(id -u)" -eq 0 ] || die "not root: install them yourself: apt-get install ${missing[*]}"
	(
		# Tests that start at the same time wait for each other, and for another apt-get. That may hold the lock of the lists; then it
		# updates them.
		flock 8
		apt-get update -qq >&2 || say "the package lists were not updated"
		DEBIAN_FRONTEND=noninteractive nice apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=600 \
			"${missing[@]}" >&2
	) 8>"$cache/.host-packages.lock"
}

# The archive that this machine uses: the first source with a plain suite.
debian_mirror() {
	# shellcheck disable=SC2016  # apt expands these
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' 'Component: main' |
		awk '$2 !~ /-/ { print $1; exit }'
}

# apt_guest STATE ARG...: runs apt-get or apt-cache for $GUEST_SUITE with a state of its own below
# STATE, so that nothing of the machine's package database is read or changed.
apt_guest() {
	local state=$1 command=$2
	shift 2
	mkdir -p "$state"/{lists,archives}/partial
	[ -e "$state/status" ] || : >"$state/status"
	[ -e "$state/sources.list" ] ||
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$(debian_mirror) $GUEST_SUITE main" >"$state/sources.list"
	"$command" -qq -o "Dir::State=$state" -o "Dir::State::status=$state/status" \
		-o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state" \
		-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o APT::Sandbox::User=root "$@"
}
