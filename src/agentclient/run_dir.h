#pragma once

/* Names in the agent's run directory, for the agent itself and for programs that talk to it. */

#define AGENT_RUN_DIR "/run/pinfold"
#define AGENT_STATUS_FILE "status.json"
#define AGENT_LEDGER_FILE "ledger.json"
#define AGENT_LOCK_FILE "agent.lock"
#define AGENT_SOCKET "agent.sock"
