/* hwloc trusts its XML: a damaged file can crash it or keep it busy. Untrusted bytes are therefore
 * parsed in a child process, which returns the machine as JSON through a pipe. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "topology_read.h"

#define CHILD_MAX_SECONDS 30
#define RESULT_MAX ((size_t)16 << 20)

/* A crash leaves no core file and calls no handler that the program has installed. */
static void confine(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		(void)signal(fatal[i], SIG_DFL);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	(void)setrlimit(RLIMIT_CPU, &(struct rlimit){ CHILD_MAX_SECONDS, CHILD_MAX_SECONDS });
	/* Messages of hwloc or of a sanitizer about the file are not for the user. */
	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
}

/* Writes JSON (exit status 0) or an error message (1). Never returns. */
static void run_child(int fd, struct str text, struct str file)
{
	struct topology t;
	struct err err = { 0 };
	struct arena a;
	struct str response;

	confine();
	arena_init(&a, 0);
	if (topology_parse(text, file, &a, &t, &err) == 0 &&
	    doc_write(topology_to_doc(&t, doc_build(&a), &a), false, &a, &response, &err) == 0)
		_exit(file_write_fd(fd, response) == 0 ? 0 : 2);
	(void)file_write_fd(fd, str_from(err.msg));
	_exit(1);
}

int topology_parse_child(struct str text, struct str file, struct arena *a, struct topology *ret,
			 struct err *err)
{
	int pipes[2], status = 0, r;
	struct str response = { 0 };
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	/* No exec: the child has the text in memory already. It leaves with _exit(), so that no
	 * buffer is flushed twice and no exit handler runs. */
	child = fork();
	if (child == 0)
		run_child(pipes[1], text, file);
	/* Before reading: as long as the parent has this end open, the pipe never ends. */
	(void)close(pipes[1]);
	r = child < 0 ? err_set(err, errno, "fork: %s", strerror(errno)) :
			file_read_fd(pipes[0], "hwloc's result", RESULT_MAX, a, &response, err);
	(void)close(pipes[0]);
	if (child < 0)
		return r;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		return err_set(err, EINVAL, PRI_STR, FMT_STR(response));
	/* A signal: a crash, or the end of CHILD_MAX_SECONDS of CPU time. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, EINVAL, PRI_STR ": hwloc crashed on this file: it is damaged",
			       FMT_STR(file));
	return topology_parse_json(response, file, a, ret, err);
}
