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

/* Extended resources, huge pages and storage never matter. */
enum counted { COUNTED_CPU, COUNTED_MEMORY, COUNTED__COUNT };

static const struct str counted_names[] = {
	[COUNTED_CPU] = STR_INIT(NAME_CPU),
	[COUNTED_MEMORY] = STR_INIT(NAME_MEMORY),
};
_Static_assert(ARRAY_LEN(counted_names) == COUNTED__COUNT, "every counted resource has a name");

const char *qos_name(enum qos_class class)
{
	return class_names[class];
}

struct sums {
	struct quantity of[COUNTED__COUNT]; /* zero when nobody asked */
};

/* What Kubernetes' rule gathers from a pod. */
struct gathered {
	struct sums requests, limits;
	bool all_limited; /* everything seen so far had a limit on CPU and on memory */
};

/* Adds the positive amounts of one resource list. Returns how many there were. */
static int sums_add(struct sums *sums, yyjson_val *list, struct err *err)
{
	int n = 0;

	for (size_t i = 0; i < COUNTED__COUNT; i++) {
		struct quantity q;
		int r;

		r = resource_get(list, counted_names[i], &q, err);
		if (r < 0)
			return r;
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
	g->all_limited &= r == COUNTED__COUNT;
	return 0;
}

static int gather_pod(struct gathered *g, const struct pod *pod, struct err *err)
{
	yyjson_val *pod_level = doc_get(pod->spec, STR("resources"));
	struct container_iter it = container_iter(pod, false);
	struct container c;

	/* Even an empty object hides the containers. */
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

static bool is_nothing(const struct sums *sums)
{
	for (size_t i = 0; i < COUNTED__COUNT; i++)
		if (quantity_sign(&sums->of[i]) != 0)
			return false;
	return true;
}

static bool is_same(const struct sums *a, const struct sums *b)
{
	for (size_t i = 0; i < COUNTED__COUNT; i++)
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
	if (is_nothing(&g.requests) && is_nothing(&g.limits))
		*ret = QOS_BEST_EFFORT;
	else if (g.all_limited && is_same(&g.requests, &g.limits))
		*ret = QOS_GUARANTEED;
	else
		*ret = QOS_BURSTABLE;
	return 0;
}

/* What is still possible for the pod, as the hook sees it. */
struct possible {
	bool guaranteed, best_effort;
};

static int narrow(struct possible *p, const struct container *c, enum counted what, struct err *err)
{
	struct quantity request = { 0 }, limit = { 0 };
	int has_request, r;
	bool is_like_limit;

	has_request = resource_get(c->requests, counted_names[what], &request, err);
	if (has_request < 0)
		return err_wrap(err, "requests");
	r = resource_get(c->limits, counted_names[what], &limit, err);
	if (r < 0)
		return err_wrap(err, "limits");

	is_like_limit = !has_request || quantity_cmp(&request, &limit) == 0 ||
			(what == COUNTED_CPU && quantity_sign(&request) == 0);
	p->guaranteed &= quantity_sign(&limit) != 0 && is_like_limit;
	p->best_effort &= quantity_sign(&limit) == 0 && quantity_sign(&request) == 0;
	return 0;
}

int qos_hook(const struct pod *pod, enum qos_class *ret, struct err *err)
{
	struct container_iter it = container_iter(pod, false);
	struct possible p = { true, true };
	struct container c;

	while (container_next(&it, &c))
		for (size_t i = 0; i < COUNTED__COUNT; i++)
			if (narrow(&p, &c, (enum counted)i, err) < 0)
				return err_wrap(err, "container %s", quote(c.name).text);

	*ret = p.guaranteed ? QOS_GUARANTEED : p.best_effort ? QOS_BEST_EFFORT : QOS_BURSTABLE;
	return 0;
}
