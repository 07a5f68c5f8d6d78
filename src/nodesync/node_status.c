/* node_sync for `pinfold status` and Prometheus. */

#include "base/macro.h"
#include "kube/names.h"
#include "net/prometheus.h"
#include "node_sync.h"

static bool is_connected(const struct node_sync *s)
{
	return s->connection.is_open && s->node_watch.watch.is_current;
}

static size_t allowed_namespaces(const struct node_sync *s)
{
	return namespace_allowlist_count(&s->permissions.namespaces.allowlist,
					 STR(NAME_TYPE_MANAGEMENT));
}

void node_sync_describe(const struct node_sync *s, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *cluster = doc_put_obj(doc, root, STR("cluster"));

	doc_put_str(doc, cluster, STR("node"), s->connection.node_name);
	doc_put_bool(doc, cluster, STR("connected"), is_connected(s));
	doc_put_bool(doc, cluster, STR("registered"), s->writer.observed.exists);
	doc_put_bool(doc, cluster, STR("namespacesKnown"),
		     s->permissions.namespaces.allowlist.is_known);
	doc_put_int(doc, cluster, STR("allowedNamespaces"), (int64_t)allowed_namespaces(s));
	doc_put_str(doc, cluster, STR("permissionsFrom"),
		    str_from(permission_origin_name(s->permissions.origin)));
}

void node_sync_metrics(const struct node_sync *s, struct strbuf *b)
{
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
		{ "pinfold_cluster_connected", "gauge",
		  "Whether the watch of the Node is established.", is_connected(s) },
		{ "pinfold_allowed_namespaces", "gauge",
		  "Namespaces whose pods may run on the management CPUs.", allowed_namespaces(s) },
		{ "pinfold_permissions_from_digest", "gauge",
		  "Whether the permissions of namespaces come from the operator's digest.",
		  s->permissions.origin == PERMISSIONS_FROM_DIGEST },
		{ "pinfold_node_status_patches_total", "counter",
		  "Writes of resources and condition to the Node, heartbeats included.",
		  s->writer.n_written[NODE_WRITE_STATUS] },
		{ "pinfold_node_taint_patches_total", "counter", "Writes of the taint to the Node.",
		  s->writer.n_written[NODE_WRITE_TAINT] },
		{ "pinfold_nodepartition_writes_total", "counter",
		  "Writes of the NodePartition's status.", s->partition.n_written },
		{ "pinfold_cluster_failures_total", "counter", "Failed requests to the API server.",
		  s->failures.n },
		{ "pinfold_events_sent_total", "counter", "Events created.", s->events.queue.sent },
		{ "pinfold_events_dropped_total", "counter",
		  "Events dropped because the queue was full.", s->events.queue.dropped },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		prometheus_family(b, rows[i].name, rows[i].type, rows[i].help);
		prometheus_uint(b, rows[i].name, NULL, rows[i].value);
	}
}
