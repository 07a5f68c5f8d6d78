/* What `pinfold policy` prints is what deploy/ ships. What the policies do is tried on a real API
 * server by tests/e2e/policy-differential.sh. */

#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "test.h"

static struct str print(const struct policy_options *o, struct arena *a)
{
	struct err err = { 0 };
	struct str text = STR("");

	CHECK_OK(policy_yaml(o, a, &text, &err));
	return text;
}

TEST(the_deployed_policies_are_the_printed_ones)
{
	static const struct {
		struct policy_options options;
		const char *file;
	} rows[] = {
		{ { .mode = POLICY_MODE_WEBHOOK, .minor = POLICY_MINOR_GUARD },
		  "../deploy/base/policy-pods.yaml" },
		{ { .mode = POLICY_MODE_POLICY,
		    .only_mutating = true,
		    .minor = POLICY_MINOR_MUTATING },
		  "../deploy/policies/policies.yaml" },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_OK(file_read_at(AT_FDCWD, test_data(rows[i].file), 1 << 20, &a, &text, &err));
		CHECK_STR(print(&rows[i].options, &a), text);
	}
}

/* Comprehensions with two variables came with 1.32, flatten() with 1.34. */
TEST(the_guard_needs_no_cel_after_1_30)
{
	static const char *const later[] = { "transformList", "transformMap", "flatten",
					     "cel.bind",      "params",	      "jsonpatch" };
	const struct policy_options o = { .minor = POLICY_MINOR_GUARD };
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	text = print(&o, &a);
	for (size_t i = 0; i < ARRAY_LEN(later); i++)
		CHECK(!str_has(text, str_from(later[i])));
}

TEST(a_pod_that_was_not_converted_is_refused_only_where_policies_convert)
{
	static const struct {
		enum policy_mode mode;
		const char *actions;
	} rows[] = {
		{ POLICY_MODE_WEBHOOK, "  - Warn\n  - Audit\n" },
		{ POLICY_MODE_POLICY, "  - Deny\n" },
		{ POLICY_MODE_BOTH, "  - Deny\n" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_options o = { .mode = rows[i].mode,
						  .minor = POLICY_MINOR_MUTATING };
		struct str wanted =
			str_printf(&a, "policyName: pinfold-converted\n  validationActions:\n%s",
				   rows[i].actions);

		CHECK(str_has(print(&o, &a), wanted));
	}
}

TEST(the_options_change_what_they_name)
{
	static const struct {
		struct policy_options options;
		const char *has, *lacks;
	} rows[] = {
		{ { .legacy = true, .minor = 36 }, "namespaceObject.metadata.?labels", "Mutating" },
		{ { .minor = 36 }, "pinfold-guard", "namespaceObject.metadata.?labels" },
		{ { .mode = POLICY_MODE_POLICY, .minor = 36 }, "pinfold-tainted-nodes", "v1beta1" },
		{ { .mode = POLICY_MODE_POLICY, .minor = 35 },
		  "k8s.io/v1beta1\nkind: MutatingAdmissionPolicyBinding",
		  "k8s.io/v1\nkind: Mutating" },
		{ { .mode = POLICY_MODE_BOTH, .refuse_nodes = true, .minor = 36 },
		  "policyName: pinfold-nodes\n  paramRef:\n    name: pinfold-admission\n    "
		  "namespace: kube-system\n    parameterNotFoundAction: Allow\n  "
		  "validationActions:\n  - Deny",
		  "pinfold-tainted-nodes" },
		{ { .mode = POLICY_MODE_BOTH, .only_mutating = true, .minor = 36 },
		  "pinfold-workloads",
		  "pinfold-guard" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str text = print(&rows[i].options, &a);

		CHECK(str_has(text, str_from(rows[i].has)));
		CHECK(!str_has(text, str_from(rows[i].lacks)));
	}
}

TEST(versions_without_the_policies_are_refused)
{
	static const struct {
		enum policy_mode mode;
		unsigned minor;
		int code;
	} rows[] = {
		{ POLICY_MODE_WEBHOOK, 29, -EINVAL }, { POLICY_MODE_WEBHOOK, 30, 0 },
		{ POLICY_MODE_POLICY, 33, -EINVAL },  { POLICY_MODE_POLICY, 34, 0 },
		{ POLICY_MODE_BOTH, 30, -EINVAL },    { POLICY_MODE_BOTH, 40, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_options o = { .mode = rows[i].mode, .minor = rows[i].minor };
		struct err err = { 0 };

		CHECK_INT(policy_options_check(&o, &err), rows[i].code);
	}
}
