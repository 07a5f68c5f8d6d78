/* The kubelet does not start with a state file that was written under another policy, or that does
 * not fit its reserved CPUs (docs/reference/cpu-manager.md#start-checks). install.sh moves such
 * files away; a machine that is changed by other means keeps them. */

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology.h"
#include "plan.h"
#include "pool/checkpoint.h"
#include "profile/layout.h"

static struct str differs(struct str have, struct str want, struct arena *a)
{
	if (str_eq(have, want))
		return STR("");
	return str_printf(a,
			  "written with policy \"" PRI_STR "\", the new policy is \"" PRI_STR "\"",
			  FMT_STR(have), FMT_STR(want));
}

static struct str cpu_state_blocks(struct str text, const struct partition *part,
				   yyjson_val *kubelet, struct arena *a)
{
	struct str want = doc_str(doc_get(kubelet, STR("cpuManagerPolicy"))), why;
	struct checkpoint_machine machine = { .reserved = part->cpus[PROFILE_RESERVED] };
	struct err err = { 0 };
	struct cpuset unused;
	struct checkpoint c;

	if (checkpoint_decode(text, STR("cpu_manager_state"), a, &c, &err) < 0)
		return str_dup(a, str_from(err.msg));
	why = differs(c.policy, want, a);
	/* The CPUs are compared with the machine only where the machine is known. */
	if (why.n || !str_eq(want, STR(CHECKPOINT_POLICY_STATIC)) || !part->topology)
		return why;
	machine.cpus = part->topology->online;
	machine.strict = str_eq(
		doc_str(doc_find(kubelet, "/cpuManagerPolicyOptions/strict-cpu-reservation")),
		STR("true"));
	if (checkpoint_check(&c, &machine, &unused, &err) < 0)
		return str_dup(a, str_from(err.msg));
	return STR("");
}

static struct str memory_state_blocks(struct str text, yyjson_val *kubelet, struct arena *a)
{
	struct str want = doc_str(doc_get(kubelet, STR("memoryManagerPolicy")));
	struct err err = { 0 };
	struct doc doc;

	if (doc_parse(text, STR("memory_manager_state"), NULL, a, &doc, &err) < 0)
		return str_dup(a, str_from(err.msg));
	/* An unset policy is the kubelet's default, None. */
	return differs(doc_str(doc_get(doc.root, STR("policyName"))), want.n ? want : STR("None"),
		       a);
}

struct str plan_state_blocks(const struct plan_state *state, const struct partition *part,
			     const struct file_set *after, struct arena *a)
{
	yyjson_val *kubelet = plan_kubelet_config(after, part, a);

	if (!kubelet)
		return STR("");
	return strcmp(state->file, "cpu_manager_state") == 0 ?
		       cpu_state_blocks(state->text, part, kubelet, a) :
		       memory_state_blocks(state->text, kubelet, a);
}
