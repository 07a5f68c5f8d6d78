/* Follows CRI-O's code exactly, also where a check looks odd, because the result has to be the one
 * that CRI-O's own drop-in would give. The differences to CRI-O are named where they are. */

#include "workload.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cgroup/cpu_settings.h"
#include "codec/doc.h"
#include "codec/toml_read.h"
#include "cpu/cpuset.h"
#include "kube/names.h"
#include "nri/nri.h"

/* CRI-O's (docs/reference/crio-workloads.md#resolving-a-container). 1 ms is also the least that the
 * kernel accepts. */
#define DEFAULT_PERIOD_US 100000
#define QUOTA_MIN_US 1000
#define PERIOD_MIN_US 1000

enum value_kind { VALUE_UNSIGNED, VALUE_SIGNED, VALUE_TEXT };

/* The five settings, in configuration and annotation alike. */
static const struct setting {
	const char *key;
	enum value_kind kind;
	size_t offset;
} settings[] = {
	{ "cpushares", VALUE_UNSIGNED, offsetof(struct workload_cpu, shares) },
	{ "cpuquota", VALUE_SIGNED, offsetof(struct workload_cpu, quota_us) },
	{ "cpuperiod", VALUE_UNSIGNED, offsetof(struct workload_cpu, period_us) },
	{ "cpuset", VALUE_TEXT, offsetof(struct workload_cpu, cpus) },
	{ "cpulimit", VALUE_SIGNED, offsetof(struct workload_cpu, limit_milli) },
};

static bool key_is(struct str key, const char *name)
{
	return key.n == strlen(name) && strncasecmp(key.p, name, key.n) == 0;
}

/* An exact match first, then one that differs in case only, as Go's decoders do. */
static yyjson_val *member(yyjson_val *object, const char *name)
{
	yyjson_val *found = doc_get(object, str_from(name)), *key, *value;

	if (found || !yyjson_is_obj(object))
		return found;
	DOC_EACH_PAIR (object, key, value)
		if (key_is(doc_str(key), name))
			found = value;
	return found;
}

static int bad_type(const char *key, yyjson_val *v, const char *want, struct err *err)
{
	return err_set(err, EINVAL, "%s: want %s, not %s", key, want, doc_type(v));
}

static bool read_unsigned(yyjson_val *v, uint64_t *ret)
{
	int64_t n;

	if (doc_is_number(v) && str_to_u64(doc_text(v), UINT64_MAX, ret))
		return true; /* JSON: as it was written */
	if (!doc_int(v, &n) || n < 0)
		return false;
	*ret = (uint64_t)n;
	return true;
}

static int read_setting(const struct setting *s, yyjson_val *v, struct workload_cpu *cpu,
			struct err *err)
{
	void *at = (char *)cpu + s->offset;

	switch (s->kind) {
	case VALUE_UNSIGNED:
		if (!read_unsigned(v, at))
			return bad_type(s->key, v, "a whole number from 0 on", err);
		return 0;
	case VALUE_SIGNED:
		if (!doc_int(v, at))
			return bad_type(s->key, v, "a whole number", err);
		return 0;
	case VALUE_TEXT:
		if (!yyjson_is_str(v))
			return bad_type(s->key, v, "a string", err);
		*(struct str *)at = doc_str(v);
		return 0;
	}
	return 0;
}

