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
#include "local/control.h"
#include "local/local_audit.h"
#include "local/local_node.h"
#include "local/local_plan.h"
#include "local/process.h"
#include "local/supervisor.h"
#include "local_common.h"
#include "manifest_paths.h"
#include "output.h"

/* The local commands that read, change or stop what `local up` runs. */

/* --- status, map and verify --- */

static yyjson_mut_val *describe_view(const struct local_view *v, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = local_describe(&v->machine, m, a);

	doc_put_str(m, root, STR("enforcement"), str_from(local_mode_name(v->file.mode)));
	return root;
}

static int run_status(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	const enum output_format format = output_format_of(o->output);
	struct local_view v;
	int r;

	local_options_fill(o, inv->arena);
	r = local_view_open(&v, o, inv->arena, err);
	if (r < 0)
		return r;
	if (format == OUTPUT_TABLE)
		r = output_readable(local_table(&v.machine, inv->arena), err);
	else
		r = output_doc(describe_view(&v, doc_build(inv->arena), inv->arena), format,
			       inv->arena, err);
	local_view_done(&v);
	return r;
}

static int print_map(void *data, struct arena *a, struct err *err)
{
	const struct local_options *o = data;
	const enum output_format format = output_format_of(o->output);
	struct local_view v;
	struct map map;
	int r;

	r = local_view_open(&v, o, a, err);
	if (r < 0)
		return r;
	map = local_map(&v.machine, a);
	r = map_filter(&map, &o->pods, a, err);
	if (r < 0) {
		local_view_done(&v);
		return r;
	}
	if (format == OUTPUT_TABLE) {
		const struct str text = map_draw(&map, a);

		r = o->watch ? output_text(map_redraw(text, a), err) : output_readable(text, err);
	} else {
		yyjson_mut_doc *m = doc_build(a);
		yyjson_mut_val *root = describe_view(&v, m, a);

		doc_put(m, root, STR("cpus"), map_cpus_to_doc(&map, m));
		r = output_doc(root, format, a, err);
	}
	local_view_done(&v);
	return r;
}

static int run_map(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;

	local_options_fill(o, inv->arena);
	o->pods = inv->args;
	return map_show(print_map, o, o->watch, inv->arena, err);
}

/* The machine's processes are read before the containers: see cgroup_snapshot_drop_ended(). */
static int run_verify(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	AUTO_CLOSE int proc = process_open_proc(err);
	struct processes processes;
	struct local_view v;
	struct foreign_host host;
	struct audit audit;
	int r = proc;

	local_options_fill(o, inv->arena);
	if (r >= 0)
		r = cgroup_snapshot_read_machine(proc, inv->arena, &processes, err);
	if (r >= 0)
		r = local_view_open(&v, o, inv->arena, err);
	if (r < 0)
		return r;
	cgroup_snapshot_drop_ended(proc, &processes);
	audit = local_audit(&(struct local_audit_input){ v.file.mode, v.machine.containers,
							 v.machine.snapshots, v.machine.states,
							 v.machine.n, &processes },
			    inv->arena);
	host = (struct foreign_host){
		cpuset_format(&v.machine.config->reserved, inv->arena),
		v.file.mode == LOCAL_CGROUP_V1 ? CGROUP_V1 : CGROUP_V2,
	};
	local_view_done(&v);
	return audit_print(&audit, &(struct audit_format){ o->output, o->strict, host }, inv->arena,
			   err);
}

/* --- apply and down --- */

/* Returns the supervisor's exit status and prints its report to standard error. */
static int send_request(const struct local_options *o, struct str request, struct arena *a,
			struct err *err)
{
	struct str text;
	int status, r;

	r = control_request(o->run_dir, request, a, &status, &text, err);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return err_set(err, -r, "local machine \"%s\" is not running: no supervisor in %s",
			       o->name, o->run_dir);
	if (r < 0)
		return r;
	if (status != EXIT_BAD) {
		(void)fwrite(text.p, 1, text.n, stderr);
		return status;
	}
	/* main() prints one error; the lines before the last are printed here. */
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
	struct str request = STR("apply");
	const char *given;
	char *dir = NULL;
	int r;

