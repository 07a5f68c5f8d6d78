/* The Secret arrives by a watch, the two webhook configurations by polling. Each of them ends in
 * evaluate(), which sets the state for the readiness check, lets cert_plan.h choose the next step
 * and, in the replica that holds the Lease, performs it. Nothing is decided while a write is in
 * flight; its response is the new state, so the next step need not wait for the watch. Texts of the
 * Secret live in k->arena until the Secret is read again, those of a configuration in its own
 * arena. */

#include "cert_rotation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "kube/names.h"
#include "kube/pod.h"

#define POLL_MS 10000	  /* the configurations may be applied again at any time */
#define POLL_SOON_MS 1000 /* while the webhook cannot be called */
#define MAX_BUNDLE 5	  /* CAs; more than two only if the Secret is deleted repeatedly */

static const char *const resources[CERT_CONFIGURATIONS] = { "mutatingwebhookconfigurations",
							    "validatingwebhookconfigurations" };

static void evaluate(struct cert_rotation *k);

static int64_t now_s(void)
{
	return (int64_t)time(NULL);
}

static struct cert_rotation *of_leader(struct leader *l)
{
	return container_of(l, struct cert_rotation, leader);
}

/* A bundle is a text of PEM certificates. */

static bool bundle_has(struct str bundle, struct str cert)
{
	struct str one;

	while (pki_next(&bundle, &one))
		if (str_eq(one, cert))
			return true;
	return false;
}

static struct str bundle_first(struct str bundle)
{
	struct str one = STR("");

	(void)pki_next(&bundle, &one);
	return one;
}

static size_t bundle_count(struct str bundle)
{
	struct str one;
	size_t n = 0;

	while (pki_next(&bundle, &one))
		n++;
	return n;
}

static bool bundle_is_same(struct str a, struct str b)
{
	struct str one;

	/* The order in the configurations does not matter to the API server. */
	if (bundle_count(a) != bundle_count(b))
		return false;
	while (pki_next(&a, &one))
		if (!bundle_has(b, one))
			return false;
	return true;
}

/* Adds the CAs of `more` that are missing and have not expired. */
static void bundle_add(struct strbuf *b, struct str more)
{
	struct pki_info info;
	struct str one;

	while (pki_next(&more, &one))
		if (!bundle_has(strbuf_str(b), one) && bundle_count(strbuf_str(b)) < MAX_BUNDLE &&
		    pki_read(one, &info, NULL) >= 0 && info.is_ca && info.ends_s > now_s()) {
			strbuf_add(b, one);
			strbuf_addc(b, '\n');
		}
}

static bool has_leaf(const struct cert_rotation *k)
{
	return pki_is_pair(&(struct pki_pair){ k->cert, k->key });
}

static bool trusts(const struct cert_hook *hook, struct str cert)
{
	struct str rest = hook->bundle, ca;

	while (pki_next(&rest, &ca))
		if (pki_is_signed_by(cert, ca))
			return true;
	return false;
}

/* The served certificate counts, also after the Secret was deleted. */
static enum cert_state state_of(const struct cert_rotation *k)
{
	struct str cert = buffer_str(&k->served);
	size_t n = 0;

	if (!cert.n)
		return CERT_STATE_NONE;
	for (size_t c = 0; c < CERT_CONFIGURATIONS; c++) {
		n += k->configurations[c].n_hooks;
		for (size_t i = 0; i < k->configurations[c].n_hooks; i++)
			if (!trusts(&k->configurations[c].hooks[i], cert))
				return CERT_STATE_NOT_TRUSTED;
	}
	return n ? CERT_STATE_OK : CERT_STATE_NOT_REGISTERED;
}

static bool is_published(const struct cert_rotation *k)
{
	/* Without webhooks there is nothing to publish: the configurations may be installed
	 * later. */
	for (size_t c = 0; c < CERT_CONFIGURATIONS; c++)
		for (size_t i = 0; i < k->configurations[c].n_hooks; i++)
			if (!bundle_is_same(k->configurations[c].hooks[i].bundle, k->bundle))
				return false;
	return true;
}

static struct cert_inventory take_inventory(const struct cert_rotation *k)
{
	struct pki_pair ca = { bundle_first(k->bundle), k->ca_key };
	struct cert_inventory ret = { .is_published = is_published(k),
				      .wants_rotation = k->wants_rotation };
	struct pki_info info;
	size_t n = bundle_count(k->bundle);

