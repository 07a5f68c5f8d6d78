/* What the agent does about pods once it knows which namespaces may use the management CPUs. */

#include "agent_node.h"
#include "kube/names.h"
#include "nodesync/node_sync.h"
#include "test.h"

static enum permission permission_is(const void *data, struct str namespace)
{
	(void)namespace;
	return *(const enum permission *)data;
}

/* A management pod that was accepted while its namespace was not known. */
static void add_management_pod(struct node *n, const char *config_source)
{
	struct nri_pair annotations[3];
	struct box b;

	box_init(&b, "mgmt", "burstable/", 2, 0);
	box_manage(&b, "{\"cpushares\":400}");
	annotations[0] = b.annotations[0];
	annotations[1] = b.annotations[1];
	annotations[2] = (struct nri_pair){ NAME_CONFIG_SOURCE, (char *)config_source };
	b.pod.annotations = annotations;
	b.pod.n_annotations = 3;
	CHECK_STR(create(n, &b).cpus, "0-1");
	CHECK(n->manager.registry.pods[0]->is_management);
}

TEST(a_static_pod_is_trusted_in_a_namespace_that_does_not_permit_management)
{
	static const struct {
		const char *source;
		enum permission permission;
		bool is_untrusted;
	} rows[] = {
		{ "file", PERMISSION_DENIED, false }, { "http", PERMISSION_DENIED, false },
		{ "api", PERMISSION_DENIED, true },   { "api", PERMISSION_GRANTED, false },
		{ "api", PERMISSION_UNKNOWN, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum permission permission = PERMISSION_UNKNOWN;
		struct node n;

		TEST_ROW("%s, permission %d", rows[i].source, (int)rows[i].permission);
		node_init(&n, "0-1", "2-3", "4-7");
		n.manager.rules.permission = permission_is;
		n.manager.rules.permission_data = &permission;
		add_management_pod(&n, rows[i].source);
		permission = rows[i].permission;
		CHECK_INT(node_sync_has_untrusted_pod(&n.manager), rows[i].is_untrusted);
		node_done(&n);
	}
}
