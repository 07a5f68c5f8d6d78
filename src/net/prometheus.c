/* Writes metrics as text, when they are scraped. The counters themselves are where they are
 * counted. */

#include "prometheus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"

void prometheus_family(struct strbuf *b, const char *name, const char *type, const char *help)
{
	strbuf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_escaped(struct strbuf *b, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			strbuf_add(b, STR("\\n"));
		else if (*value == '"' || *value == '\\')
			strbuf_printf(b, "\\%c", *value);
		else
			strbuf_addc(b, *value);
	}
}

static void add_label(struct strbuf *b, const struct prometheus_label *label, bool *any)
{
	strbuf_printf(b, "%s%s=\"", *any ? "," : "{", label->name);
	add_escaped(b, label->value);
	strbuf_addc(b, '"');
	*any = true;
}

static void add_name(struct strbuf *b, const char *name, const char *suffix,
		     const struct prometheus_label *labels, const struct prometheus_label *extra)
{
	bool any = false;

	strbuf_printf(b, "%s%s", name, suffix);
	for (; labels && labels->name; labels++)
		add_label(b, labels, &any);
	if (extra)
		add_label(b, extra, &any);
	strbuf_add(b, any ? STR("} ") : STR(" "));
}

void prometheus_uint(struct strbuf *b, const char *name, const struct prometheus_label *labels,
		     uint64_t value)
{
	add_name(b, name, "", labels, NULL);
	strbuf_printf(b, "%llu\n", (unsigned long long)value);
}

void prometheus_double(struct strbuf *b, const char *name, const struct prometheus_label *labels,
		       double value)
{
	add_name(b, name, "", labels, NULL);
	strbuf_printf(b, "%.9g\n", value);
}

void prometheus_one(struct strbuf *b, const char *name, const char *type, const char *help,
		    uint64_t value)
{
	prometheus_family(b, name, type, help);
	prometheus_uint(b, name, NULL, value);
}

void prometheus_histogram(struct strbuf *b, const char *name, const struct prometheus_label *labels,
			  const struct prometheus_histogram *h)
{
	uint64_t total = 0;
	char bound[32];

	for (size_t i = 0; i <= h->n_bounds; i++) {
		struct prometheus_label le = { "le", "+Inf" };

		if (i < h->n_bounds) {
			(void)snprintf(bound, sizeof(bound), "%.9g", (double)h->bounds_ns[i] / 1e9);
			le.value = bound;
		}
		/* A bucket of the format includes all smaller ones, and the last one, "+Inf",
		 * equals _count. */
		total += h->counts[i];
		add_name(b, name, "_bucket", labels, &le);
		strbuf_printf(b, "%llu\n", (unsigned long long)total);
	}
	add_name(b, name, "_sum", labels, NULL);
	strbuf_printf(b, "%.9g\n", (double)h->sum_ns / 1e9);
	add_name(b, name, "_count", labels, NULL);
	strbuf_printf(b, "%llu\n", (unsigned long long)total);
}

/* A field of /proc/self/stat, from number 3 on: they follow the command's name, which may have
 * blanks and parentheses. */
static uint64_t stat_field(unsigned number)
{
	char text[1024];
	FILE *f = fopen("/proc/self/stat", "re");
	char *p, *rest;
	size_t n;

	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	p = strrchr(text, ')');
	p = p ? strtok_r(p + 1, " ", &rest) : NULL;
	for (unsigned i = 3; p && i < number; i++)
		p = strtok_r(NULL, " ", &rest);
	return p ? strtoull(p, NULL, 10) : 0;
}

static uint64_t open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n > 3 ? n - 3 : 0; /* without ".", ".." and the descriptor of `dir` */
}

static double start_time(void)
{
	struct timespec now, boot;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	/* The kernel gives the start time in ticks since boot, with the time of suspension
	 * included, as CLOCK_BOOTTIME counts it. */
	return (double)(now.tv_sec - boot.tv_sec) +
	       (double)stat_field(22) / (double)sysconf(_SC_CLK_TCK);
}

void prometheus_process(struct strbuf *b)
{
	struct rusage usage = { 0 };

	(void)getrusage(RUSAGE_SELF, &usage);
	prometheus_family(b, "process_cpu_seconds_total", "counter", "CPU time used");
	prometheus_double(b, "process_cpu_seconds_total", NULL,
			  (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				  (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	prometheus_one(b, "process_resident_memory_bytes", "gauge", "Resident memory",
		       stat_field(24) * (uint64_t)sysconf(_SC_PAGESIZE));
	prometheus_one(b, "process_open_fds", "gauge", "Open file descriptors", open_descriptors());
	prometheus_family(b, "process_start_time_seconds", "gauge", "When the process started");
	prometheus_double(b, "process_start_time_seconds", NULL, start_time());
}
