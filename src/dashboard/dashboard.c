#include "dashboard.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/notify.h"
#include "base/trim.h"
#include "confine/confine.h"
#include "dashboard_private.h"
#include "kube/manifest.h"
#include "kube/names.h"
#include "source_bundle.h"
#include "views.h"
#include "what_if.h"

#define TICK_MS 200
#define USE_TICKS 10	    /* 2 s */
#define KEEP_ALIVE_TICKS 75 /* 15 s */
#define MACHINE_TICKS (SOURCE_MACHINE_MS / TICK_MS)
#define CHECK_TICKS 150 /* 30 s */
#define TOKEN_MAX 4096

static int64_t unix_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void send_event(struct dashboard *d, const char *name, struct str data, struct arena *a)
{
	if (data.n)
		small_server_broadcast(&d->http, str_printf(a, "event: %s\ndata: " PRI_STR "\n\n",
							    name, FMT_STR(data)));
}

/* {"name":"node","use":{...}} */
static struct str use_event(const struct shown_node *n, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("");

	doc_put_str(m, root, STR("name"), n->name);
	doc_put(m, root, STR("use"), yyjson_mut_rawn(m, n->use.p, n->use.n));
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

/* use_meter_fn. Without a reader nothing is sent. */
static void on_use(void *context, struct str node)
{
	struct dashboard *d = context;
	const struct shown_node *n = shown_state_find_node(&d->state, node);
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	if (n && n->use.n)
		send_event(d, "use", use_event(n, &a), &a);
}

static void read_machine(struct dashboard *d)
{
	struct err err = { 0 };
	const bool fails = source_machine_read(&d->machine, &err) < 0;

	if (fails && !d->machine.is_failing)
		log_warning("cannot read the machine, showing its last state", LOG_ERR(&err));
	d->machine.is_failing = fails;
}

static bool is_machine(const struct dashboard *d)
{
	return !d->config->kubeconfig && !d->config->bundle;
}

static void on_tick(struct timer *t)
{
	struct dashboard *d = container_of(t, struct dashboard, tick);
	const bool has_readers = small_server_streams(&d->http) > 0;
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	d->ticks++;
	if (!d->config->bundle)
		d->state.now_ms = unix_ms();
	if (is_machine(d) && d->ticks % MACHINE_TICKS == 0)
		read_machine(d);
	if (d->ticks % CHECK_TICKS == 0) {
		shown_state_check_time(&d->state);
		history_expire(&d->state.history, d->state.now_ms);
	}
	if (is_machine(d) && d->ticks % USE_TICKS == 0) {
		source_machine_measure(&d->machine);
		on_use(d, source_machine_node(&d->machine));
	}
	if (d->config->kubeconfig)
		use_meter_tick(&d->use);
	if (d->config->user_tokens)
		user_access_tick(&d->access);
	/* Without a reader the changes are collected: the next one reads everything first. */
	if (has_readers)
		send_event(d, "changes", view_changes(&d->state, &a), &a);
	if (d->ticks % KEEP_ALIVE_TICKS == 0)
		small_server_broadcast(&d->http, STR(": keep-alive\n\n"));
}

static void on_signal(struct signal_source *s, int number)
{
	struct dashboard *d = s->uv.signum == SIGTERM ?
				      container_of(s, struct dashboard, terminate) :
				      container_of(s, struct dashboard, interrupt);

	log_info("shutting down", LOG_INT("signal", number));
	notify_manager("STOPPING=1");
	loop_stop(&d->loop);
}

/* --- start --- */

static int read_token(struct dashboard *d, struct err *err)
{
	const char *path = d->config->token_file;
	struct str text;
	int r;

	if (!path)
		return 0;
	r = file_read_at(AT_FDCWD, path, TOKEN_MAX, &d->arena, &text, err);
	if (r < 0)
		return err_wrap(err, "--token-file");
	d->rules.token = str_trim(text);
	/* What can be guessed is no secret. */
	if (d->rules.token.n < 16)
		return err_set(err, EINVAL,
			       "--token-file %s: the token has less than 16 characters", path);
	return 0;
}

static bool is_loopback(const char *listen)
{
	const struct str host = request_host_name(str_from(listen));

	return str_starts(host, STR("127.")) || str_eq(host, STR("[::1]"));
}

static int set_rules(struct dashboard *d, struct err *err)
{
	const struct dashboard_config *config = d->config;

	if (config->hosts.n > REQUEST_NAMES_MAX)
		return err_set(err, EINVAL, "--host: more than %d names", REQUEST_NAMES_MAX);
	for (size_t i = 0; i < config->hosts.n; i++)
		d->rules.names[d->rules.n_names++] = config->hosts.items[i];
	if (!is_loopback(config->listen) && !config->token_file && !config->user_tokens)
		return err_set(err, EINVAL,
			       "--listen %s: an address that others can reach needs --token-file "
			       "or --user-tokens",
			       config->listen);
	return read_token(d, err);
}

static void put_manifests(struct dashboard *d)
{
	const struct manifest_list *list = d->config->manifests;

	for (size_t i = 0; list && i < list->n; i++)
		if (str_eq(object_kind(list->items[i].object), STR(NAME_PROFILE_KIND)))
			shown_state_put_profile(&d->state, list->items[i].object);
}

/* user_access.on_revoked */
static void on_revoked(void *context, uint64_t connection)
{
	struct dashboard *d = context;

	small_server_end(&d->http, connection);
}

static int open_cluster(struct dashboard *d, struct err *err)
{
	(void)snprintf(d->user_agent, sizeof(d->user_agent), "pinfold-dashboard/%s",
		       d->config->version);
	d->cluster.state = &d->state;
	d->cluster.on_pod = dashboard_on_pod;
	d->cluster.context = d;
	d->use = (struct use_meter){ .api = &d->cluster.api,
				     .loop = &d->loop,
				     .state = &d->state,
				     .on_use = on_use,
				     .context = d };
	d->access = (struct user_access){ .api = &d->cluster.api,
					  .loop = &d->loop,
					  .on_review = dashboard_on_review,
					  .on_revoked = on_revoked,
					  .context = d };
	return source_cluster_open(&d->cluster, &d->loop, d->config->kubeconfig, d->user_agent,
				   err);
}

static int open_source(struct dashboard *d, struct err *err)
{
	const struct dashboard_config *config = d->config;

	d->state.now_ms = unix_ms();
	d->state.is_cluster = config->kubeconfig != NULL;
	if (config->bundle)
		return source_bundle_read(config->bundle, config->manifests, &d->state, &d->arena,
					  err);
	if (!config->kubeconfig) {
		put_manifests(d);
		return source_machine_open(&d->machine, &config->machine, &d->state, err);
	}
	return open_cluster(d, err);
}

static int open_server(struct dashboard *d, struct err *err)
{
	int r;

	d->http = (struct small_server){ .handler = dashboard_handle,
					 .context = d,
					 /* A profile as a JSON string may take twice its size. */
					 .max_request_bytes = 2 * WHAT_IF_MAX_BYTES + 16384 };
	r = small_server_listen(&d->http, &d->loop, d->config->listen, err);
	if (r >= 0)
		r = signal_source_init(&d->terminate, &d->loop, SIGTERM, on_signal, err);
	if (r >= 0)
		r = signal_source_init(&d->interrupt, &d->loop, SIGINT, on_signal, err);
	timer_init(&d->tick, &d->loop, on_tick);
	timer_start(&d->tick, TICK_MS, TICK_MS);
	return r;
}

static int confine(const struct dashboard *d, struct err *err)
{
	int r;

	if (d->config->is_unconfined)
		return 0;
	r = confine_files(&(struct confine_files){ 0 }, err);
	if (r >= 0)
		r = confine_syscalls(CONFINE_WEBHOOK, err);
	return r < 0 ? err_wrap(err,
				"cannot confine the dashboard (--no-confinement turns it off)") :
		       0;
}

static void announce(struct dashboard *d)
{
	const struct str host = request_host_name(str_from(d->config->listen));

	d->config->print(str_printf(&d->arena, "http://" PRI_STR ":%u/\n", FMT_STR(host),
				    net_local_port(d->http.listener.fd)));
	notify_manager("READY=1");
}

static int serve(struct dashboard *d, struct err *err)
{
	int r = loop_init(&d->loop, err);

	if (r < 0)
		return r;
	r = open_server(d, err);
	if (r >= 0)
		r = open_source(d, err);
	if (r >= 0)
		r = confine(d, err);
	if (r >= 0) {
		announce(d);
		trim_memory();
		loop_run(&d->loop);
	}
	small_server_close(&d->http);
	use_meter_close(&d->use);
	user_access_close(&d->access);
	source_cluster_close(&d->cluster);
	loop_done(&d->loop);
	source_cluster_done(&d->cluster);
	return r;
}

int dashboard_run(const struct dashboard_config *config, struct err *err)
{
	struct dashboard *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		abort(); /* D21 */
	d->config = config;
	(void)mallopt(M_MMAP_THRESHOLD, 256 << 10); /* large lists are returned to the kernel */
	(void)signal(SIGPIPE, SIG_IGN);
	arena_init(&d->arena, 0);
	shown_state_init(&d->state);
	r = config->is_unconfined ? 0 : confine_io_uring(err);
	if (r >= 0)
		r = set_rules(d, err);
	if (r >= 0)
		r = serve(d, err);
	source_machine_done(&d->machine);
	shown_state_done(&d->state);
	arena_done(&d->arena);
	free(d);
	return r < 0 ? r : 0;
}
