#pragma once

/* Tells the service manager how we are (sd_notify(3)): nothing happens without one. */

void notify_manager(const char *state); /* "READY=1", "WATCHDOG=1", "STOPPING=1" */
