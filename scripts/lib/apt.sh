# shellcheck shell=bash
#
# Packages of a Debian release and architecture other than the machine's, from the machine's own mirror: apt with a state of
# its own. Neither the package lists nor the sources of the system change, and signatures are checked as always.
#
#	apt_open DIR SUITE ARCHITECTURE     fetches the package lists into DIR
#	apt_download DIR PACKAGE...         binary packages, into the current directory
#	apt_download_source DIR PACKAGE...  the upstream files of source packages, into the current directory

# Lines of sources.list for SUITE: the repositories of this release, with its updates and security updates, renamed.
apt_sources() {
	local codename
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' |
		awk -v from="$codename" -v to="$1" -v by=/usr/share/keyrings/debian-archive-keyring.gpg '
			$2 == "main" && ($1 == from || $1 == from "-updates" || $1 == from "-security") && !seen[$1, $3]++ {
				sub("^" from, to, $1)
				print "deb [signed-by=" by " target=Packages] " $3 " " $1 " main"
				print "deb-src [signed-by=" by " target=Sources] " $3 " " $1 " main"
			}'
}

apt_in() {
	local dir=$1
	shift
	apt-get -qq -o Dir::State="$dir/state" -o Dir::State::status=/dev/null -o Dir::Cache="$dir/cache" \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o APT::Architecture="$(cat "$dir/architecture")" \
		-o APT::Architectures="$(cat "$dir/architecture")" -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

apt_open() {
	mkdir -p "$1"/{state/lists/partial,cache/archives/partial}
	apt_sources "$2" >"$1/sources.list"
	echo "$3" >"$1/architecture"
	[ -s "$1/sources.list" ] || return
	apt_in "$1" -o APT::Update::Error-Mode=any update
}
apt_download() { local dir=$1; shift; apt_in "$dir" download "$@"; }
apt_download_source() { local dir=$1; shift; apt_in "$dir" source --download-only --tar-only "$@"; }
