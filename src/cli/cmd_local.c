#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_print.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup_snapshot.h"
#include "codec/problems.h"
#include "command.h"
#include "cpu/topology_read.h"
#include "input.h"
#include "local/control.h"
#include "local/local_audit.h"
#include "local/local_node.h"
#include "local/local_plan.h"
#include "local/process.h"
#include "local/supervisor.h"
#include "local_common.h"
#include "output.h"

/* The local commands that look at, change or end what `local up` runs. */

/* --- status and map --- */

struct view_text {
	struct str text;
	const struct map *map; /* NULL: without the single CPUs */
};

static int print_view(const struct local_view *v, const char *output, const struct view_text *as,
		      struct arena *a, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);

	if (output_format_of(output) == OUTPUT_TABLE)
		return output_text(as->text, err);
	doc_put_str(m, root, STR("mode"), str_from(local_mode_name(v->intent.mode)));
	doc_put(m, root, STR("pools"), pool_config_to_doc(&v->intent.config, m, a));
	doc_put(m, root, STR("containers"),
		local_to_doc(m, v->intent.containers, v->snapshots, v->intent.states, v->intent.n,
			     a));
	if (as->map)
		doc_put(m, root, STR("cpus"), map_cpus_to_doc(as->map, m));
	return output_doc(root, output_format_of(output), a, err);
}

static int run_status(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	struct view_text as = { 0 };
	struct local_view v;
	int r;

	local_options_fill(o, inv->arena);
	r = local_view_open(&v, o, inv->arena, err);
	if (r < 0)
		return r;
	as.text = local_table(v.intent.containers, v.snapshots, v.intent.states, v.intent.n,
			      inv->arena);
	r = print_view(&v, o->output, &as, inv->arena, err);
	local_view_done(&v);
	return r;
}

static int print_map(void *data, struct arena *a, struct err *err)
{
	const struct local_options *o = data;
	struct local_machine machine;
	struct local_view v;
	struct view_text as;
	struct map map;
	int r;

	r = local_view_open(&v, o, a, err);
	if (r < 0)
		return r;
	machine = (struct local_machine){ v.topology, &v.intent.config, v.intent.containers,
					  v.intent.n };
	map = local_map(&machine, a);
	as = (struct view_text){ map_draw(&map, a), &map };
	if (o->watch)
		as.text = map_over_the_last(as.text, a);
	r = print_view(&v, o->output, &as, a, err);
	local_view_done(&v);
	return r;
}

static int run_map(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;

	local_options_fill(o, inv->arena);
	return map_show(print_map, o, o->watch, inv->arena, err);
}

/* --- verify --- */

/* The machine first, then the containers: see cgroup_snapshot_drop_ended(). */
static int run_verify(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	AUTO_CLOSE int proc = process_open_proc(err);
	struct processes machine;
	struct local_view v;
	struct audit audit;
	int r = proc;

	local_options_fill(o, inv->arena);
	if (r >= 0)
		r = cgroup_snapshot_read_machine(proc, inv->arena, &machine, err);
	if (r >= 0)
		r = local_view_open(&v, o, inv->arena, err);
	if (r < 0)
		return r;
	cgroup_snapshot_drop_ended(proc, &machine);
	audit = local_audit(&(struct local_audit_input){ v.intent.mode, v.intent.containers,
							 v.snapshots, v.intent.states, v.intent.n,
							 &machine },
			    inv->arena);
	local_view_done(&v);
	return audit_print(&audit, &(struct audit_format){ o->output, o->strict }, inv->arena, err);
}

/* --- apply and down --- */

static int ask(const struct local_options *o, struct str question, struct arena *a, struct err *err)
{
	struct str text;
	int status, r;

	r = control_request(o->run_dir, question, a, &status, &text, err);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return err_set(err, -r, "nothing runs here: no local machine \"%s\" in %s", o->name,
			       o->run_dir);
	if (r < 0)
		return r;
	if (status != EXIT_BAD) {
		(void)fwrite(text.p, 1, text.n, stderr);
		return status;
	}
	/* The last line is the error; what stands before it, more of its kind. */
	text = str_trim(text);
	for (size_t i = text.n; i > 0; i--)
		if (text.p[i - 1] == '\n') {
			(void)fwrite(text.p, 1, i, stderr);
			text = str_skip(text, i);
			break;
		}
	return err_set(err, EINVAL, PRI_STR, FMT_STR(text));
}

