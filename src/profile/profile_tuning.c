/* The fields of a profile that tune the kernel, TuneD and the kubelet. Values that OpenShift's
 * API server would refuse are errors here as well, because a file has not passed it. */

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "fields.h"
#include "kube/names.h"
#include "pool/config.h"
#include "profile.h"

static void read_hints(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *hints = field_object(r, spec, "spec.workloadHints");

	/* OpenShift's default is true, also when there are no hints at all. */
	ret->hint_realtime = field_bool(r, hints, "spec.workloadHints.realTime", true);
	ret->hint_high_power =
		field_bool(r, hints, "spec.workloadHints.highPowerConsumption", false);
	ret->hint_per_pod_power =
		field_bool(r, hints, "spec.workloadHints.perPodPowerManagement", false);
	ret->hint_mixed_cpus = field_bool(r, hints, "spec.workloadHints.mixedCpus", false);
	if (ret->hint_high_power && ret->hint_per_pod_power)
		problem_error(r->p, PROBLEM_AT(r->doc, hints, "spec.workloadHints"),
			      "highPowerConsumption and perPodPowerManagement exclude each other");
	if (ret->hint_mixed_cpus && !ret->sets[PROFILE_SHARED].text.n)
		problem_error(r->p, PROBLEM_AT(r->doc, hints, "spec.workloadHints.mixedCpus"),
			      "requires spec.cpu.shared");
	if (ret->realtime_kernel && !ret->hint_realtime)
		problem_error(r->p, PROBLEM_AT(r->doc, hints, "spec.workloadHints.realTime"),
			      "is false, but spec.realTimeKernel is enabled");
}

static void read_topology_policy(const struct field_reader *r, yyjson_val *spec,
				 struct profile *ret)
{
	static const char *const policies[] = { "none", "best-effort", "restricted",
						"single-numa-node" };
	yyjson_val *numa = field_object(r, spec, "spec.numa");

	ret->topology_policy = field_str(r, numa, "spec.numa.topologyPolicy");
	for (size_t i = 0; i < ARRAY_LEN(policies); i++)
		if (!ret->topology_policy.n || str_eq(ret->topology_policy, str_from(policies[i])))
			return;
	problem_error(r->p,
		      PROBLEM_AT(r->doc, doc_get(numa, STR("topologyPolicy")),
				 "spec.numa.topologyPolicy"),
		      "unsupported value %s: valid values are none, best-effort, restricted, "
		      "single-numa-node",
		      quote(ret->topology_policy).text);
}

static void read_frequencies(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *tuning = field_object(r, spec, "spec.hardwareTuning");
	struct problem_at at = PROBLEM_AT(r->doc, tuning, "spec.hardwareTuning");

	if (!tuning)
		return;
	ret->isolated_khz = field_int(r, tuning, "spec.hardwareTuning.isolatedCpuFreq", 0);
	ret->reserved_khz = field_int(r, tuning, "spec.hardwareTuning.reservedCpuFreq", 0);
	/* TuneD limits every CPU of both sets, so that one frequency alone would leave 0 for the
	 * other. */
	if (!doc_get(tuning, STR("isolatedCpuFreq")) || !doc_get(tuning, STR("reservedCpuFreq")))
		problem_error(r->p, at, "requires both isolatedCpuFreq and reservedCpuFreq");
	else if (ret->isolated_khz <= 0 || ret->reserved_khz <= 0)
		problem_error(r->p, at, "a frequency is a number of kHz above 0");
}

static bool is_hugepage_size(struct str size)
{
	static const char *const sizes[] = { "64k", "2M", "32M", "512M", "1G", "16G" };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		if (str_eq(size, str_from(sizes[i])))
			return true;
	return false;
}

static void check_hugepage_size(const struct field_reader *r, yyjson_val *v, const char *field,
				struct str size)
{
	if (!is_hugepage_size(size))
		problem_error(r->p, PROBLEM_AT(r->doc, v, field),
			      "unsupported size %s: valid sizes are 64k, 2M, 32M, 512M, 1G, 16G",
			      quote(size).text);
}

