#include "bundle_collect.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"

static bool is_scope(const struct collect_options *o, const char *what)
{
	return o->scope && (strcmp(o->scope, what) == 0 || strcmp(o->scope, "all") == 0);
}

/* A cluster that does not answer is an error only when nothing else was collected: that may be what
 * the bundle is about. */
static int collect_cluster(struct bundle_build *b, const struct collect_options *o, bool has_node,
			   struct err *err)
{
	const bool is_asked = is_scope(o, "cluster") || o->client.kubeconfig;
	struct kubeconfig kubeconfig;
	int r;

	if (o->scope && !is_scope(o, "cluster"))
		return 0;
	r = api_sync_find_kubeconfig(o->client.kubeconfig, o->client.context, b->a, &kubeconfig,
				     err);
	if (r < 0 && (is_asked || !has_node))
		return r;
	if (r >= 0)
		r = bundle_collect_cluster(b, &kubeconfig, !o->no_logs, err);
	if (r >= 0 || !has_node)
		return r;
	bundle_build_leave_out(b, STR("objects and logs of the cluster"),
			       str_dup(b->a, str_from(err->msg)));
	return 0;
}

int bundle_collect(struct bundle_build *b, const struct collect_options *o, int64_t now_s,
		   struct arena *a, struct str *ret_node, struct err *err)
{
	int r;

	if (o->max_mib == 0 || o->max_mib > BUNDLE_MAX_BYTES >> 20)
		return err_set(err, EINVAL, "--max-size is from 1 to %zu MiB",
			       BUNDLE_MAX_BYTES >> 20);
	/* The archive's headers and the index are not counted. */
	bundle_build_init(b, ((size_t)o->max_mib << 20) / 8 * 7, a);
	*ret_node = STR("");
	if (is_scope(o, "node") || (!o->scope && access(o->node.from.run_dir, F_OK) == 0))
		*ret_node = bundle_collect_node(b, &o->node);
	r = collect_cluster(b, o, ret_node->n > 0, err);
	return r < 0 ? r : bundle_build_finish(b, STR(PINFOLD_VERSION), now_s, err);
}
