/* The seccomp filter as an allowlist: a kernel may get new system calls, and those are refused
 * without a change here. */

#include "sandbox.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include <seccomp.h>

#include "base/err.h"
#include "base/macro.h"

/* What the C library, libuv, OpenSSL and the sanitizers call while the webhook serves. Not here:
 * starting programs, mounting, tracing, changing credentials, loading kernel modules. */
static const int allowed[] = {
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
	SCMP_SYS(socket),
	SCMP_SYS(socketpair),
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
	SCMP_SYS(ioctl),
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
	/* For threads: libuv starts its pool for getaddrinfo() only when a name is resolved first.
	 * A forked process would have the same filter. */
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
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
	SCMP_SYS(mmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	SCMP_SYS(prlimit64),
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
	SCMP_SYS(tgkill),
	SCMP_SYS(uname),
};

int sandbox_enter(struct err *err)
{
	/* An error, not a kill: a call that a newer C library makes should fail one operation, not
	 * end admission for the cluster. libseccomp also sets no_new_privs. */
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = 0;

	if (!filter)
		return err_set(err, ENOMEM, "seccomp: out of memory");
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC,
			       1); /* for the serving threads as well */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE,
			       2); /* a binary tree instead of a list */
	for (size_t i = 0; i < ARRAY_LEN(allowed) && r >= 0; i++)
		if (allowed[i] >= 0) /* negative: not on this architecture */
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	if (r < 0)
		return err_set(err, -r, "seccomp: %s (--no-seccomp turns it off)", strerror(-r));
	return 0;
}
