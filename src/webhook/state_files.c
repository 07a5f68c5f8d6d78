/* Reads manifests into a scratch arena, copies what decisions need into the facts' own arena, and
 * replaces the facts under a write lock. Readers hold the read lock for one review. */

#include "state_files.h"

#include <malloc.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "bundle/manifest_load.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "net/prometheus.h"

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	const struct file_facts *f = owner;

	return namespace_table_find(&f->namespaces, name, ret);
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const struct file_facts *f = owner;

	for (size_t i = 0; i < f->n_core_types; i++)
		if (str_eq(f->core_types[i].name, type))
			return f->core_types[i].count;
	return (struct cores_count){ 0 };
}

/* Everything read so far, in memory that is given back once the facts are taken out of it. */
struct state_load {
	struct arena *scratch;
	struct state_manifests manifests;
	struct file_facts *facts;
};

/* Into the facts' arena: the names of the manifests are freed with the scratch arena. */
static void add_core_types(struct file_facts *f, const struct state_manifests *m, yyjson_val *node)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (doc_find(node, "/status/allocatable"), key, value) {
		struct str type = cores_type_of(key);

		(void)value;
		if (!type.n || count_cores(f, type).n)
			continue;
		f->core_types = arena_one_more(&f->arena, f->core_types, f->n_core_types,
					       sizeof(*f->core_types));
		f->core_types[f->n_core_types++] =
			(struct core_type){ str_dup(&f->arena, type),
					    m->state.count_cores(m, type) };
	}
}

static void copy_groups(struct file_facts *f, struct node_totals *nodes)
{
	struct node_group *groups =
		arena_array(&f->arena, struct node_group, nodes->n_missing_shared);

	for (size_t i = 0; i < nodes->n_missing_shared; i++)
		groups[i] = (struct node_group){
			str_dup(&f->arena, nodes->missing_shared[i].taints),
			str_dup(&f->arena, nodes->missing_shared[i].name),
		};
	nodes->missing_shared = groups;
}

static void copy_profiles(struct file_facts *f, struct admission_state *state)
{
	struct profile_ref *profiles =
		arena_array(&f->arena, struct profile_ref, state->n_profiles + 1);

	for (size_t i = 0; i < state->n_profiles; i++)
		profiles[i] = (struct profile_ref){
			str_dup(&f->arena, state->profiles[i].name),
			str_dup(&f->arena, state->profiles[i].selector),
		};
	state->profiles = profiles;
}

static int add_object(struct state_load *rd, const struct manifest *m, struct err *err)
{
	if (state_manifests_add(&rd->manifests, m->object, err) < 0)
		return err_wrap(err, PRI_STR, FMT_STR(manifest_position(m, rd->scratch)));
	return 0;
}

/* Copies what decisions need out of the scratch arena. */
static void keep_state(struct state_load *rd)
{
	struct file_facts *f = rd->facts;
	struct admission_state *state = &f->state;

	state_manifests_seal(&rd->manifests);
	/* The texts of the state are copied, its namespaces below, and its owner is set in
	 * load(). */
	*state = rd->manifests.state;
	state->infrastructure.partitioning =
		str_dup(&f->arena, rd->manifests.state.infrastructure.partitioning);
	copy_groups(f, &state->nodes);
	copy_profiles(f, state);
	for (size_t i = 0; i < rd->manifests.n_nodes; i++)
		add_core_types(f, &rd->manifests, rd->manifests.nodes[i]);
	state->find_namespace = find_namespace;
	state->count_cores = count_cores;
	f->n_nodes = rd->manifests.n_nodes;
	f->namespaces = namespace_table_copy(&rd->manifests.namespaces, &f->arena);
}

static int facts_read(const struct state_files *s, struct file_facts *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena scratch;
	struct state_load rd = { .scratch = &scratch, .facts = ret };
	struct manifest_list objects = { 0 };
	struct manifest_files files;
	int r;

	*ret = (struct file_facts){ 0 };
	arena_init(&scratch, 0);
	arena_init(&ret->arena, 0);
	state_manifests_init(&rd.manifests, &scratch);
	rd.manifests.state.settings = s->settings;
	r = manifest_load(&s->files, &scratch, NULL, &files, err);
	if (r >= 0)
		objects = manifest_files_objects(&files, &scratch);
	for (size_t i = 0; r >= 0 && i < objects.n; i++)
		r = add_object(&rd, &objects.items[i], err);
	if (r < 0) {
		arena_done(&ret->arena);
		return r;
	}
	keep_state(&rd);
	return 0;
}

