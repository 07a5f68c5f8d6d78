/* The seccomp filter as an allowlist: a kernel may get new system calls, and those are refused
 * without a change here. */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/err.h"
#include "base/macro.h"
#include "confine.h"

/* What the C library, libuv, OpenSSL and the sanitizers call while a daemon serves. Not here:
 * starting programs, mounting, tracing, changing credentials, loading kernel modules. */
static const int common_calls[] = {
	/* sockets */
	SCMP_SYS(accept4),
	SCMP_SYS(bind),
	SCMP_SYS(connect),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(listen),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	/* descriptors and files, reading */
	SCMP_SYS(access),
	SCMP_SYS(close),
	SCMP_SYS(dup),
	SCMP_SYS(dup3),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(fcntl),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(getcwd),
	SCMP_SYS(getdents64),
	SCMP_SYS(lseek),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(pipe2),
	SCMP_SYS(pread64),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(readv),
	SCMP_SYS(stat),
	SCMP_SYS(statx),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	/* waiting */
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(futex),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(inotify_add_watch),
	SCMP_SYS(inotify_init1),
	SCMP_SYS(inotify_rm_watch),
	SCMP_SYS(nanosleep),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(time),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	/* memory, threads, signals */
	SCMP_SYS(brk),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(get_robust_list),
	SCMP_SYS(getcpu),
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(getrandom),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(madvise),
	SCMP_SYS(membarrier),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rseq),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_yield),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(setrlimit),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
};

/* The ledger, records of containers, static pods and affinities. */
static const int agent_calls[] = {
	SCMP_SYS(fchmod),
	SCMP_SYS(fchown),
	SCMP_SYS(fdatasync),
	SCMP_SYS(flock),
	SCMP_SYS(fsync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(rmdir),
	SCMP_SYS(sched_setaffinity),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
};

/* Calls of which only a part is allowed, by one or two arguments. */
struct call_rule {
	int call;
	unsigned n;
	struct scmp_arg_cmp args[2];
};

#define TYPE_MASK 0xf /* of socket(), without SOCK_CLOEXEC and SOCK_NONBLOCK */
#define SOCKET_RULE(family, type)                                                                  \
	{                                                                                          \
		SCMP_SYS(socket), 2,                                                               \
		{                                                                                  \
			{ 0, SCMP_CMP_EQ, (family), 0 },                                           \
				{ 1, SCMP_CMP_MASKED_EQ, TYPE_MASK, (type) },                      \
		}                                                                                  \
	}
#define THREAD_FLAGS (CLONE_VM | CLONE_THREAD)

static const struct call_rule rules[] = {
	SOCKET_RULE(AF_UNIX, SOCK_STREAM),
	SOCKET_RULE(AF_UNIX, SOCK_DGRAM),
	SOCKET_RULE(AF_INET, SOCK_STREAM),
	SOCKET_RULE(AF_INET, SOCK_DGRAM),
	SOCKET_RULE(AF_INET6, SOCK_STREAM),
	SOCKET_RULE(AF_INET6, SOCK_DGRAM),
	{ SCMP_SYS(socketpair), 1, { { 0, SCMP_CMP_EQ, AF_UNIX, 0 } } },
	/* No new code: what is executable was mapped before. */
	{ SCMP_SYS(mmap), 1, { { 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0 } } },
	{ SCMP_SYS(mprotect), 1, { { 2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0 } } },
	/* Threads, no processes: libuv starts its pool for getaddrinfo() only when a name is
	 * resolved first. */
	{ SCMP_SYS(clone), 1, { { 0, SCMP_CMP_MASKED_EQ, THREAD_FLAGS, THREAD_FLAGS } } },
	/* Of libuv and isatty(). */
	{ SCMP_SYS(ioctl), 1, { { 1, SCMP_CMP_EQ, FIONBIO, 0 } } },
	{ SCMP_SYS(ioctl), 1, { { 1, SCMP_CMP_EQ, FIOCLEX, 0 } } },
	{ SCMP_SYS(ioctl), 1, { { 1, SCMP_CMP_EQ, FIONREAD, 0 } } },
	{ SCMP_SYS(ioctl), 1, { { 1, SCMP_CMP_EQ, TCGETS, 0 } } },
	{ SCMP_SYS(prlimit64), 1, { { 0, SCMP_CMP_EQ, 0, 0 } } }, /* of this process */
};

static int add_calls(scmp_filter_ctx filter, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (calls[i] >= 0) /* negative: not on this architecture */
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

static int add_rules(scmp_filter_ctx filter)
{
	/* abort() signals this process. */
	struct scmp_arg_cmp self = { 0, SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0 };
	int r;

	r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, &self);
	for (size_t i = 0; i < ARRAY_LEN(rules) && r == 0; i++)
		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, rules[i].n,
					   rules[i].args);
	/* Its flags are in memory, which a filter cannot read. After ENOSYS the C library calls
	 * clone(). */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return r;
}

static int build(scmp_filter_ctx filter, enum confine_role role)
{
	int r;

	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); /* for all threads */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE,
			       2); /* a binary tree instead of a list */
	/* Before Linux 5.16 a filter also makes the CPU slower, against side channels of foreign
	 * code in the process. There is none. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	r = add_calls(filter, common_calls, ARRAY_LEN(common_calls));
	if (r == 0 && role == CONFINE_AGENT)
		r = add_calls(filter, agent_calls, ARRAY_LEN(agent_calls));
	return r < 0 ? r : add_rules(filter);
}

static int load(scmp_filter_ctx filter, struct err *err)
{
	int r = seccomp_load(filter);

	seccomp_release(filter);
	return r < 0 ? err_set(err, -r, "seccomp: %s", strerror(-r)) : 0;
}

int confine_io_uring(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (!filter)
		return err_set(err, ENOMEM, "seccomp: out of memory");
	/* libuv takes this for a kernel without io_uring, and uses epoll. */
	(void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0);
	return load(filter, err);
}

int confine_syscalls(enum confine_role role, struct err *err)
{
	/* An error, not a kill: a call that a newer C library makes should fail one operation, not
	 * end a daemon on every node. libseccomp also sets no_new_privs. */
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return err_set(err, ENOMEM, "seccomp: out of memory");
	r = build(filter, role);
	if (r == 0)
		return load(filter, err);
	seccomp_release(filter);
	return err_set(err, -r, "seccomp: %s", strerror(-r));
}
