/* Zero and null mean "not set" in an OCI configuration, so both are read like a missing member. */

#include "precreate.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cgroup/cgroup_path.h"
#include "kube/shares.h"
#include "nri/nri.h"
#include "oci_record.h"
#include "pin/placement.h"

static struct str cgroups_path(const struct doc *config)
{
	return doc_str(doc_find(config->root, "/linux/cgroupsPath"));
}

/* Prefixes that runtimes add to the id with the cgroupfs driver; the longer one is of podman's
 * --cgroups=split. */
static struct str without_prefix(struct str step)
{
	static const struct str prefixes[] = { STR_INIT("libpod-payload-"), STR_INIT("libpod-"),
					       STR_INIT("crio-") };

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(step, prefixes[i]))
			return str_skip(step, prefixes[i].n);
	return step;
}

/* A colon means the systemd driver: runc and crun require "slice:prefix:name" there. */
struct str precreate_id(const struct doc *config)
{
	const struct str path = cgroups_path(config);
	struct str_split steps = str_split(path);
	struct str step, last = { 0 };

	if (str_has(path, STR(":"))) {
		struct str slice, prefix;

		if (!str_next(&steps, ':', &slice) || !str_next(&steps, ':', &prefix) ||
		    !str_next(&steps, ':', &last) || !steps.ended)
			return STR("");
	} else {
		while (str_next(&steps, '/', &step))
			if (step.n)
				last = step;
		last = without_prefix(last);
	}
	return oci_record_id_is_valid(last) ? last : STR("");
}

const char *precreate_cgroup(const struct doc *config, struct arena *a)
{
	const char *path = cgroup_path_of(str_cstr(a, cgroups_path(config)), a);

	return *path ? str_cstr(a, str_printf(a, "/%s", path)) : "";
}

/* These may be missing, but must be objects if present. */
static int check_objects(const struct doc *config, struct err *err)
{
	static const char *const pointers[] = { "", "/annotations", "/linux", "/linux/resources",
						"/linux/resources/cpu" };

	for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
		yyjson_val *v = doc_find(config->root, pointers[i]);

		/* Only the document itself must not be null. */
		if (v && !yyjson_is_obj(v) && !(yyjson_is_null(v) && i > 0))
			return doc_err(err, config, v, "%s%swant an object, not %s", pointers[i],
				       i > 0 ? ": " : "", doc_type(v));
	}
	return 0;
}

/* The record copies them, and oci_record_parse() refuses others: better here, where the message has
 * the position in the configuration. */
static int check_annotations(const struct doc *config, struct err *err)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (doc_get(config->root, STR("annotations")), key, value) {
		if (!yyjson_is_str(value))
			return doc_err(err, config, value, "annotation %s: want a string, not %s",
				       quote(doc_str(key)).text, doc_type(value));
	}
	return 0;
}

static int check_values(const struct doc *config, struct err *err)
{
	static const struct {
		const char *pointer, *want;
		int64_t least; /* of a number */
	} rows[] = {
		{ "/linux/cgroupsPath", "a string", 0 },
		{ "/linux/resources/cpu/cpus", "a string", 0 },
		{ "/linux/resources/cpu/mems", "a string", 0 },
		{ "/linux/resources/cpu/shares", NULL, 0 },
		{ "/linux/resources/cpu/quota", NULL, INT64_MIN },
		{ "/linux/resources/cpu/period", NULL, 0 },
		{ "/linux/resources/memory/limit", NULL, INT64_MIN },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		yyjson_val *v = doc_find(config->root, rows[i].pointer);
		int64_t n = 0;

		if (!v || yyjson_is_null(v))
			continue;
		if (rows[i].want ? !yyjson_is_str(v) : !doc_int(v, &n))
			return doc_err(err, config, v, "%s: want %s, not %s", rows[i].pointer,
				       rows[i].want ? rows[i].want : "a whole number", doc_type(v));
		if (n < rows[i].least)
			return doc_err(err, config, v, "%s: not below 0", rows[i].pointer);
	}
	return 0;
}

int precreate_check(const struct doc *config, struct arena *a, struct err *err)
{
	int r = check_objects(config, err);

	if (r == 0)
		r = check_annotations(config, err);
	if (r == 0)
		r = check_values(config, err);
	return r < 0 ? r : doc_check_keys(config, a, err);
}

static int64_t number(yyjson_val *object, const char *key)
{
	int64_t n = 0;

	return doc_int(doc_get(object, str_from(key)), &n) ? n : 0;
}

