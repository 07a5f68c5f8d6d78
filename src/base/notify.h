#pragma once

/* Sends a state to the service manager (sd_notify(3)). Does nothing without $NOTIFY_SOCKET. */

void notify_manager(const char *state); /* "READY=1", "WATCHDOG=1", "STOPPING=1" */
