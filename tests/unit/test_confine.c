#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "test.h"

/* What an attacker does with code that runs inside of a daemon. Each attempt runs in a process of
 * its own, which is confined first, and returns 0 or the errno. */
typedef int (*attempt_fn)(void);

static char writable[64], outside[64]; /* directories; "" outside of make_directories() */

static int errno_of(long r)
{
	return r < 0 ? errno : 0;
}

static void confine(enum confine_role role)
{
	const struct confine_path path = { writable, false };
	struct err err = { 0 };

	if (confine_files(&(struct confine_files){ .writable = &path, .n = *writable ? 1 : 0 },
			  &err) < 0 ||
	    confine_capabilities(CONFINE_CAP(CAP_SYS_NICE), &err) < 0 ||
	    confine_syscalls(role, &err) < 0) {
		(void)dprintf(STDERR_FILENO, "# %s\n", err.msg);
		_exit(250);
	}
}

/* Skips a test: emulated processes have no seccomp filters. */
static void need_seccomp(void)
{
	const uint32_t action = SECCOMP_RET_KILL_PROCESS;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		TEST_SKIP("the kernel has no seccomp filters");
}

static int attempt_as(enum confine_role role, attempt_fn attempt)
{
	int status = -1;
	pid_t child;

	need_seccomp();
	child = fork();
	if (child == 0) {
		confine(role);
		_exit(attempt());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Both roles give the same result. */
#define CHECK_ATTEMPT(attempt, want)                                                               \
	do {                                                                                       \
		TEST_ROW(#attempt);                                                                \
		CHECK_INT(attempt_as(CONFINE_WEBHOOK, attempt), want);                             \
		CHECK_INT(attempt_as(CONFINE_AGENT, attempt), want);                               \
	} while (0)

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

/* --- code --- */

static int start_program(void)
{
	char *argv[] = { NULL };

	return errno_of(execv("/bin/true", argv));
}

static int start_program_by_descriptor(void)
{
	char *argv[] = { NULL };

	return errno_of(
		syscall(SYS_execveat, open("/bin/true", O_RDONLY), "", argv, argv, AT_EMPTY_PATH));
}

static int start_process(void)
{
	return errno_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int make_namespace(void)
{
	return errno_of(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

TEST(attack_a_confined_daemon_starts_a_program)
{
	CHECK_ATTEMPT(start_program, EPERM);
	CHECK_ATTEMPT(start_program_by_descriptor, EPERM);
	CHECK_ATTEMPT(start_process, EPERM);
	CHECK_ATTEMPT(make_namespace, EPERM);
}

static int map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) == MAP_FAILED ?
		       errno :
		       0;
}

static int make_data_executable(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? 1 : errno_of(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

/* Through /proc the protection of pages does not matter. */
static int overwrite_code(void)
{
	return errno_of(open("/proc/self/mem", O_RDWR));
}

TEST(attack_a_confined_daemon_runs_code_of_its_own)
{
	CHECK_ATTEMPT(map_code, EPERM);
	CHECK_ATTEMPT(make_data_executable, EPERM);
	if (has_landlock())
		CHECK_ATTEMPT(overwrite_code, EACCES);
}

static void *do_nothing(void *argument)
{
	return argument;
}

static int start_thread(void)
{
	pthread_t thread;
	const int r = pthread_create(&thread, NULL, do_nothing, NULL);

	return r ? r : pthread_join(thread, NULL);
}

TEST(a_confined_daemon_starts_threads)
{
	CHECK_ATTEMPT(start_thread, 0);
}

/* --- sockets --- */

static int set_up_io_uring(void)
{
	struct err err = { 0 };

	if (confine_io_uring(&err) < 0)
		return 250;
	return errno_of(syscall(SYS_io_uring_setup, 1, NULL));
}

/* With another error than "no such system call" libuv would not use epoll instead. */
TEST(a_daemon_has_no_io_uring)
{
	int status = -1;
	pid_t child;

	need_seccomp();
	child = fork();
	if (child == 0)
		_exit(set_up_io_uring());
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ENOSYS);
}

TEST(attack_a_confined_daemon_opens_another_kind_of_socket)
{
	static const struct {
		int family, type, want;
	} rows[] = {
		{ AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0 },
		{ AF_UNIX, SOCK_DGRAM, 0 },
		{ AF_INET, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0 },
		{ AF_INET6, SOCK_STREAM, 0 },
		{ AF_UNIX, SOCK_SEQPACKET, EPERM },
		{ AF_INET, SOCK_RAW, EPERM },
		{ AF_NETLINK, SOCK_RAW, EPERM },
		{ AF_NETLINK, SOCK_DGRAM, EPERM },
		{ AF_PACKET, SOCK_RAW, EPERM },
		{ AF_ALG, SOCK_SEQPACKET, EPERM },
		{ AF_VSOCK, SOCK_STREAM, EPERM },
	};

	need_seccomp();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			confine(CONFINE_AGENT);
			_exit(errno_of(socket(rows[i].family, rows[i].type, 0)));
		}
		TEST_ROW("family %d, type %d", rows[i].family, rows[i].type);
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
		/* A kernel without IPv6 has its own error. */
		if (rows[i].want || WEXITSTATUS(status) != EAFNOSUPPORT)
			CHECK_INT(WEXITSTATUS(status), rows[i].want);
	}
}

/* --- other processes --- */

static int trace_parent(void)
{
	return errno_of(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int read_memory_of_parent(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	return errno_of(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
}

static int signal_parent(void)
{
	return errno_of(kill(getppid(), 0));
}

static int type_into_terminal(void)
{
	return errno_of(ioctl(STDIN_FILENO, TIOCSTI, "x"));
}

static int read_files_of_parent(void)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)getppid());
	return errno_of(open(path, O_RDONLY));
}

TEST(attack_a_confined_daemon_controls_another_process)
{
	CHECK_ATTEMPT(trace_parent, EPERM);
	CHECK_ATTEMPT(read_memory_of_parent, EPERM);
	CHECK_ATTEMPT(signal_parent, EPERM);
	CHECK_ATTEMPT(type_into_terminal, EPERM);
	if (has_landlock())
		CHECK_ATTEMPT(read_files_of_parent, EACCES);
}

static int set_affinity_of_parent(void)
{
	cpu_set_t set;

	if (sched_getaffinity(getppid(), sizeof(set), &set) < 0)
		return errno;
	return errno_of(sched_setaffinity(getppid(), sizeof(set), &set));
}

TEST(only_the_agent_sets_the_affinity_of_other_processes)
{
	CHECK_INT(attempt_as(CONFINE_AGENT, set_affinity_of_parent), 0);
	CHECK_INT(attempt_as(CONFINE_WEBHOOK, set_affinity_of_parent), EPERM);
}

/* --- credentials and files --- */

static int become_another_user(void)
{
	return errno_of(setresuid(65534, 65534, 65534));
}

static int mount_file_system(void)
{
	return errno_of(mount("none", "/mnt", "tmpfs", 0, NULL));
}

static int read_file_of_another_user(void)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "%s/secret", outside);
	return errno_of(open(path, O_RDONLY));
}

/* Permitted, effective and inheritable. */
static int count_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct words[2];

	if (syscall(SYS_capget, &head, words) < 0)
		return 255;
	return __builtin_popcount(words[0].permitted | words[0].effective | words[0].inheritable) +
	       __builtin_popcount(words[1].permitted | words[1].effective | words[1].inheritable);
}