static void read_cpu(const struct doc *config, struct arena *a, struct nri_cpu *ret)
{
	yyjson_val *cpu = doc_find(config->root, "/linux/resources/cpu");
	const int64_t shares = number(cpu, "shares"), quota = number(cpu, "quota"),
		      period = number(cpu, "period");

	*ret = (struct nri_cpu){
		.has_shares = shares > 0,
		.shares = shares > 0 ? (uint64_t)shares : 0,
		.has_quota = quota != 0,
		.quota_us = quota,
		.has_period = period > 0,
		.period_us = period > 0 ? (uint64_t)period : 0,
		.cpus = str_cstr(a, doc_str(doc_get(cpu, STR("cpus")))),
		.mems = str_cstr(a, doc_str(doc_get(cpu, STR("mems")))),
	};
}

struct adjustment {
	struct cpu_settings settings;
	bool is_exclusive;
};

static int read_placement(struct str text, struct arena *a, struct adjustment *ret, struct err *err)
{
	struct doc doc;
	int r;

	r = doc_parse(text, STR("placement"), NULL, a, &doc, err);
	if (r < 0)
		return r;
	r = cpu_settings_get(doc.root, &ret->settings, err);
	if (r < 0)
		return err_wrap(err, "placement");
	ret->is_exclusive = doc_bool(doc_get(doc.root, STR("exclusive")), false);
	/* The quota is removed; the shares still express how many CPUs were requested. */
	if (ret->is_exclusive)
		ret->settings.shares =
			cpu_shares_from_milli((int64_t)cpuset_count(&ret->settings.cpus) * 1000);
	return 0;
}

/* A shared container without a quota, whose shares happen to match the number of its CPUs, would
 * look adjusted for exclusive CPUs. Quota 0 means "no quota", too, and avoids that. */
static bool clear_ambiguous_quota(const struct doc *config, const struct nri_cpu *now,
				  struct nri_cpu *d)
{
	const struct nri_cpu then = {
		.has_quota = true,
		.quota_us = d->has_quota ? d->quota_us : now->quota_us,
		.has_shares = true,
		.shares = d->has_shares ? d->shares : now->shares,
		.cpus = d->cpus ? d->cpus : now->cpus,
	};

	if (number(doc_find(config->root, "/linux/resources/memory"), "limit") <= 0 ||
	    !oci_record_is_adjusted(&then))
		return false;
	d->has_quota = true;
	d->quota_us = 0;
	return true;
}

/* False when nothing changes. */
static bool compute_change(const struct doc *config, const struct adjustment *adjustment,
			   struct arena *a, struct nri_cpu *ret)
{
	bool differs;
	struct nri_cpu now;

	read_cpu(config, a, &now);
	differs = settings_difference(&adjustment->settings, &now, RUNTIME_CURRENT, a, ret);
	return (!adjustment->is_exclusive && clear_ambiguous_quota(config, &now, ret)) || differs;
}

static yyjson_mut_val *get_or_add_object(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key)
{
	yyjson_mut_val *v = yyjson_mut_obj_getn(object, key.p, key.n);

	return yyjson_mut_is_obj(v) ? v : doc_put_obj(m, object, key);
}

static void put_cpu(yyjson_mut_doc *m, yyjson_mut_val *root, const struct nri_cpu *d)
{
	yyjson_mut_val *cpu = get_or_add_object(
		m, get_or_add_object(m, get_or_add_object(m, root, STR("linux")), STR("resources")),
		STR("cpu"));

	if (d->has_shares)
		doc_put_int(m, cpu, STR("shares"), (int64_t)d->shares);
	if (d->has_quota)
		doc_put_int(m, cpu, STR("quota"), d->quota_us);
	if (d->has_period)
		doc_put_int(m, cpu, STR("period"), (int64_t)d->period_us);
	if (d->cpus)
		doc_put_str(m, cpu, STR("cpus"), str_from(d->cpus));
	if (d->mems)
		doc_put_str(m, cpu, STR("mems"), str_from(d->mems));
}

int precreate_adjust(const struct doc *config, struct str placement, struct arena *a,
		     struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	struct nri_cpu difference;
	yyjson_mut_val *root;
	struct adjustment adjustment;
	int r;

	r = read_placement(placement, a, &adjustment, err);
	if (r < 0)
		return r;
	if (!compute_change(config, &adjustment, a, &difference)) {
		*ret = config->text;
		return 0;
	}
	root = yyjson_val_mut_copy(m, config->root);
	if (!root)
		return err_set(err, ENOMEM, "the configuration is too large");
	put_cpu(m, root, &difference);
	return doc_write(root, false, a, ret, err);
}
