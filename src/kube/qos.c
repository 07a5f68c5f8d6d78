/* Two QoS classes from the same numbers. The kubelet's cgroups follow Kubernetes' class; which pods
 * are converted follows the class of OpenShift's plugin. */

#include "qos.h"

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "names.h"
#include "pod.h"
#include "quantity.h"

static const char *const class_names[] = {
	[QOS_GUARANTEED] = "Guaranteed",
	[QOS_BURSTABLE] = "Burstable",
	[QOS_BEST_EFFORT] = "BestEffort",
};
_Static_assert(ARRAY_LEN(class_names) == QOS__COUNT, "every class has a name");

static const struct str counted_names[] = {
	[QOS_CPU] = STR_INIT(NAME_CPU),
	[QOS_MEMORY] = STR_INIT(NAME_MEMORY),
};
_Static_assert(ARRAY_LEN(counted_names) == QOS_COUNTED__COUNT, "every counted resource has a name");

const char *qos_name(enum qos_class class)
{
	return class_names[class];
}

struct sums {
	struct quantity of[QOS_COUNTED__COUNT]; /* zero when there is none */
};

/* What the class of Kubernetes depends on. */
struct gathered {
	struct sums requests, limits;
	bool all_limited; /* every container so far has a limit for CPU and for memory */
};

/* Adds the positive amounts of one resource list. Returns their number. */
static int sums_add(struct sums *sums, yyjson_val *list, struct err *err)
{
	int n = 0;

	for (size_t i = 0; i < QOS_COUNTED__COUNT; i++) {
		struct quantity q;
		int r;

		r = resource_get(list, counted_names[i], &q, err);
		if (r < 0)
			return r;
		/* Zero and negative amounts count as absent in Kubernetes' class; the plugin's
		 * class below takes a negative amount as an amount. */
		if (r == 0 || quantity_sign(&q) <= 0)
			continue;
		r = quantity_add(&sums->of[i], &q, err);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

static int gather(struct gathered *g, yyjson_val *requests, yyjson_val *limits, struct err *err)
{
	int r;

	r = sums_add(&g->requests, requests, err);
	if (r < 0)
		return err_wrap(err, "requests");
	r = sums_add(&g->limits, limits, err);
	if (r < 0)
		return err_wrap(err, "limits");
	g->all_limited &= r == QOS_COUNTED__COUNT;
	return 0;
}

static int gather_pod(struct gathered *g, const struct pod *pod, struct err *err)
{
	yyjson_val *pod_level = doc_get(pod->spec, STR("resources"));
	struct container_iter it = container_iter(pod, false);
	struct container c;

	/* Even an empty object replaces the resources of the containers. */
	if (pod_level && !yyjson_is_null(pod_level)) {
		if (gather(g, doc_get(pod_level, STR("requests")),
			   doc_get(pod_level, STR("limits")), err) < 0)
			return err_wrap(err, "pod resources");
		return 0;
	}
	while (container_next(&it, &c))
		if (gather(g, c.requests, c.limits, err) < 0)
			return err_wrap(err, "container %s", quote(c.name).text);
	return 0;
}

static bool sums_are_zero(const struct sums *sums)
{
	for (size_t i = 0; i < QOS_COUNTED__COUNT; i++)
		if (quantity_sign(&sums->of[i]) != 0)
			return false;
	return true;
}

static bool sums_are_equal(const struct sums *a, const struct sums *b)
{
	for (size_t i = 0; i < QOS_COUNTED__COUNT; i++)
		if (quantity_cmp(&a->of[i], &b->of[i]) != 0)
			return false;
	return true;
}

int qos_kubernetes(const struct pod *pod, enum qos_class *ret, struct err *err)
{
	struct gathered g = { .all_limited = true };
	int r;

	r = gather_pod(&g, pod, err);
	if (r < 0)
		return r;
	if (sums_are_zero(&g.requests) && sums_are_zero(&g.limits))
		*ret = QOS_BEST_EFFORT;
	/* The API server refuses a request above its limit, so equal sums mean equal amounts in
	 * every container. */
	else if (g.all_limited && sums_are_equal(&g.requests, &g.limits))
		*ret = QOS_GUARANTEED;
	else
		*ret = QOS_BURSTABLE;
	return 0;
}

void qos_hook_add(struct qos_hook_fold *f, enum qos_counted what, const struct quantity *request,
		  const struct quantity *limit)
{
	static const struct quantity zero = { 0 };
	const struct quantity *l = limit ? limit : &zero;
	/* The plugin takes a CPU request of 0 with a limit as Guaranteed; Kubernetes takes it as
	 * Burstable. Memory has no such exception. */
	bool is_like_limit = !request || quantity_cmp(request, l) == 0 ||
			     (what == QOS_CPU && quantity_sign(request) == 0);

	f->not_guaranteed |= quantity_sign(l) == 0 || !is_like_limit;
	f->not_best_effort |= quantity_sign(l) != 0 || (request && quantity_sign(request) != 0);
}

enum qos_class qos_hook_class(const struct qos_hook_fold *f)
{
	/* Without any container this is Guaranteed, as in the plugin. The conversion of static pods
	 * relies on it for pods without init containers. */
	if (!f->not_guaranteed)
		return QOS_GUARANTEED;
	return f->not_best_effort ? QOS_BURSTABLE : QOS_BEST_EFFORT;
}

static int add_container(struct qos_hook_fold *f, const struct container *c, enum qos_counted what,
			 struct err *err)
{
	struct quantity request, limit;
	int has_request, has_limit;

	has_request = resource_get(c->requests, counted_names[what], &request, err);
	if (has_request < 0)
		return err_wrap(err, "requests");
	has_limit = resource_get(c->limits, counted_names[what], &limit, err);
	if (has_limit < 0)
		return err_wrap(err, "limits");
	qos_hook_add(f, what, has_request ? &request : NULL, has_limit ? &limit : NULL);
	return 0;
}

int qos_hook(const struct pod *pod, enum qos_class *ret, struct err *err)
{
	struct container_iter it = container_iter(pod, false);
	struct qos_hook_fold f = { 0 };
	struct container c;

	while (container_next(&it, &c))
		for (size_t i = 0; i < QOS_COUNTED__COUNT; i++)
			if (add_container(&f, &c, (enum qos_counted)i, err) < 0)
				return err_wrap(err, "container %s", quote(c.name).text);

	*ret = qos_hook_class(&f);
	return 0;
}
