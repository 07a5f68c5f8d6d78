#pragma once

/* What the agent gives up after start-up (confine/confine.h, D32). */

struct agent_config;
struct err;

/* Before the first thread is started, and after sockets are open: they cannot be opened later. */
int agent_confine(const struct agent_config *config, struct err *err);