static int run_apply(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	struct str question = STR("apply");
	char *dir = NULL;
	int r;

	local_options_fill(o, inv->arena);
	if (inv->args.n > 1)
		return err_set(err, EINVAL, "name one directory at most");
	if (inv->args.n) {
		dir = realpath(inv->args.items[0], NULL);
		if (!dir)
			return err_set(err, errno, "%s: %s", inv->args.items[0], strerror(errno));
		question = str_printf(inv->arena, "apply %s", dir);
	}
	r = ask(o, question, inv->arena, err);
	free(dir);
	return r;
}

/* Without a supervisor, after a crash: what it left is found and removed all the same. */
static int clean_up(const struct local_options *o, struct err *err)
{
	struct local_node_settings s = { .name = o->name,
					 .run_dir = o->run_dir,
					 .topology = "host" };
	int r = local_node_clean(&s, err);

	if (r == 0)
		(void)fprintf(stderr, "nothing was running: no local machine \"%s\" in %s\n",
			      o->name, o->run_dir);
	return r < 0 ? r : EXIT_YES;
}

static int run_down(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	int r;

	local_options_fill(o, inv->arena);
	r = ask(o, STR("down"), inv->arena, err);
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EPIPE)
		r = clean_up(o, err);
	return r;
}

/* --- plan --- */

static void put_refusals(yyjson_mut_doc *m, yyjson_mut_val *root, const struct local_plan *plan)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("refused"));

	for (size_t i = 0; i < plan->n_refusals; i++) {
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, o, STR("namespace"), plan->refusals[i].namespace);
		doc_put_str(m, o, STR("pod"), plan->refusals[i].pod);
		doc_put_str(m, o, STR("text"), plan->refusals[i].text);
	}
}

static int print_plan(const struct local_plan *plan, const struct local_machine *machine,
		      const char *output, struct arena *a, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct map map;
	int r;

	if (output_format_of(output) != OUTPUT_TABLE) {
		doc_put(m, root, STR("pools"), pool_config_to_doc(machine->config, m, a));
		doc_put(m, root, STR("containers"),
			local_to_doc(m, plan->containers, NULL, NULL, plan->n, a));
		put_refusals(m, root, plan);
		return output_doc(root, output_format_of(output), a, err);
	}
	map = local_map(machine, a);
	r = output_text(map_draw(&map, a), err);
	if (r >= 0 && plan->n && plan->n <= 24) /* beyond that the map says it better */
		r = output_text(local_table(plan->containers, NULL, NULL, plan->n, a), err);
	return r;
}

static int make_plan(struct invocation *inv, struct problem_list *p, struct err *err)
{
	struct local_options *o = inv->options;
	struct arena *a = inv->arena;
	struct manifests manifests;
	struct topology topology;
	struct local_plan_input in = { .manifests = &manifests,
				       .topology = &topology,
				       .simulate = true };
	struct local_machine machine = { .topology = &topology };
	struct local_plan plan = { 0 };
	struct pool_config config;
	struct ledger ledger;
	int r;

	manifests_init(&manifests, a);
	r = input_read(&manifests, inv->args.items[0], p, err);
	if (r >= 0)
		r = topology_read(o->topology, a, &topology, err);
	if (r < 0)
		return r;
	if (p->n_errors || !local_plan_config(&in, a, &config, p))
		return -EINVAL;
	r = ledger_init(&ledger, &topology, &config, err);
	if (r < 0)
		return r;
	r = local_plan_make(&in, &config, &ledger, a, &plan, p);
	if (r >= 0)
		r = ledger_commit(&ledger, err);
	machine.config = &config;
	machine.containers = plan.containers;
	machine.n = plan.n;
	if (r >= 0)
		r = print_plan(&plan, &machine, o->output, a, err);
	ledger_done(&ledger);
	(void)fprintf(stderr, PRI_STR, FMT_STR(local_plan_report(&plan, p, a)));
	p->n = 0; /* printed */
	return r < 0 ? r : plan.n_refusals ? EXIT_FINDING : EXIT_YES;
}

