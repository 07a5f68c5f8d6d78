#include "bundle_input.h"

#include <errno.h>

#include "audit_print.h"
#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology_read.h"
#include "node_verify.h"

int bundle_options_check(const struct bundle_options *o, struct err *err)
{
	return o->node && !o->path ? err_set(err, EINVAL, "--node needs --bundle") : 0;
}

int bundle_node_status(const struct saved_bundle *b, struct str node, struct arena *a,
		       struct agent_status *ret, struct err *err)
{
	const struct str path = saved_bundle_node_path(node, BUNDLE_NODE_STATUS, a);
	struct doc host;
	int r;

	*ret = (struct agent_status){ .as_of = b->created };
	r = saved_bundle_doc(b, path, a, &ret->doc, err);
	if (r < 0)
		return r;
	ret->from = saved_bundle_position(b, path, a).p;
	ret->is_running = saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_HOST, a), a,
					   &host, NULL) == 0 &&
			  doc_bool(doc_get(host.root, STR("agentRunning")), false);
	return 0;
}

int bundle_node_topology(const struct saved_bundle *b, struct str node, struct arena *a,
			 struct topology *ret, struct err *err)
{
	struct doc doc;
	int r = saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_TOPOLOGY, a), a, &doc,
				 err);

	return r < 0 ? r : topology_from_doc(&doc, a, ret, err);
}

int bundle_node_verify(const struct saved_bundle *b, struct str node, struct arena *a,
		       struct node_verify *ret, struct err *err)
{
	struct agent_status status;
	int64_t version = CGROUP_V2;
	struct doc doc, host;
	int r;

	*ret = (struct node_verify){ 0 };
	r = saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_VERIFY, a), a, &doc, err);
	if (r >= 0)
		r = audit_from_doc(&doc, a, &ret->audit, err);
	if (r < 0)
		return r;
	if (saved_bundle_doc(b, saved_bundle_node_path(node, BUNDLE_NODE_HOST, a), a, &host,
			     NULL) == 0)
		(void)doc_int(doc_get(host.root, STR("cgroupVersion")), &version);
	ret->host.version = version == CGROUP_V1 ? CGROUP_V1 : CGROUP_V2;
	if (bundle_node_status(b, node, a, &status, NULL) == 0)
		ret->host.management = doc_str(doc_find(status.doc.root, "/pools/management/cpus"));
	return 0;
}

static int open_node(const struct bundle_options *o, struct arena *a, struct saved_bundle *ret,
		     struct str *ret_node, struct err *err)
{
	int r = bundle_load(o->path, a, ret, err);

	return r < 0 ? r : saved_bundle_node(ret, o->node, a, ret_node, err);
}

int bundle_input_status(const struct bundle_options *o, struct arena *a, struct agent_status *ret,
			struct err *err)
{
	struct saved_bundle b;
	struct str node;
	int r = open_node(o, a, &b, &node, err);

	return r < 0 ? r : bundle_node_status(&b, node, a, ret, err);
}

int bundle_input_topology(const struct bundle_options *o, struct arena *a, struct topology *ret,
			  struct err *err)
{
	struct saved_bundle b;
	struct str node;
	int r = open_node(o, a, &b, &node, err);

	return r < 0 ? r : bundle_node_topology(&b, node, a, ret, err);
}

int bundle_input_verify(const struct bundle_options *o, struct arena *a, struct node_verify *ret,
			struct err *err)
{
	struct saved_bundle b;
	struct str node;
	int r = open_node(o, a, &b, &node, err);

	return r < 0 ? r : bundle_node_verify(&b, node, a, ret, err);
}
