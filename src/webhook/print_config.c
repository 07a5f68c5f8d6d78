/* Edits a copy of the embedded configurations: only what the options name differs from the deployed
 * file. */

#include "print_config.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "codec/base64.h"
#include "codec/yaml.h"
#include "kube/pod.h"
#include "webhook/deploy_webhooks.h" /* generated from deploy/base/webhooks.yaml */

/* The match condition with which the API server sends only pods that opted in. */
#define RELEVANT_PODS "concerns-pinfold"
/* The webhook with which nodes get a taint. */
#define TAINTING_HOOK "nodes.mutate.pinfold.io"

struct builder {
	const struct print_config *config;
	yyjson_mut_doc *m;
	struct arena *a;
	struct str namespace, name; /* of the service, when one is given */
	uint64_t port;
};

int service_parse(const char *text, struct str *ret_namespace, struct str *ret_name,
		  uint64_t *ret_port, struct err *err)
{
	struct str_split parts = str_split(str_from(text)), colon;
	struct str namespace, rest, name, port;
	uint64_t number = *ret_port;

	if (!str_next(&parts, '/', &namespace) || !str_next(&parts, '/', &rest) || !namespace.n ||
	    !rest.n)
		return err_set(err, EINVAL, "--service \"%s\" is not NAMESPACE/NAME[:PORT]", text);
	colon = str_split(rest);
	(void)str_next(&colon, ':', &name);
	if (str_next(&colon, ':', &port) && !(str_to_u64(port, 65535, &number) && number))
		return err_set(err, EINVAL, "--service \"%s\": bad port", text);
	*ret_namespace = namespace;
	*ret_name = name;
	*ret_port = number;
	return 0;
}

static void set(struct builder *b, yyjson_mut_val *object, const char *key, yyjson_mut_val *value)
{
	(void)yyjson_mut_obj_put(object, yyjson_mut_str(b->m, key), value);
}

/* Changes where the hook is served; the path stays as in the file. */
static void set_client(struct builder *b, yyjson_mut_val *hook)
{
	yyjson_mut_val *client = yyjson_mut_obj_get(hook, "clientConfig");
	yyjson_mut_val *service = yyjson_mut_obj_get(client, "service");
	struct str path = doc_mut_str(yyjson_mut_obj_get(service, "path"));
	struct str base = str_from(b->config->url);

	if (base.n) {
		if (str_ends(base, STR("/")))
			base.n--;
		/* The API server refuses a clientConfig with both, so the path moves from the
		 * service into the URL. */
		(void)yyjson_mut_obj_remove_key(client, "service");
		set(b, client, "url",
		    doc_new_str(b->m,
				str_printf(b->a, PRI_STR PRI_STR, FMT_STR(base), FMT_STR(path))));
	} else if (b->name.n) {
		set(b, service, "namespace", doc_new_str(b->m, b->namespace));
		set(b, service, "name", doc_new_str(b->m, b->name));
		if (b->port)
			set(b, service, "port", doc_new_int(b->m, (int64_t)b->port));
	}
	if (b->config->ca_pem.n)
		set(b, client, "caBundle",
		    doc_new_str(b->m, base64_encode(b->config->ca_pem, b->a)));
}

static void drop_condition(yyjson_mut_val *hook, const char *name)
{
	yyjson_mut_val *list = yyjson_mut_obj_get(hook, "matchConditions"), *item;
	yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(list);

	while ((item = yyjson_mut_arr_iter_next(&it)))
		if (yyjson_mut_equals_str(yyjson_mut_obj_get(item, "name"), name))
			(void)yyjson_mut_arr_iter_remove(&it);
}

/* The webhook's own pods are not sent to it, or it could not start while it is down (D18). The
 * namespaces of the file stay: the agent may be in one of them. */
static void exclude_namespace(struct builder *b, yyjson_mut_val *hook)
{
	yyjson_mut_val *selector = yyjson_mut_obj_get(hook, "namespaceSelector");
	yyjson_mut_val *first =
		yyjson_mut_arr_get_first(yyjson_mut_obj_get(selector, "matchExpressions"));
	yyjson_mut_val *values = yyjson_mut_obj_get(first, "values"), *value;
	yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(values);

	if (!values || !b->namespace.n)
		return;
	while ((value = yyjson_mut_arr_iter_next(&it)))
		if (str_eq(doc_mut_str(value), b->namespace))
			return;
	(void)yyjson_mut_arr_append(values, doc_new_str(b->m, b->namespace));
}

static void adapt_configuration(struct builder *b, yyjson_mut_val *configuration)
{
	bool mutates = yyjson_mut_equals_str(yyjson_mut_obj_get(configuration, "kind"),
					     "MutatingWebhookConfiguration");
	yyjson_mut_val *hooks = yyjson_mut_obj_get(configuration, "webhooks"), *hook;
	yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(hooks);

	while ((hook = yyjson_mut_arr_iter_next(&it))) {
		if (!b->config->taint_nodes &&
		    yyjson_mut_equals_str(yyjson_mut_obj_get(hook, "name"), TAINTING_HOOK)) {
			(void)yyjson_mut_arr_iter_remove(&it);
			continue;
		}
		set_client(b, hook);
		exclude_namespace(b, hook);
		if (b->config->failure_policy)
			set(b, hook, "failurePolicy",
			    yyjson_mut_str(b->m, b->config->failure_policy));
		/* Only for mutation: validation concerns pods that have workload annotations or
		 * resources. */
		if (mutates && b->config->all_pods)
			drop_condition(hook, RELEVANT_PODS);
	}
}

int print_config_make(const struct print_config *c, struct arena *a, yyjson_mut_val **ret,
		      struct err *err)
{
	struct builder b = { .config = c, .m = doc_build(a), .a = a };
	struct str text = STR(WEBHOOKS_YAML);
	yyjson_mut_val *list = yyjson_mut_arr(b.m);
	struct doc_list docs;
	int r = 0;

	if (c->service && *c->service)
		r = service_parse(c->service, &b.namespace, &b.name, &b.port, err);
	if (r >= 0 && c->url && !str_starts(str_from(c->url), STR("https://")))
		return err_set(err, EINVAL, "--url \"%s\" does not begin with https://", c->url);
	if (r >= 0)
		r = yaml_parse(text, STR("webhooks.yaml"), NULL, a, &docs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < docs.n; i++) {
		yyjson_mut_val *configuration = yyjson_val_mut_copy(b.m, docs.items[i].root);

		adapt_configuration(&b, configuration);
		(void)yyjson_mut_arr_append(list, configuration);
	}
	*ret = list;
	return 0;
}