	if (pki_read(ca.cert_pem, &info, NULL) >= 0 && info.is_ca && pki_is_pair(&ca)) {
		ret.has_ca = true;
		ret.ca_made_s = info.made_s;
		ret.ca_ends_s = info.ends_s;
	}
	/* The first one is the CA that signs. */
	ret.n_old = n ? n - 1 : 0;
	/* A certificate for other names, for example after the Service was renamed, counts as
	 * absent. */
	if (has_leaf(k) && pki_read(k->cert, &info, NULL) >= 0 &&
	    pki_has_names(k->cert, k->config->names, k->config->n_names)) {
		ret.has_leaf = true;
		ret.leaf_made_s = info.made_s;
		ret.leaf_ends_s = info.ends_s;
		ret.leaf_is_by_ca = pki_is_signed_by(k->cert, ca.cert_pem);
	}
	return ret;
}

static struct str read_data(struct cert_rotation *k, yyjson_val *object, const char *key)
{
	struct str text = doc_str(doc_get(doc_get(object, STR("data")), str_from(key)));
	struct str bytes = STR("");

	(void)base64_decode(text, &k->arena, &bytes, NULL); /* unreadable is treated as absent */
	return bytes;
}

static void read_secret(struct cert_rotation *k, yyjson_val *object)
{
	/* From here on the previous texts are invalid; `served` is a copy for that reason. */
	arena_reset(&k->arena);
	k->has_secret = object != NULL;
	k->version = str_dup(&k->arena, doc_str(doc_find(object, "/metadata/resourceVersion")));
	k->bundle = read_data(k, object, "ca.crt");
	k->ca_key = read_data(k, object, "ca.key");
	k->cert = read_data(k, object, "tls.crt");
	k->key = read_data(k, object, "tls.key");
	k->wants_rotation = doc_get(object_annotations(object), STR(NAME_ROTATE)) != NULL;
	k->rotate =
		str_dup(&k->arena, doc_str(doc_get(object_annotations(object), STR(NAME_ROTATE))));
	/* While the Secret is absent or damaged, the last certificate stays in use. */
	if (!has_leaf(k) || str_eq(buffer_str(&k->served), k->cert))
		return;
	buffer_consume(&k->served, buffer_len(&k->served));
	buffer_add(&k->served, k->cert);
	k->config->on_certificate(k, k->cert, k->key);
}

static void on_secret(struct watch *w, yyjson_val *object)
{
	struct cert_rotation *k = container_of(w, struct cert_rotation, watch);

	read_secret(k, object);
	if (w->is_synced)
		evaluate(k);
}

static void on_secret_deleted(struct watch *w, yyjson_val *object)
{
	struct cert_rotation *k = container_of(w, struct cert_rotation, watch);

	(void)object;
	read_secret(k, NULL);
	evaluate(k);
}

static void on_secret_list(struct watch *w)
{
	/* Absent unless the list contains it. */
	read_secret(container_of(w, struct cert_rotation, watch), NULL);
}

static void on_secret_synced(struct watch *w)
{
	struct cert_rotation *k = container_of(w, struct cert_rotation, watch);

	k->is_known = true;
	evaluate(k);
}

static void on_watch_failure(struct watch *w, const struct err *err)
{
	struct cert_rotation *k = container_of(w, struct cert_rotation, watch);

	k->config->on_failure(k, "cannot watch the Secret", err);
}

static void poll_after(struct cert_rotation *k, uint64_t ms)
{
	timer_start(&k->timer, ms, 0);
}

static bool list_has(yyjson_val *list, struct str text)
{
	yyjson_val *item;

	DOC_EACH_ITEM (list, item)
		if (str_eq(doc_str(item), text) || str_eq(doc_str(item), STR("*")))
			return true;
	return false;
}

static bool is_node_hook(yyjson_val *hook)
{
	yyjson_val *rule;

	DOC_EACH_ITEM (doc_get(hook, STR("rules")), rule)
		if (list_has(doc_get(rule, STR("resources")), STR("nodes")) &&
		    list_has(doc_get(rule, STR("operations")), STR("CREATE")))
			return true;
	return false;
}

