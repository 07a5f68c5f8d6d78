#pragma once

/* What the agent knows, for others: a document for `status`, `verify` and `map`, and metrics. The
 * document is also what stands in the status file, so that tools work while no agent runs. */

#include <yyjson.h>

#include "base/str.h"

struct arena;
struct manager;

/* {"runtime":{...},"mode":"pools","pools":{"reserved":{"cpus":"0-1",...},...},"containers":[...],
 * "pods":[...],"counters":{...}} */
yyjson_mut_val *status_describe(const struct manager *m, yyjson_mut_doc *doc, struct arena *a);

void status_metrics(const struct manager *m, struct strbuf *b);
