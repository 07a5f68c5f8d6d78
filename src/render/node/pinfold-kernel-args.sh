#!/bin/sh
# Puts the kernel arguments in /etc/pinfold/kernel-args (one per line) on the boot loader's line, or
# takes them off again: pinfold-kernel-args add|remove. "update" replaces those of the last update, which
# kernel-args.applied has; "undo" removes them. PINFOLD_ROOT: work below that directory.
set -eu
root=${PINFOLD_ROOT:-}
list=$root/etc/pinfold/kernel-args
applied=$list.applied
grub=$root/etc/default/grub.d/50-pinfold.cfg
cmdline=$root/etc/kernel/cmdline

have() { command -v "$1" >/dev/null 2>&1; }

# Rewrites the loader's entries, which take the line from /etc/kernel/cmdline. Not by "kernel-install
# add-all": systemd before 256 lacks it, and it does not see kernels in /boot, where Debian has them.
write_entries() {
	found=''
	for modules in /usr/lib/modules/*; do
		version=${modules##*/}
		image=$modules/vmlinuz
		[ -e "$image" ] || image=/boot/vmlinuz-$version
		[ -e "$image" ] || continue
		found=yes
		set -- "$version" "$image"
		[ ! -e "/boot/initrd.img-$version" ] || set -- "$@" "/boot/initrd.img-$version"
		kernel-install add "$@"
	done
	[ -n "$found" ] || {
		echo "found no kernel: rewrite the boot loader's entries by hand, from $cmdline" >&2
		exit 1
	}
}

case ${1:-} in
add | remove) ;;
update | undo)
	if [ -e "$applied" ]; then
		PINFOLD_KERNEL_ARGS=$applied "$0" remove
		rm "$applied"
	fi
	[ "$1" = update ] || exit 0
	"$0" add
	# Last: whatever waits for it knows that the boot loader is configured.
	cp "$list" "$applied.new"
	mv "$applied.new" "$applied"
	sync "$applied"
	exit 0
	;;
*)
	echo "usage: pinfold-kernel-args add|remove|update|undo" >&2
	exit 2
	;;
esac
list=${PINFOLD_KERNEL_ARGS:-$list}
args=$(tr '\n' ' ' <"$list")
args=${args% }

if have grubby && [ -z "$root" ]; then
	if [ "$1" = add ]; then
		grubby --update-kernel=ALL --args="$args"
	else
		grubby --update-kernel=ALL --remove-args="$args"
	fi
elif [ -d "$root/etc/default/grub.d" ]; then
	if [ "$1" = add ]; then
		quoted=$(printf '%s' "$args" | sed 's/[\\"$`]/\\&/g')
		# shellcheck disable=SC2016 # grub-mkconfig is to expand it
		printf 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"\n' "$quoted" >"$grub"
	else
		rm -f "$grub"
	fi
	[ -n "$root" ] || update-grub
elif [ -e "$cmdline" ]; then
	line=$(tr '\n' ' ' <"$cmdline")
	case $line in # what was added stands there in one piece
	*" $args"*) line="${line%%" $args"*}${line#*" $args"}" ;;
	esac
	line=${line% }
	[ "$1" = remove ] || line="$line $args"
	cp -p "$cmdline" "$cmdline.pinfold-new" # for its mode
	printf '%s\n' "$line" >"$cmdline.pinfold-new"
	mv "$cmdline.pinfold-new" "$cmdline"
	[ -n "$root" ] || ! have kernel-install || write_entries
else
	echo "no known boot loader; add these to the kernel's command line: $args" >&2
	exit 1
fi
