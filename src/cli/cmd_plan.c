/* `before` is either an earlier output of render or the files of a machine, under the same paths,
 * so that both are compared in the same way. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "bundle_input.h"
#include "codec/doc.h"
#include "command.h"
#include "diff.h"
#include "layout_input.h"
#include "output.h"
#include "plan_bundle.h"
#include "plan_page.h"
#include "render/file_set.h"
#include "render/plan.h"
#include "rendering.h"

#define STATE_DIR "var/lib/kubelet"
#define INSTALLED "var/lib/pinfold/install/files" /* the list that install.sh writes */

struct plan_options {
	struct rendering_options rendering;
	const char *present;
	const char *node_root;
	const char *pool;
	const char *bundle;
	bool diff;
	const char *output;
};

static const struct option_desc options[] = {
	{ OPT_STR, 0, "present", "DIR", "compare with this output of render", NULL,
	  offsetof(struct plan_options, present) },
	{ OPT_STR, 0, "node-root", "DIR",
	  "compare with the machine that has this root directory (--target host)", NULL,
	  offsetof(struct plan_options, node_root) },
	{ OPT_STR, 0, "pool", "NAME",
	  "the machine config pool of that machine, when there are several", NULL,
	  offsetof(struct plan_options, pool) },
	BUNDLE_OPTION(struct plan_options, bundle),
	{ OPT_FLAG, 0, "diff", NULL, "also print a diff of each file", NULL,
	  offsetof(struct plan_options, diff) },
	RENDERING_OPTIONS(struct plan_options, rendering),
	PICTURE_OUTPUT_OPTION(struct plan_options, output),
	{ 0 },
};

static const struct command_example examples[] = {
	{ "pinfold plan --present out --asset-input-dir manifests",
	  "what rendering again would change, and what it costs" },
	{ "pinfold plan --target host --node-root / --topology host --asset-input-dir new.yaml",
	  "on this machine" },
	{ "pinfold plan --target host --bundle saved.tar -f new.yaml",
	  "what a new profile would change in the cluster of a support bundle" },
	{ "pinfold plan --present out --asset-input-dir manifests -o html >plan.html",
	  "a page for review, with diffs" },
	{ 0 },
};

struct planning {
	const struct plan_options *o;
	struct arena *a;
	struct layout_input in;
	struct file_set before, after;
	struct plan plan;
	/* Of --node-root: state that would keep the kubelet from starting. */
	struct str blocked[2];
	size_t n_blocked;
};

static int read_one(struct file_set *to, const char *root, struct str path, struct str as,
		    struct err *err)
{
	const char *full = str_cstr(to->a, str_printf(to->a, "%s/" PRI_STR, root, FMT_STR(path)));
	struct str text;
	int r = file_read_at(AT_FDCWD, full, DOC_MAX_SIZE, to->a, &text, err);

	if (r == 0)
		file_set_add(to, as, 0, text);
	return r;
}

/* Symbolic links are not followed: render writes none. */
static int read_tree(struct file_set *to, const char *root, struct str below, struct err *err)
{
	const char *dir = str_cstr(to->a, str_printf(to->a, "%s/" PRI_STR, root, FMT_STR(below)));
	struct str *names;
	size_t n;
	int r = file_list_at(AT_FDCWD, dir, to->a, &names, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct str path = str_printf(to->a, PRI_STR "%s" PRI_STR, FMT_STR(below),
					     below.n ? "/" : "", FMT_STR(names[i]));
		struct stat st;

		if (lstat(str_cstr(to->a, str_printf(to->a, "%s/" PRI_STR, root, FMT_STR(path))),
			  &st) < 0)
			continue; /* removed meanwhile */
		if (S_ISDIR(st.st_mode))
			r = read_tree(to, root, path, err);
		else if (S_ISREG(st.st_mode))
			r = read_one(to, root, path, path, err);
	}
	return r;
}

/* A machine does not know its pool, so with several the user must name it. */
static const struct partition *chosen_pool(struct planning *p, struct err *err)
{
	const struct layout *layout = &p->in.layout;

	if (p->o->pool && layout_find(layout, str_from(p->o->pool)))
		return layout_find(layout, str_from(p->o->pool));
	if (p->o->pool)
		(void)err_set(err, EINVAL, "no profile for machine config pool \"%s\"", p->o->pool);
	else if (layout->n_partitions == 1)
		return &layout->partitions[0];
	else
		(void)err_set(err, EINVAL, "the input has %zu profiles: select one with --pool",
			      layout->n_partitions);
	return NULL;
}

