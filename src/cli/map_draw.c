/* Two parts: the machine (topology_draw.c) with every CPU in one of four sets, and below it the
 * containers. Both fit the width, also with hundreds of containers. */

#include "map_draw.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "cpu/topology.h"
#include "output.h"
#include "picture/html_page.h"
#include "topology_draw.h"

#define MAX_NUMBERED 128 /* CPUs; larger machines show a letter per CPU to fit a screen */
#define MAX_LABEL 30	 /* a longer label has a line of its own */

/* By precedence: in classic mode a CPU in use is also listed in the shared and guaranteed pools. */
enum { IN_USE, MANAGEMENT, SHARED, FREE, N_SETS };

static void fill_sets(const struct map *map, struct topology_pool sets[N_SETS])
{
	sets[IN_USE] = (struct topology_pool){ .name = "guaranteed, in use",
					       .letter = 'G',
					       .colour = "1;36" };
	for (size_t i = 0; i < map->n; i++)
		if (map->containers[i].is_exclusive)
			cpuset_union(&sets[IN_USE].cpus, &map->containers[i].cpus);
	sets[MANAGEMENT] =
		(struct topology_pool){ "management", 'm', "33", map->pools[POOL_MANAGEMENT] };
	sets[SHARED] = (struct topology_pool){ "shared", 's', "32", map->pools[POOL_SHARED] };
	sets[FREE] = (struct topology_pool){ "guaranteed, free", 'g', "36",
					     map->pools[POOL_GUARANTEED] };
	/* Each CPU is drawn once, so every set loses what a set before it has. */
	for (size_t i = 1; i < N_SETS; i++)
		for (size_t k = 0; k < i; k++)
			cpuset_minus(&sets[i].cpus, &sets[k].cpus);
}

/* In the order of the legend. */
static void order_sets(const struct map *map, struct topology_pool pools[N_SETS])
{
	struct topology_pool sets[N_SETS];

	fill_sets(map, sets);
	pools[0] = sets[MANAGEMENT];
	pools[1] = sets[SHARED];
	pools[2] = sets[IN_USE];
	pools[3] = sets[FREE];
}

static bool same_pod(const struct map_container *a, const struct map_container *b)
{
	return str_eq(a->namespace, b->namespace) && str_eq(a->pod, b->pod);
}

/* Containers with exclusive CPUs are listed separately from other containers of their pod. */
static bool is_first_of_pod(const struct map *map, size_t i)
{
	const struct map_container *c = &map->containers[i];

	for (size_t k = i; k-- > 0 && same_pod(&map->containers[k], c);)
		if (map->containers[k].is_exclusive == c->is_exclusive &&
		    map->containers[k].pool == c->pool)
			return false;
	return true;
}

/* Lines of a label and items, wrapped at `width` columns. */
struct label_list {
	struct strbuf out;
	size_t label_width, width;
	size_t column;
};

/* A label that is too long is followed by its items on the next line. */
static void begin_line(struct label_list *l, struct str label)
{
	strbuf_add(&l->out, label);
	l->column = label.n;
	if (label.n > l->label_width) {
		strbuf_addc(&l->out, '\n');
		l->column = 0;
	}
}

static void add_item(struct label_list *l, struct str item, bool is_last)
{
	const size_t indent = l->label_width + 2;

	if (l->column > indent && l->column + 1 + item.n + !is_last > l->width) {
		strbuf_addc(&l->out, '\n');
		l->column = 0;
	}
	if (l->column > indent) {
		strbuf_addc(&l->out, ' ');
		l->column++;
	} else {
		strbuf_printf(&l->out, "%*s", (int)(indent - l->column), "");
		l->column = indent;
	}
	strbuf_add(&l->out, item);
	strbuf_add(&l->out, is_last ? STR("\n") : STR(","));
	l->column += item.n + !is_last;
}

static struct str pod_label(const struct map_container *c, struct arena *a)
{
	return str_printf(a, PRI_STR "%s" PRI_STR, FMT_STR(c->namespace), c->namespace.n ? "/" : "",
			  FMT_STR(c->pod));
}

/* The name of the pool, or of the workload type. */
static struct str group_of(const struct map_container *c)
{
	return c->pool == POOL_MANAGEMENT && c->type.n ? c->type : str_from(pool_name(c->pool));
}

/* "management  6 containers of 2 pods: dns ntp", cut at the end of the line. */
static void add_group(struct label_list *lines, const struct map *map, struct str group,
		      struct arena *a)
{
	size_t n = 0, pods = 0, width;
	struct strbuf names;
	struct str counts;

