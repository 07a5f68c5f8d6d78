#include "node_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/node_audit.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"

int node_verify(const struct node_verify_source *source, struct arena *a, struct node_verify *ret,
		struct err *err)
{
	CLEANUP(cgroup_done) struct cgroup_fs fs = { .cpu_fd = -1, .cpuset_fd = -1 };
	AUTO_CLOSE int proc = open(source->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct agent_status status;
	int r;

	if (proc < 0)
		return err_set(err, errno, "open %s: %s", source->proc, strerror(errno));
	/* The expected settings first: what the agent changes afterwards is compared with an older
	 * expectation and may be reported once. */
	r = status_client_read(source->run_dir, a, &status, err);
	if (r == 0)
		r = cgroup_open(&fs, source->cgroup_root, err);
	if (r == 0)
		r = node_audit(&(struct node_audit_source){ &fs, proc, status.is_running },
			       status.doc.root, a, &ret->audit, err);
	if (r == 0)
		ret->host = (struct foreign_host){
			doc_str(doc_find(status.doc.root, "/pools/management/cpus")), fs.version
		};
	return r;
}
