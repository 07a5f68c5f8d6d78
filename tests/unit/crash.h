#pragma once

/* Crashes at an exact point: runs a function in a process of its own and kills it, without warning,
 * before its Nth system call. What it had done by then is what a power cut or kill -9 leaves. */

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

typedef void (*crash_fn)(void *data);

#define CRASH_NO_PTRACE 77 /* exit status; emulated processes cannot be traced */

/* True when it was killed; false when it finished with fewer calls. */
static inline bool crash_run(crash_fn run, void *data, unsigned n_calls)
{
	bool is_entry = false;
	unsigned n = 0;
	pid_t pid;
	int status;

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(CRASH_NO_PTRACE); /* a stop would be for ever */
		(void)raise(SIGSTOP);
		run(data);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CRASH_NO_PTRACE)
		TEST_SKIP("processes cannot be traced here");
	CHECK(WIFSTOPPED(status));
	for (;;) {
		CHECK(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFEXITED(status)) {
			CHECK_INT(WEXITSTATUS(status), 0);
			return false;
		}
		CHECK(WIFSTOPPED(status));
		is_entry = !is_entry;
		if (!is_entry || n++ < n_calls)
			continue;
		CHECK(kill(pid, SIGKILL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		return true;
	}
}
