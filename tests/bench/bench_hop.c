/* What privilege separation would add to each operation (D32): a message to another process and its
 * answer, over a Unix socket, with both processes on one CPU and on two. */

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20000
#define MESSAGE 256 /* a cgroup path, a control file and a value */

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bind_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void answer(int fd)
{
	char message[MESSAGE];

	while (recv(fd, message, sizeof(message), 0) > 0)
		(void)send(fd, message, 8, 0);
	_exit(0);
}

static void measure(const char *name, unsigned here, unsigned there)
{
	static uint64_t times[ROUNDS];
	char message[MESSAGE] = { 0 };
	size_t p50, p99;
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return;
	child = fork();
	if (child == 0) {
		(void)close(pair[0]);
		bind_to(there);
		answer(pair[1]);
	}
	(void)close(pair[1]);
	bind_to(here);
	for (int i = 0; i < ROUNDS; i++) {
		const uint64_t began = now_ns();

		(void)send(pair[0], message, sizeof(message), 0);
		(void)recv(pair[0], message, sizeof(message), 0);
		times[i] = now_ns() - began;
	}
	(void)close(pair[0]);
	(void)waitpid(child, NULL, 0);
	qsort(times, ROUNDS, sizeof(*times), by_value);
	p50 = ROUNDS / 2;
	p99 = ROUNDS * 99 / 100;
	(void)printf("one message and its answer, %s: p50 %.1f us, p99 %.1f us\n", name,
		     (double)times[p50] / 1000, (double)times[p99] / 1000);
}

int main(void)
{
	measure("both processes on one CPU", 0, 0);
	measure("on two CPUs", 0, 1);
	return 0;
}