/* Compares only the files of one machine: those to be written, and those of an earlier install. */
static int read_machine(struct planning *p, const struct partition *part, struct err *err)
{
	struct str prefix = str_printf(p->a, PRI_STR "/rootfs/", FMT_STR(part->pool->name));
	struct file_set wanted;
	struct str installed, path;
	struct str_split lines;

	file_set_init(&wanted, p->a);
	for (size_t i = 0; i < p->after.n; i++) {
		struct rendered_file *f = &p->after.items[i];

		if (!str_starts(f->path, prefix))
			continue;
		file_set_add(&wanted, f->path, f->mode, f->bytes);
		/* A file that is not there yet is an addition. */
		(void)read_one(&p->before, p->o->node_root, str_skip(f->path, prefix.n), f->path,
			       NULL);
	}
	p->after = wanted; /* boot/, install.sh and so on are not installed as files */
	if (file_read_at(AT_FDCWD,
			 str_cstr(p->a, str_printf(p->a, "%s/" INSTALLED, p->o->node_root)),
			 DOC_MAX_SIZE, p->a, &installed, err) < 0)
		return 0; /* never installed */
	lines = str_split(installed);
	while (str_next(&lines, '\n', &path))
		if (path.n)
			(void)read_one(&p->before, p->o->node_root, path,
				       str_printf(p->a, PRI_STR PRI_STR, FMT_STR(prefix),
						  FMT_STR(path)),
				       NULL);
	return 0;
}

/* A machine on which no kubelet has run has no state, and a new one is created. */
static void check_kubelet_state(struct planning *p, const struct partition *part)
{
	static const char *const names[] = { "cpu_manager_state", "memory_manager_state" };

	for (size_t i = 0; i < 2; i++) {
		struct str path =
			str_printf(p->a, "%s/" STATE_DIR "/%s", p->o->node_root, names[i]);
		struct plan_state state = { .file = names[i] };
		struct str why;

		if (file_read_at(AT_FDCWD, str_cstr(p->a, path), DOC_MAX_SIZE, p->a, &state.text,
				 NULL) < 0)
			continue;
		why = plan_state_blocks(&state, part, &p->after, p->a);
		if (why.n)
			p->blocked[p->n_blocked++] = str_printf(p->a, "/" STATE_DIR "/%s: " PRI_STR,
								names[i], FMT_STR(why));
	}
}

static int read_present(struct planning *p, struct err *err)
{
	const struct partition *part;
	int r;

	if (p->o->bundle)
		return 0;
	if (p->o->present)
		return read_tree(&p->before, p->o->present, STR(""), err);
	part = chosen_pool(p, err);
	if (!part)
		return -EINVAL;
	r = read_machine(p, part, err);
	if (r == 0)
		check_kubelet_state(p, part);
	return r;
}

static struct str format_set(const struct cpuset *cpus, struct arena *a)
{
	return cpuset_is_empty(cpus) ? STR("none") : cpuset_format(cpus, a);
}

static struct str format_sets(const struct plan_pool *pool, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (int id = 0; id < PROFILE_SET__COUNT; id++)
		if (plan_moves(pool, (enum profile_set_id)id))
			strbuf_printf(&b, "  %s " PRI_STR " -> " PRI_STR "\n",
				      profile_set_pool((enum profile_set_id)id),
				      FMT_STR(format_set(&pool->sets.before[id], a)),
				      FMT_STR(format_set(&pool->part->cpus[id], a)));
	return strbuf_str(&b);
}