static int run_plan(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	struct problem_list p;
	int r;

	local_options_fill(o, inv->arena);
	if (inv->args.n != 1)
		return err_set(err, EINVAL, "name one directory of manifests");
	problem_list_init(&p, inv->arena);
	r = make_plan(inv, &p, err);
	if (p.n)
		(void)fprintf(stderr, PRI_STR, FMT_STR(problem_list_format(&p, inv->arena)));
	if (p.n_errors) /* those have been printed, each with its place */
		return err_set(err, EINVAL, "no plan");
	return r;
}

static const struct command_example plan_examples[] = {
	{ "pinfold local plan --topology 'pack:2 core:16 pu:2' examples/ran",
	  "see a directory of pods on a machine of 64 CPUs" },
	{ 0 },
};
static const struct command_example map_examples[] = {
	{ "pinfold local map --watch", "follow a resize live" },
	{ 0 },
};
static const struct command_example verify_examples[] = {
	{ "pinfold local verify", "is everything where it should be?" },
	{ 0 },
};
static const struct command_example apply_examples[] = {
	{ "pinfold local apply examples/local", "take over changed manifests while it runs" },
	{ 0 },
};

const struct command cmd_local_plan = {
	.name = "local plan",
	.group = COMMAND_TOOL,
	.summary = "show where a directory of pods would run, on any machine",
	.operands = "DIR",
	.about = "Does everything 'local up' does except starting anything, on this machine or on\n"
		 "the one --topology describes.",
	LOCAL_OPTIONS(LOCAL_TOPOLOGY, LOCAL_OUTPUT),
	.examples = plan_examples,
	.run = run_plan,
};

const struct command cmd_local_status = {
	.name = "local status",
	.group = COMMAND_TOOL,
	.summary = "list what runs locally, and on which CPUs",
	.operands = "",
	.about = "Lists the containers of 'local up' with their CPUs, weight and quota.",
	LOCAL_OPTIONS(LOCAL_NAME, LOCAL_OUTPUT),
	.run = run_status,
};

const struct command cmd_local_map = {
	.name = "local map",
	.group = COMMAND_TOOL,
	.summary = "draw which pod is on which CPU",
	.operands = "",
	.about = "Draws this machine's NUMA nodes, cores and threads with its pools, and says who\n"
		 "runs on which CPUs.",
	LOCAL_OPTIONS(LOCAL_NAME, MAP_WATCH_OPTION(struct local_options), LOCAL_OUTPUT),
	.examples = map_examples,
	.run = run_map,
};

const struct command cmd_local_verify = {
	.name = "local verify",
	.group = COMMAND_TOOL,
	.summary = "compare the kernel's truth with the plan",
	.operands = "",
	.about = "Reads the control files of every container's cgroup and the allowed CPUs of "
		 "every\n"
		 "thread, and compares them with what should be; and names who else may run on "
		 "CPUs\n"
		 "that a container owns. Exit status 1 when something differs.",
	LOCAL_OPTIONS(LOCAL_NAME, AUDIT_STRICT_OPTION(struct local_options), LOCAL_OUTPUT),
	.examples = verify_examples,
	.run = run_verify,
};

const struct command cmd_local_apply = {
	.name = "local apply",
	.group = COMMAND_TOOL,
	.summary = "change the profile or the pods while they run",
	.operands = "[DIR]",
	.about =
		"Reads DIR, or the directory 'local up' was given, again and makes it so: pods "
		"come\n"
		"and go, and pools change their size without a restart. A profile that would take\n"
		"CPUs from under a container that owns them is refused, and the container named.",
	LOCAL_OPTIONS(LOCAL_NAME),
	.examples = apply_examples,
	.run = run_apply,
};

const struct command cmd_local_down = {
	.name = "local down",
	.group = COMMAND_TOOL,
	.summary = "end everything 'local up' started",
	.operands = "",
	.about = "Ends the containers (SIGTERM, then SIGKILL after their grace period), removes "
		 "their\n"
		 "cgroups and the state. Works after a crash of pinfold, too.",
	LOCAL_OPTIONS(LOCAL_NAME),
	.run = run_down,
};
