/* A local machine is found by its run directory alone: the state file in it names the topology and
 * the mode, so no option has to be repeated. */

#include "local_common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup_snapshot.h"
#include "command.h"
#include "cpu/topology_read.h"
#include "local/local_node.h"
#include "manifest_paths.h"
#include "output.h"

int local_directory(const struct invocation *inv, bool is_optional, const char **ret,
		    struct err *err)
{
	const struct local_options *o = inv->options;
	const struct option_list paths = manifest_paths(inv, &o->files);

	if (paths.n > 1 || (!paths.n && !is_optional))
		return err_set(err, EINVAL,
			       "expected one directory of manifests (see pinfold %s --help)",
			       inv->command->name);
	*ret = paths.n ? paths.items[0] : NULL;
	return 0;
}

void local_options_fill(struct local_options *o, struct arena *a)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	o->name = o->name ? o->name : "local";
	o->topology = o->topology ? o->topology : "host";
	if (o->run_dir)
		return;
	/* /tmp is shared: the user's id keeps the directories of users apart. */
	if (geteuid() == 0)
		o->run_dir = str_printf(a, "/run/pinfold/%s", o->name).p;
	else if (runtime && *runtime)
		o->run_dir = str_printf(a, "%s/pinfold/%s", runtime, o->name).p;
	else
		o->run_dir = str_printf(a, "/tmp/pinfold-%u/%s", (unsigned)geteuid(), o->name).p;
}

int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err)
{
	const struct local_state_file *file = &v->file;
	struct topology *topology = arena_new(a, struct topology);
	struct cgroup_snapshot *snapshots;
	int r;

	r = local_node_read_state(o->run_dir, a, &v->file, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "local machine \"%s\" is not running: no state in %s",
			       o->name, o->run_dir);
	if (r >= 0)
		r = topology_read(str_cstr(a, file->topology), a, topology, err);
	if (r >= 0)
		r = container_cgroup_open(&v->cgroup, o->name, o->run_dir, err);
	if (r < 0)
		return r;
	/* The mode of the running containers counts, not what this user could use. */
	if (file->mode == LOCAL_AFFINITY)
		container_cgroup_use_affinity(&v->cgroup);
	if (v->cgroup.mode != file->mode)
		r = err_set(err, ENODEV, "containers run with %s, which is not available here",
			    local_mode_name(file->mode));
	else
		r = container_cgroup_snapshots(&v->cgroup, file->containers, file->n, a, &snapshots,
					       err);
	if (r < 0) {
		container_cgroup_done(&v->cgroup);
		return r;
	}
	v->machine = (struct local_machine){ topology,	&file->config, file->containers,
					     snapshots, file->states,  file->n };
	return 0;
}

void local_view_done(struct local_view *v)
{
	container_cgroup_done(&v->cgroup);
}

static struct str quota_text(const struct local_container *c, struct arena *a)
{
	if (c->settings.quota_us == CGROUP_UNLIMITED)
		return STR("-");
	return str_printf(a, "%" PRId64 "/%" PRIu64, c->settings.quota_us, c->settings.period_us);
}

/* The state file is written when the supervisor acts, so what the kernel shows decides: a process
 * may have ended since, or may still be stopping. */
static const char *current_state(const struct cgroup_snapshot *snapshot, enum local_state state)
{
	if (snapshot->is_there)
		return local_state_name(state == LOCAL_STOPPING ? state : LOCAL_RUNNING);
	/* The supervisor has not noticed yet that the process ended, or waits before it restarts
	 * the container. */
	return state == LOCAL_RUNNING ? "restarting" : local_state_name(state);
}

/* "running (3)": with three threads. */
static struct str state_text(const struct cgroup_snapshot *snapshot, enum local_state state,
			     struct arena *a)
{
	const char *name = current_state(snapshot, state);

	return snapshot->is_there ?
		       str_printf(a, "%s (%zu)", name, cgroup_snapshot_threads(snapshot)) :
		       str_from(name);
}

struct str local_table(const struct local_machine *machine, struct arena *a)
{
	const struct str head[] = { STR("POD"),	   STR("CONTAINER"), STR("POOL"), STR("CPUS"),
				    STR("SHARES"), STR("QUOTA"),     STR("STATE") };
	/* A plan has no state, so the last column is left out. */
	const bool has_state = machine->snapshots != NULL;
	struct table t;