	local_options_fill(o, inv->arena);
	r = local_directory(inv, true, &given, err);
	if (r < 0)
		return r;
	if (given) {
		/* The supervisor may have another working directory. */
		dir = realpath(given, NULL);
		if (!dir)
			return err_set(err, errno, "%s: %s", given, strerror(errno));
		request = str_printf(inv->arena, "apply %s", dir);
	}
	r = send_request(o, request, inv->arena, err);
	free(dir);
	return r;
}

/* After a crash of the supervisor: removes the processes, cgroups and files that it left. */
static int down_without_supervisor(const struct local_options *o, struct err *err)
{
	struct local_node_settings s = { .name = o->name,
					 .run_dir = o->run_dir,
					 .topology = "host" };
	int r = local_node_clean(&s, err);

	if (r == 0)
		(void)fprintf(stderr,
			      "nothing to stop: local machine \"%s\" is not running in %s\n",
			      o->name, o->run_dir);
	return r < 0 ? r : EXIT_YES;
}

static int run_down(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	int r;

	local_options_fill(o, inv->arena);
	r = send_request(o, STR("down"), inv->arena, err);
	/* EPIPE: the supervisor ended before it replied. Containers outlive a supervisor. */
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EPIPE)
		r = down_without_supervisor(o, err);
	return r;
}

/* --- plan --- */

#define MAX_TABLE_ROWS 24 /* larger plans print the map only */

static void put_refusals(yyjson_mut_doc *m, yyjson_mut_val *root, const struct local_plan *plan)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("refused"));

	for (size_t i = 0; i < plan->n_refusals; i++) {
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, o, STR("namespace"), plan->refusals[i].namespace);
		doc_put_str(m, o, STR("pod"), plan->refusals[i].pod);
		doc_put_str(m, o, STR("reason"), plan->refusals[i].text);
	}
}

static int print_plan(const struct local_plan *plan, const struct local_machine *machine,
		      const char *output, struct arena *a, struct err *err)
{
	struct map map;
	int r;

	if (output_format_of(output) != OUTPUT_TABLE) {
		yyjson_mut_doc *m = doc_build(a);
		yyjson_mut_val *root = local_describe(machine, m, a);

		put_refusals(m, root, plan);
		return output_doc(root, output_format_of(output), a, err);
	}
	map = local_map(machine, a);
	r = output_readable(map_draw(&map, a), err);
	if (r >= 0 && plan->n && plan->n <= MAX_TABLE_ROWS)
		r = output_readable(local_table(machine, a), err);
	return r;
}

static int make_plan(struct invocation *inv, const char *dir, struct problem_list *p,
		     struct err *err)
{
	const struct option_list paths = { &dir, 1 };
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
	r = manifests_read(&manifests, &paths, p, err);
	if (r >= 0)
		r = topology_read(o->topology, a, &topology, err);
	if (r < 0)
		return r;
	if (p->n_errors || !local_plan_config(&in, a, &config, p))
		return -EINVAL;
	r = ledger_init(&ledger, &topology, &config, err);
	if (r < 0)
		return r;
	/* A ledger without a file. The commit checks its invariants. */
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
	p->n = 0; /* printed: run_plan() prints what is left */
	return r < 0 ? r : plan.n_refusals ? EXIT_FINDING : EXIT_YES;
}

static int run_plan(struct invocation *inv, struct err *err)
{
	struct local_options *o = inv->options;
	struct problem_list p;
	const char *dir;
	int r;

	local_options_fill(o, inv->arena);
	r = local_directory(inv, false, &dir, err);
	if (r < 0)
		return r;
	problem_list_init(&p, inv->arena);
	r = make_plan(inv, dir, &p, err);
	if (p.n)
		(void)fprintf(stderr, PRI_STR, FMT_STR(problem_list_format(&p, inv->arena)));
	if (p.n_errors) /* printed above, each with its position */
		return err_set(err, EINVAL, "no plan");
	return r;
}

