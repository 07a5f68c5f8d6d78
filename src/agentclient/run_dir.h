#pragma once

/* The agent's run directory and the names in it, for the agent itself and for programs that talk to
 * it. */

struct err;

#define AGENT_RUN_DIR "/run/pinfold"
#define AGENT_STATE_DIR "/var/lib/pinfold" /* survives a reboot */
#define AGENT_STATUS_FILE "status.json"
#define AGENT_LEDGER_FILE "ledger.json"
#define AGENT_LOCK_FILE "agent.lock"
#define AGENT_SOCKET "agent.sock"

/* Creates the directory when it is missing. */
int run_dir_open(const char *path, int *ret_fd, struct err *err);
