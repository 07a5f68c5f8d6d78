/* Checks from another process that no CPU is in the cpusets of two pools at any time.
 *
 *	cpuset_sampler GROUP:FILE...     until SIGTERM; then prints what it saw
 *
 * Files of one GROUP may overlap, those of two must not. One look at hundreds of files takes a
 * while, so a value counts only when the look before and the look after agree on it: then it stood
 * there at the moment between the two, together with all others that did. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "cpu/cpuset.h"

#define GROUPS_MAX 64

struct sample {
	const char *name;
	unsigned group;
	int fd;
	char text[2][256];
};

static volatile sig_atomic_t is_over;

static void on_term(int number)
{
	(void)number;
	is_over = 1;
}

static void look(struct sample *s, size_t n, int which)
{
	for (size_t i = 0; i < n; i++) {
		const ssize_t got =
			pread(s[i].fd, s[i].text[which], sizeof(s[i].text[which]) - 1, 0);

		s[i].text[which][got > 0 ? got : 0] = 0;
	}
}

/* The number of CPUs in two groups at once; prints them. */
static unsigned count_overlaps(const struct sample *s, size_t n)
{
	static struct cpuset of[GROUPS_MAX];
	unsigned bad = 0;

	memset(of, 0, sizeof(of));
	for (size_t i = 0; i < n; i++) {
		struct cpuset cpus;

		if (strcmp(s[i].text[0], s[i].text[1]) == 0 &&
		    cpuset_parse_kernel(str_from(s[i].text[0]), &cpus, NULL) == 0)
			cpuset_union(&of[s[i].group], &cpus);
	}
	for (unsigned x = 0; x < GROUPS_MAX; x++)
		for (unsigned y = x + 1; y < GROUPS_MAX; y++)
			if (cpuset_intersects(&of[x], &of[y])) {
				bad++;
				fprintf(stderr, "groups %u and %u share a CPU\n", x, y);
			}
	return bad;
}

int main(int argc, char **argv)
{
	const size_t n = (size_t)argc - 1;
	struct sample *s = calloc(n + 1, sizeof(*s));
	unsigned long n_looks = 0, n_changes = 0, n_bad = 0;

	if (!s || argc < 2)
		exit(2);
	(void)signal(SIGTERM, on_term);
	for (size_t i = 0; i < n; i++) {
		char *colon = strchr(argv[i + 1], ':');

		if (!colon)
			exit(2);
		s[i].group = (unsigned)strtoul(argv[i + 1], NULL, 10) % GROUPS_MAX;
		s[i].fd = open(colon + 1, O_RDONLY | O_CLOEXEC);
		if (s[i].fd < 0) {
			fprintf(stderr, "%s: %s\n", colon + 1, strerror(errno));
			exit(2);
		}
	}
	look(s, n, 0);
	printf("watching %zu files\n", n);
	(void)fflush(stdout);
	while (!is_over) {
		look(s, n, 1);
		n_bad += count_overlaps(s, n);
		for (size_t i = 0; i < n; i++)
			n_changes += strcmp(s[i].text[0], s[i].text[1]) != 0;
		for (size_t i = 0; i < n; i++)
			memcpy(s[i].text[0], s[i].text[1], sizeof(s[i].text[0]));
		n_looks++;
	}
	printf("%lu looks, %lu changes seen, %lu overlaps\n", n_looks, n_changes, n_bad);
	free(s);
	return n_bad > 0;
}
