#pragma once

/* A systemd for tests, in a child process: serves ROOT/run/systemd/private or the system bus, and
 * does for SetUnitProperties what systemd does: writes ROOT/cgroup/UNIT/cpuset.cpus, and a file of
 * the property. "refused.slice" gets an error, and so does everything while ROOT/refuse exists. */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "cpu/cpuset.h"
#include "rpc/dbus.h"
#include "test.h"

struct fake_systemd {
	pid_t pid;
};

static inline void fake_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f)
		_exit(9);
	(void)fputs(text, f);
	(void)fclose(f);
}

/* The body is "sba(sv)" with one property, so everything has its place. */
static inline void fake_set(const char *root, const struct dbus_message *m, struct arena *a)
{
	const char *unit = m->body.p + 4;
	size_t at = 4 + strlen(unit) + 1;
	char path[512];
	struct cpuset cpus = { 0 };
	size_t n;

	at = (at + 3) / 4 * 4 + 4;		/* the boolean */
	at = (at + 3) / 4 * 4 + 4;		/* the length of the array */
	at = (at + 7) / 8 * 8 + 4 + 11 + 1 + 4; /* "AllowedCPUs" and the signature "ay" */
	at = (at + 3) / 4 * 4;
	if (at + 4 > m->body.n || !memmem(m->body.p, at, "AllowedCPUs\0\2ay", 15))
		_exit(8);
	n = (unsigned char)m->body.p[at];
	at += 4;
	for (size_t i = 0; i < n * 8 && at + i / 8 < m->body.n; i++)
		if (m->body.p[at + i / 8] >> (i % 8) & 1)
			cpuset_add(&cpus, (unsigned)i);
	(void)snprintf(path, sizeof(path), "%s/cgroup/%s/cpuset.cpus", root, unit);
	if (!cpuset_is_empty(&cpus)) /* the kernel refuses to empty it */
		fake_write(path, str_cstr(a, cpuset_format(&cpus, a)));
	(void)snprintf(path, sizeof(path), "%s/run/systemd/system.control/%s.d", root, unit);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/run/systemd/system.control/%s.d/50-AllowedCPUs.conf",
		       root, unit);
	fake_write(path, "x");
}

/* A start or restart of a unit gives it another invocation ID. The units of kernel arguments do
 * what the script does that they run. Each call is a line of ROOT/calls. */
static inline void fake_job(const char *root, const struct dbus_message *m)
{
	static unsigned n;
	const char *unit = m->body.p + 4;
	char path[512], from[512], id[32];
	FILE *calls;

	(void)snprintf(path, sizeof(path), "%s/calls", root);
	calls = fopen(path, "a");
	if (!calls)
		_exit(9);
	(void)fprintf(calls, "%s\n", unit);
	(void)fclose(calls);
	(void)snprintf(path, sizeof(path), "%s/run/systemd/units/invocation:%s", root, unit);
	(void)snprintf(id, sizeof(id), "start-%u", ++n);
	if (unlink(path) == 0 && symlink(id, path) < 0)
		_exit(9);
	(void)snprintf(from, sizeof(from), "%s/etc/pinfold/kernel-args", root);
	(void)snprintf(path, sizeof(path), "%s/etc/pinfold/kernel-args.applied", root);
	if (strncmp(unit, "pinfold-kernel-args@", 20) == 0)
		(void)unlink(path);
	if (strcmp(unit, "pinfold-kernel-args@update.service") == 0 && link(from, path) < 0)
		_exit(9);
}

/* "+UNIT" or "-UNIT" is a line of ROOT/enabled. The body is an array with one unit, then two
 * booleans to enable it and one to disable it. */
static inline void fake_enable(const char *root, const struct dbus_message *m)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/enabled", root);
	f = fopen(path, "a");
	if (!f)
		_exit(9);
	(void)fprintf(f, "%c%s\n", str_eq(m->signature, STR("asbb")) ? '+' : '-', m->body.p + 8);
	(void)fclose(f);
}

static inline bool fake_refuses(const char *root)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/refuse", root);
	return access(path, F_OK) == 0;
}

static inline void fake_reply(int fd, const struct dbus_message *m, bool is_error, struct arena *a)
{
	struct dbus_array fields;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, is_error ? (struct str){ "l\3\1\1", 4 } : (struct str){ "l\2\1\1", 4 });
	dbus_add_u32(&b, is_error ? 12 : 0);
	dbus_add_u32(&b, 99);
	fields = dbus_begin_array(&b, 8);
	strbuf_addc(&b, 5);
	dbus_add_signature(&b, STR("u"));
	dbus_add_u32(&b, m->serial);
	if (is_error) {
		dbus_align(&b, 8);
		strbuf_addc(&b, 8);
		dbus_add_signature(&b, STR("g"));
		dbus_add_signature(&b, STR("s"));
	}
	dbus_end_array(&b, fields);
	dbus_align(&b, 8);
	if (is_error)
		dbus_add_string(&b, STR("no unit"));
	if (write(fd, b.p, b.n) != (ssize_t)b.n)
		return; /* the client has ended */
}

static inline void fake_serve(const char *root, int fd)
{
	char bytes[65536];
	size_t n = 0;
	ssize_t got;
	struct arena a;

	arena_init(&a, 0);
	/* Nothing may follow before the answer: systemd would not see it. */
	got = read(fd, bytes, sizeof(bytes));
	if (got < 10 || memcmp(bytes + got - 7, "BEGIN\r\n", 7) != 0 ||
	    write(fd, "OK 0123\r\n", 9) != 9)
		_exit(6);
	while ((got = read(fd, bytes + n, sizeof(bytes) - n)) > 0) {
		struct dbus_message m;
		size_t size;

		n += (size_t)got;
		while (dbus_parse((struct str){ bytes, n }, &m, &size, NULL) == 1) {
			const bool is_set = str_eq(m.signature, STR("sba(sv)"));
			const bool refuses = fake_refuses(root) ||
					     (is_set && strcmp(m.body.p + 4, "refused.slice") == 0);

			if (is_set && !refuses)
				fake_set(root, &m, &a);
			if (str_eq(m.signature, STR("ss")) && !refuses)
				fake_job(root, &m);
			if (str_starts(m.signature, STR("asb")) && !refuses)
				fake_enable(root, &m);
			fake_reply(fd, &m, refuses, &a);
			memmove(bytes, bytes + size, n -= size);
		}
	}
}

static inline struct fake_systemd fake_systemd_start(const char *root, const char *socket_path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct fake_systemd f;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s%s", root, socket_path);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	      listen(fd, 5) == 0);
	f.pid = fork();
	CHECK(f.pid >= 0);
	if (f.pid == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check fails */
		for (;;) {
			const int client = accept(fd, NULL, NULL);

			if (client < 0)
				_exit(1);
			fake_serve(root, client);
			(void)close(client);
		}
	}
	(void)close(fd);
	return f;
}

static inline void fake_systemd_stop(struct fake_systemd *f)
{
	int status;

	CHECK(kill(f->pid, SIGKILL) == 0 && waitpid(f->pid, &status, 0) == f->pid);
	CHECK(WIFSIGNALED(status)); /* not by a failed expectation of its own */
}
