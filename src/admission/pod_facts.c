#include "pod_facts.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "decision.h"
#include "kube/names.h"

static const struct str counted[] = {
	[QOS_CPU] = STR_INIT(NAME_CPU),
	[QOS_MEMORY] = STR_INIT(NAME_MEMORY),
};
_Static_assert(ARRAY_LEN(counted) == QOS_COUNTED__COUNT, "every counted resource has a name");

static void add_problem(struct field_errors *problems, const struct container *c, const char *list,
			struct str name, const struct err *err)
{
	yyjson_val *v = doc_get(list[0] == 'r' ? c->requests : c->limits, name);
	struct str field = str_printf(problems->a, "spec.%s[%zu].resources.%s[" PRI_STR "]",
				      c->list, c->index, list, FMT_STR(name));
	struct str detail = str_dup(problems->a, str_from(err->msg));

	field_errors_invalid(problems, field, print_quoted(doc_text(v), problems->a), detail);
}

static int read_one(const struct container *c, bool of_limit, struct str name, struct quantity *ret,
		    struct field_errors *problems)
{
	struct err err = { 0 };
	int r = resource_get(of_limit ? c->limits : c->requests, name, ret, &err);

	if (r < 0)
		add_problem(problems, c, of_limit ? "limits" : "requests", name, &err);
	return r;
}

static int read_container(const struct container *c, struct container_facts *ret,
			  struct field_errors *problems)
{
	int worst = 0;

	ret->c = *c;
	for (size_t i = 0; i < QOS_COUNTED__COUNT; i++) {
		int request = read_one(c, false, counted[i], &ret->request[i], problems);
		int limit = read_one(c, true, counted[i], &ret->limit[i], problems);

		ret->has_request[i] = request > 0;
		ret->has_limit[i] = limit > 0;
		if (request < 0 || limit < 0)
			worst = -EINVAL;
	}
	return worst;
}

int pod_facts_read(const struct pod *pod, struct arena *a, struct pod_facts *ret,
		   struct field_errors *problems)
{
	struct container_iter it = container_iter(pod, false);
	struct container c;
	struct pod_facts facts = { 0 };
	size_t max = yyjson_arr_size(doc_get(pod->spec, STR("initContainers"))) +
		     yyjson_arr_size(doc_get(pod->spec, STR("containers")));
	int r = 0;

	facts.items = arena_alloc(a, (max ? max : 1) * sizeof(*facts.items), 16);
	if (!facts.items)
		return -ENOMEM;
	while (container_next(&it, &c))
		if (read_container(&c, &facts.items[facts.n++], problems) < 0)
			r = -EINVAL;
	*ret = facts;
	return r;
}

int container_milli(const struct container_facts *f, bool of_limit, int64_t *ret,
		    struct field_errors *problems)
{
	struct err err = { 0 };
	int r = quantity_milli(of_limit ? &f->limit[QOS_CPU] : &f->request[QOS_CPU], ret, &err);

	if (r < 0)
		add_problem(problems, &f->c, of_limit ? "limits" : "requests", STR(NAME_CPU), &err);
	return r;
}

void container_fold(struct qos_hook_fold *fold, const struct container_facts *f, bool without_cpu)
{
	bool cpu = !without_cpu;

	qos_hook_add(fold, QOS_CPU, cpu && f->has_request[QOS_CPU] ? &f->request[QOS_CPU] : NULL,
		     cpu && f->has_limit[QOS_CPU] ? &f->limit[QOS_CPU] : NULL);
	qos_hook_add(fold, QOS_MEMORY, f->has_request[QOS_MEMORY] ? &f->request[QOS_MEMORY] : NULL,
		     f->has_limit[QOS_MEMORY] ? &f->limit[QOS_MEMORY] : NULL);
}
