/* GET /metrics, /healthz and /readyz. A replica that waits for the Lease is ready, too: otherwise a
 * Deployment with two replicas would never be available. */

#include "base/macro.h"
#include "net/prometheus.h"
#include "operator_private.h"

static void add_kinds(const struct operator_daemon *op, struct strbuf *b, const char *name,
		      const char *type, const char *help,
		      uint64_t (*value)(const struct operator_daemon *op, enum operator_kind kind))
{
	prometheus_family(b, name, type, help);
	for (enum operator_kind kind = 0; kind < OPERATOR_WATCHED; kind++) {
		const struct prometheus_label labels[] = { { "kind", operator_kinds[kind].name },
							   { 0 } };

		if (operator_watches(op, kind))
			prometheus_uint(b, name, labels, value(op, kind));
	}
}

static uint64_t n_objects(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->stores[kind].n;
}

static uint64_t age_s(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->is_acting ? operator_watch_age_ms(op, kind) / 1000 : 0;
}

static uint64_t n_lists(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->informers[kind].watch.lists;
}

static uint64_t n_watches(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->informers[kind].watch.watches;
}

static uint64_t n_too_old(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->informers[kind].watch.too_old;
}

static uint64_t n_failures(const struct operator_daemon *op, enum operator_kind kind)
{
	return op->informers[kind].watch.failures;
}

static void add_watches(const struct operator_daemon *op, struct strbuf *b)
{
	add_kinds(op, b, "pinfold_state_objects", "gauge", "Objects that decisions use", n_objects);
	add_kinds(op, b, "pinfold_cache_age_seconds", "gauge",
		  "Time since the cache was last known to be current", age_s);
	add_kinds(op, b, "pinfold_cache_lists_total", "counter", "Lists read from the API server",
		  n_lists);
	add_kinds(op, b, "pinfold_watch_starts_total", "counter", "Watches started or resumed",
		  n_watches);
	add_kinds(op, b, "pinfold_watch_too_old_total", "counter",
		  "Watches that had to list again because the resource version was too old",
		  n_too_old);
	add_kinds(op, b, "pinfold_watch_failures_total", "counter", "Lists and watches that failed",
		  n_failures);
}

static void add_writes(const struct operator_daemon *op, struct strbuf *b)
{
	const char *name = "pinfold_operator_writes_total";

	prometheus_family(b, name, "counter",
			  "Requests on behalf of a decision, by what they write or read");
	for (size_t i = 0; i < op->writer.n_counts; i++)
		for (enum write_result r = 0; r < WRITE_RESULT__COUNT; r++) {
			const struct write_count *c = &op->writer.counts[i];
			const struct prometheus_label labels[] = {
				{ "what", c->what }, { "result", write_result_name(r) }, { 0 }
			};

			if (c->n[r])
				prometheus_uint(b, name, labels, c->n[r]);
		}
}

static void add_rollout(const struct operator_daemon *op, struct strbuf *b)
{
	static const struct {
		const char *state;
		enum rollout_step first, last;
	} states[] = { { "waiting", ROLLOUT_WAITS, ROLLOUT_WAITS },
		       { "draining", ROLLOUT_CORDON, ROLLOUT_DRAIN },
		       { "granted", ROLLOUT_GRANT, ROLLOUT_APPLIES },
		       { "ending", ROLLOUT_WITHDRAW, ROLLOUT_UNCORDON } };
	const char *name = "pinfold_operator_rollout_nodes";

	prometheus_family(b, name, "gauge", "Nodes with a change that disturbs them, by state");
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		const struct prometheus_label labels[] = { { "state", states[i].state }, { 0 } };
		uint64_t n = 0;

		for (enum rollout_step step = states[i].first; step <= states[i].last; step++)
			n += op->figures.steps[step];
		prometheus_uint(b, name, labels, n);
	}
	prometheus_one(b, "pinfold_operator_reboot_nodes", "gauge",
		       "Nodes with a change that waits for a reboot by others",
		       op->figures.n_reboot);
}