	for (size_t i = 0; i < map->n; i++) {
		if (map->containers[i].is_exclusive ||
		    !str_eq(group_of(&map->containers[i]), group))
			continue;
		n++;
		pods += is_first_of_pod(map, i);
	}
	if (n == 0)
		return;
	counts = str_printf(a, "%zu container%s of %zu pod%s:", n, n == 1 ? "" : "s", pods,
			    pods == 1 ? "" : "s");
	width = lines->label_width + 2 + counts.n + sizeof(" ...");
	width = lines->width > width ? lines->width - width : 0;
	strbuf_init(&names, a);
	for (size_t i = 0; i < map->n; i++) {
		const struct map_container *c = &map->containers[i];

		if (c->is_exclusive || !str_eq(group_of(c), group) || !is_first_of_pod(map, i))
			continue;
		if (names.n + 1 + c->pod.n > width) {
			strbuf_add(&names, STR(" ..."));
			break;
		}
		strbuf_printf(&names, " " PRI_STR, FMT_STR(c->pod));
	}
	begin_line(lines, group);
	add_item(lines,
		 str_printf(a, PRI_STR PRI_STR, FMT_STR(counts), FMT_STR(strbuf_str(&names))),
		 true);
}

/* "ran/vdu-0  l1 on 10-17, l2 on 18-21": a pod with exclusive CPUs. */
static void add_owner(struct label_list *lines, const struct map *map, size_t first,
		      struct arena *a)
{
	struct str last = { 0 };

	begin_line(lines, pod_label(&map->containers[first], a));
	for (size_t i = first; i < map->n; i++) {
		const struct map_container *c = &map->containers[i];

		if (!same_pod(c, &map->containers[first]))
			break;
		if (!c->is_exclusive)
			continue;
		if (last.n)
			add_item(lines, last, false);
		last = str_printf(a, PRI_STR " on " PRI_STR, FMT_STR(c->container),
				  FMT_STR(cpuset_format(&c->cpus, a)));
	}
	add_item(lines, last, true);
}

bool map_is_wanted(const struct map_container *c, const struct option_list *patterns,
		   struct arena *a)
{
	const char *pod = str_cstr(a, c->pod), *label = str_cstr(a, pod_label(c, a));

	if (!patterns->n)
		return true;
	for (size_t i = 0; i < patterns->n; i++)
		if (fnmatch(patterns->items[i], pod, 0) == 0 ||
		    fnmatch(patterns->items[i], label, 0) == 0)
			return true;
	return false;
}

int map_filter(struct map *map, const struct option_list *patterns, struct arena *a,
	       struct err *err)
{
	struct map_container *kept = arena_array(a, struct map_container, map->n + 1);
	struct cpuset pools[POOL__COUNT] = { 0 };
	size_t n = 0;

	if (!patterns->n)
		return 0;
	for (size_t i = 0; i < map->n; i++) {
		if (!map_is_wanted(&map->containers[i], patterns, a))
			continue;
		kept[n++] = map->containers[i];
		cpuset_union(&pools[map->containers[i].pool], &map->containers[i].cpus);
	}
	if (!n)
		return err_set(err, ENOENT, "no container of a pod that matches %s",
			       patterns->items[0]);
	memcpy(map->pools, pools, sizeof(pools));
	map->containers = kept;
	map->n = n;
	return 0;
}

static size_t label_width(const struct map *map, struct arena *a)
{
	size_t width = sizeof("management") - 1;

	for (size_t i = 0; i < map->n; i++) {
		const size_t n = pod_label(&map->containers[i], a).n;

		if (map->containers[i].is_exclusive && n <= MAX_LABEL && n > width)
			width = n;
	}
	return width;
}

/* The first container of a workload type other than management. */
static bool is_first_of_type(const struct map *map, size_t i)
{
	const struct str type = map->containers[i].type;

	if (map->containers[i].pool != POOL_MANAGEMENT || type.n == 0 ||
	    str_eq(type, str_from(pool_name(POOL_MANAGEMENT))))
		return false;
	while (i-- > 0)
		if (str_eq(map->containers[i].type, type))
			return false;
	return true;
}

static struct str list_containers(const struct map *map, struct arena *a)
{
	struct label_list lines = { .label_width = label_width(map, a), .width = map->width };

	strbuf_init(&lines.out, a);
	add_group(&lines, map, str_from(pool_name(POOL_MANAGEMENT)), a);
	for (size_t i = 0; i < map->n; i++)
		if (is_first_of_type(map, i))
			add_group(&lines, map, map->containers[i].type, a);
	add_group(&lines, map, str_from(pool_name(POOL_SHARED)), a);
	for (size_t i = 0; i < map->n; i++)
		if (map->containers[i].is_exclusive && is_first_of_pod(map, i))
			add_owner(&lines, map, i, a);
	return strbuf_str(&lines.out);
}

struct str map_draw(const struct map *map, struct arena *a)
{
	struct topology_pool pools[N_SETS];
	const struct topology_drawing how = { pools, N_SETS, map->colour, map->width,
					      map->topology->n_cpus > MAX_NUMBERED };
	struct str containers = list_containers(map, a);

	order_sets(map, pools);
	return str_printf(a, PRI_STR "%s" PRI_STR, FMT_STR(topology_draw(map->topology, &how, a)),
			  containers.n ? "\n" : "", FMT_STR(containers));
}

