#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/report.h"
#include "agent/verify.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "command.h"
#include "output.h"

#define STRANGERS_SHOWN 20

struct verify_options {
	const char *run_dir, *cgroup_root, *proc, *output;
	bool strict;
};

#define AT(field) offsetof(struct verify_options, field)

static const struct option_desc options[] = {
	{ OPT_STR, 0, "run-dir", "DIR", "the agent's directory (default: " REPORT_RUN_DIR ")", NULL,
	  AT(run_dir) },
	{ OPT_STR, 0, "cgroup-root", "DIR", "where cgroups are mounted (default: /sys/fs/cgroup)",
	  NULL, AT(cgroup_root) },
	{ OPT_STR, 0, "proc", "DIR", "where processes are listed (default: /proc)", NULL,
	  AT(proc) },
	{ OPT_FLAG, 0, "strict", NULL, "strangers on exclusive CPUs are a finding, too", NULL,
	  AT(strict) },
	OUTPUT_OPTION(struct verify_options, output),
	{ 0 },
};

static const struct verify_options defaults = { REPORT_RUN_DIR, "/sys/fs/cgroup", "/proc", NULL,
						false };

static const struct command_example examples[] = {
	{ "pinfold verify", "is everything where the agent wants it?" },
	{ "pinfold verify -o json", "the same for a program" },
	{ 0 },
};

static struct str table_text(const struct verify_result *v, struct arena *a)
{
	struct strbuf b;
	struct table t;

	strbuf_init(&b, a);
	if (v->n_findings > 0) {
		table_init(&t, 6, a);
		table_add(&t, (struct str[]){ STR("NAMESPACE"), STR("POD"), STR("CONTAINER"),
					      STR("WHAT"), STR("WANT"), STR("GOT") });
		for (size_t i = 0; i < v->n_findings; i++) {
			const struct finding *f = &v->findings[i];

			table_add(&t, (struct str[]){ table_or_dash(f->namespace),
						      table_or_dash(f->pod),
						      table_or_dash(f->container),
						      str_from(f->what), f->want, f->got });
		}
		strbuf_add(&b, table_format(&t));
	}
	for (size_t i = 0; i < v->n_strangers && i < STRANGERS_SHOWN; i++) {
		const struct stranger *s = &v->strangers[i];

		strbuf_printf(&b,
			      "stranger: " PRI_STR " (process %d) may run on " PRI_STR
			      ", which belong to " PRI_STR "\n",
			      FMT_STR(s->name), s->pid, FMT_STR(s->cpus), FMT_STR(s->owner));
	}
	if (v->n_strangers > STRANGERS_SHOWN)
		strbuf_printf(&b, "and %zu more processes\n", v->n_strangers - STRANGERS_SHOWN);
	strbuf_printf(&b,
		      "%zu containers looked at, %zu findings, %zu strangers on exclusive CPUs\n",
		      v->n_containers - v->n_gone, v->n_findings, v->n_strangers);
	return strbuf_str(&b);
}

static yyjson_mut_val *result_doc(const struct verify_result *v, yyjson_mut_doc *m)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list, *item;

	doc_put_int(m, root, STR("containers"), (int64_t)(v->n_containers - v->n_gone));
	list = doc_put_arr(m, root, STR("findings"));
	for (size_t i = 0; i < v->n_findings; i++) {
		const struct finding *f = &v->findings[i];

		item = yyjson_mut_obj(m);
		doc_put_str(m, item, STR("namespace"), f->namespace);
		doc_put_str(m, item, STR("pod"), f->pod);
		doc_put_str(m, item, STR("container"), f->container);
		doc_put_str(m, item, STR("what"), str_from(f->what));
		doc_put_str(m, item, STR("want"), f->want);
		doc_put_str(m, item, STR("got"), f->got);
		yyjson_mut_arr_append(list, item);
	}
	list = doc_put_arr(m, root, STR("strangers"));
	for (size_t i = 0; i < v->n_strangers; i++) {
		item = yyjson_mut_obj(m);
		doc_put_int(m, item, STR("pid"), v->strangers[i].pid);
		doc_put_str(m, item, STR("name"), v->strangers[i].name);
		doc_put_str(m, item, STR("cpus"), v->strangers[i].cpus);
		doc_put_str(m, item, STR("owner"), v->strangers[i].owner);
		yyjson_mut_arr_append(list, item);
	}
	return root;
}

static int run(struct invocation *inv, struct err *err)
{
	const struct verify_options *o = inv->options;
	const enum output_format format = output_format_of(o->output);
	CLEANUP(cgroup_done) struct cgroup_fs fs = { .cpu_fd = -1, .cpuset_fd = -1 };
	AUTO_CLOSE int proc = open(o->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct verify_result result = { 0 };
	struct ask ask;
	int r;

	if (inv->args.n > 0)
		return err_set(err, EINVAL, "verify takes no operands, only options");
	if (proc < 0)
		return err_set(err, errno, "open %s: %s", o->proc, strerror(errno));
	r = ask_status(o->run_dir, inv->arena, &ask, err);
	if (r == 0)
		r = cgroup_open(&fs, o->cgroup_root, err);
	if (r == 0)
		r = verify(&(struct verify_source){ &fs, proc }, ask.doc.root, inv->arena, &result,
			   err);
	if (r < 0)
		return r;
	r = format == OUTPUT_TABLE ?
		    output_text(table_text(&result, inv->arena), err) :
		    output_doc(result_doc(&result, doc_build(inv->arena)), format, inv->arena, err);
	if (r < 0)
		return r;
	return result.n_findings > 0 || (o->strict && result.n_strangers > 0) ? EXIT_FINDING :
										EXIT_YES;
}

const struct command cmd_verify = {
	.name = "verify",
	.group = COMMAND_TOOL,
	.summary = "compare the kernel's CPU settings with what the agent wants",
	.operands = "",
	.about = "Asks the agent (or the file it left) what every container shall have, and the "
		 "kernel\n"
		 "what it has: CPUs in effect, weight, quota, and the allowed CPUs of every "
		 "thread;\n"
		 "the cgroups of pods and pause containers; and who else may run on CPUs that a\n"
		 "container owns.\n"
		 "Exit status 1 when something differs.",
	.options = options,
	.options_size = sizeof(struct verify_options),
	.defaults = &defaults,
	.examples = examples,
	.run = run,
};
