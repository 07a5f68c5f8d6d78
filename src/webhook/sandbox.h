#pragma once

/* After start-up the webhook needs few system calls: this takes the others away from all threads.
 * Whoever takes over the process cannot start another program, open a raw socket or trace. */

struct err;

int sandbox_enter(struct err *err);
