#include "command.h"

/* Every command, in the order the help shows them. To add one: write cmd_<name>.c with its
 * `const struct command cmd_<name>`, declare it here, and give it a row. */

extern const struct command cmd_admit;
extern const struct command cmd_agent;
extern const struct command cmd_allocate;
extern const struct command cmd_bundle;
extern const struct command cmd_check;
extern const struct command cmd_completion;
extern const struct command cmd_cpuset;
extern const struct command cmd_dashboard;
extern const struct command cmd_enable;
extern const struct command cmd_explain;
extern const struct command cmd_fleet;
extern const struct command cmd_lint;
extern const struct command cmd_local_apply;
extern const struct command cmd_local_down;
extern const struct command cmd_local_map;
extern const struct command cmd_local_plan;
extern const struct command cmd_local_status;
extern const struct command cmd_local_up;
extern const struct command cmd_local_verify;
extern const struct command cmd_man;
extern const struct command cmd_map;
extern const struct command cmd_migrate;
extern const struct command cmd_oci_hook;
extern const struct command cmd_operator;
extern const struct command cmd_plan;
extern const struct command cmd_policy;
extern const struct command cmd_profile_check;
extern const struct command cmd_profile_suggest;
extern const struct command cmd_render;
extern const struct command cmd_report;
extern const struct command cmd_sim;
extern const struct command cmd_status;
extern const struct command cmd_topology;
extern const struct command cmd_uninstall;
extern const struct command cmd_verify;
extern const struct command cmd_webhook;

/* clang-format off */
const struct command *const commands[] = {
	&cmd_admit,
	&cmd_explain,
	&cmd_lint,
	&cmd_migrate,
	&cmd_policy,
	&cmd_profile_check,
	&cmd_profile_suggest,
	&cmd_render,
	&cmd_plan,
	&cmd_sim,
	&cmd_fleet,
	&cmd_local_up,
	&cmd_local_plan,
	&cmd_local_status,
	&cmd_local_map,
	&cmd_local_verify,
	&cmd_local_apply,
	&cmd_local_down,
	&cmd_check,
	&cmd_bundle,
	&cmd_report,
	&cmd_map,
	&cmd_status,
	&cmd_verify,
	&cmd_enable,
	&cmd_uninstall,
	&cmd_oci_hook,
	&cmd_topology,
	&cmd_allocate,
	&cmd_cpuset,
	&cmd_webhook,
	&cmd_agent,
	&cmd_operator,
	&cmd_dashboard,
	&cmd_completion,
	&cmd_man,
	NULL,
};
