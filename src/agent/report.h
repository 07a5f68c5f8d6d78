#pragma once

/* What the agent knows, for others: a document for `status`, `verify` and `map`, and metrics. The
 * document is also what stands in the status file, so that tools work while no agent runs. */

#include <yyjson.h>

#include "base/str.h"

struct arena;
struct manager;

#define REPORT_STATUS_FILE "status.json"
#define REPORT_LEDGER_FILE "ledger.json"
#define REPORT_LOCK_FILE "agent.lock"
#define REPORT_SOCKET "agent.sock"
#define REPORT_RUN_DIR "/run/pinfold"

/* {"runtime":{...},"mode":"pools","pools":{"reserved":{"cpus":"0-1",...},...},"containers":[...],
 * "pods":[...],"counters":{...}} */
yyjson_mut_val *report_status(const struct manager *m, yyjson_mut_doc *doc, struct arena *a);

void report_metrics(const struct manager *m, struct strbuf *b);
