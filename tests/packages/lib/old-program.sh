# shellcheck shell=bash
#
# The program of 0.1.0, built once from git's history and kept in the cache.
#
#	old_program   prints its directory, for LD_LIBRARY_PATH, too; fails where git has no history

old_commit=a285f27 # the last one before 0.2.0

old_program() {
	local dir=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/components/pinfold-0.1.0 source
	if [ ! -x "$dir/pinfold" ]; then
		git cat-file -e "$old_commit^{commit}" 2>/dev/null || return
		source=$(mktemp -d) || return
		mkdir -p "$dir"
		git archive "$old_commit" | tar -C "$source" -xf -
		make -s -C "$source" >&2 || return
		cp "$source/build/deps/lib/libyyjson.so.0" "$dir" 2>/dev/null || :
		mv "$source/build/pinfold" "$dir/pinfold.new" && mv "$dir/pinfold.new" "$dir/pinfold"
		rm -rf "$source"
	fi
	echo "$dir"
}
