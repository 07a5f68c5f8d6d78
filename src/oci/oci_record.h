#pragma once

/* Containers that no NRI runtime tells us about: podman's, or runc's driven by hand. An OCI hook
 * describes each in a record, a small file below the agent's directory; from it come the very
 * structs that NRI would have sent, so that everything else in here treats them alike. The records
 * outlive hook and agent; one whose cgroup is gone is forgotten, but not while it is only about to
 * be made. Parsing is pure. */

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
#define OCI_RECORD_PENDING_S 60 /* from precreate to the cgroup: runtimes need less than a second  \
				 */

struct oci_record {
	struct nri_pod pod;
	struct nri_container container;
	bool is_unnamed; /* nobody will know it by its id: it can own nothing */
	bool is_promised;
	int64_t promised_at_s; /* since boot */
	bool is_expected; /* promised just now, so it may have no cgroup yet; by oci_record_load */

	/* What the two above point to. */
	struct nri_pod_linux pod_linux;
	struct nri_container_linux on_linux;
	struct nri_resources resources;
	struct nri_cpu cpu;
};

/* Letters, digits, and _ . + - after the first: what runtimes allow, and safe as a file's name. */
bool oci_record_id_is_valid(struct str id);

/* {"id":"...","cgroup":"/machine.slice/...","annotations":{...},"cpus":"...","shares":N,
 * "quotaUs":N,"periodUs":N,"memoryBytes":N,"promisedAtS":N,"unnamed":true}; all but the id may be
 * missing. */
int oci_record_parse(const struct doc *record, struct arena *a, struct oci_record *ret,
		     struct err *err);

/* What precreate leaves of a container with CPUs of its own (precreate.h): as many CPUs as its
 * weight says, and explicitly no quota. With a limit of memory it still asks for CPUs of its own.
 */
bool oci_record_is_adjusted(const struct nri_cpu *cpu);

/* What its configuration does not say. */
struct oci_record_source {
	struct str id;
	const char *cgroup; /* as the kernel names it; "" when nobody knows yet */
	bool is_unnamed;
	bool is_promised;
	int64_t promised_at_s;
};

/* The record of a container from the configuration that a runtime hands to hooks. -EUCLEAN for a
 * pod's pause container, which is nobody's workload. */
int oci_record_build(const struct doc *config, const struct oci_record_source *given,
		     struct arena *a, struct str *ret, struct err *err);

/* Whether a container without a cgroup may still come: its runtime has asked, and may be about to
 * make it. One that died is not waited for for ever, nor is one of an earlier boot. */
bool oci_record_is_pending(int64_t promised_at_s, int64_t now_s);

int64_t oci_record_now_s(void); /* since boot: no clock that somebody sets */

/* The cgroup of a process, as /proc/PID/cgroup names it: of the cpuset controller, or of v2. ""
 * when there is none. */
struct str oci_record_cgroup(struct str text);

/* Records below the agent's directory. */
int oci_record_save(int run_fd, struct str id, struct str record, struct err *err);
void oci_record_delete(int run_fd, struct str id);
int oci_record_load(int run_fd, struct str id, struct arena *a, struct oci_record *ret,
		    struct err *err);

struct oci_record_list {
	struct oci_record **items; /* sorted by id; in the arena of the call */
	size_t n;
	struct oci_record **gone; /* their cgroup is, or never came: release their CPUs */
	size_t n_gone;
};

/* Forgets what is gone, and what cannot be read. */
int oci_records_load(int run_fd, const struct cgroup_fs *cgroups, struct arena *a,
		     struct oci_record_list *ret, struct err *err);
