/* Reads, decides and writes the text of a Lease. Times in it are compared only as texts, to see
 * that the holder has renewed it: clocks of machines differ. */

#include "lease.h"

#include <time.h>

#include "base/arena.h"

struct lease lease_of(yyjson_val *object)
{
	yyjson_val *spec = doc_get(object, STR("spec"));
	struct lease l = {
		.exists = object != NULL,
		.holder = doc_str(doc_get(spec, STR("holderIdentity"))),
		.renewed = doc_str(doc_get(spec, STR("renewTime"))),
		.acquired = doc_str(doc_get(spec, STR("acquireTime"))),
		.version = doc_str(doc_find(object, "/metadata/resourceVersion")),
		.duration_s = LEASE_DURATION_S,
	};

	(void)doc_int(doc_get(spec, STR("leaseDurationSeconds")), &l.duration_s);
	(void)doc_int(doc_get(spec, STR("leaseTransitions")), &l.transitions);
	return l;
}

enum lease_action lease_decide(const struct lease *l, struct str identity, uint64_t unchanged_ms)
{
	uint64_t duration_ms = l->duration_s > 0 ? (uint64_t)l->duration_s * 1000 : 0;

	if (!l->exists)
		return LEASE_CREATE;
	/* Also after a restart with the same identity, or when the response to an earlier write was
	 * lost. */
	if (str_eq(l->holder, identity))
		return LEASE_RENEW;
	/* The holder's own duration counts: it may be of another version with another setting. */
	if (!l->holder.n || unchanged_ms > duration_ms)
		return LEASE_TAKE;
	return LEASE_WAIT;
}

bool lease_is_held(uint64_t renewed_ms, uint64_t now_ms)
{
	/* Ends 5 s before others may take the Lease: time for a request that the holder has just
	 * sent. */
	return renewed_ms && now_ms - renewed_ms < LEASE_HOLD_MS;
}

/* Kubernetes' MicroTime. */
static struct str format_time(int64_t us, struct arena *a)
{
	time_t s = (time_t)(us / 1000000);
	struct tm tm;

	(void)gmtime_r(&s, &tm);
	return str_printf(a, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900,
			  tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
			  (int)(us % 1000000));
}

int lease_write(const struct lease *l, enum lease_action action, const struct lease_write *w,
		struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *object = yyjson_mut_obj(m), *meta, *spec;
	struct str now = format_time(w->now_us, a);

	doc_put_str(m, object, STR("apiVersion"), STR("coordination.k8s.io/v1"));
	doc_put_str(m, object, STR("kind"), STR("Lease"));
	meta = doc_put_obj(m, object, STR("metadata"));
	doc_put_str(m, meta, STR("name"), w->name);
	doc_put_str(m, meta, STR("namespace"), w->namespace);
	/* The server refuses the write with 409 if the object has another version by now. */
	if (l->exists)
		doc_put_str(m, meta, STR("resourceVersion"), l->version);
	spec = doc_put_obj(m, object, STR("spec"));
	doc_put_str(m, spec, STR("holderIdentity"), w->identity);
	doc_put_int(m, spec, STR("leaseDurationSeconds"), LEASE_DURATION_S);
	doc_put_str(m, spec, STR("acquireTime"),
		    action == LEASE_RENEW && l->acquired.n ? l->acquired : now);
	doc_put_str(m, spec, STR("renewTime"), now);
	doc_put_int(m, spec, STR("leaseTransitions"),
		    action == LEASE_TAKE ? l->transitions + 1 : l->transitions);
	return doc_write(object, false, a, ret, err);
}