struct machine_picture map_picture(const struct map *map, struct str heading, struct arena *a)
{
	static const enum picture_look looks[N_SETS] = { PICTURE_MANAGEMENT, PICTURE_SHARED,
							 PICTURE_IN_USE, PICTURE_FREE };
	struct picture_owner *owners = arena_array(a, struct picture_owner, map->n + 1);
	struct picture_pool *pools = arena_array(a, struct picture_pool, N_SETS);
	struct topology_pool sets[N_SETS];
	size_t n = 0;

	order_sets(map, sets);
	for (size_t i = 0; i < N_SETS; i++)
		pools[i] = (struct picture_pool){ sets[i].name, looks[i], sets[i].cpus };
	for (size_t i = 0; i < map->n; i++)
		if (map->containers[i].is_exclusive)
			owners[n++] = (struct picture_owner){ pod_label(&map->containers[i], a),
							      map->containers[i].container,
							      map->containers[i].cpus };
	return (struct machine_picture){ .heading = heading,
					 .topology = map->topology,
					 .pools = pools,
					 .n_pools = N_SETS,
					 .owners = owners,
					 .n_owners = n };
}

void map_page_table(const struct map *map, struct strbuf *b)
{
	static const char *const headings[] = { "Namespace", "Pod",  "Container",
						"Pool",	     "CPUs", "Exclusive" };
	struct page_table t = page_table_begin(b, STR("Containers"), headings, ARRAY_LEN(headings));

	for (size_t i = 0; i < map->n; i++) {
		const struct map_container *c = &map->containers[i];

		page_table_row(&t, PAGE_PLAIN,
			       (struct str[]){ c->namespace, c->pod, c->container, group_of(c),
					       cpuset_format(&c->cpus, b->a),
					       c->is_exclusive ? STR("yes") : STR("no") });
	}
	page_table_end(&t);
}

static const struct map_container *owner_of(const struct map *map, unsigned cpu)
{
	for (size_t i = 0; i < map->n; i++)
		if (map->containers[i].is_exclusive && cpuset_has(&map->containers[i].cpus, cpu))
			return &map->containers[i];
	return NULL;
}

yyjson_mut_val *map_cpus_to_doc(const struct map *map, yyjson_mut_doc *m)
{
	/* In the order of the sets. */
	static const enum pool pool_of[N_SETS] = { POOL_GUARANTEED, POOL_MANAGEMENT, POOL_SHARED,
						   POOL_GUARANTEED };
	yyjson_mut_val *list = yyjson_mut_arr(m);
	struct topology_pool sets[N_SETS];

	fill_sets(map, sets);
	for (unsigned i = 0; i < map->topology->n_cpus; i++) {
		const struct topology_cpu *c = &map->topology->cpus[i];
		const struct map_container *owner = owner_of(map, c->cpu);
		yyjson_mut_val *o = yyjson_mut_arr_add_obj(m, list);

		doc_put_int(m, o, STR("cpu"), c->cpu);
		doc_put_int(m, o, STR("core"), c->id[TOPOLOGY_CORE]);
		doc_put_int(m, o, STR("uncore"), c->id[TOPOLOGY_UNCORE]);
		doc_put_int(m, o, STR("numa"), c->id[TOPOLOGY_NUMA]);
		doc_put_int(m, o, STR("socket"), c->id[TOPOLOGY_SOCKET]);
		for (size_t k = 0; k < N_SETS; k++)
			if (cpuset_has(&sets[k].cpus, c->cpu)) {
				doc_put_str(m, o, STR("pool"), str_from(pool_name(pool_of[k])));
				break;
			}
		if (!owner)
			continue;
		o = doc_put_obj(m, o, STR("owner"));
		doc_put_str(m, o, STR("namespace"), owner->namespace);
		doc_put_str(m, o, STR("pod"), owner->pod);
		doc_put_str(m, o, STR("container"), owner->container);
	}
	return list;
}

/* Overwrites line by line: clearing the whole screen first would flicker. */
struct str map_redraw(struct str text, struct arena *a)
{
	struct str_split split = str_split(output_printable(text, a));
	struct str line;
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("\033[H"));
	while (str_next(&split, '\n', &line) && !split.ended)
		strbuf_printf(&b, PRI_STR "\033[K\n", FMT_STR(line));
	strbuf_add(&b, STR("\033[J"));
	return strbuf_str(&b);
}

int map_show(map_print_fn print, void *data, bool watch, struct arena *a, struct err *err)
{
	const struct timespec second = { .tv_sec = 1 };
	int r;

	if (!watch)
		return print(data, a, err);
	do {
		struct arena each; /* a watch runs for hours */

		arena_init(&each, 0);
		r = print(data, &each, err);
		arena_done(&each);
		if (r >= 0)
			(void)nanosleep(&second, NULL);
	} while (r >= 0);
	return r;
}