static const struct command_example plan_examples[] = {
	{ "pinfold local plan --topology 'pack:2 numa:1 core:16 pu:2' examples/ran",
	  "the pods of a directory on a machine with 64 CPUs" },
	{ 0 },
};
static const struct command_example status_examples[] = {
	{ "pinfold local status", "the containers and their CPUs" },
	{ "pinfold local status -o json", "the same, for programs" },
	{ 0 },
};
static const struct command_example down_examples[] = {
	{ "pinfold local down", "stop every container" },
	{ 0 },
};
static const struct command_example map_examples[] = {
	{ "pinfold local map --watch", "follow a resize" },
	{ 0 },
};
static const struct command_example verify_examples[] = {
	{ "pinfold local verify", "check every container" },
	{ 0 },
};
static const struct command_example apply_examples[] = {
	{ "pinfold local apply examples/local", "apply changed manifests" },
	{ 0 },
};

const struct command cmd_local_plan = {
	.name = "local plan",
	.group = COMMAND_TOOL,
	.summary = "show on which CPUs the pods of a directory would run",
	.operands = "DIR",
	.about = "Does what 'local up' does without starting anything, for this machine or for the "
		 "one\n"
		 "that --topology describes.",
	LOCAL_OPTIONS(LOCAL_FILES, LOCAL_TOPOLOGY, LOCAL_OUTPUT),
	.examples = plan_examples,
	.run = run_plan,
};

const struct command cmd_local_status = {
	.name = "local status",
	.group = COMMAND_TOOL,
	.summary = "list the local containers and their CPUs",
	.operands = "",
	.about = "Lists the containers of 'local up' with their CPUs, weight and quota.",
	LOCAL_OPTIONS(LOCAL_NAME, LOCAL_OUTPUT),
	.examples = status_examples,
	.run = run_status,
};

const struct command cmd_local_map = {
	.name = "local map",
	.group = COMMAND_TOOL,
	.summary = "draw which pod is on which CPU",
	.operands = "[POD...]",
	.about =
		"Draws the NUMA nodes, cores and threads of this machine with its pools, and lists "
		"the\n"
		"containers of each pool, or only pods that match POD ('vdu-*', 'ran/vdu-*').",
	LOCAL_OPTIONS(LOCAL_NAME, MAP_WATCH_OPTION(struct local_options), LOCAL_OUTPUT),
	.examples = map_examples,
	.run = run_map,
};

const struct command cmd_local_verify = {
	.name = "local verify",
	.group = COMMAND_TOOL,
	.summary = "compare CPU settings in the kernel with the plan",
	.operands = "",
	.about = "Compares the control files of every container's cgroup and the allowed CPUs of "
		 "every\n"
		 "thread with the plan, and lists foreign processes that may run on exclusive "
		 "CPUs.\n"
		 "Exit status 1 when something differs.",
	LOCAL_OPTIONS(LOCAL_NAME, AUDIT_STRICT_OPTION(struct local_options), LOCAL_OUTPUT),
	.examples = verify_examples,
	.run = run_verify,
};

const struct command cmd_local_apply = {
	.name = "local apply",
	.group = COMMAND_TOOL,
	.summary = "apply a changed profile or changed pods",
	.operands = "[DIR]",
	.about =
		"Reads DIR, or the directory of 'local up', again and applies it: starts and stops "
		"pods,\n"
		"and resizes pools without restarting containers. A profile that would take "
		"exclusive\n"
		"CPUs from a running container is refused, and the container is named.",
	LOCAL_OPTIONS(LOCAL_FILES, LOCAL_NAME),
	.examples = apply_examples,
	.run = run_apply,
};

const struct command cmd_local_down = {
	.name = "local down",
	.group = COMMAND_TOOL,
	.summary = "stop everything that 'local up' started",
	.operands = "",
	.about =
		"Stops the containers (SIGTERM, then SIGKILL after their grace period) and removes "
		"their\n"
		"cgroups and the state. Also works after a crash of pinfold.",
	LOCAL_OPTIONS(LOCAL_NAME),
	.examples = down_examples,
	.run = run_down,
};
