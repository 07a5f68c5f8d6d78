#pragma once

/* A seccomp filter for all threads of the webhook after start-up: a compromised process cannot
 * start a program, load code into the kernel or trace another process. It does not restrict files
 * or addresses. */

struct err;

int sandbox_enter(struct err *err);
