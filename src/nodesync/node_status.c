/* The link to the cluster, for people and Prometheus. */

#include "base/macro.h"
#include "net/prometheus.h"
#include "node_sync.h"

void node_sync_describe(const struct node_sync *l, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *cluster = doc_put_obj(doc, root, STR("cluster"));

	doc_put_str(doc, cluster, STR("node"), l->name);
	doc_put_bool(doc, cluster, STR("connected"), l->is_open && l->node_watch.is_current);
	doc_put_bool(doc, cluster, STR("registered"), l->observed.exists);
	doc_put_bool(doc, cluster, STR("namespacesKnown"), l->allowlist.is_known);
	doc_put_int(doc, cluster, STR("permittedNamespaces"), (int64_t)l->allowlist.n);
}

void node_sync_metrics(const struct node_sync *l, struct strbuf *b)
{
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
		{ "pinfold_cluster_connected", "gauge", "Whether our Node is being followed.",
		  l->is_open && l->node_watch.is_current },
		{ "pinfold_permitted_namespaces", "gauge",
		  "Namespaces whose pods may run on the reserved CPUs.", l->allowlist.n },
		{ "pinfold_node_status_patches_total", "counter",
		  "Writes of our resources and condition, heartbeats included.",
		  l->stats.status_patches },
		{ "pinfold_node_taint_patches_total", "counter", "Writes of our taint.",
		  l->stats.taint_patches },
		{ "pinfold_cluster_failures_total", "counter",
		  "Answers of the API server that were none or not what was hoped for.",
		  l->stats.failures },
		{ "pinfold_events_sent_total", "counter", "Events written.", l->events.sent },
		{ "pinfold_events_dropped_total", "counter",
		  "Events for which there was no room in memory.", l->events.dropped },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		prometheus_family(b, rows[i].name, rows[i].type, rows[i].help);
		prometheus_uint(b, rows[i].name, NULL, rows[i].value);
	}
}