static void format_pool(const struct planning *p, const struct plan_pool *pool, struct strbuf *b)
{
	strbuf_printf(b, "machine config pool " PRI_STR " (profile " PRI_STR "): %s\n",
		      FMT_STR(pool->part->pool->name), FMT_STR(pool->part->profile->name),
		      pool->effect == PLAN_NOTHING ? "nothing to restart" :
						     plan_effect_name(pool->effect));
	strbuf_add(b, format_sets(pool, p->a));
	for (size_t i = 0; i < p->n_blocked; i++)
		strbuf_printf(b, "  blocks the kubelet: " PRI_STR "\n", FMT_STR(p->blocked[i]));
	for (size_t i = 0; i < pool->n_pods; i++)
		strbuf_printf(
			b, "  %s pod " PRI_STR "/" PRI_STR " on " PRI_STR " %s" PRI_STR "\n",
			pool->pods[i].class, FMT_STR(pool->pods[i].namespace),
			FMT_STR(pool->pods[i].name), FMT_STR(pool->pods[i].node),
			pool->pods[i].fits ? "" : "no longer fits: ", FMT_STR(pool->pods[i].why));
}

static struct str format_files(const struct planning *p)
{
	const struct str heading[] = { STR("CHANGE"), STR("FILE"), STR("EFFECT"), STR("WHY") };
	struct table t;

	table_init(&t, 4, p->a);
	table_add(&t, heading);
	for (size_t i = 0; i < p->plan.n_files; i++) {
		const struct plan_file *f = &p->plan.files[i];
		const struct str cells[] = { str_from(plan_change_name(f->change)), f->path,
					     str_from(plan_effect_name(f->effect)),
					     str_from(f->why) };

		table_add(&t, cells);
	}
	return table_format(&t);
}

static struct str format_diff(const struct planning *p, const struct plan_file *f)
{
	const char *path = str_cstr(p->a, f->path);

	return diff_unified(f->before ? plan_readable(f->before->bytes, p->a) : STR(""),
			    f->after ? plan_readable(f->after->bytes, p->a) : STR(""),
			    f->before ? path : "/dev/null", f->after ? path : "/dev/null", p->a);
}

static int print_text(struct planning *p, struct err *err)
{
	struct strbuf b;

	strbuf_init(&b, p->a);
	for (size_t i = 0; i < p->plan.n_pools; i++)
		format_pool(p, &p->plan.pools[i], &b);
	if (p->plan.n_files)
		strbuf_add(&b, format_files(p));
	else
		strbuf_add(&b, STR("no file changes\n"));
	for (size_t i = 0; p->o->diff && i < p->plan.n_files; i++)
		strbuf_add(&b, format_diff(p, &p->plan.files[i]));
	return output_readable(strbuf_str(&b), err);
}

static void put_pool(struct planning *p, const struct plan_pool *pool, yyjson_mut_doc *m,
		     yyjson_mut_val *list)
{
	yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list), *sets, *pods, *set;

	doc_put_str(m, v, STR("machineConfigPool"), pool->part->pool->name);
	doc_put_str(m, v, STR("profile"), pool->part->profile->name);
	doc_put_str(m, v, STR("effect"), str_from(plan_effect_name(pool->effect)));
	sets = doc_put_obj(m, v, STR("sets"));
	for (int id = 0; id < PROFILE_SET__COUNT; id++) {
		if (!plan_moves(pool, (enum profile_set_id)id))
			continue;
		set = doc_put_obj(m, sets, str_from(profile_set_pool((enum profile_set_id)id)));
		doc_put_str(m, set, STR("from"), cpuset_format(&pool->sets.before[id], p->a));
		doc_put_str(m, set, STR("to"), cpuset_format(&pool->part->cpus[id], p->a));
	}
	pods = doc_put_arr(m, v, STR("pods"));
	for (size_t i = 0; i < pool->n_pods; i++) {
		yyjson_mut_val *pod = yyjson_mut_arr_add_obj(m, pods);

		doc_put_str(m, pod, STR("namespace"), pool->pods[i].namespace);
		doc_put_str(m, pod, STR("name"), pool->pods[i].name);
		doc_put_str(m, pod, STR("node"), pool->pods[i].node);
		doc_put_str(m, pod, STR("class"), str_from(pool->pods[i].class));
		doc_put_bool(m, pod, STR("fits"), pool->pods[i].fits);
		doc_put_str(m, pod, STR("reason"), pool->pods[i].why);
	}
}