	table_init(&t, has_state ? ARRAY_LEN(head) : ARRAY_LEN(head) - 1, a);
	table_add(&t, head);
	for (size_t i = 0; i < machine->n; i++) {
		const struct local_container *c = &machine->containers[i];
		const struct str row[] = {
			str_printf(a, PRI_STR "/" PRI_STR, FMT_STR(c->namespace), FMT_STR(c->pod)),
			c->name,
			str_from(pool_name(c->pool)),
			cpuset_format(&c->settings.cpus, a),
			str_printf(a, "%" PRIu64, c->settings.shares),
			quota_text(c, a),
			has_state ? state_text(&machine->snapshots[i], machine->states[i], a) :
				    STR(""),
		};

		table_add(&t, row);
	}
	return table_format(&t);
}

struct map local_map(const struct local_machine *machine, struct arena *a)
{
	struct map_container *containers = arena_array(a, struct map_container, machine->n);
	struct map map = { .topology = machine->topology,
			   .containers = containers,
			   .n = machine->n,
			   .colour = output_wants_colour(),
			   .width = output_width() };

	map.pools[POOL_MANAGEMENT] = machine->config->reserved;
	pool_config_shared(machine->config, machine->topology, &map.pools[POOL_SHARED]);
	pool_config_guaranteed(machine->config, machine->topology, &map.pools[POOL_GUARANTEED]);
	for (size_t i = 0; i < machine->n; i++) {
		const struct local_container *c = &machine->containers[i];

		containers[i] = (struct map_container){ .namespace = c->namespace,
							.pod = c->pod,
							.container = c->name,
							.pool = c->pool,
							.type = c->type,
							.is_exclusive = c->is_exclusive,
							.cpus = c->settings.cpus };
	}
	return map;
}

static void describe_container(const struct local_machine *machine, size_t i, yyjson_mut_doc *m,
			       yyjson_mut_val *o, struct arena *a)
{
	const struct local_container *c = &machine->containers[i];

	doc_put_str(m, o, STR("namespace"), c->namespace);
	doc_put_str(m, o, STR("pod"), c->pod);
	doc_put_str(m, o, STR("container"), c->name);
	doc_put_str(m, o, STR("kind"), str_from(container_kind_name(c->kind)));
	doc_put_str(m, o, STR("pool"), str_from(pool_name(c->pool)));
	if (c->type.n)
		doc_put_str(m, o, STR("type"), c->type);
	if (c->is_exclusive)
		doc_put_bool(m, o, STR("exclusive"), true);
	cpu_settings_put(&c->settings, m, o, a);
	if (machine->snapshots) {
		const struct cgroup_snapshot *snapshot = &machine->snapshots[i];
		const struct cpuset allowed = cgroup_snapshot_allowed(snapshot);

		doc_put_int(m, o, STR("processes"), (int64_t)snapshot->processes.n);
		doc_put_int(m, o, STR("threads"), (int64_t)cgroup_snapshot_threads(snapshot));
		doc_put_str(m, o, STR("allowedCpus"), cpuset_format(&allowed, a));
		doc_put_str(m, o, STR("state"),
			    str_from(current_state(snapshot, machine->states[i])));
	}
}

yyjson_mut_val *local_describe(const struct local_machine *machine, yyjson_mut_doc *m,
			       struct arena *a)
{
	const struct map map = local_map(machine, a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *pools, *list;

	doc_put_str(m, root, STR("mode"),
		    machine->config->is_classic ? STR("classic") : STR("pools"));
	pools = doc_put_obj(m, root, STR("pools"));
	for (enum pool p = 0; p < POOL__COUNT; p++)
		doc_put_str(m, doc_put_obj(m, pools, str_from(pool_name(p))), STR("cpus"),
			    cpuset_format(&map.pools[p], a));
	list = doc_put_arr(m, root, STR("containers"));
	for (size_t i = 0; i < machine->n; i++)
		describe_container(machine, i, m, yyjson_mut_arr_add_obj(m, list), a);
	return root;
}