static int load(struct state_files *s, struct err *err)
{
	struct file_facts next, old;
	int r = facts_read(s, &next, err);

	if (r < 0)
		return r;
	/* Reading and parsing happened before: requests wait only for this assignment. */
	(void)pthread_rwlock_wrlock(&s->lock);
	old = s->facts;
	s->facts = next;
	/* Not &next, which is on the stack: the lookup functions get this pointer. */
	s->facts.state.owner = &s->facts;
	(void)pthread_rwlock_unlock(&s->lock);
	/* No reader is left: the write lock waited for all of them. */
	arena_done(&old.arena);
	(void)malloc_trim(0); /* the documents were much larger than what is kept of them */
	atomic_store(&s->loaded_unix_s, (int64_t)time(NULL));
	return 0;
}

static const struct admission_state *acquire(struct state_source *source, unsigned thread)
{
	struct state_files *s = container_of(source, struct state_files, source);

	(void)thread;
	(void)pthread_rwlock_rdlock(&s->lock);
	return &s->facts.state;
}

static void release(struct state_source *source, unsigned thread)
{
	struct state_files *s = container_of(source, struct state_files, source);

	(void)thread;
	(void)pthread_rwlock_unlock(&s->lock);
}

static bool is_ready(struct state_source *source, const char **ret_missing)
{
	(void)source; /* the server starts only after the first load */
	(void)ret_missing;
	return true;
}

static void reload(struct state_source *source)
{
	struct state_files *s = container_of(source, struct state_files, source);
	struct err err;

	if (load(s, &err) < 0) {
		atomic_fetch_add(&s->failed_reloads, 1);
		log_error("cannot reload the state files, keeping the old state", LOG_ERR(&err));
		return;
	}
	atomic_fetch_add(&s->reloads, 1);
	/* Without the lock: only this thread replaces the facts. */
	log_info("reloaded the state files", LOG_INT("namespaces", s->facts.namespaces.n),
		 LOG_INT("nodes", s->facts.n_nodes));
}

static void add_metrics(struct state_source *source, struct strbuf *b)
{
	struct state_files *s = container_of(source, struct state_files, source);
	const struct prometheus_label ok[] = { { "result", "ok" }, { 0 } };
	const struct prometheus_label failed[] = { { "result", "failed" }, { 0 } };
	const struct prometheus_label namespaces[] = { { "kind", "Namespace" }, { 0 } };
	const struct prometheus_label nodes[] = { { "kind", "Node" }, { 0 } };

	prometheus_family(b, "pinfold_state_age_seconds", "gauge",
			  "Seconds since the state files were read");
	prometheus_uint(b, "pinfold_state_age_seconds", NULL,
			(uint64_t)((int64_t)time(NULL) - atomic_load(&s->loaded_unix_s)));
	prometheus_family(b, "pinfold_state_reloads_total", "counter",
			  "Reloads of the state files");
	prometheus_uint(b, "pinfold_state_reloads_total", ok, atomic_load(&s->reloads));
	prometheus_uint(b, "pinfold_state_reloads_total", failed, atomic_load(&s->failed_reloads));
	(void)pthread_rwlock_rdlock(&s->lock);
	prometheus_family(b, "pinfold_state_objects", "gauge", "Objects in the state files");
	prometheus_uint(b, "pinfold_state_objects", namespaces, s->facts.namespaces.n);
	prometheus_uint(b, "pinfold_state_objects", nodes, s->facts.n_nodes);
	(void)pthread_rwlock_unlock(&s->lock);
}

int state_files_init(struct state_files *s, const struct option_list *files,
		     const struct admission_settings *settings, struct err *err)
{
	*s = (struct state_files){
		.source = { .acquire = acquire,
			    .release = release,
			    .is_ready = is_ready,
			    .reload = reload,
			    .add_metrics = add_metrics },
		.files = *files,
		.settings = *settings,
	};
	(void)pthread_rwlock_init(&s->lock, NULL);
	return load(s, err);
}

void state_files_done(struct state_files *s)
{
	arena_done(&s->facts.arena);
	(void)pthread_rwlock_destroy(&s->lock);
}
