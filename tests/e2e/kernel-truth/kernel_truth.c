/* kernel_truth DIRECTORY [MS]: what the kernel does with the processes in the cgroups below
 *DIRECTORY, from its own files. It shares no code with Pinfold and asks no daemon, so that it can
 *contradict them.
 *
 * One line for each cgroup with threads, fields separated by tabs:
 *
 *	PATH THREADS ALLOWED CPUSET QUOTA PERIOD WEIGHT USAGE PERIODS/THROTTLED
 *
 * PATH is relative to DIRECTORY. ALLOWED is the union of the CPUs on which its threads may run
 *(/proc/TID/status), CPUSET the effective cpuset. QUOTA is "max" without one. WEIGHT is cpu.weight,
 *with cgroup v1 cpu.shares. USAGE is CPU time in microseconds, and PERIODS/THROTTLED how often the
 *quota was checked and exceeded. With MS it repeats every MS milliseconds until it is ended; the
 *line "end MILLISECONDS" (of CLOCK_MONOTONIC) follows each round.
 *
 * On cgroup v1 DIRECTORY is in the cpuset hierarchy, and the cpu hierarchy is beside it. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CPUS = 1024, MAX_PATH = 4096, MAX_VALUE = 4096 };

struct cpus {
	bool has[MAX_CPUS];
};

static void cpus_add(struct cpus *c, const char *list)
{
	char *end;

	for (const char *p = list; *p >= '0' && *p <= '9'; p = *end == ',' ? end + 1 : end) {
		unsigned long from = strtoul(p, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (unsigned long i = from; i <= to && i < MAX_CPUS; i++)
			c->has[i] = true;
	}
}

static void cpus_print(const struct cpus *c)
{
	const char *separator = "";

	for (unsigned i = 0; i < MAX_CPUS; i++) {
		unsigned last = i;

		if (!c->has[i])
			continue;
		while (last + 1 < MAX_CPUS && c->has[last + 1])
			last++;
		printf("%s%u", separator, i);
		if (last > i)
			printf("-%u", last);
		separator = ",";
		i = last;
	}
	if (!*separator)
		putchar('-');
}

/* The file's first line, or "-" when it does not exist: cgroups and threads end while they are
 * read. */
static const char *first_line(char buf[static MAX_VALUE], const char *dir, const char *name)
{
	char path[MAX_PATH];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f || !fgets(buf, MAX_VALUE, f))
		strcpy(buf, "-");
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
	return *buf ? buf : "-";
}

/* The number after KEY in a file of lines "KEY NUMBER", or 0. */
static uint64_t number_of(const char *dir, const char *name, const char *key)
{
	char path[MAX_PATH], line[256];
	const size_t len = strlen(key);
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ' ')
			n = strtoull(line + len, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static bool thread_allowed(const char *tid, struct cpus *c)
{
	char path[64], line[MAX_VALUE];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Cpus_allowed_list:\t", 19)) {
			cpus_add(c, line + 19);
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

static unsigned threads_allowed(const char *dir, struct cpus *c)
{
	static const char *const names[] = { "cgroup.threads", "tasks" };
	unsigned n = 0;

	for (size_t i = 0; i < 2; i++) {
		char path[MAX_PATH], tid[64];
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		f = fopen(path, "re");
		if (!f)
			continue;
		while (fgets(tid, sizeof(tid), f)) {
			tid[strcspn(tid, "\n")] = '\0';
			n += thread_allowed(tid, c);
		}
		fclose(f);
		break;
	}
	return n;
}

static void print_settings_v2(const char *dir)
{
	char a[MAX_VALUE], *period;

	first_line(a, dir, "cpuset.cpus.effective");
	printf("\t%s", a);
	first_line(a, dir, "cpu.max");
	period = strchr(a, ' ');
	if (period)
		*period++ = '\0';
	printf("\t%s\t%s", a, period ? period : "-");
	printf("\t%s", first_line(a, dir, "cpu.weight"));
	printf("\t%llu", (unsigned long long)number_of(dir, "cpu.stat", "usage_usec"));
}

/* DIR is in the hierarchy of cpuset; that of cpu has the same path below another mount. */
static void print_settings_v1(const char *dir)
{
	char a[MAX_VALUE], other[MAX_PATH];
	const char *at = strstr(dir, "/cpuset/");

	printf("\t%s", first_line(a, dir, "cpuset.effective_cpus"));
	snprintf(other, sizeof(other), "%.*s/cpu/%s", at ? (int)(at - dir) : 0, dir,
		 at ? at + 8 : "");
	first_line(a, other, "cpu.cfs_quota_us");
	printf("\t%s", strcmp(a, "-1") ? a : "max");
	printf("\t%s", first_line(a, other, "cpu.cfs_period_us"));
	printf("\t%s", first_line(a, other, "cpu.shares"));
	printf("\t0");
}

static void print_cgroup(const char *dir, const char *relative)
{
	struct cpus allowed = { 0 };
	const unsigned n = threads_allowed(dir, &allowed);
	char buf[MAX_VALUE];

	if (n == 0)
		return;
	printf("%s\t%u\t", *relative ? relative : ".", n);
	cpus_print(&allowed);
	if (!strcmp(first_line(buf, dir, "cpuset.effective_cpus"), "-"))
		print_settings_v2(dir);
	else
		print_settings_v1(dir);
	printf("\t%llu/%llu\n", (unsigned long long)number_of(dir, "cpu.stat", "nr_periods"),
	       (unsigned long long)number_of(dir, "cpu.stat", "nr_throttled"));
}

static void walk(const char *dir, size_t root_len)
{
	const char *relative = dir + root_len;
	struct dirent *e;
	DIR *d;

	print_cgroup(dir, *relative == '/' ? relative + 1 : relative);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		char path[MAX_PATH];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < sizeof(path))
			walk(path, root_len);
	}
	if (d)
		closedir(d);
}

int main(int argc, char **argv)
{
	const long every_ms = argc == 3 ? atol(argv[2]) : 0;
	struct timespec now, pause = { every_ms / 1000, every_ms % 1000 * 1000000 };
	struct stat st;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: kernel_truth DIRECTORY [MS]\n");
		return 2;
	}
	if (every_ms == 0 && stat(argv[1], &st) < 0) {
		fprintf(stderr, "kernel_truth: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	do {
		walk(argv[1], strlen(argv[1]));
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (every_ms > 0)
			printf("end %lld\n", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
		if (fflush(stdout) < 0)
			return 1;
		if (every_ms > 0)
			nanosleep(&pause, NULL);
	} while (every_ms > 0);
	return 0;
}