static void read_configuration(struct cert_configuration *c, yyjson_val *object)
{
	yyjson_val *hooks = doc_get(object, STR("webhooks")), *hook;

	arena_reset(&c->arena);
	c->is_known = true;
	c->exists = object != NULL;
	c->n_hooks = 0;
	c->has_node_hook = false;
	(void)snprintf(c->created, sizeof(c->created), PRI_STR,
		       FMT_STR(doc_str(doc_find(object, "/metadata/creationTimestamp"))));
	c->hooks = arena_array(&c->arena, struct cert_hook, yyjson_arr_size(hooks));
	DOC_EACH_ITEM (hooks, hook) {
		struct cert_hook *to = &c->hooks[c->n_hooks++];
		struct str bundle = doc_str(doc_find(hook, "/clientConfig/caBundle"));

		c->has_node_hook |= is_node_hook(hook);
		to->name = str_dup(&c->arena, doc_str(doc_get(hook, STR("name"))));
		(void)base64_decode(bundle, &c->arena, &to->bundle, NULL);
	}
}

static void on_configuration(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct cert_configuration *c = container_of(call, struct cert_configuration, call);
	struct cert_rotation *k = c->rotation;

	c->is_busy = false;
	/* Not installed yet counts as a configuration without webhooks. */
	if (err && err->code != ENOENT) {
		k->config->on_failure(k, "cannot read the webhook configuration", err);
		poll_after(k, backoff_next(&k->backoff, backoff_random()));
		return;
	}
	backoff_reset(&k->backoff);
	read_configuration(c, object);
	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
		if (k->configurations[i].is_busy || !k->configurations[i].is_known)
			return;
	if (k->config->on_configurations)
		k->config->on_configurations(k);
	evaluate(k);
}

static void start_configuration(struct cert_configuration *c, const struct api_request *how)
{
	struct api_request request = *how;
	char path[256];

	(void)snprintf(path, sizeof(path), "/apis/admissionregistration.k8s.io/v1/%s/%s",
		       c->resource, c->rotation->config->configuration);
	request.path = str_from(path);
	c->is_busy = true;
	api_start(c->rotation->api, &c->call, &request, on_configuration);
}

/* The configurations are polled, not watched: the webhook may then have the right to read only
 * these two objects by name. */
static void on_timer(struct timer *t)
{
	struct cert_rotation *k = container_of(t, struct cert_rotation, timer);

	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
		if (!k->configurations[i].is_busy)
			start_configuration(&k->configurations[i],
					    &(struct api_request){ .method = "GET" });
}

/* A strategic merge patch merges webhooks by name, so that only caBundle changes. */
static void publish_to(struct cert_configuration *c)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_mut_val *object, *hooks;
	yyjson_mut_doc *m;
	struct str bundle, body;

	arena_init(&a, 0);
	m = doc_build(&a);
	object = yyjson_mut_obj(m);
	bundle = base64_encode(c->rotation->bundle, &a);
	hooks = doc_put_arr(m, object, STR("webhooks"));
	for (size_t i = 0; i < c->n_hooks; i++) {
		yyjson_mut_val *hook = yyjson_mut_obj(m);

		doc_put_str(m, hook, STR("name"), c->hooks[i].name);
		doc_put_str(m, doc_put_obj(m, hook, STR("clientConfig")), STR("caBundle"), bundle);
		yyjson_mut_arr_append(hooks, hook);
	}
	if (doc_write(object, false, &a, &body, NULL) >= 0)
		start_configuration(c, &(struct api_request){ .method = "PATCH",
							      .content_type = API_PATCH_STRATEGIC,
							      .body = body });
}

static void on_written(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct cert_rotation *k = container_of(call, struct cert_rotation, write);
	const char *what = k->writing;

	k->writing = NULL;
	if (err) {
		k->config->on_failure(k, what, err);
		poll_after(k, backoff_next(&k->backoff, backoff_random()));
		return;
	}
	k->config->on_action(k, what);
	read_secret(k, object);
	evaluate(k);
}

struct secret_content {
	struct str bundle, ca_key, cert, key;
	bool has_new_ca;
};

static void put_data(yyjson_mut_doc *m, yyjson_mut_val *data, struct str key, struct str bytes,
		     struct arena *a)
{
	if (bytes.n)
		doc_put_str(m, data, key, base64_encode(bytes, a));
}

