/* Every figure of the table is in the document, too. */

#include "sim_print.h"

#include <inttypes.h>

#include "base/arena.h"
#include "kube/names.h"
#include "kube/pod.h"

/* --- table --- */

static struct str format_share(const struct sim_pool *p, size_t resource, struct arena *a)
{
	const int64_t used = p->used.of[resource], of = p->allocatable.of[resource];

	if (!of)
		return used ? str_printf(a, "%" PRId64, used) : STR("-");
	return str_printf(a, "%" PRId64 "%%", (int64_t)((double)used * 100 / (double)of + 0.5));
}

static struct str format_pools(const struct sim_report *r, struct arena *a)
{
	const struct str heading[] = { STR("POOL"),   STR("PROFILE"),	STR("NODES"),  STR("CPUS"),
				       STR("PODS"),   STR("CPU"),	STR("MEMORY"), STR("CORES"),
				       STR("SHARED"), STR("GUARANTEED") };
	struct table t;

	table_init(&t, 10, a);
	table_add(&t, heading);
	for (size_t i = 0; i < r->n_pools; i++) {
		const struct sim_pool *p = &r->pools[i];
		const struct str cells[] = { p->name,
					     table_or_dash(p->profile),
					     str_printf(a, "%zu", p->n_nodes),
					     str_printf(a, "%" PRId64, p->n_cpus),
					     str_printf(a, "%zu", p->n_pods),
					     format_share(p, SIM_CPU, a),
					     format_share(p, SIM_MEMORY, a),
					     format_share(p, SIM_CORES, a),
					     format_share(p, SIM_SHARED, a),
					     format_share(p, SIM_GUARANTEED, a) };

		table_add(&t, cells);
	}
	return table_format(&t);
}

static struct str format_cpus(const struct sim_report *r, struct arena *a)
{
	const struct str heading[] = { STR("POOL"),
				       STR("MANAGEMENT"),
				       STR("PEAK"),
				       STR("SUFFICIENT"),
				       STR("OVER"),
				       STR("EXCLUSIVE"),
				       STR("ASSIGNED"),
				       STR("FREE"),
				       STR("SPLIT"),
				       STR("LARGEST"),
				       STR("IN ONE NUMA NODE") };
	struct table t;

	table_init(&t, 11, a);
	table_add(&t, heading);
	for (size_t i = 0; i < r->n_pools; i++) {
		const struct sim_pool *p = &r->pools[i];
		const struct str cells[] = { p->name,
					     str_printf(a, "%u", p->management_cpus),
					     str_printf(a, "%" PRId64 "m", p->peak_milli),
					     str_printf(a, "%u", p->sufficient_cpus),
					     str_printf(a, "%zu", p->n_over),
					     str_printf(a, "%u", p->guaranteed_cpus),
					     str_printf(a, "%u", p->assigned_cpus),
					     str_printf(a, "%u", p->free_cpus),
					     str_printf(a, "%u", p->broken_cpus),
					     str_printf(a, "%u", p->largest_in_node),
					     str_printf(a, "%u", p->largest_in_numa) };

		table_add(&t, cells);
	}
	return table_format(&t);
}

static struct str format_rooms(const struct sim_report *r, struct arena *a)
{
	const struct str heading[] = { STR("EXCLUSIVE CPUS OF A POD"), STR("ROOM FOR MORE"),
				       STR("IN ONE NUMA NODE") };
	struct table t;

	table_init(&t, 3, a);
	table_add(&t, heading);
	for (size_t i = 0; i < r->n_rooms; i++) {
		const struct str cells[] = { str_printf(a, "%u", r->rooms[i].n_cpus),
					     str_printf(a, "%zu", r->rooms[i].by_count),
					     str_printf(a, "%zu", r->rooms[i].in_numa_node) };

		table_add(&t, cells);
	}
	return table_format(&t);
}