static void read_hugepages(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *huge = field_object(r, spec, "spec.hugepages");
	yyjson_val *pages = field_get(huge, STR("pages")), *page;

	ret->default_hugepages = field_str(r, huge, "spec.hugepages.defaultHugepagesSize");
	if (ret->default_hugepages.n)
		check_hugepage_size(r, doc_get(huge, STR("defaultHugepagesSize")),
				    "spec.hugepages.defaultHugepagesSize", ret->default_hugepages);
	else if (yyjson_arr_size(pages))
		problem_error(r->p, PROBLEM_AT(r->doc, huge, "spec.hugepages.defaultHugepagesSize"),
			      "required when pages are given");
	ret->hugepages = arena_array(r->a, struct hugepages, yyjson_arr_size(pages) + 1);
	DOC_EACH_ITEM (pages, page) {
		struct hugepages *h = &ret->hugepages[ret->n_hugepages++];

		h->size = field_str(r, page, "spec.hugepages.pages.size");
		check_hugepage_size(r, page, "spec.hugepages.pages.size", h->size);
		h->count = field_int(r, page, "spec.hugepages.pages.count", 0);
		h->node = field_int(r, page, "spec.hugepages.pages.node", -1);
		if (h->count < 0)
			problem_error(r->p, PROBLEM_AT(r->doc, page, "spec.hugepages.pages.count"),
				      "must not be negative");
	}
}

/* A value in a file of TuneD, which reads it as root: printable ASCII, because TuneD ends a line at
 * any of Unicode's line separators; no "${", because TuneD calls functions, and with ${f:exec:...}
 * commands; no "#" that begins a word, because TuneD drops the rest of the line as a comment. */
static bool is_tuned_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~' || (s.p[i] == '#' && (!i || s.p[i - 1] == ' ')))
			return false;
	return s.n && !str_has(s, STR("${"));
}

/* The command line is one line of words: nothing in an argument may end the word. The kernel
 * accepts blanks inside double quotes. */
static bool is_kernel_arg(struct str s)
{
	bool quoted = false;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"')
			quoted = !quoted;
		if (s.p[i] == ' ' && !quoted)
			return false;
	}
	return is_tuned_text(s) && !quoted;
}

static void read_kernel_args(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *list = field_get(spec, STR("additionalKernelArgs")), *item;

	if (list && !yyjson_is_arr(list))
		problem_error(r->p, PROBLEM_AT(r->doc, list, "spec.additionalKernelArgs"),
			      "must be a list, not %s", doc_type(list));
	ret->kernel_args = arena_array(r->a, struct str, yyjson_arr_size(list) + 1);
	DOC_EACH_ITEM (list, item) {
		if (is_kernel_arg(doc_str(item)))
			ret->kernel_args[ret->n_kernel_args++] = doc_str(item);
		else
			problem_error(
				r->p, PROBLEM_AT(r->doc, item, "spec.additionalKernelArgs"),
				"%s is not a kernel argument: one word of printable ASCII, blanks "
				"only inside double quotes, without \"${\" and without \"#\" "
				"at the start of a word",
				quote(doc_text(item)).text);
	}
}

static void read_kernel(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *realtime = field_object(r, spec, "spec.realTimeKernel");
	struct str page = field_str(r, spec, "spec.kernelPageSize");

	ret->realtime_kernel = field_bool(r, realtime, "spec.realTimeKernel.enabled", false);
	ret->large_kernel_pages = str_eq(page, STR("64k"));
	if (page.n && !ret->large_kernel_pages && !str_eq(page, STR("4k")))
		problem_error(r->p,
			      PROBLEM_AT(r->doc, doc_get(spec, STR("kernelPageSize")),
					 "spec.kernelPageSize"),
			      "unsupported value %s: valid values are 4k, 64k", quote(page).text);
	read_kernel_args(r, spec, ret);
}

