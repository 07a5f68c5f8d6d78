/* The kubelet passes labels of a pod to the runtime as it passes annotations. */

#include "legacy_pod.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/quote.h"
#include "kube/names.h"
#include "kube/quantity.h"
#include "kube/shares.h"
#include "nri/nri.h"

bool legacy_reads(struct str annotation)
{
	return str_eq(annotation, STR(NAME_LEGACY_MANAGEMENT)) ||
	       str_starts(annotation, STR(NAME_LEGACY_CPU_PREFIX));
}

bool legacy_reads_label(struct str label)
{
	return str_eq(label, STR(NAME_LEGACY_MANAGEMENT)) || str_eq(label, STR(NAME_LEGACY_TARGET));
}

static bool is_true(const char *text)
{
	return text && strcmp(text, "true") == 0;
}

struct str legacy_type(const struct nri_pod *pod)
{
	const char *target = nri_find(pod->labels, pod->n_labels, NAME_LEGACY_TARGET);

	if (target && *target)
		return str_from(target);
	if (is_true(nri_find(pod->annotations, pod->n_annotations, NAME_LEGACY_MANAGEMENT)) ||
	    is_true(nri_find(pod->labels, pod->n_labels, NAME_LEGACY_MANAGEMENT)))
		return STR(NAME_TYPE_MANAGEMENT);
	return STR("");
}

/* "400m"; 0 stands for a container without a request. */
static int shares_of(const char *text, uint64_t *ret, struct err *err)
{
	struct err why = { 0 };
	struct quantity q;
	int64_t milli;

	if (quantity_parse(str_from(text), &q, &why) < 0 || quantity_milli(&q, &milli, &why) < 0)
		return err_set(err, EINVAL, "%s", why.msg);
	if (milli < 0)
		return err_set(err, EINVAL, "%s is below 0", quote(str_from(text)).text);
	*ret = cpu_shares_from_milli(milli);
	return 0;
}

int legacy_shares(const struct nri_pod *pod, const char *container, uint64_t *ret, struct err *err)
{
	uint64_t shares = 0;

	for (size_t i = 0; i < pod->n_annotations; i++) {
		const struct str key = str_from(pod->annotations[i].key);

		if (!str_starts(key, STR(NAME_LEGACY_CPU_PREFIX)) ||
		    !str_eq(str_skip(key, sizeof(NAME_LEGACY_CPU_PREFIX) - 1), str_from(container)))
			continue;
		if (shares_of(pod->annotations[i].value, &shares, err) < 0)
			return err_wrap(err, "annotation %s", pod->annotations[i].key);
	}
	*ret = shares;
	return 0;
}

uint64_t legacy_pod_shares(const struct nri_pod *pod)
{
	uint64_t sum = 0, shares;

	for (size_t i = 0; i < pod->n_annotations; i++)
		if (str_starts(str_from(pod->annotations[i].key), STR(NAME_LEGACY_CPU_PREFIX)) &&
		    shares_of(pod->annotations[i].value, &shares, NULL) == 0 &&
		    sum + shares >= sum) /* no overflow: users choose these numbers */
			sum += shares;
	return sum;
}