static void add_problem(struct table *t, size_t n, const struct sim_class *c, const char *what,
			struct str why)
{
	const struct str cells[] = {
		str_printf(t->a, "%zu", n), str_from(what),
		str_printf(t->a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->name)), why
	};

	table_add(t, cells);
}

/* Some messages begin with the reason. */
static struct str why_refused(const struct sim_class *c, struct arena *a)
{
	const struct str reason = str_from(ledger_reject_reason(c->refusal));

	if (str_starts(str_from(c->why_refused), reason))
		return str_from(c->why_refused);
	return str_printf(a, PRI_STR ": %s", FMT_STR(reason), c->why_refused);
}

/* Pods of a DaemonSet do not wait for a place on any node, but on theirs. */
static struct str why_pending(const struct sim *s, const struct sim_class *c, struct arena *a)
{
	return c->first == SIM_NONE ? STR("does not fit on its node") : sim_why_pending(s, c, a);
}

static struct str format_problems(const struct sim *s, struct arena *a)
{
	const struct str heading[] = { STR("PODS"), STR("STATE"), STR("POD"), STR("WHY") };
	struct table t;

	table_init(&t, 4, a);
	table_add(&t, heading);
	for (size_t i = 0; i < s->n_classes; i++) {
		const struct sim_class *c = &s->classes[i];

		if (c->n_pending)
			add_problem(&t, c->n_pending, c, "left over", why_pending(s, c, a));
		if (c->n_refused)
			add_problem(&t, c->n_refused, c, "refused", why_refused(c, a));
		if (c->admission == SIM_DENIED)
			add_problem(&t, c->n_arrived, c, "denied", c->message);
		if (c->admission == SIM_SKIPPED)
			add_problem(&t, c->n_arrived, c, "skipped", c->message);
	}
	return t.n > 4 ? table_format(&t) : STR("");
}

static void add_totals(struct strbuf *b, const struct sim_report *r)
{
	const char *comma = "";

	strbuf_printf(b,
		      "pods: %zu arrived, %zu run, %zu left over, %zu refused by their node, %zu "
		      "denied, %zu departed\n",
		      r->n_pods, r->n_running, r->n_pending, r->n_refused, r->n_denied, r->n_left);
	strbuf_add(b, STR("admission:"));
	for (size_t i = 0; i < SIM_ADMISSION__COUNT; i++)
		if (r->by_admission[i]) {
			strbuf_printf(b, "%s %zu %s", comma, r->by_admission[i],
				      sim_admission_name((enum sim_admission)i));
			comma = ",";
		}
	strbuf_addc(b, '\n');
}

static void add_section(struct strbuf *b, struct str text)
{
	if (text.n)
		strbuf_addc(b, '\n');
	strbuf_add(b, text);
}

struct str sim_print_table(const struct sim_run *runs, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++) {
		const struct sim_report *r = &runs[i].report;

		if (i)
			strbuf_printf(&b, "\nwith " PRI_STR ":\n", FMT_STR(runs[i].name));
		add_totals(&b, r);
		add_section(&b, format_pools(r, a));
		add_section(&b, format_cpus(r, a));
		if (r->n_rooms)
			add_section(&b, format_rooms(r, a));
		add_section(&b, format_problems(&runs[i].sim, a));
	}
	if (n == 2)
		strbuf_printf(
			&b, "\ndifference: %+lld run, %+lld left over, %+lld refused\n",
			(long long)runs[1].report.n_running - (long long)runs[0].report.n_running,
			(long long)runs[1].report.n_pending - (long long)runs[0].report.n_pending,
			(long long)runs[1].report.n_refused - (long long)runs[0].report.n_refused);
	return strbuf_str(&b);
}

/* --- document --- */

