#pragma once

/* The files of a profile for this host: those of `pinfold render --target host`, by the same code,
 * without what the agent itself takes from the cluster. Each with what has to happen before a
 * change of it has an effect. Pure; host_files_read.h compares them with the host. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "profile/change_settings.h"

struct arena;
struct distro;
struct err;
struct topology;

/* What a change of a file needs. */
enum host_file_class {
	HOST_FILE_QUIET, /* nothing: it has an effect at boot, and is configured live until then */
	HOST_FILE_KUBELET, /* a restart of the kubelet */
	HOST_FILE_RUNTIME, /* a restart of the runtime */
	HOST_FILE_BOOT,	   /* a reboot: units that run once at boot */
	HOST_FILE_CLASS__COUNT
};

enum host_file_state {
	HOST_FILE_SAME,
	HOST_FILE_DIFFERS,
	HOST_FILE_MISSING,
	HOST_FILE_LEFT,	 /* it should not exist */
	HOST_FILE_UNSEEN /* not mounted into the agent's container */
};

struct host_file {
	struct str path; /* on the host */
	unsigned mode;
	struct str bytes;
	bool is_absent;	  /* there should be no such file */
	bool is_by_hand;  /* a line for a file of the distribution, which no agent writes */
	bool is_original; /* the file as it was: no profile wants another one any more */
	enum host_file_class class;
	enum host_file_state state; /* set by host_files_read() */
};

struct host_files {
	struct arena *a;
	struct host_file *items;
	size_t n, cap;
	struct str kernel_args; /* one in each line; "": none */
	struct str units;	/* to be enabled, one in each line */
	bool kubelet_is_static; /* it assigns exclusive CPUs */
	bool has_profile;
	struct change_settings changes;
};

struct host_files_source {
	yyjson_val *profile; /* NULL: none is in force */
	const struct topology *topology;
	const struct distro *distro;
	bool has_crio;		/* instead of containerd, where the distribution leaves it open */
	bool kubelet_is_static; /* the kubelet assigns exclusive CPUs in pools mode, too */
};

#define HOST_TUNED_CHOICE "/etc/tuned/active_profile"
#define HOST_REBOOT_SENTINEL "/run/reboot-required" /* /var/run is a link to /run */
#define HOST_KERNEL_ARGS "/etc/pinfold/kernel-args"
/* As above, once the boot loader has them (node/pinfold-kernel-args.sh). */
#define HOST_KERNEL_ARGS_APPLIED HOST_KERNEL_ARGS ".applied"
#define HOST_KERNEL_ARGS_UNIT "pinfold-kernel-args@.service"
#define HOST_KERNEL_ARGS_UPDATE "pinfold-kernel-args@update.service"
#define HOST_KERNEL_ARGS_UNDO "pinfold-kernel-args@undo.service"

/* No files without a profile, and for distributions whose files cannot be written. */
int host_files_build(const struct host_files_source *source, struct arena *a,
		     struct host_files *ret, struct err *err);

void host_files_add(struct host_files *f, struct host_file file);
const struct host_file *host_files_find(const struct host_files *f, struct str path);

enum host_file_class host_file_class_of(struct str path);

/* Those of the arguments that a kernel's command line lacks, with blanks between them. */
struct str host_missing_args(struct str wanted, struct str cmdline, struct arena *a);