static int print_doc(struct planning *p, enum output_format format, struct err *err)
{
	yyjson_mut_doc *m = doc_build(p->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;

	list = doc_put_arr(m, root, STR("machineConfigPools"));
	for (size_t i = 0; i < p->plan.n_pools; i++)
		put_pool(p, &p->plan.pools[i], m, list);
	list = doc_put_arr(m, root, STR("files"));
	for (size_t i = 0; i < p->plan.n_files; i++) {
		const struct plan_file *f = &p->plan.files[i];
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("path"), f->path);
		doc_put_str(m, v, STR("change"), str_from(plan_change_name(f->change)));
		doc_put_str(m, v, STR("effect"), str_from(plan_effect_name(f->effect)));
		doc_put_str(m, v, STR("reason"), str_from(f->why));
	}
	list = doc_put_arr(m, root, STR("stateThatBlocksKubelet"));
	for (size_t i = 0; i < p->n_blocked; i++)
		(void)yyjson_mut_arr_append(list, doc_new_str(m, p->blocked[i]));
	return output_doc(root, format, p->a, err);
}

static int print_picture(struct planning *p, enum output_format format, struct err *err)
{
	const char *present = p->o->bundle  ? p->o->bundle :
			      p->o->present ? p->o->present :
					      p->o->node_root;
	struct str *diffs = arena_array(p->a, struct str, p->plan.n_files + 1), text;
	int r;

	if (format == OUTPUT_SVG) {
		r = plan_svg(&p->plan, p->a, &text, err);
		return r < 0 ? r : output_text(text, err);
	}
	for (size_t i = 0; i < p->plan.n_files; i++)
		diffs[i] = format_diff(p, &p->plan.files[i]);
	return output_text(plan_page(&(struct plan_page){ &p->plan, str_from(present), p->blocked,
							  p->n_blocked, diffs },
				     p->a),
			   err);
}

static int run(struct invocation *inv, struct err *err)
{
	struct planning *p = arena_new(inv->arena, struct planning);
	enum output_format format;
	int r;

	p->o = inv->options;
	p->a = inv->arena;
	format = output_format_of(p->o->output);
	if (command_no_operands(inv, err) < 0)
		return -EINVAL;
	if (!!p->o->present + !!p->o->node_root + !!p->o->bundle != 1)
		return err_set(err, EINVAL,
			       "exactly one of --present, --node-root and --bundle is required");
	if (p->o->node_root && !rendering_is_for_hosts(&p->o->rendering))
		return err_set(err, EINVAL, "--node-root requires --target host");
	layout_input_init(&p->in, inv->arena);
	file_set_init(&p->before, inv->arena);
	file_set_init(&p->after, inv->arena);
	r = p->o->bundle ? plan_bundle(&p->o->rendering, p->o->bundle, &p->in, &p->before,
				       &p->after, err) :
			   rendering_run(&p->o->rendering, &p->in, &p->after, err);
	if (r < 0)
		return r;
	layout_input_print_problems(&p->in);
	r = layout_input_check(&p->in, "nothing was planned", err);
	if (r == 0)
		r = read_present(p, err);
	if (r < 0)
		return r;
	plan_make(&p->before, &p->after, &p->in.layout, &p->in.manifests, inv->arena, &p->plan);
	r = format == OUTPUT_TABLE			  ? print_text(p, err) :
	    format == OUTPUT_SVG || format == OUTPUT_HTML ? print_picture(p, format, err) :
							    print_doc(p, format, err);
	return r < 0 ? r : p->plan.has_unfit_pods ? EXIT_FINDING : EXIT_YES;
}

const struct command cmd_plan = {
	.name = "plan",
	.group = COMMAND_TOOL,
	.summary = "show what a new profile would change",
	.operands = "",
	.about = "Renders the input and compares it with the present state. Lists the files that "
		 "change,\n"
		 "the restarts and reboots that they require, the CPU sets that change, state "
		 "files with\n"
		 "which the kubelet would refuse to start (--node-root), and, for Pods and Nodes "
		 "in the\n"
		 "input, the pods that move or no longer fit. Nothing is written. The exit status "
		 "is 1\n"
		 "when a pod no longer fits.\n"
		 "With --bundle, the present state is that of a support bundle: its profiles, "
		 "Nodes and\n"
		 "Pods. Profiles of the input replace those of the same name.",
	.options = options,
	.options_size = sizeof(struct plan_options),
	.examples = examples,
	.run = run,
};