static void put_amounts(yyjson_mut_doc *m, yyjson_mut_val *to, const struct sim *s,
			const char *name, const struct sim_amounts *amounts)
{
	yyjson_mut_val *v = doc_put_obj(m, to, str_from(name));

	for (size_t i = 0; i < s->resources.n; i++)
		doc_put_int(m, v, i == SIM_CPU ? STR("cpuMillicores") : s->resources.names[i],
			    amounts->of[i]);
}

static void put_pool(yyjson_mut_doc *m, yyjson_mut_val *list, const struct sim *s,
		     const struct sim_pool *p)
{
	yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list), *part;

	doc_put_str(m, v, STR("name"), p->name);
	doc_put_str(m, v, STR("profile"), p->profile);
	doc_put_int(m, v, STR("nodes"), (int64_t)p->n_nodes);
	doc_put_int(m, v, STR("pods"), (int64_t)p->n_pods);
	doc_put_int(m, v, STR("fewestPodsOnNode"), (int64_t)p->fewest_pods);
	doc_put_int(m, v, STR("mostPodsOnNode"), (int64_t)p->most_pods);
	doc_put_int(m, v, STR("cpus"), p->n_cpus);
	put_amounts(m, v, s, "allocatable", &p->allocatable);
	put_amounts(m, v, s, "requested", &p->used);
	part = doc_put_obj(m, v, STR("management"));
	doc_put_int(m, part, STR("cpus"), p->management_cpus);
	doc_put_int(m, part, STR("peakMillicores"), p->peak_milli);
	doc_put_int(m, part, STR("sufficientCpus"), p->sufficient_cpus);
	doc_put_int(m, part, STR("nodesOver"), (int64_t)p->n_over);
	part = doc_put_obj(m, v, STR("exclusive"));
	doc_put_int(m, part, STR("cpus"), p->guaranteed_cpus);
	doc_put_int(m, part, STR("assigned"), p->assigned_cpus);
	doc_put_int(m, part, STR("free"), p->free_cpus);
	doc_put_int(m, part, STR("freeOnSplitCores"), p->broken_cpus);
	doc_put_int(m, part, STR("largestInNode"), p->largest_in_node);
	doc_put_int(m, part, STR("largestInNumaNode"), p->largest_in_numa);
}

static void put_class(yyjson_mut_doc *m, yyjson_mut_val *list, const struct sim_run *run,
		      size_t index, struct arena *a)
{
	const struct sim_class *c = &run->sim.classes[index];
	const struct sim_report *r = &run->report;
	yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list), *pools;

	doc_put_str(m, v, STR("namespace"), c->namespace);
	doc_put_str(m, v, STR("name"), c->name);
	doc_put_str(m, v, STR("admission"), str_from(sim_admission_name(c->admission)));
	if (c->message.n)
		doc_put_str(m, v, STR("message"), c->message);
	doc_put_int(m, v, STR("exclusiveCpus"), c->n_cpus);
	doc_put_int(m, v, STR("arrived"), (int64_t)c->n_arrived);
	doc_put_int(m, v, STR("running"), (int64_t)c->n_running);
	pools = doc_put_obj(m, v, STR("runningInPools"));
	for (size_t i = 0; i < r->n_pools; i++)
		doc_put_int(m, pools, r->pools[i].name, (int64_t)r->placed[index * r->n_pools + i]);
	doc_put_int(m, v, STR("leftOver"), (int64_t)c->n_pending);
	if (c->n_pending)
		doc_put_str(m, v, STR("whyLeftOver"), why_pending(&run->sim, c, a));
	doc_put_int(m, v, STR("refused"), (int64_t)c->n_refused);
	if (c->n_refused)
		doc_put_str(m, v, STR("whyRefused"), why_refused(c, a));
	doc_put_int(m, v, STR("departed"), (int64_t)c->n_left);
}

