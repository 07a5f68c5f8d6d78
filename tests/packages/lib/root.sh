# shellcheck shell=bash
#
# Root directories of Debian releases, made once by debootstrap and kept in the cache.
#
#	root_of SUITE [PACKAGES]   prints the directory, which is not to be changed; PACKAGES are separated by commas
#	root_copy SUITE DIR [PACKAGES]

root_mirror() {
	apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' |
		awk -v suite="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" '$1 == suite && $2 == "main" { print $3; exit }'
}

root_of() {
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/roots/$1${2:+-${2//,/-}}
	if [ ! -e "$dir" ]; then
		mkdir -p "${dir%/*}"
		rm -rf "$dir.new"
		debootstrap --variant=minbase ${2:+--include="$2"} "$1" "$dir.new" "$(root_mirror)" >"$dir.log" 2>&1 || {
			tail -n 5 "$dir.log" >&2
			return 1
		}
		mv "$dir.new" "$dir"
	fi
	echo "$dir"
}

root_copy() {
	local from
	from=$(root_of "$1" "${3:-}") || return
	cp -a "$from/." "$2"
}
