#pragma once

/* The agent's status document, for `status`, `verify` and `map`, and its metrics. The document is
 * also written to the status file, so that these commands work while no agent runs. */

#include <yyjson.h>

#include "base/str.h"

struct arena;
struct manager;

/* {"runtime":{...},"mode":"pools","pools":{"management":{"cpus":"0-1",...},...},"containers":[...],
 * "pods":[...],"counters":{...}} */
yyjson_mut_val *status_describe(const struct manager *m, yyjson_mut_doc *doc, struct arena *a);

void status_metrics(const struct manager *m, struct strbuf *b);