static void write_secret(struct cert_rotation *k, const struct secret_content *content,
			 const char *what, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *object = yyjson_mut_obj(m), *meta, *data;
	char path[512];
	struct str body;

	doc_put_str(m, object, STR("apiVersion"), STR("v1"));
	doc_put_str(m, object, STR("kind"), STR("Secret"));
	meta = doc_put_obj(m, object, STR("metadata"));
	doc_put_str(m, meta, STR("name"), str_from(k->config->secret));
	doc_put_str(m, meta, STR("namespace"), str_from(k->config->namespace));
	if (k->has_secret) /* a concurrent write makes this one fail */
		doc_put_str(m, meta, STR("resourceVersion"), k->version);
	/* PUT replaces the whole object: with a new CA the annotation that requested it is removed.
	 * One that was set during a rotation waits for the end of it. */
	if (k->wants_rotation && !content->has_new_ca)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")), STR(NAME_ROTATE),
			    k->rotate);
	data = doc_put_obj(m, object, STR("data"));
	put_data(m, data, STR("ca.crt"), content->bundle, a);
	put_data(m, data, STR("ca.key"), content->ca_key, a);
	put_data(m, data, STR("tls.crt"), content->cert, a);
	put_data(m, data, STR("tls.key"), content->key, a);
	if (doc_write(object, false, a, &body, NULL) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/secrets%s%s",
		       k->config->namespace, k->has_secret ? "/" : "",
		       k->has_secret ? k->config->secret : "");
	k->writing = what;
	api_start(k->api, &k->write,
		  &(struct api_request){ .method = k->has_secret ? "PUT" : "POST",
					 .path = str_from(path),
					 .content_type = API_JSON,
					 .body = body },
		  on_written);
}

static int make_ca(struct cert_rotation *k, struct secret_content *content, struct arena *a,
		   struct err *err)
{
	/* Each CA has its own subject: clients look for the issuer of a certificate by its
	 * subject. */
	struct str name = str_printf(a, "pinfold-webhook-ca@%lld", (long long)now_s());
	struct pki_pair ca;
	struct strbuf bundle;
	int r = pki_make_ca(name.p, now_s(), CERT_CA_LIFETIME_S, a, &ca, err);

	if (r < 0)
		return r;
	strbuf_init(&bundle, a);
	strbuf_add(&bundle, ca.cert_pem);
	bundle_add(&bundle, k->bundle);
	for (size_t c = 0; c < CERT_CONFIGURATIONS; c++) /* with CAs of a deleted Secret */
		for (size_t i = 0; i < k->configurations[c].n_hooks; i++)
			bundle_add(&bundle, k->configurations[c].hooks[i].bundle);
	content->bundle = strbuf_str(&bundle);
	content->ca_key = ca.key_pem;
	content->has_new_ca = true;
	return 0;
}

static int issue(const struct cert_rotation *k, struct secret_content *content, struct arena *a,
		 struct err *err)
{
	struct pki_pair ca = { bundle_first(k->bundle), k->ca_key }, leaf;
	struct pki_leaf how = { .names = k->config->names,
				.n_names = k->config->n_names,
				.now_s = now_s(),
				.lifetime_s = CERT_LEAF_LIFETIME_S };
	struct pki_info info;
	int r = pki_read(ca.cert_pem, &info, err);

	if (r < 0)
		return r;
	/* A certificate is invalid once its CA has expired. */
	if (how.lifetime_s > info.ends_s - how.now_s)
		how.lifetime_s = info.ends_s - how.now_s;
	r = pki_issue(&ca, &how, a, &leaf, err);
	if (r < 0)
		return r;
	content->cert = leaf.cert_pem;
	content->key = leaf.key_pem;
	return 0;
}

