/* A library for LD_PRELOAD that lets C library calls fail:
 *
 *	PINFOLD_FAULT="write 7 ENOSPC"		the 7th call of write() fails
 *	PINFOLD_FAULT="read %3 EINTR"		every 3rd call fails
 *
 * PINFOLD_FAULT_COUNT names a file: when the process ends, it gets the number of calls. Standard
 * output and standard error never fail, so that messages can be read. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
	char call[24];
	unsigned long at;
	bool repeats;
	int error;
	atomic_ulong *n; /* shared with the file of PINFOLD_FAULT_COUNT */
} fault;

static atomic_ulong own_count;

static uintptr_t program_start, program_size;

/* The first object is the program. */
static int note_program(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			program_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			program_size = info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static const struct {
	const char *name;
	int value;
} errors[] = { { "EIO", EIO },	     { "ENOSPC", ENOSPC },
	       { "EROFS", EROFS },   { "EINTR", EINTR },
	       { "ENOMEM", ENOMEM }, { "EMFILE", EMFILE },
	       { "EACCES", EACCES }, { "ECONNREFUSED", ECONNREFUSED } };

__attribute__((constructor)) static void fault_init(void)
{
	const char *text = getenv("PINFOLD_FAULT"), *count = getenv("PINFOLD_FAULT_COUNT");
	char at[24] = "", error[24] = "";
	int fd;

	fault.n = &own_count;
	(void)dl_iterate_phdr(note_program, NULL);
	if (!text || sscanf(text, "%23s %23s %23s", fault.call, at, error) != 3)
		return;
	fault.repeats = at[0] == '%';
	fault.at = strtoul(at + fault.repeats, NULL, 10);
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (strcmp(error, errors[i].name) == 0)
			fault.error = errors[i].value;
	fd = count ? open(count, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0 && ftruncate(fd, sizeof(*fault.n)) == 0) {
		void *shared =
			mmap(NULL, sizeof(*fault.n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (shared != MAP_FAILED)
			fault.n = shared;
	}
	if (fd >= 0)
		(void)close(fd);
}

static bool fails(const char *call)
{
	unsigned long n;

	if (!fault.error || strcmp(call, fault.call) != 0)
		return false;
	n = atomic_fetch_add(fault.n, 1) + 1;
	if (fault.repeats ? n % fault.at != 0 : n != fault.at)
		return false;
	errno = fault.error;
	return true;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Not an event loop's own descriptors: an eventfd cannot fail. */
static bool is_file_or_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

ssize_t read(int fd, void *buf, size_t n)
{
	return is_file_or_socket(fd) && fails("read") ? -1 : NEXT(read)(fd, buf, n);
}

ssize_t write(int fd, const void *buf, size_t n)
{
	return fd > 2 && is_file_or_socket(fd) && fails("write") ? -1 : NEXT(write)(fd, buf, n);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
	return fd > 2 && fails("write") ? -1 : NEXT(writev)(fd, iov, n);
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	return fails("send") ? -1 : NEXT(send)(fd, buf, n, flags);
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	return fails("recv") ? -1 : NEXT(recv)(fd, buf, n, flags);
}

int fsync(int fd)
{
	return fails("fsync") ? -1 : NEXT(fsync)(fd);
}

int rename(const char *from, const char *to)
{
	return fails("rename") ? -1 : NEXT(rename)(from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return fails("rename") ? -1 : NEXT(renameat)(from_fd, from, to_fd, to);
}

int connect(int fd, const struct sockaddr *a, socklen_t n)
{
	return fails("connect") ? -1 : NEXT(connect)(fd, a, n);
}

int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	return fails("accept") ? -1 : NEXT(accept4)(fd, a, n, flags);
}

int socket(int domain, int type, int protocol)
{
	return fails("socket") ? -1 : NEXT(socket)(domain, type, protocol);
}

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails("open") ? -1 : NEXT(open64)(path, flags, mode);
}

int openat64(int fd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_of(flags, ap);
	va_end(ap);
	return fails("open") ? -1 : NEXT(openat64)(fd, path, flags, mode);
}

/* Only allocations of the program itself: hwloc, for one, dereferences what it could not get.
 * dlsym() may allocate, so these call the C library by its other names. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static bool fails_in_program(const void *caller)
{
	return (uintptr_t)caller - program_start < program_size && fails("malloc");
}

void *malloc(size_t n)
{
	return fails_in_program(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return fails_in_program(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return fails_in_program(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}
