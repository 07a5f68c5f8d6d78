#include "profile_select.h"

#include "kube/names.h"
#include "profile/selector.h"

static yyjson_val *selector_of(yyjson_val *profile)
{
	return doc_find(profile, "/spec/nodeSelector");
}

bool profile_selects_node(yyjson_val *profile, yyjson_val *labels)
{
	yyjson_val *selector = selector_of(profile);

	return yyjson_obj_size(selector) > 0 && labels_contain(labels, selector);
}

/* A node of a custom pool has the label of role worker, too, and a control plane node may have any
 * other: that is no conflict. */
static int rank_of(yyjson_val *profile)
{
	yyjson_val *selector = selector_of(profile);

	if (doc_get(selector, STR(NAME_NODE_ROLE_PREFIX "master")) ||
	    doc_get(selector, STR(NAME_NODE_ROLE_PREFIX "control-plane")))
		return 2;
	return doc_get(selector, STR(NAME_NODE_ROLE_PREFIX "worker")) ? 0 : 1;
}

size_t profile_select(yyjson_val *const *profiles, size_t n, yyjson_val *labels, size_t *ret)
{
	size_t found = 0;
	int best = -1;

	for (size_t i = 0; i < n; i++) {
		const int rank = rank_of(profiles[i]);

		if (!profile_selects_node(profiles[i], labels) || rank < best)
			continue;
		if (rank > best)
			found = 0;
		best = rank;
		ret[found++] = i;
	}
	return found;
}
