/* Opens the API client once. Two things may be missing when the agent starts: the kubeconfig, which
 * the kubelet writes at the first boot, and files with credentials that it names. on_retry() waits
 * for the first; the API client reads the second before each call. */

#include "node_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api_failures.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "node_plan.h"
#include "node_sync_config.h"

/* Where kubeadm and others put the kubelet's kubeconfig; the DaemonSet mounts both directories. */
static const char *const kubelet_kubeconfigs[] = { "/etc/kubernetes/kubelet.conf",
						   "/var/lib/kubelet/kubeconfig" };

static void use_server(struct kubeconfig *ret, const struct kubeconfig *server)
{
	ret->host = server->host;
	ret->port = server->port;
	ret->prefix = server->prefix;
	ret->tls_name = NULL;
}

void node_connection_prefer_kubelet(const char *path, struct arena *a, struct kubeconfig *ret)
{
	struct kubeconfig server;

	/* Both addresses are used with the same paths. */
	if (kubeconfig_read_server(path, a, &server, NULL) < 0 || *server.prefix)
		return;
	ret->other_host = ret->host;
	ret->other_port = ret->port;
	use_server(ret, &server);
}

/* The address of Service kubernetes works only after kube-proxy or the network plugin has started,
 * and either may wait for the agent (D18). The kubelet of this node has an address that works. The
 * credentials are always the pod's. */
static int find_in_cluster(const char *kubelet_kubeconfig, struct arena *a, struct kubeconfig *ret,
			   struct err *err)
{
	int r = kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
				      getenv("KUBERNETES_SERVICE_PORT"), KUBECONFIG_POD_DIR, a, ret,
				      err);

	if (r >= 0 && kubelet_kubeconfig)
		node_connection_prefer_kubelet(kubelet_kubeconfig, a, ret);
	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(kubelet_kubeconfigs) && !ret->other_host; i++)
		node_connection_prefer_kubelet(kubelet_kubeconfigs[i], a, ret);
	return r;
}

/* An update of the agents, or power that returns, starts many agents at once. Pinning does not wait
 * for the API server. */
#define START_SPREAD_MS 1000

static int find_kubeconfig(const struct node_sync_config *config, struct arena *a,
			   struct kubeconfig *ret, struct err *err)
{
	struct kubeconfig server;
	int r;

	/* First: a bad value is an error also where there is no cluster. */
	if (config->api_server &&
	    kubeconfig_parse_server(str_from(config->api_server), a, &server, err) < 0)
		return err_wrap(err, "--api-server");
	r = config->kubeconfig ? kubeconfig_read(config->kubeconfig, config->context, a, ret, err) :
				 find_in_cluster(config->kubelet_kubeconfig, a, ret, err);
	if (r >= 0 && config->api_server) {
		use_server(ret, &server);
		ret->other_host = NULL;
	}
	return r;
}

int node_connection_find(const struct node_sync_config *config, struct arena *a,
			 struct kubeconfig *ret, struct str *ret_name, struct err *err)
{
	/* NODE_NAME is set by the DaemonSet from spec.nodeName: in a pod, the host name is the
	 * pod's. */
	const char *name = config->node_name ? config->node_name : getenv("NODE_NAME");
	char host[256] = "";
	int r;

	if (!name || !*name) {
		(void)gethostname(host, sizeof(host) - 1);
		name = host;
	}
	r = node_name_of(str_from(name), a, ret_name, err);
	return r < 0 ? r : find_kubeconfig(config, a, ret, err);
}

int node_connection_init(struct node_connection *c, const struct node_sync_config *config,
			 struct err *err)
{
	int r;

	*c = (struct node_connection){ .config = config };
	arena_init(&c->arena, 0);
	if (config->is_off)
		return 0;
	r = node_connection_find(config, &c->arena, &c->kubeconfig, &c->node_name, err);
	/* The kubelet writes its kubeconfig at the first boot of a node, after the agent started:
	 * a file that was named is waited for. */
	if (r == -ENOENT && !config->kubeconfig)
		return 0;
	c->is_configured = r == 0 || r == -ENOENT;
	return c->is_configured ? 0 : r;
}

static void on_retry(struct timer *t)
{
	struct node_connection *c = container_of(t, struct node_connection, retry);
	const uint64_t now_ms = loop_now_ms(c->loop);
	struct err err = { 0 };

	/* Set by node_connection_init() if the file existed then. */
	if (!c->kubeconfig.host &&
	    find_kubeconfig(c->config, &c->arena, &c->kubeconfig, &err) < 0) {
		api_failures_add(c->failures, now_ms, "read the kubeconfig", &err);
		timer_start(&c->retry, backoff_next(&c->backoff, backoff_random()), 0);
		return;
	}
	/* The client reads the credentials again before later requests. */
	if (api_init(&c->api, c->loop, &c->kubeconfig, c->user_agent, &err) < 0)
		api_failures_add(c->failures, now_ms, "read the credentials", &err);
	c->is_open = true;
	log_info("watching the API server", LOG_STR("host", str_from(c->kubeconfig.host)),
		 LOG_INT("port", c->kubeconfig.port), LOG_STR("node", c->node_name));
	c->on_open(c);
}

void node_connection_start(struct node_connection *c, struct loop *loop,
			   struct api_failures *failures,
			   void (*on_open)(struct node_connection *c))
{
	c->loop = loop;
	c->failures = failures;
	c->on_open = on_open;
	(void)snprintf(c->user_agent, sizeof(c->user_agent), "pinfold-agent/%s",
		       c->config->version);
	timer_init(&c->retry, loop, on_retry);
	timer_start(&c->retry, backoff_spread(START_SPREAD_MS, backoff_random()), 0);
}

void node_connection_close(struct node_connection *c)
{
	/* The retry timer is closed with the loop. */
	if (c->is_open)
		api_close(&c->api);
}

void node_connection_done(struct node_connection *c)
{
	if (c->is_open)
		api_done(&c->api);
	arena_done(&c->arena);
}