static void perform(struct cert_rotation *k, enum cert_action action)
{
	struct secret_content content = { k->bundle, k->ca_key, k->cert, k->key, false };
	CLEANUP(arena_done) struct arena a;
	const char *what = "removed old CAs";
	struct err err;
	int r = 0;

	arena_init(&a, 0);
	if (action == CERT_PUBLISH) { /* the responses end in on_configuration() */
		for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
			if (k->configurations[i].n_hooks && !k->configurations[i].is_busy)
				publish_to(&k->configurations[i]);
		k->config->on_action(k, "writing the CA to the webhook configurations");
		return;
	}
	if (action == CERT_MAKE_CA) {
		what = "created a new CA";
		r = make_ca(k, &content, &a, &err);
	} else if (action == CERT_ISSUE) {
		what = "issued a certificate";
		r = issue(k, &content, &a, &err);
	} else {
		content.bundle = bundle_first(k->bundle);
	}
	if (r < 0) {
		k->config->on_failure(k, what, &err);
		poll_after(k, POLL_MS);
		return;
	}
	write_secret(k, &content, what, &a);
}

static bool is_state_known(const struct cert_rotation *k)
{
	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
		if (!k->configurations[i].is_known || k->configurations[i].is_busy)
			return false;
	return k->is_known && !k->writing;
}

static void evaluate(struct cert_rotation *k)
{
	enum cert_state state;
	struct cert_decision d;
	struct cert_inventory inventory;
	int64_t wait_s;

	if (!is_state_known(k))
		return;
	state = state_of(k);
	atomic_store(&k->state, (int)state);
	inventory = take_inventory(k);
	d = cert_decide(&inventory, now_s());
	/* The Lease is held only while there is something to write: renewing it forever would be
	 * load on the API server for no work. */
	leader_want(&k->leader, d.action != CERT_NOTHING);
	if (d.action != CERT_NOTHING) {
		poll_after(k, POLL_SOON_MS);
		if (leader_is(&k->leader))
			perform(k, d.action);
		return;
	}
	/* The decision is in whole seconds; half a second more avoids waking up just before it. */
	wait_s = d.next_s - now_s();
	poll_after(k, state != CERT_STATE_OK  ? POLL_SOON_MS :
		      wait_s < POLL_MS / 1000 ? (uint64_t)(wait_s > 0 ? wait_s : 0) * 1000 + 500 :
						POLL_MS);
}

static void on_leader(struct leader *l)
{
	if (leader_is(l))
		evaluate(of_leader(l));
}

static void on_leader_failure(struct leader *l, const struct err *err)
{
	struct cert_rotation *k = of_leader(l);

	k->config->on_failure(k, "cannot acquire the Lease", err);
}

void cert_rotation_init(struct cert_rotation *k, struct api *api,
			const struct cert_rotation_config *config)
{
	static const struct watch_callbacks events = { .on_object = on_secret,
						       .on_deleted = on_secret_deleted,
						       .on_list = on_secret_list,
						       .on_synced = on_secret_synced,
						       .on_failure = on_watch_failure };

	*k = (struct cert_rotation){ .api = api, .config = config };
	arena_init(&k->arena, 0);
	arena_init(&k->paths, 0);
	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++) {
		k->configurations[i].rotation = k;
		k->configurations[i].resource = resources[i];
		arena_init(&k->configurations[i].arena, 0);
	}
	k->leader_config = (struct leader_config){ .namespace = config->namespace,
						   .name = config->lease,
						   .identity = config->identity,
						   .on_change = on_leader,
						   .on_failure = on_leader_failure };
	leader_init(&k->leader, api, &k->leader_config);
	k->watch_config = (struct watch_config){
		.path = str_printf(&k->paths, "/api/v1/namespaces/%s/secrets", config->namespace).p,
		.selector =
			str_printf(&k->paths, "fieldSelector=metadata.name%%3D%s", config->secret)
				.p,
		.page = 10,
	};
	timer_init(&k->timer, api->loop, on_timer);
	timer_start(&k->timer, 0, 0);
	watch_init(&k->watch, api, &k->watch_config, &events);
}

void cert_rotation_close(struct cert_rotation *k)
{
	leader_close(&k->leader);
	watch_close(&k->watch);
	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
		api_cancel(&k->configurations[i].call);
	api_cancel(&k->write);
	timer_close(&k->timer, NULL);
}

void cert_rotation_done(struct cert_rotation *k)
{
	leader_done(&k->leader);
	watch_done(&k->watch);
	for (size_t i = 0; i < CERT_CONFIGURATIONS; i++)
		arena_done(&k->configurations[i].arena);
	buffer_done(&k->served);
	arena_done(&k->arena);
	arena_done(&k->paths);
}
