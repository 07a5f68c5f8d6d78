/* A pod's requests as Kubernetes adds them up: containers and sidecars together, or the largest
 * init container with the sidecars that were started before it, whichever is more. */

#include "sim_resources.h"

#include <errno.h>

#include "base/err.h"
#include "base/quote.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/quantity.h"

#define SCORED_CPU_MILLI 100
#define SCORED_MEMORY_BYTES (INT64_C(200) << 20)

void sim_resources_init(struct sim_resources *r)
{
	*r = (struct sim_resources){
		.names = { [SIM_CPU] = STR(NAME_CPU),
			   [SIM_MEMORY] = STR(NAME_MEMORY),
			   [SIM_PODS] = STR("pods"),
			   [SIM_CORES] = STR(NAME_MANAGEMENT_CORES),
			   [SIM_SHARED] = STR(NAME_SHARED_CPUS),
			   [SIM_GUARANTEED] = STR(NAME_GUARANTEED_CPUS) },
		.n = SIM_NAMED,
	};
}

bool sim_resource_is_cores(struct str name)
{
	return str_ends(name, STR(NAME_CORES_SUFFIX));
}

static size_t find_name(const struct sim_resources *r, struct str name)
{
	size_t i = 0;

	while (i < r->n && !str_eq(r->names[i], name))
		i++;
	return i;
}

static int add_name(struct sim_resources *r, struct str name, size_t *ret, struct err *err)
{
	*ret = find_name(r, name);
	if (*ret < r->n)
		return 0;
	if (r->n == SIM_RESOURCES_MAX)
		return err_set(err, E2BIG, "pods request more than %d kinds of resources",
			       SIM_RESOURCES_MAX);
	r->names[r->n++] = name;
	return 0;
}

/* Any resource fits: the largest amount that the sum over a node's pods can hold. */
#define AMOUNT_MAX (INT64_MAX / 65536)

static int read_amount(yyjson_val *list, struct str name, size_t index, int64_t *ret,
		       struct err *err)
{
	struct quantity q;
	int r = resource_get(list, name, &q, err);

	*ret = 0;
	if (r == 1 && index == SIM_CPU)
		r = quantity_milli(&q, ret, err);
	else if (r == 1)
		*ret = quantity_value(&q);
	if (r < 0)
		return err_wrap(err, "%s", quote(name).text);
	if (*ret < 0)
		return err_set(err, EINVAL, "%s: a negative amount", quote(name).text);
	if (*ret > AMOUNT_MAX)
		*ret = AMOUNT_MAX;
	return 0;
}

static int read_list(yyjson_val *list, struct sim_resources *r, struct sim_amounts *ret,
		     struct err *err)
{
	yyjson_val *key, *value;

	*ret = (struct sim_amounts){ 0 };
	DOC_EACH_PAIR (list, key, value) {
		size_t at;
		int code = add_name(r, doc_str(key), &at, err);

		if (code == 0)
			code = read_amount(list, doc_str(key), at, &ret->of[at], err);
		if (code < 0)
			return code;
	}
	(void)value;
	return 0;
}

static void add(struct sim_amounts *sum, const struct sim_amounts *more)
{
	for (size_t i = 0; i < SIM_RESOURCES_MAX; i++) {
		sum->of[i] += more->of[i];
		if (sum->of[i] > AMOUNT_MAX)
			sum->of[i] = AMOUNT_MAX;
	}
}

static void raise(struct sim_amounts *to, const struct sim_amounts *at_least)
{
	for (size_t i = 0; i < SIM_RESOURCES_MAX; i++)
		if (to->of[i] < at_least->of[i])
			to->of[i] = at_least->of[i];
}

/* The sum while containers are visited in the order of the pod. */
struct request_fold {
	struct sim_amounts lasting; /* of sidecars and app containers so far */
	struct sim_amounts highest; /* while an init container ran */
};

static void fold(struct request_fold *f, enum container_kind kind, const struct sim_amounts *c)
{
	struct sim_amounts now;

	if (kind != CONTAINER_INIT) {
		add(&f->lasting, c);
		return;
	}
	now = f->lasting;
	add(&now, c);
	raise(&f->highest, &now);
}

static struct sim_amounts with_defaults(const struct container *c,
					const struct sim_amounts *amounts)
{
	struct sim_amounts scored = {
		.of = { [SIM_CPU] = amounts->of[SIM_CPU], [SIM_MEMORY] = amounts->of[SIM_MEMORY] }
	};

	/* A request of 0 is one; only an absent one counts as the default. */
	if (!doc_get(c->requests, STR(NAME_CPU)))
		scored.of[SIM_CPU] = SCORED_CPU_MILLI;
	if (!doc_get(c->requests, STR(NAME_MEMORY)))
		scored.of[SIM_MEMORY] = SCORED_MEMORY_BYTES;
	return scored;
}

static int fold_containers(const struct pod *pod, struct sim_resources *r,
			   struct request_fold *asked, struct request_fold *scored, struct err *err)
{
	struct container_iter it = container_iter(pod, false);
	struct container c;

	while (container_next(&it, &c)) {
		struct sim_amounts amounts, defaults;
		int code = read_list(c.requests, r, &amounts, err);

		if (code < 0)
			return code;
		defaults = with_defaults(&c, &amounts);
		fold(asked, c.kind, &amounts);
		fold(scored, c.kind, &defaults);
	}
	raise(&asked->lasting, &asked->highest);
	raise(&scored->lasting, &scored->highest);
	return 0;
}

/* Amounts of the whole pod replace the sums of its containers. */
static int apply_pod_level(const struct pod *pod, struct sim_resources *r,
			   struct sim_amounts *asked, struct sim_amounts *scored, struct err *err)
{
	yyjson_val *list = doc_find(pod->spec, "/resources/requests"), *key, *value;
	struct sim_amounts amounts;
	int code = read_list(list, r, &amounts, err);

	if (code < 0)
		return code;
	DOC_EACH_PAIR (list, key, value) {
		const size_t at = find_name(r, doc_str(key));

		asked->of[at] = scored->of[at] = amounts.of[at];
	}
	(void)value;
	return 0;
}

int sim_request_of(const struct pod *pod, struct sim_resources *r, struct sim_request *ret,
		   struct err *err)
{
	struct request_fold asked = { 0 }, scored = { 0 };
	struct sim_amounts overhead;
	int code = fold_containers(pod, r, &asked, &scored, err);

	if (code == 0)
		code = apply_pod_level(pod, r, &asked.lasting, &scored.lasting, err);
	if (code == 0)
		code = read_list(doc_get(pod->spec, STR("overhead")), r, &overhead, err);
	if (code < 0)
		return code;
	add(&asked.lasting, &overhead);
	add(&scored.lasting, &overhead);
	asked.lasting.of[SIM_PODS] = 1;
	*ret = (struct sim_request){
		.amounts = asked.lasting,
		.scored_cpu = scored.lasting.of[SIM_CPU],
		.scored_memory = scored.lasting.of[SIM_MEMORY],
	};
	return 0;
}

int sim_allocatable_of(yyjson_val *node, const struct sim_resources *r, struct sim_amounts *ret,
		       struct err *err)
{
	yyjson_val *list = doc_find(node, "/status/allocatable");

	*ret = (struct sim_amounts){ 0 };
	for (size_t i = 0; i < r->n; i++) {
		int code = read_amount(list, r->names[i], i, &ret->of[i], err);

		if (code < 0)
			return code;
	}
	return 0;
}
