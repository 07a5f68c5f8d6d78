#pragma once

/* Standalone containers, which no NRI runtime reports: those of podman, or of runc without a
 * daemon. An OCI hook describes each in a record, a small file in the run directory, from which the
 * structs are built that NRI would have sent. Records outlive hook and agent; a record without a
 * cgroup is deleted unless its container is pending. Parsing is pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "codec/doc.h"
#include "nri/nri.h"

struct cgroup_fs;
struct err;

#define OCI_RECORD_DIR "oci"
#define OCI_RECORD_MAX_RECORD ((size_t)1 << 20)
#define OCI_RECORD_MAX_ID 128
#define OCI_RECORD_PENDING_S 60 /* after precreate; runtimes need less than a second */

struct oci_record {
	struct nri_pod pod;
	struct nri_container container;
	bool is_unnamed; /* its id is made up, so that no later stage finds it: no exclusive CPUs */
	bool is_precreated;	 /* written at stage precreate */
	int64_t precreated_at_s; /* since boot */
	bool is_pending;	 /* precreated recently, so it may have no cgroup yet; set by
				    oci_record_load() */

	/* Targets of pointers in `pod` and `container`. */
	struct nri_pod_linux pod_linux;
	struct nri_container_linux on_linux;
	struct nri_resources resources;
	struct nri_cpu cpu;
};

/* Letters and digits, after the first also _ . + -: what runtimes allow, and safe as a file name.
 */
bool oci_record_id_is_valid(struct str id);

/* {"id":"...","cgroup":"/machine.slice/...","annotations":{...},"cpus":"...","shares":N,
 * "quotaUs":N,"periodUs":N,"memoryBytes":N,"precreatedAtS":N,"unnamed":true}; all but the id may be
 * missing. */
int oci_record_parse(const struct doc *record, struct arena *a, struct oci_record *ret,
		     struct err *err);

/* Whether precreate adjusted the container for exclusive CPUs (precreate.h): shares match the
 * number of its CPUs, and the quota is explicitly unlimited. With a memory limit it still requests
 * that many exclusive CPUs. */
bool oci_record_is_adjusted(const struct nri_cpu *cpu);

/* What is not in the configuration. */
struct oci_record_source {
	struct str id;
	const char *cgroup; /* as the kernel names it; "" when unknown */
	bool is_unnamed;
	bool is_precreated;
	int64_t precreated_at_s;
};

/* Builds the record from the OCI configuration. -EUCLEAN for the pause container of a pod, which is
 * not placed. */
int oci_record_build(const struct doc *config, const struct oci_record_source *given,
		     struct arena *a, struct str *ret, struct err *err);

/* Whether a precreated container may still get its cgroup. False after a minute, when the runtime
 * must have failed, and for times of an earlier boot. */
bool oci_record_is_pending(int64_t precreated_at_s, int64_t now_s);

int64_t oci_record_now_s(void); /* since boot, unaffected by clock changes */

/* The cgroup in the text of /proc/PID/cgroup: of the cpuset controller, or of v2; "" if none. */
struct str oci_record_cgroup(struct str text);

/* Files in the run directory. */
int oci_record_save(int run_fd, struct str id, struct str record, struct err *err);
void oci_record_delete(int run_fd, struct str id);
int oci_record_load(int run_fd, struct str id, struct arena *a, struct oci_record *ret,
		    struct err *err);

struct oci_record_list {
	struct oci_record **items; /* sorted by id; in the arena of the call */
	size_t n;
	struct oci_record **gone; /* without a cgroup: the caller releases their CPUs */
	size_t n_gone;
};

/* Deletes the files of `gone` records and of unreadable ones. */
int oci_records_load(int run_fd, const struct cgroup_fs *cgroups, struct arena *a,
		     struct oci_record_list *ret, struct err *err);