static void read_net(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	yyjson_val *net = field_object(r, spec, "spec.net"), *device, *key, *value;

	ret->user_networking = field_bool(r, net, "spec.net.userLevelNetworking", false);
	ret->net_devices = field_get(net, STR("devices"));
	DOC_EACH_ITEM (ret->net_devices, device) {
		DOC_EACH_PAIR (device, key, value) {
			if (!is_tuned_text(doc_str(value)) || str_has(doc_str(value), STR(" ")))
				problem_error(r->p, PROBLEM_AT(r->doc, value, "spec.net.devices"),
					      "%s must be a word of printable ASCII without "
					      "\"${\"",
					      quote(doc_str(key)).text);
		}
	}
}

void profile_read_tuning(const struct field_reader *r, yyjson_val *spec, struct profile *ret)
{
	static const char *const known[] = {
		"cpu",
		"nodeSelector",
		"machineConfigLabel",
		"machineConfigPoolSelector",
		"numa",
		"hugepages",
		"realTimeKernel",
		"kernelPageSize",
		"additionalKernelArgs",
		"workloadHints",
		"hardwareTuning",
		"globallyDisableIrqLoadBalancing",
		"net",
		NULL,
	};

	/* The hints are checked against the real-time kernel, and against the CPU sets, which
	 * profile_read() has read. */
	read_kernel(r, spec, ret);
	read_hints(r, spec, ret);
	read_topology_policy(r, spec, ret);
	read_frequencies(r, spec, ret);
	read_hugepages(r, spec, ret);
	read_net(r, spec, ret);
	ret->irq_balancing_off = field_bool(r, spec, "spec.globallyDisableIrqLoadBalancing", false);
	ret->keeps_interrupts =
		yyjson_is_false(field_get(spec, STR("globallyDisableIrqLoadBalancing")));
	field_unknown(r, spec, "spec", known, PROBLEM_NOTE);
}

void profile_alignment(const struct profile *profile, struct hint_config *topology,
		       struct pick_options *options)
{
	yyjson_val *key, *value;

	(void)hint_policy_parse(profile->topology_policy, &topology->policy, NULL);
	(void)hint_scope_parse(doc_str(doc_get(profile->kubelet_base, STR(NAME_KUBELET_SCOPE))),
			       &topology->scope, NULL);
	if (str_eq(profile->topology_policy, STR("single-numa-node")))
		options->full_pcpus_only = true;
	/* Options that only a kubelet knows have no effect here. */
	DOC_EACH_PAIR (doc_get(profile->kubelet_base, STR(NAME_POOLS_OPTIONS_KEY)), key, value)
		(void)pick_options_set(options, doc_str(key), doc_str(value), NULL);
}

/* The kubelet would refuse to start with another scope. */
static void check_scope(const struct field_reader *r, yyjson_val *at, struct profile *ret)
{
	yyjson_val *scope = doc_get(ret->kubelet_base, STR(NAME_KUBELET_SCOPE));
	enum hint_scope parsed;

	if (scope && hint_scope_parse(doc_str(scope), &parsed, NULL) < 0)
		problem_error(r->p,
			      PROBLEM_AT(r->doc, at,
					 "metadata.annotations." NAME_KUBELET_EXPERIMENTAL),
			      NAME_KUBELET_SCOPE ": valid values are container, pod");
}

static void read_kubelet_base(const struct field_reader *r, yyjson_val *v, struct profile *ret)
{
	struct err err = { 0 };
	struct doc doc;

	if (!v)
		return;
	/* JSON inside a YAML string, so that an error has no position in the file of its own. */
	if (doc_parse(doc_str(v), STR(""), NULL, r->a, &doc, &err) < 0)
		problem_error(r->p,
			      PROBLEM_AT(r->doc, v,
					 "metadata.annotations." NAME_KUBELET_EXPERIMENTAL),
			      "not JSON: %s", err.msg);
	else if (!yyjson_is_obj(doc.root))
		problem_error(r->p,
			      PROBLEM_AT(r->doc, v,
					 "metadata.annotations." NAME_KUBELET_EXPERIMENTAL),
			      "must be a JSON object");
	else
		ret->kubelet_base = doc.root;
	check_scope(r, v, ret);
}

