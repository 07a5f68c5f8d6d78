/* Paths are relative to handles of the mounted trees, so the same code works on /sys/fs/cgroup, on
 * a host tree mounted into the agent's pod, and on a directory of plain files in tests. */

#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"

/* One value: the longest is a list of every second of CPUSET_MAX CPUs, about 20 KB. */
#define VALUE_MAX ((size_t)64 << 10)
/* cgroup.procs: about half a million processes. */
#define PROCS_MAX ((size_t)4 << 20)

/* Only the names of the control files differ between the versions. */
enum control {
	CONTROL_CPUS,
	CONTROL_EFFECTIVE,
	CONTROL_MEMS,
	CONTROL_EFFECTIVE_MEMS,
	CONTROL_WEIGHT,
	CONTROL_QUOTA, /* v2: cpu.max holds the period too */
	CONTROL_PERIOD,
	CONTROL_PROCS,
	CONTROL__COUNT
};

static const char *const v1_files[CONTROL__COUNT] = {
	[CONTROL_CPUS] = "cpuset.cpus",	      [CONTROL_EFFECTIVE] = "cpuset.effective_cpus",
	[CONTROL_MEMS] = "cpuset.mems",	      [CONTROL_WEIGHT] = "cpu.shares",
	[CONTROL_QUOTA] = "cpu.cfs_quota_us", [CONTROL_PERIOD] = "cpu.cfs_period_us",
	[CONTROL_PROCS] = "cgroup.procs",     [CONTROL_EFFECTIVE_MEMS] = "cpuset.effective_mems",
};

static const char *const v2_files[CONTROL__COUNT] = {
	[CONTROL_CPUS] = "cpuset.cpus",	  [CONTROL_EFFECTIVE] = "cpuset.cpus.effective",
	[CONTROL_MEMS] = "cpuset.mems",	  [CONTROL_WEIGHT] = "cpu.weight",
	[CONTROL_QUOTA] = "cpu.max",	  [CONTROL_PERIOD] = "cpu.max",
	[CONTROL_PROCS] = "cgroup.procs", [CONTROL_EFFECTIVE_MEMS] = "cpuset.mems.effective",
};

/* On v1 cpu and cpuset are two trees, each with its own directory for the same cgroup. */
static int tree_of(const struct cgroup_fs *fs, enum control c)
{
	const bool is_cpuset = c <= CONTROL_EFFECTIVE_MEMS;

	return is_cpuset ? fs->cpuset_fd : fs->cpu_fd;
}

int cgroup_file_path(const char *path, const char *file, char ret[static PATH_MAX], struct err *err)
{
	const size_t n = strlen(path), n_file = strlen(file) + 1;

	if (n + 1 + n_file > PATH_MAX)
		return err_set(err, ENAMETOOLONG, "cgroup %s: name too long", path);
	/* Not snprintf(): an idle agent does little else than open control files, and formatting
	 * their long names took a fifth of its instructions. */
	memcpy(ret, path, n);
	if (n)
		ret[n] = '/';
	memcpy(ret + n + (n > 0), file, n_file);
	return 0;
}

static int control_path(const struct cgroup_fs *fs, const char *path, enum control c,
			char ret[static PATH_MAX], struct err *err)
{
	const char *file = fs->version == CGROUP_V2 ? v2_files[c] : v1_files[c];

	return cgroup_file_path(path, file, ret, err);
}

static int read_control(const struct cgroup_fs *fs, const char *path, enum control c,
			struct arena *a, struct str *ret, struct err *err)
{
	char file[PATH_MAX];
	struct str text;
	int r;

	r = control_path(fs, path, c, file, err);
	if (r >= 0)
		r = file_read_value_at(tree_of(fs, c), file, VALUE_MAX, a, &text, err);
	if (r < 0)
		return err_wrap(err, "cgroup");
	*ret = str_trim(text);
	return 0;
}

static int write_control(const struct cgroup_fs *fs, const char *path, enum control c,
			 struct str text, struct err *err)
{
	char file[PATH_MAX];
	int r;

