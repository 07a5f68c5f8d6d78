#pragma once

/* What a daemon gives up after start-up, so that a bug in its parsers gives an attacker as little
 * as possible: system calls, capabilities, and write access to files. Each is irrevocable. They
 * also set no_new_privs. Addresses and read access to files are not restricted. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* The agent also writes files and sets the affinity of other processes. */
enum confine_role { CONFINE_WEBHOOK, CONFINE_AGENT };

/* Before the first event loop exists: libuv since 1.45 uses io_uring where the kernel has it, and
 * aborts when confine_syscalls() refuses it later. */
int confine_io_uring(struct err *err);

/* A seccomp filter for all threads of the process. Refused with EPERM: starting programs,
 * executable memory, sockets other than Unix, TCP and UDP, processes and namespaces of its own,
 * tracing, credentials, mounts. */
int confine_syscalls(enum confine_role role, struct err *err);

/* Keeps the capabilities of this set, as far as the process has them, and drops the others. The
 * caller has one thread; later ones inherit. */
int confine_capabilities(uint64_t keep, struct err *err);

#define CONFINE_CAP(number) (UINT64_C(1) << (number))

struct confine_path {
	const char *path;    /* a directory */
	bool is_for_sockets; /* only sockets are created and removed */
};

struct confine_files {
	const struct confine_path *writable;
	size_t n;
	bool may_bind; /* TCP ports */
};

/* Landlock rules: no file can be written, created, removed or executed outside of these
 * directories, no process outside can be signalled or traced, and no TCP port can be bound. Returns
 * the version of the kernel's interface, which restricts the more the newer it is; 0 when the
 * kernel has none. The caller has one thread; later ones inherit. */
int confine_files(const struct confine_files *files, struct err *err);