/* Of several members with one name the last counts; null counts as absent. */
static int read_settings(yyjson_val *object, struct workload_cpu *ret, struct err *err)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (object, key, value) {
		for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
			int r;

			if (!key_is(doc_str(key), settings[i].key) || yyjson_is_null(value))
				continue;
			r = read_setting(&settings[i], value, ret, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* --- configuration --- */

const struct workload workload_defaults = {
	/* the name constant ends in the slash */
	.prefix = { NAME_RESOURCES_PREFIX, sizeof(NAME_RESOURCES_PREFIX) - 2 },
};

static int read_text(yyjson_val *table, const char *key, struct str *ret, struct err *err)
{
	yyjson_val *v = member(table, key);

	if (v && !yyjson_is_str(v))
		return bad_type(key, v, "a string", err);
	*ret = doc_str(v);
	return 0;
}

/* label = "workload.openshift.io/target=management", cpu_set = "0-1" */
static int read_legacy(yyjson_val *table, struct arena *a, struct workload *w, struct err *err)
{
	struct str label;
	int r;

	r = read_text(table, "label", &label, err);
	if (r == 0)
		r = read_text(table, "cpu_set", &w->defaults.cpus, err);
	if (r < 0 || !str_starts(label, STR(NAME_LEGACY_TARGET "=")))
		return r;
	w->activation = str_printf(a, NAME_TARGET_PREFIX PRI_STR,
				   FMT_STR(str_skip(label, sizeof(NAME_LEGACY_TARGET))));
	return 0;
}

static int read_workload(struct str name, yyjson_val *table, struct workload *ret, struct err *err)
{
	struct workload w = { .name = name };
	yyjson_val *resources;
	int r;

	if (!yyjson_is_obj(table))
		return bad_type("workloads", table, "a table", err);
	r = read_text(table, "activation_annotation", &w.activation, err);
	if (r == 0)
		r = read_text(table, "annotation_prefix", &w.prefix, err);
	if (r < 0)
		return r;
	resources = member(table, "resources");
	if (resources && !yyjson_is_obj(resources))
		return bad_type("resources", resources, "a table", err);
	r = read_settings(resources, &w.defaults, err);
	if (r == 0)
		*ret = w;
	return r;
}

/* In CRI-O's order, with its messages (docs/reference/crio-workloads.md#validation). */
static int check_workload(const struct workload *w, struct err *err)
{
	const struct workload_cpu *d = &w->defaults;
	struct err why = { 0 };
	struct cpuset cpus = { 0 };

	if (w->activation.n == 0)
		return err_set(err, EDOM, "annotation shouldn't be empty for workload %s",
			       quote(w->name).text);
	if (cpuset_parse_lenient(d->cpus, &cpus, &why) < 0)
		return err_set(err, EDOM, "unable to parse cpuset %s: %s", quote(d->cpus).text,
			       why.msg);
	/* The units differ, microseconds and shares; CRI-O compares the numbers. */
	if (d->quota_us != 0 && d->quota_us < (int64_t)d->shares)
		return err_set(err, EDOM, "cpuquota %lld cannot be less than cpushares %llu",
			       (long long)d->quota_us, (unsigned long long)d->shares);
	if (d->period_us != 0 && d->period_us < PERIOD_MIN_US)
		return err_set(err, EDOM, "cpuperiod %llu cannot be less than 1000 microseconds",
			       (unsigned long long)d->period_us);
	return 0;
}

static bool put_workload(struct workloads *ws, const struct workload *w, struct arena *a)
{
	struct workload *grown;
	size_t i = 0;

	while (i < ws->n && str_cmp(ws->items[i].name, w->name) < 0)
		i++;
	if (i < ws->n && str_eq(ws->items[i].name, w->name)) {
		ws->items[i] = *w;
		return true;
	}
	grown = arena_array(a, struct workload, ws->n + 1);
	if (!grown)
		return false;
	if (ws->n > 0) {
		memcpy(grown, ws->items, i * sizeof(*grown));
		memcpy(grown + i + 1, ws->items + i, (ws->n - i) * sizeof(*grown));
	}
	grown[i] = *w;
	ws->items = grown;
	ws->n++;
	return true;
}

static int read_file(struct workloads *ws, struct str text, struct str name, bool is_legacy,
		     struct arena *a, struct err *err)
{
	yyjson_val *root, *runtime, *key, *table;
	struct str infra = { 0 }, driver = { 0 };
	int r;

	r = toml_parse(text, name, a, &root, err);
	if (r < 0)
		return r;
	runtime = member(member(root, "crio"), "runtime");
	r = read_text(runtime, "infra_ctr_cpuset", &infra, err);
	if (r == 0)
		r = read_text(runtime, "cgroup_manager", &driver, err);
	if (r < 0)
		return err_wrap(err, PRI_STR, FMT_STR(name));
	if (infra.n > 0)
		ws->infra_cpus = infra;
	if (driver.n > 0)
		ws->is_cgroupfs = str_eq(driver, STR("cgroupfs"));
	DOC_EACH_PAIR (member(runtime, "workloads"), key, table) {
		struct workload w = { 0 };

		r = read_workload(doc_str(key), table, &w, err);
		if (r == 0 && is_legacy && w.activation.n == 0)
			r = read_legacy(table, a, &w, err);
		if (r < 0)
			return err_wrap(err, PRI_STR ": workload " PRI_STR, FMT_STR(name),
					FMT_STR(doc_str(key)));
		if (!put_workload(ws, &w, a))
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int workloads_parse(const struct str *texts, const struct str *names, size_t n, bool is_legacy,
		    struct arena *a, struct workloads *ret, struct err *err)
{
	struct workloads ws = { 0 };
	int r;

	for (size_t i = 0; i < n; i++) {
		r = read_file(&ws, texts[i], names[i], is_legacy, a, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ws.n; i++) {
		r = check_workload(&ws.items[i], err);
		if (r < 0)
			return err_wrap(err, "workloads validation");
	}
	*ret = ws;
	return 0;
}

/* --- containers --- */

static bool key_equals(const char *key, struct str want)
{
	return str_eq(str_from(key), want);
}

const struct workload *workloads_match(const struct workloads *w,
				       const struct nri_pair *annotations, size_t n)
{
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k < n; k++)
			if (key_equals(annotations[k].key, w->items[i].activation))
				return &w->items[i];
	return NULL;
}

/* Of "<prefix>/<container>"; NULL when it is not there. */
static const char *own_annotation(const struct workload *w, const char *container,
				  const struct nri_pair *annotations, size_t n)
{
	while (n-- > 0) { /* from the end: of two annotations with one key the last counts */
		const struct str key = str_from(annotations[n].key);
		const struct str rest = str_skip(key, w->prefix.n);

		if (str_starts(key, w->prefix) && rest.n > 0 && rest.p[0] == '/' &&
		    key_equals(container, str_skip(rest, 1)))
			return annotations[n].value;
	}
	return NULL;
}

bool workload_is_set(const char *container, const struct nri_pair *annotations, size_t n)
{
	return own_annotation(&workload_defaults, container, annotations, n) != NULL;
}

static void set_defaults(struct workload_cpu *cpu, const struct workload_cpu *defaults)
{
	if (cpu->shares == 0)
		cpu->shares = defaults->shares;
	if (cpu->quota_us == 0)
		cpu->quota_us = defaults->quota_us;
	if (cpu->period_us == 0)
		cpu->period_us = defaults->period_us;
	if (cpu->cpus.n == 0)
		cpu->cpus = defaults->cpus;
	if (cpu->limit_milli == 0)
		cpu->limit_milli = defaults->limit_milli;
}

/* A limit overrides every quota, and the period of the container's spec is not consulted
 * (docs/reference/crio-workloads.md#resolving-a-container). CRI-O's product wraps around; this one
 * stops at the largest number. */
static void limit_to_quota(struct workload_cpu *cpu)
{
	const __int128 period = cpu->period_us ? cpu->period_us : DEFAULT_PERIOD_US;
	__int128 quota;

	if (cpu->limit_milli == 0)
		return;
	quota = cpu->limit_milli * period / 1000;
	if (quota < QUOTA_MIN_US)
		quota = QUOTA_MIN_US;
	cpu->quota_us = quota > INT64_MAX ? INT64_MAX : (int64_t)quota;
}

int workload_resolve(const struct workload *w, const char *container,
		     const struct nri_pair *annotations, size_t n, struct arena *a,
		     struct workload_cpu *ret, struct err *err)
{
	const char *text = own_annotation(w, container, annotations, n);
	struct workload_cpu cpu = { 0 };
	struct doc doc;
	int r;

	if (!text) { /* a default limit is not converted to a quota */
		*ret = w->defaults;
		return 0;
	}
	r = doc_parse(str_from(text), STR(""), NULL, a, &doc, err);
	if (r == 0 && !yyjson_is_obj(doc.root) && !yyjson_is_null(doc.root))
		r = err_set(err, EINVAL, "want an object, not %s", doc_type(doc.root));
	/* null takes not even the defaults: CRI-O then changes nothing in the container. */
	if (r == 0 && yyjson_is_null(doc.root)) {
		*ret = (struct workload_cpu){ 0 };
		return 0;
	}
	if (r == 0)
		r = read_settings(doc.root, &cpu, err);
	if (r < 0)
		return err_wrap(err, "annotation " PRI_STR "/%s", FMT_STR(w->prefix), container);
	set_defaults(&cpu, &w->defaults);
	limit_to_quota(&cpu);
	*ret = cpu;
	return 0;
}

int workload_settings(const struct workload_cpu *cpu, struct cpu_settings *ret, struct err *err)
{
	struct cpu_settings s = { .shares = cpu->shares,
				  .has_quota = cpu->quota_us != 0,
				  .quota_us = cpu->quota_us,
				  .period_us = cpu->period_us };
	struct err why = { 0 };

	if (cpuset_parse(cpu->cpus, &s.cpus, &why) < 0)
		return err_set(err, EINVAL, "annotation cpuset %s: %s", quote(cpu->cpus).text,
			       why.msg);
	*ret = s;
	return 0;
}

uint64_t workload_pod_shares(const struct workload *w, const struct nri_pair *annotations, size_t n,
			     struct arena *a)
{
	uint64_t sum = 0;

	/* From the annotations, because the pod's cgroup gets its weight before the runtime reports
	 * all containers. */
	for (size_t i = 0; i < n; i++) {
		const struct str key = str_from(annotations[i].key);
		const struct str rest = str_skip(key, w->prefix.n);
		struct workload_cpu cpu;

		if (!str_starts(key, w->prefix) || rest.n < 2 || rest.p[0] != '/')
			continue;
		if (workload_resolve(w, rest.p + 1, annotations, n, a, &cpu, NULL) == 0 &&
		    sum + cpu.shares >= sum) /* no overflow: users choose these numbers */
			sum += cpu.shares;
	}
	return sum;
}