static void add_profiles(const struct operator_daemon *op, struct strbuf *b)
{
	const char *nodes = "pinfold_profile_nodes", *condition = "pinfold_profile_condition";

	prometheus_family(b, nodes, "gauge", "Nodes of a profile, by state");
	for (size_t i = 0; i < op->memory.n_profiles; i++) {
		const struct profile_memory *p = &op->memory.profiles[i];
		const struct {
			const char *state;
			size_t n;
		} counts[] = { { "selected", p->status.nodes.selected },
			       { "ready", p->status.nodes.ready },
			       { "pending", p->status.nodes.pending },
			       { "conflicting", p->status.nodes.conflicting } };

		for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
			const struct prometheus_label labels[] = { { "profile", p->name },
								   { "state", counts[k].state },
								   { 0 } };

			prometheus_uint(b, nodes, labels, counts[k].n);
		}
	}
	prometheus_family(b, condition, "gauge", "1 when the condition of the profile is true");
	for (size_t i = 0; i < op->memory.n_profiles; i++)
		for (enum profile_condition c = 0; c < PROFILE_CONDITION__COUNT; c++) {
			const struct profile_memory *p = &op->memory.profiles[i];
			const struct prometheus_label labels[] = { { "profile", p->name },
								   { "condition",
								     profile_condition_name(c) },
								   { 0 } };

			prometheus_uint(b, condition, labels,
					p->status.conditions[c].status == CONDITION_TRUE);
		}
}

static void add_permissions(const struct operator_daemon *op, struct strbuf *b)
{
	prometheus_one(b, "pinfold_operator_allowed_namespaces", "gauge",
		       "Namespaces in the digest of permissions", op->figures.namespaces_allowed);
	prometheus_one(b, "pinfold_operator_digest_too_large", "gauge",
		       "1 while the permissions do not fit, and agents watch the namespaces",
		       op->figures.is_digest_too_large);
}

static void add_findings(const struct operator_daemon *op, struct strbuf *b)
{
	const char *name = "pinfold_operator_findings";

	prometheus_family(b, name, "gauge", "Objects that a cluster check found");
	for (enum cluster_check check = 0; check < CLUSTER_CHECK__COUNT; check++) {
		const struct prometheus_label labels[] = {
			{ "check", cluster_checks[check].reason }, { 0 }
		};

		prometheus_uint(b, name, labels, op->figures.findings[check]);
	}
}

static struct str metrics(const struct operator_daemon *op, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	prometheus_one(&b, "pinfold_operator_leader", "gauge", "1 on the replica that acts",
		       op->is_acting && leader_is(&op->leader));
	prometheus_one(&b, "pinfold_operator_reconciles_total", "counter",
		       "Times that everything was decided anew", op->reconciles);
	prometheus_family(&b, "pinfold_operator_reconcile_seconds_total", "counter",
			  "CPU time spent on that, without requests");
	prometheus_double(&b, "pinfold_operator_reconcile_seconds_total", NULL,
			  (double)op->reconcile_us / 1e6);
	prometheus_one(&b, "pinfold_operator_request_failures_total", "counter",
		       "Requests to the API server that failed and are retried", op->failures.n);
	add_rollout(op, &b);
	add_profiles(op, &b);
	add_permissions(op, &b);
	add_findings(op, &b);
	add_writes(op, &b);
	add_watches(op, &b);
	prometheus_process(&b);
	return strbuf_str(&b);
}

static const char *missing(const struct operator_daemon *op)
{
	if (op->leave_until_ms)
		return "shutting down\n";
	if (!op->is_acting)
		/* The Lease was read: the API server and the permissions are there. */
		return *op->leader.record ? NULL : "the Lease was not read yet\n";
	return operator_watch_is_synced(op) ? NULL : "caches are not synchronized\n";
}

void operator_handle(const struct small_request *received, struct small_response *response,
		     void *context)
{
	const struct operator_daemon *op = context;
	const struct http_request *request = &received->http;
	struct http_response *ret = &response->http;
	const char *why;

	*ret = (struct http_response){ .status = 200,
				       .content_type = "text/plain",
				       .body = STR("ok\n") };
	if (!str_eq(request->method, STR("GET"))) {
		ret->status = 405;
		ret->body = STR("GET only\n");
	} else if (str_eq(request->path, STR("/metrics"))) {
		ret->content_type = PROMETHEUS_CONTENT_TYPE;
		ret->body = metrics(op, request->arena);
	} else if (str_eq(request->path, STR("/readyz"))) {
		why = missing(op);
		if (why) {
			ret->status = 503;
			ret->body = str_from(why);
		}
	} else if (!str_eq(request->path, STR("/healthz"))) {
		ret->status = 404;
		ret->body = STR("paths: /metrics, /healthz, /readyz\n");
	}
}
