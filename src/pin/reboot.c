/* Kernel arguments are what an administrator chose, possibly for other software. So they are only
 * compared and reported; nothing here changes the boot configuration. */

#include "reboot.h"

#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/proc.h"

#define CPU_DIR "sys/devices/system/cpu/"

static void add_note(struct reboot_notes *n, const char *what, const struct cpuset *have,
		     const struct cpuset *want, const char *why)
{
	n->items[n->n++] = (struct reboot_note){ what, *have, *want, why };
}

/* Kernel arguments and affinities may name all possible CPUs, of which many machines have only
 * some; a pool has the online ones. */
static bool same_online(const struct boot_facts *f, const struct cpuset *a, const struct cpuset *b)
{
	struct cpuset x = *a, y = *b;

	cpuset_intersect(&x, &f->online);
	cpuset_intersect(&y, &f->online);
	return cpuset_eq(&x, &y);
}

void reboot_compare(const struct boot_facts *f, const struct cpuset *reserved,
		    const struct cpuset *guaranteed, struct reboot_notes *ret)
{
	struct reboot_notes n = { 0 };
	struct cpuset here = *reserved;

	/* An affinity has only the CPUs that were online when it was set. */
	cpuset_intersect(&here, &f->online);
	if (!cpuset_is_empty(&f->isolated) && !same_online(f, &f->isolated, guaranteed))
		add_note(&n, "isolcpus", &f->isolated, guaranteed,
			 "the kernel reads isolcpus= only at boot");
	if (!cpuset_is_empty(&f->nohz_full) && !same_online(f, &f->nohz_full, guaranteed))
		add_note(&n, "nohz_full", &f->nohz_full, guaranteed,
			 "the kernel reads nohz_full= only at boot");
	if (f->knows_services && !same_online(f, &f->services, &f->online) &&
	    !same_online(f, &f->services, &here))
		add_note(&n, "systemd", &f->services, &here,
			 "services keep the CPUAffinity= they were started with");
	*ret = n;
}

static void read_list(int root_fd, const char *path, struct cpuset *ret)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	/* A kernel without the feature has "(null)" in the file, or no such file. */
	if (file_read_at(root_fd, path, 65536, &a, &text, NULL) < 0 ||
	    cpuset_parse_kernel(str_trim(text), ret, NULL) < 0)
		*ret = (struct cpuset){ 0 };
}

void reboot_read(int root_fd, bool moves_services, struct boot_facts *ret)
{
	AUTO_CLOSE int proc = openat(root_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct boot_facts f = { 0 };

	read_list(root_fd, CPU_DIR "online", &f.online);
	read_list(root_fd, CPU_DIR "isolated", &f.isolated);
	read_list(root_fd, CPU_DIR "nohz_full", &f.nohz_full);
	if (proc >= 0 && !moves_services)
		f.knows_services = proc_allowed(proc, 1, &f.services);
	*ret = f;
}

void reboot_describe(const struct reboot_notes *notes, struct arena *a, yyjson_mut_doc *doc,
		     yyjson_mut_val *root)
{
	yyjson_mut_val *list;

	if (notes->n == 0)
		return;
	list = doc_put_arr(doc, root, STR("reboot"));
	for (size_t i = 0; i < notes->n; i++) {
		const struct reboot_note *n = &notes->items[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);

		doc_put_str(doc, v, STR("what"), str_from(n->what));
		doc_put_str(doc, v, STR("have"), cpuset_format(&n->have, a));
		doc_put_str(doc, v, STR("want"), cpuset_format(&n->want, a));
		doc_put_str(doc, v, STR("reason"), str_from(n->why));
	}
}