static void read_changes(const struct field_reader *r, yyjson_val *notes, struct profile *ret)
{
	bool invalid[CHANGE_ANNOTATION__COUNT];

	(void)change_settings_read(notes, &ret->changes, invalid);
	for (enum change_annotation c = 0; c < CHANGE_ANNOTATION__COUNT; c++) {
		const char *name = change_annotation_name(c);
		yyjson_val *v = doc_get(notes, str_from(name));
		struct problem_at at;

		if (!invalid[c])
			continue;
		at = PROBLEM_AT(r->doc, v, str_printf(r->a, "metadata.annotations.%s", name).p);
		if (yyjson_is_str(v))
			problem_error(r->p, at, "unsupported value %s: valid values are %s",
				      quote(doc_str(v)).text, change_annotation_values(c));
		else
			problem_error(r->p, at, "must be a string in quotes: valid values are %s",
				      change_annotation_values(c));
	}
}

static int parse_types(const struct field_reader *r, yyjson_val *v, struct pool_config *ret,
		       struct err *err)
{
	struct doc doc;
	int code;

	pool_config_init(ret);
	if (!yyjson_is_str(v))
		return err_set(err, EINVAL, "must be a string with a JSON object");
	if (!doc_str(v).n) /* the default, as in the other annotations of ours */
		return 0;
	code = doc_parse(doc_str(v), STR(""), NULL, r->a, &doc, err);
	return code < 0 ? code : pool_config_read_types(&doc, doc.root, ret, err);
}

static void read_types(const struct field_reader *r, yyjson_val *v, struct profile *ret)
{
	struct pool_config c;
	struct err err = { 0 };
	struct pool_type *types;

	if (!v)
		return;
	if (parse_types(r, v, &c, &err) < 0) {
		problem_error(r->p, PROBLEM_AT(r->doc, v, "metadata.annotations." NAME_TYPES), "%s",
			      err.msg);
		return;
	}
	types = arena_array(r->a, struct pool_type, c.n_types + 1);
	memcpy(types, c.types, c.n_types * sizeof(*types));
	ret->types = types;
	ret->n_types = c.n_types;
}

void profile_read_annotations(const struct field_reader *r, struct profile *ret)
{
	yyjson_val *notes = doc_find(ret->at.object, "/metadata/annotations");
	struct str rps = doc_str(doc_get(notes, STR(NAME_PROFILE_ANNOTATION "enable-rps")));
	struct str balancing =
		doc_str(doc_get(notes, STR(NAME_PROFILE_ANNOTATION "cpu-load-balancing-ovs-dpdk")));

	/* The words that the Node Tuning Operator accepts; any other value, a typing error
	 * included, is the default. */
	ret->rps = str_eq(rps, STR("true")) || str_eq(rps, STR("enable"));
	ret->rps_on_physical = str_eq(
		doc_str(doc_get(notes, STR(NAME_PROFILE_ANNOTATION "enable-physical-dev-rps"))),
		STR("true"));
	/* Compared without case, as the operator does. */
	ret->ovs_isolated = balancing.n == strlen("disable") &&
			    strncasecmp(balancing.p, "disable", balancing.n) == 0;
	ret->exec_affinity =
		!str_eq(doc_str(doc_get(notes, STR(NAME_PROFILE_ANNOTATION "exec-cpu-affinity"))),
			STR("disable"));
	read_kubelet_base(r, doc_get(notes, STR(NAME_KUBELET_EXPERIMENTAL)), ret);
	read_changes(r, notes, ret);
	read_types(r, doc_get(notes, STR(NAME_TYPES)), ret);
}