	r = control_path(fs, path, c, file, err);
	if (r >= 0)
		r = file_write_value_at(tree_of(fs, c), file, text, err);
	if (r < 0)
		return err_wrap(err, "cgroup");
	return 0;
}

/* Writes it and reads what the kernel kept. */
static int exchange_control(const struct cgroup_fs *fs, const char *path, enum control c,
			    struct str text, struct arena *a, struct str *ret, struct err *err)
{
	char file[PATH_MAX];
	struct str kept;
	int r;

	r = control_path(fs, path, c, file, err);
	if (r >= 0)
		r = file_exchange_value_at(tree_of(fs, c), file, text, VALUE_MAX, a, &kept, err);
	if (r < 0)
		return err_wrap(err, "cgroup");
	*ret = str_trim(kept);
	return 0;
}

/* --- mounting --- */

static bool has_controller(struct str list, struct str wanted)
{
	struct str_split split = str_split(str_trim(list));
	struct str item;

	while (str_next(&split, ' ', &item))
		if (str_eq(item, wanted))
			return true;
	return false;
}

/* A v2 tree that is mounted next to v1 trees lacks the controllers that those use. */
static bool is_usable_v2(int fd)
{
	char buf[512];
	AUTO_CLOSE int file = openat(fd, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
	ssize_t n = file < 0 ? -1 : read(file, buf, sizeof(buf));
	struct str list = { buf, n < 0 ? 0 : (size_t)n };

	return has_controller(list, STR("cpu")) && has_controller(list, STR("cpuset"));
}

static int open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The name of the mount point depends on the distribution, so a directory counts only when it has
 * the control file. */
static int open_v1_tree(int mount, const char *const names[2], const char *needed)
{
	for (int i = 0; i < 2; i++) {
		int fd = open_dir(mount, names[i]);

		if (fd >= 0 && faccessat(fd, needed, R_OK, 0) == 0)
			return fd;
		if (fd >= 0)
			(void)close(fd);
	}
	return -1;
}

int cgroup_open(struct cgroup_fs *fs, const char *mount, struct err *err)
{
	static const char *const cpu_names[] = { "cpu", "cpu,cpuacct" };
	static const char *const cpuset_names[] = { "cpuset", "cpuset" };
	AUTO_CLOSE int top = open_dir(AT_FDCWD, mount);
	struct cgroup_fs found = { .version = CGROUP_V1 };

	if (top < 0)
		return err_set(err, errno, "open %s: %s", mount, strerror(errno));
	if (is_usable_v2(top)) {
		*fs = (struct cgroup_fs){ CGROUP_V2, open_dir(top, "."), open_dir(top, ".") };
		return 0;
	}
	found.cpu_fd = open_v1_tree(top, cpu_names, v1_files[CONTROL_WEIGHT]);
	found.cpuset_fd = open_v1_tree(top, cpuset_names, v1_files[CONTROL_CPUS]);
	if (found.cpu_fd < 0 || found.cpuset_fd < 0) {
		cgroup_done(&found);
		return err_set(err, ENODEV, "%s: no cgroup hierarchy with cpu and cpuset", mount);
	}
	*fs = found;
	return 0;
}

void cgroup_done(struct cgroup_fs *fs)
{
	if (fs->cpu_fd >= 0)
		(void)close(fs->cpu_fd);
	if (fs->cpuset_fd >= 0)
		(void)close(fs->cpuset_fd);
	fs->cpu_fd = fs->cpuset_fd = -1;
}

/* --- making and removing --- */

/* v2: a child has the files of a controller only when its parent enables the controller. */
static int enable_controllers(const struct cgroup_fs *fs, const char *parent, struct err *err)
{
	char file[PATH_MAX];
	int r = cgroup_file_path(parent, "cgroup.subtree_control", file, err);

	if (r >= 0)
		r = file_write_value_at(fs->cpu_fd, file, STR("+cpu +cpuset"), err);
	if (r < 0)
		return err_wrap(err, "cgroup: enable cpu and cpuset for children");
	return 0;
}

/* v1: a new cpuset is empty and accepts no task until it has CPUs and memory nodes. */
static int inherit(const struct cgroup_fs *fs, const char *parent, const char *path, enum control c,
		   struct err *err)
{
	struct str mine, theirs;
	struct arena a;
	int r;

	arena_init(&a, 0);
	r = read_control(fs, path, c, &a, &mine, err);
	if (r >= 0 && !mine.n) {
		r = read_control(fs, parent, c, &a, &theirs, err);
		if (r >= 0)
			r = write_control(fs, path, c, theirs, err);
	}
	arena_done(&a);
	return r;
}

static int make_one(const struct cgroup_fs *fs, const char *parent, const char *path,
		    struct err *err)
{
	int r;

	if (fs->version == CGROUP_V2) {
		r = enable_controllers(fs, parent, err);
		if (r < 0)
			return r;
	}
	if (mkdirat(fs->cpu_fd, path, 0755) < 0 && errno != EEXIST)
		return err_set(err, errno, "make cgroup %s: %s", path, strerror(errno));
	if (fs->version == CGROUP_V2)
		return 0;
	if (mkdirat(fs->cpuset_fd, path, 0755) < 0 && errno != EEXIST)
		return err_set(err, errno, "make cgroup %s: %s", path, strerror(errno));
	r = inherit(fs, parent, path, CONTROL_MEMS, err); /* a task needs both */
	return r < 0 ? r : inherit(fs, parent, path, CONTROL_CPUS, err);
}

int cgroup_make(const struct cgroup_fs *fs, const char *path, struct err *err)
{
	char parent[PATH_MAX] = "", part[PATH_MAX];
	size_t len = strlen(path);

	if (!len || len >= sizeof(part))
		return err_set(err, EINVAL, "cgroup \"%s\": bad name", path);
	for (size_t i = 1; i <= len; i++) {
		int r;

		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = make_one(fs, parent, part, err);
		if (r < 0)
			return r;
		memcpy(parent, part, i + 1);
	}
	return 0;
}

/* On v2 the second removal finds nothing, which is no error. */
int cgroup_remove(const struct cgroup_fs *fs, const char *path, struct err *err)
{
	int trees[] = { fs->cpu_fd, fs->cpuset_fd };

	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		if (unlinkat(trees[i], path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_set(err, errno, "remove cgroup %s: %s", path, strerror(errno));
	return 0;
}

bool cgroup_exists(const struct cgroup_fs *fs, const char *path)
{
	struct stat st;

	return fstatat(fs->cpuset_fd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* --- reading --- */

static int read_cpus(const struct cgroup_fs *fs, const char *path, enum control c, struct arena *a,
		     struct cpuset *ret, struct err *err)
{
	struct str text;
	int r = read_control(fs, path, c, a, &text, err);

	return r < 0 ? r : cpuset_parse_kernel(text, ret, err);
}

static int bad_value(struct err *err, const char *path, const char *file, struct str text)
{
	return err_set(err, EINVAL, "cgroup %s: %s holds \"" PRI_STR "\"", path, file,
		       FMT_STR(text));
}

static int parse_weight(struct str text, const char *path, uint64_t *ret, struct err *err)
{
	return str_to_u64(text, UINT64_MAX, ret) ? 0 : bad_value(err, path, "weight", text);
}

static int read_weight(const struct cgroup_fs *fs, const char *path, struct arena *a, uint64_t *ret,
		       struct err *err)
{
	struct str text;
	int r = read_control(fs, path, CONTROL_WEIGHT, a, &text, err);

	return r < 0 ? r : parse_weight(text, path, ret, err);
}

/* "max" (v2) and "-1" (v1) mean no quota. */
static bool parse_quota(struct str text, int64_t *ret)
{
	uint64_t value;

	if (str_eq(text, STR("max")) || str_starts(text, STR("-"))) {
		*ret = CGROUP_UNLIMITED;
		return true;
	}
	if (!str_to_u64(text, INT64_MAX, &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

static int read_quota(const struct cgroup_fs *fs, const char *path, struct arena *a,
		      struct cgroup_cpu *ret, struct err *err)
{
	struct str quota, period;
	int r = read_control(fs, path, CONTROL_QUOTA, a, &quota, err);

	if (r < 0)
		return r;
	if (fs->version == CGROUP_V2) { /* "<quota> <period>" */
		struct str_split split = str_split(quota);

		if (!str_next(&split, ' ', &quota) || !str_next(&split, ' ', &period))
			return bad_value(err, path, "cpu.max", quota);
	} else {
		r = read_control(fs, path, CONTROL_PERIOD, a, &period, err);
		if (r < 0)
			return r;
	}
	if (!parse_quota(quota, &ret->quota_us) || !str_to_u64(period, UINT64_MAX, &ret->period_us))
		return bad_value(err, path, "quota", quota);
	return 0;
}

/* Nodes above 63 are in no setting, so they are left out. */
static int read_mems(const struct cgroup_fs *fs, const char *path, enum control c, struct arena *a,
		     uint64_t *ret, struct err *err)
{
	struct cpuset nodes;
	int r = read_cpus(fs, path, c, a, &nodes, err);

	if (r >= 0)
		*ret = nodes.w[0];
	return r;
}

int cgroup_read(const struct cgroup_fs *fs, const char *path, unsigned parts,
		struct cgroup_cpu *ret, struct err *err)
{
	CLEANUP(arena_done)
	struct arena a; /* of all files: their values fit into its first chunk */
	struct cgroup_cpu c = { 0 };
	int r = 0;

	arena_init(&a, 0);
	if (parts & CGROUP_CPUS)
		r = read_cpus(fs, path, CONTROL_CPUS, &a, &c.cpus, err);
	if (r >= 0 && parts & CGROUP_CPUS)
		r = read_cpus(fs, path, CONTROL_EFFECTIVE, &a, &c.effective, err);
	if (r >= 0 && parts & CGROUP_MEMS)
		r = read_mems(fs, path, CONTROL_MEMS, &a, &c.mems, err);
	if (r >= 0 && parts & CGROUP_MEMS)
		r = read_mems(fs, path, CONTROL_EFFECTIVE_MEMS, &a, &c.effective_mems, err);
	if (r >= 0 && parts & CGROUP_WEIGHT)
		r = read_weight(fs, path, &a, &c.weight, err);
	if (r >= 0 && parts & CGROUP_QUOTA)
		r = read_quota(fs, path, &a, &c, err);
	if (r >= 0)
		*ret = c;
	return r;
}

/* --- writing, each read back --- */

static int exchange_cpus(const struct cgroup_fs *fs, const char *path, enum control c,
			 const struct cpuset *cpus, struct arena *a, struct cpuset *ret,
			 struct err *err)
{
	struct str text;
	int r = exchange_control(fs, path, c, cpuset_format(cpus, a), a, &text, err);

	return r < 0 ? r : cpuset_parse_kernel(text, ret, err);
}

int cgroup_set_cpus(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err)
{
	struct cpuset kept;
	struct arena a;
	int r;

	if (cpuset_is_empty(cpus))
		return err_set(err, EINVAL, "cgroup %s: refusing an empty CPU set", path);
	arena_init(&a, 0);
	/* cpuset.cpus, not the effective set: on v2 the kernel keeps CPUs that an ancestor lacks or
	 * that are offline, and uses the rest. */
	r = exchange_cpus(fs, path, CONTROL_CPUS, cpus, &a, &kept, err);
	if (r >= 0 && !cpuset_eq(&kept, cpus))
		r = err_set(err, EIO, "cgroup %s: wrote CPUs " PRI_STR ", kernel kept " PRI_STR,
			    path, FMT_STR(cpuset_format(cpus, &a)),
			    FMT_STR(cpuset_format(&kept, &a)));
	arena_done(&a);
	return r;
}

int cgroup_set_mems(const struct cgroup_fs *fs, const char *path, uint64_t nodes, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	const struct cpuset set = { .w = { nodes } };
	struct cpuset kept;
	int r;

	arena_init(&a, 0);
	if (!nodes)
		return err_set(err, EINVAL, "cgroup %s: refusing an empty set of memory nodes",
			       path);
	r = exchange_cpus(fs, path, CONTROL_MEMS, &set, &a, &kept, err);
	if (r >= 0 && !cpuset_eq(&kept, &set))
		r = err_set(err, EIO,
			    "cgroup %s: wrote memory nodes " PRI_STR ", kernel kept others", path,
			    FMT_STR(cpuset_format(&set, &a)));
	return r;
}

int cgroup_set_shares(const struct cgroup_fs *fs, const char *path, uint64_t shares,
		      struct err *err)
{
	return cgroup_set_weight(fs, path, cgroup_weight_expected(fs, shares), err);
}

/* v1 silently moves a number into its range (2 to 262144), v2 refuses one outside 1 to 10000. */
int cgroup_set_weight(const struct cgroup_fs *fs, const char *path, uint64_t weight,
		      struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str kept_text;
	uint64_t kept;
	char text[24];
	int r;

	arena_init(&a, 0);
	(void)snprintf(text, sizeof(text), "%" PRIu64, weight);
	r = exchange_control(fs, path, CONTROL_WEIGHT, str_from(text), &a, &kept_text, err);
	if (r >= 0)
		r = parse_weight(kept_text, path, &kept, err);
	if (r >= 0 && kept != weight)
		r = err_set(err, EIO, "cgroup %s: wrote weight %s, kernel kept %" PRIu64, path,
			    text, kept);
	return r;
}

static int write_quota_v1(const struct cgroup_fs *fs, const char *path, int64_t quota_us,
			  uint64_t period_us, struct err *err)
{
	char quota[24], period[24];
	int r;

	(void)snprintf(quota, sizeof(quota), "%" PRId64, quota_us);
	(void)snprintf(period, sizeof(period), "%" PRIu64, period_us);
	/* The kernel checks the pair against the parent at every step; with the quota lifted first,
	 * no intermediate pair can be refused. */
	r = write_control(fs, path, CONTROL_QUOTA, STR("-1"), err);
	if (r >= 0)
		r = write_control(fs, path, CONTROL_PERIOD, str_from(period), err);
	if (r >= 0 && quota_us >= 0)
		r = write_control(fs, path, CONTROL_QUOTA, str_from(quota), err);
	return r;
}

static int write_quota_v2(const struct cgroup_fs *fs, const char *path, int64_t quota_us,
			  uint64_t period_us, struct err *err)
{
	char text[48];

	if (quota_us < 0) /* with the period: "max" alone would keep the old one */
		(void)snprintf(text, sizeof(text), "max %" PRIu64, period_us);
	else
		(void)snprintf(text, sizeof(text), "%" PRId64 " %" PRIu64, quota_us, period_us);
	return write_control(fs, path, CONTROL_QUOTA, str_from(text), err);
}

int cgroup_set_quota(const struct cgroup_fs *fs, const char *path, int64_t quota_us,
		     uint64_t period_us, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cgroup_cpu kept;
	int r;

	arena_init(&a, 0);
	if (quota_us < 0) /* any negative number: the value read back has one form only */
		quota_us = CGROUP_UNLIMITED;
	r = fs->version == CGROUP_V2 ? write_quota_v2(fs, path, quota_us, period_us, err) :
				       write_quota_v1(fs, path, quota_us, period_us, err);
	if (r >= 0)
		r = read_quota(fs, path, &a, &kept, err);
	if (r >= 0 && (kept.quota_us != quota_us || kept.period_us != period_us))
		r = err_set(err, EIO,
			    "cgroup %s: wrote quota %" PRId64 "/%" PRIu64 ", kernel kept %" PRId64
			    "/%" PRIu64,
			    path, quota_us, period_us, kept.quota_us, kept.period_us);
	return r;
}

/* --- tasks and children --- */

/* cgroup.procs moves all threads of the process. On v1 it is in one cgroup per tree. */
int cgroup_attach(const struct cgroup_fs *fs, const char *path, pid_t pid, struct err *err)
{
	char file[PATH_MAX], text[24];
	int trees[] = { fs->cpu_fd, fs->cpuset_fd };
	int r;

	r = control_path(fs, path, CONTROL_PROCS, file, err);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	for (size_t i = 0; r >= 0 && i < (fs->version == CGROUP_V2 ? 1 : ARRAY_LEN(trees)); i++)
		r = file_write_value_at(trees[i], file, str_from(text), err);
	if (r < 0)
		return err_wrap(err, "cgroup: attach process %s", text);
	return 0;
}

int cgroup_procs(const struct cgroup_fs *fs, const char *path, struct arena *a, pid_t **ret,
		 size_t *ret_n, struct err *err)
{
	char file[PATH_MAX];
	struct str_split split;
	struct str text, line;
	pid_t *pids;
	size_t n = 0;
	int r;

	r = control_path(fs, path, CONTROL_PROCS, file, err);
	/* Not file_read_value_at(): a list longer than a page arrives in several short reads. */
	if (r >= 0)
		r = file_read_at(fs->cpuset_fd, file, PROCS_MAX, a, &text, err);
	if (r < 0)
		return err_wrap(err, "cgroup");
	pids = arena_array(a, pid_t, text.n / 2 + 1); /* a digit and a newline each */
	if (!pids)
		return err_set(err, ENOMEM, "cgroup %s: not enough memory", path);
	split = str_split(text);
	while (str_next(&split, '\n', &line)) {
		uint64_t pid;

		if (str_to_u64(line, INT32_MAX, &pid))
			pids[n++] = (pid_t)pid;
	}
	*ret = pids;
	*ret_n = n;
	return 0;
}

int cgroup_children(const struct cgroup_fs *fs, const char *path, struct arena *a, struct str **ret,
		    size_t *ret_n, struct err *err)
{
	struct str *names;
	size_t n, kept = 0;
	int r;

	r = file_list_at(fs->cpuset_fd, *path ? path : ".", a, &names, &n, err);
	if (r < 0)
		return err_wrap(err, "cgroup");
	for (size_t i = 0; i < n; i++) {
		struct str below =
			str_printf(a, "%s/" PRI_STR, *path ? path : ".", FMT_STR(names[i]));

		if (cgroup_exists(fs, str_cstr(a, below)))
			names[kept++] = names[i];
	}
	*ret = names;
	*ret_n = kept;
	return 0;
}

/* --- weights --- */

/* docs/reference/cgroups.md#shares-and-weight */
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define WEIGHT_MAX 10000

uint64_t cgroup_weight_from_shares(uint64_t shares)
{
	double l, exponent;

	if (shares <= SHARES_MIN)
		return 1;
	if (shares >= SHARES_MAX)
		return WEIGHT_MAX;
	if (shares == 1024) /* the one value that is whole before rounding up: 100 on any libm */
		return 100;
	l = log2((double)shares);
	exponent = (l * l + 125 * l) / 612.0 - 7.0 / 34.0;
	return (uint64_t)ceil(pow(10, exponent));
}

uint64_t cgroup_weight_from_shares_linear(uint64_t shares)
{
	if (shares <= SHARES_MIN)
		return 1;
	if (shares >= SHARES_MAX)
		return WEIGHT_MAX;
	return 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN);
}

/* Of containers: pods have the linear weight (cpu_settings.h). */
uint64_t cgroup_weight_expected(const struct cgroup_fs *fs, uint64_t shares)
{
	return fs->version == CGROUP_V2 ? cgroup_weight_from_shares(shares) : shares;
}