static void put_totals(yyjson_mut_doc *m, yyjson_mut_val *to, const struct sim_report *r)
{
	yyjson_mut_val *v = doc_put_obj(m, to, STR("pods"));

	doc_put_int(m, v, STR("arrived"), (int64_t)r->n_pods);
	doc_put_int(m, v, STR("running"), (int64_t)r->n_running);
	doc_put_int(m, v, STR("leftOver"), (int64_t)r->n_pending);
	doc_put_int(m, v, STR("refused"), (int64_t)r->n_refused);
	doc_put_int(m, v, STR("denied"), (int64_t)r->n_denied);
	doc_put_int(m, v, STR("departed"), (int64_t)r->n_left);
	v = doc_put_obj(m, to, STR("admission"));
	for (size_t i = 0; i < SIM_ADMISSION__COUNT; i++)
		doc_put_int(m, v, str_from(sim_admission_name((enum sim_admission)i)),
			    (int64_t)r->by_admission[i]);
}

static void put_run(yyjson_mut_doc *m, yyjson_mut_val *to, const struct sim_run *run,
		    struct arena *a)
{
	const struct sim_report *r = &run->report;
	yyjson_mut_val *list;

	doc_put_int(m, to, STR("nodes"), (int64_t)run->sim.n_nodes);
	put_totals(m, to, r);
	list = doc_put_arr(m, to, STR("pools"));
	for (size_t i = 0; i < r->n_pools; i++)
		put_pool(m, list, &run->sim, &r->pools[i]);
	list = doc_put_arr(m, to, STR("room"));
	for (size_t i = 0; i < r->n_rooms; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_int(m, v, STR("exclusiveCpus"), r->rooms[i].n_cpus);
		doc_put_int(m, v, STR("pods"), (int64_t)r->rooms[i].by_count);
		doc_put_int(m, v, STR("podsInOneNumaNode"), (int64_t)r->rooms[i].in_numa_node);
	}
	list = doc_put_arr(m, to, STR("nodesByRequestedCpu"));
	for (size_t i = 0; i < SIM_HISTOGRAM; i++)
		(void)yyjson_mut_arr_append(list, doc_new_int(m, (int64_t)r->histogram[i]));
	list = doc_put_arr(m, to, STR("classes"));
	for (size_t i = 0; i < run->sim.n_classes; i++)
		put_class(m, list, run, i, a);
}

yyjson_mut_val *sim_print_doc(const struct sim_run *runs, size_t n, yyjson_mut_doc *m,
			      struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *other;

	put_run(m, root, &runs[0], a);
	if (n == 2) {
		other = doc_put_obj(m, root, STR("compare"));
		doc_put_str(m, other, STR("with"), runs[1].name);
		put_run(m, other, &runs[1], a);
	}
	return root;
}

/* --- manifests --- */

static yyjson_mut_val *copy_as(yyjson_mut_doc *m, yyjson_val *object, struct str name)
{
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, object);
	yyjson_mut_val *meta = yyjson_mut_obj_get(copy, "metadata");

	(void)yyjson_mut_obj_remove_key(meta, "name");
	(void)yyjson_mut_obj_remove_key(meta, "generateName");
	doc_put_str(m, meta, STR("name"), name);
	return copy;
}

yyjson_mut_val *sim_print_manifests(const struct sim_run *run, yyjson_mut_doc *m, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;
	const struct sim *s = &run->sim;

	doc_put_str(m, root, STR("apiVersion"), STR("v1"));
	doc_put_str(m, root, STR("kind"), STR("List"));
	list = doc_put_arr(m, root, STR("items"));
	for (uint32_t i = 0; i < s->n_nodes; i++)
		(void)yyjson_mut_arr_append(list, copy_as(m, s->shapes[s->nodes[i].shape].node,
							  sim_node_name(s, i, a)));
	for (size_t i = 0; i < s->n_pods; i++) {
		const struct sim_class *c = &s->classes[s->pods[i].class];

		(void)yyjson_mut_arr_append(
			list,
			copy_as(m, c->given, str_printf(a, PRI_STR "-%zu", FMT_STR(c->name), i)));
	}
	return root;
}
