/* CRI-O's files are parsed with CRI-O's own rules (workload.h): the question is what CRI-O does,
 * not what its administrator meant. */

#include "crio.h"

#include <errno.h>
#include <fcntl.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "kube/names.h"
#include "pool/config.h"
#include "workload.h"

#define MAX_CONFIG_SIZE ((size_t)1 << 20) /* of one file; real ones have a few KB */

const char *crio_state_name(enum crio_state state)
{
	static const char *const names[] = {
		[CRIO_NO_WORKLOAD] = "none",
		[CRIO_AGREES] = "agrees",
		[CRIO_DIFFERS] = "differs",
		[CRIO_CANNOT_START] = "cannot-start",
	};

	return names[state];
}

struct files {
	struct str *texts, *names;
	size_t n;
};

static int add_file(struct files *f, int dir, const char *path, struct arena *a, struct err *err)
{
	const int r = file_read_at(dir, path, MAX_CONFIG_SIZE, a, &f->texts[f->n], err);

	if (r == -ENOENT)
		return 0;
	f->names[f->n] = str_from(path);
	f->n += r == 0;
	return r;
}

static int read_files(int dir, struct arena *a, struct files *f, struct err *err)
{
	struct str *drops = NULL;
	size_t n = 0;
	int r;

	r = file_list_at(dir, "crio.conf.d", a, &drops, &n, err);
	if (r < 0 && r != -ENOENT)
		return r;
	f->texts = arena_array(a, struct str, n + 1);
	f->names = arena_array(a, struct str, n + 1);
	r = add_file(f, dir, "crio.conf", a, err); /* first: drop-ins override it */
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_file(f, dir,
			     str_cstr(a, str_printf(a, "crio.conf.d/" PRI_STR, FMT_STR(drops[i]))),
			     a, err);
	return r;
}

static struct crio_config compare_one(const struct workload *workload, struct str type,
				      bool is_cgroupfs, const struct crio_pools *with)
{
	struct crio_config c = { CRIO_DIFFERS, type, workload->defaults.cpus };
	struct cpuset cpus, want;

	pool_config_type_cpus(with->pools, type, with->management, &want);
	if (c.cpus.n == 0)
		c.state = CRIO_NO_WORKLOAD; /* it sets shares only */
	else if (is_cgroupfs)
		c.state = CRIO_CANNOT_START;
	else if (cpuset_parse(c.cpus, &cpus, NULL) == 0 && cpuset_eq(&cpus, &want))
		c.state = CRIO_AGREES;
	return c;
}

struct crio_config crio_config_compare(const struct workloads *w, const struct crio_pools *with)
{
	struct crio_config worst = { CRIO_NO_WORKLOAD, STR(""), STR("") };

	for (size_t i = 0; i < w->n; i++) {
		const struct str activation = w->items[i].activation;
		const struct str type = str_skip(activation, sizeof(NAME_TARGET_PREFIX) - 1);
		struct crio_config c;

		if (!str_starts(activation, STR(NAME_TARGET_PREFIX)) ||
		    !pool_config_has_type(with->pools, type))
			continue;
		c = compare_one(&w->items[i], type, w->is_cgroupfs, with);
		if (c.state > worst.state)
			worst = c;
	}
	return worst;
}

int crio_config_read(const char *dir, const struct crio_pools *with, struct arena *a,
		     struct crio_config *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct workloads workloads = { 0 };
	struct files files = { 0 };
	int r;

	if (fd < 0 && errno == ENOENT) {
		*ret = (struct crio_config){ CRIO_NO_WORKLOAD, STR(""), STR("") };
		return 0;
	}
	if (fd < 0)
		return err_set(err, errno, "open %s", dir);
	r = read_files(fd, a, &files, err);
	if (r == 0)
		r = workloads_parse(files.texts, files.names, files.n, with->is_legacy, a,
				    &workloads, err);
	if (r < 0)
		return err_wrap(err, "%s", dir);
	*ret = crio_config_compare(&workloads, with);
	return 0;
}
