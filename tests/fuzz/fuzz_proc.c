/* A process chooses its own name: for any content of /proc/PID/stat there is no crash, and the name
 * is within the text. */

#include <stdlib.h>

#include "cgroup/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = { (const char *)data, size };
	struct proc_stat stat;
	struct cpuset allowed;
	struct str cgroup;

	if (proc_parse_stat(text, &stat) &&
	    (stat.name.p < text.p || stat.name.p + stat.name.n > text.p + text.n))
		abort();
	(void)proc_parse_allowed(text, &allowed);
	cgroup = proc_parse_cgroup(text);
	if (cgroup.n && (cgroup.p < text.p || cgroup.p + cgroup.n > text.p + text.n))
		abort();
	return 0;
}