static int in_child_with_capabilities_dropped(attempt_fn attempt)
{
	struct err err = { 0 };
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(confine_capabilities(CONFINE_CAP(CAP_SYS_NICE), &err) < 0 ? 250 : attempt());
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void make_directories(void)
{
	char path[80];
	int fd;

	(void)snprintf(writable, sizeof(writable), "/tmp/confine-in-XXXXXX");
	(void)snprintf(outside, sizeof(outside), "/tmp/confine-out-XXXXXX");
	CHECK(mkdtemp(writable) && mkdtemp(outside));
	(void)snprintf(path, sizeof(path), "%s/secret", outside);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	if (geteuid() == 0)
		CHECK(fchown(fd, 65534, 65534) == 0);
	(void)close(fd);
}

static void remove_directories(void)
{
	char command[200];

	(void)snprintf(command, sizeof(command), "rm -rf %s %s", writable, outside);
	CHECK(system(command) == 0);
	*writable = *outside = '\0';
}

/* Before the filter, which refuses the same: each has to hold without the other. */
TEST(attack_a_confined_daemon_uses_the_capabilities_of_root)
{
	if (geteuid() != 0)
		TEST_SKIP("only root has capabilities");
	make_directories();
	CHECK_INT(in_child_with_capabilities_dropped(count_capabilities), 1);
	CHECK_INT(in_child_with_capabilities_dropped(become_another_user), EPERM);
	CHECK_INT(in_child_with_capabilities_dropped(mount_file_system), EPERM);
	CHECK_INT(in_child_with_capabilities_dropped(read_file_of_another_user), EACCES);
	CHECK_ATTEMPT(become_another_user, EPERM);
	CHECK_ATTEMPT(mount_file_system, EPERM);
	remove_directories();
}

static int create_in(const char *dir)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "%s/new", dir);
	return errno_of(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
}

static int create_outside(void)
{
	return create_in(outside);
}

static int create_inside(void)
{
	return create_in(writable);
}

static int remove_outside(void)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "%s/secret", outside);
	return errno_of(unlink(path));
}

static int rename_out(void)
{
	char from[80], to[80];

	(void)create_inside();
	(void)snprintf(from, sizeof(from), "%s/new", writable);
	(void)snprintf(to, sizeof(to), "%s/moved", outside);
	return errno_of(rename(from, to));
}

static int write_through_link(void)
{
	char link_path[80];

	(void)snprintf(link_path, sizeof(link_path), "%s/link", writable);
	return errno_of(open(link_path, O_WRONLY));
}

TEST(attack_a_confined_agent_writes_outside_of_its_directories)
{
	char link_path[80], target[80];

	if (!has_landlock())
		TEST_SKIP("the kernel has no Landlock");
	make_directories();
	(void)snprintf(link_path, sizeof(link_path), "%s/link", writable);
	(void)snprintf(target, sizeof(target), "%s/secret", outside);
	CHECK(symlink(target, link_path) == 0);
	CHECK_INT(attempt_as(CONFINE_AGENT, create_inside), 0);
	CHECK_INT(attempt_as(CONFINE_AGENT, create_outside), EACCES);
	CHECK_INT(attempt_as(CONFINE_AGENT, remove_outside), EACCES);
	CHECK_INT(attempt_as(CONFINE_AGENT, write_through_link), EACCES);
	TEST_ROW("rename");
	CHECK(attempt_as(CONFINE_AGENT, rename_out) != 0);
	remove_directories();
}
