#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/kubeconfig.h"
#include "test.h"

#define HEAD                                                                                       \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\n"                                    \
	"contexts: [{name: here, context: {cluster: c, user: u}}]\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: \"https://api.example:6443\"}}]\n"

static int parse(const char *text, const char *context, struct arena *a, struct kubeconfig *ret,
		 struct err *err)
{
	return kubeconfig_parse(str_from(text), STR("config"), "/home/me/.kube", context, a, ret,
				err);
}

TEST(all_credentials_may_be_inline)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct kubeconfig got;

	arena_init(&a, 0);
	CHECK_OK(parse(HEAD "clusters: [{name: c, cluster: {server: \"https://[::1]:6443/k8s/\", "
			    "tls-server-name: kube, certificate-authority-data: Y2E=}}]\n"
			    "users: [{name: u, user: {client-certificate-data: Y2VydA==, "
			    "client-key-data: a2V5, token: abc}}]\n",
		       NULL, &a, &got, &err));
	CHECK_STR(got.host, "::1");
	CHECK_UINT(got.port, 6443);
	CHECK_STR(got.prefix, "/k8s");
	CHECK_STR(got.tls_name, "kube");
	CHECK_STR(got.ca_pem, "ca");
	CHECK_STR(got.cert_pem, "cert");
	CHECK_STR(got.key_pem, "key");
	CHECK_STR(got.token, "abc");
	CHECK(!got.ca_path && !got.cert_path && !got.key_path && !got.token_path && !got.insecure);
}

TEST(paths_are_relative_to_the_file)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct kubeconfig got;

	arena_init(&a, 0);
	CHECK_OK(parse(HEAD "clusters: [{name: c, cluster: {server: \"https://h\", "
			    "certificate-authority: ca.crt}}]\n"
			    "users: [{name: u, user: {client-certificate: /etc/me.crt, "
			    "client-key: keys/me.key, tokenFile: token, token: ignored}}]\n",
		       NULL, &a, &got, &err));
	CHECK_UINT(got.port, 443);
	CHECK_STR(got.ca_path, "/home/me/.kube/ca.crt");
	CHECK_STR(got.cert_path, "/etc/me.crt");
	CHECK_STR(got.key_path, "/home/me/.kube/keys/me.key");
	CHECK_STR(got.token_path, "/home/me/.kube/token");
	CHECK_STR(got.token, "");
}

TEST(a_context_is_chosen_by_name)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct kubeconfig got;

	arena_init(&a, 0);
	CHECK_OK(parse("contexts:\n- {name: a, context: {cluster: x}}\n"
		       "- {name: b, context: {cluster: z, namespace: shop}}\n"
		       "clusters:\n- {name: x, cluster: {server: \"https://x\"}}\n"
		       "- {name: z, cluster: {server: \"https://z\", "
		       "insecure-skip-tls-verify: true}}\n",
		       "b", &a, &got, &err));
	CHECK_STR(got.host, "z");
	CHECK_STR(got.namespace, "shop");
	CHECK(got.insecure);
}

TEST(unsupported_settings_are_refused_with_file_and_line)
{
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{ "", "config: empty" },
		{ "[]", "config:1:1: expected a kubeconfig, found a list" },
		{ "a: [", NULL },
		{ "kind: Config", "config:1:1: current-context is not set" },
		{ "current-context: x", "config:1:1: no context named \"x\" in contexts" },
		{ HEAD, "config:1:1: no cluster named \"c\" in clusters" },
		{ HEAD CLUSTER, "config:1:1: no user named \"u\" in users" },
		{ HEAD CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]\n",
		  "config:6:32: exec is not supported: use a client certificate, a token or a "
		  "tokenFile" },
		{ HEAD CLUSTER "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n",
		  "config:6:41: auth-provider is not supported: use a client certificate, a token "
		  "or a tokenFile" },
		{ HEAD CLUSTER "users: [{name: u, user: {username: me, password: x}}]\n",
		  "config:6:36: username is not supported: use a client certificate, a token or a "
		  "tokenFile" },
		{ HEAD CLUSTER "users: [{name: u, user: {client-certificate: me.crt}}]\n",
		  "config:6:25: client-certificate and client-key must be set together" },
		{ HEAD CLUSTER "users: [{name: u, user: {token: 7}}]\n",
		  "config:6:33: token must be a string, not a number" },
		{ HEAD CLUSTER "users: [{name: u, user: {client-key-data: \"?\"}}]\n", NULL },
		{ HEAD "users: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {}}]\n",
		  "config:6:31: server \"\" is not a URL like https://host:6443" },
		{ HEAD "users: [{name: u, user: {}}]\n"
		       "clusters: [{name: c, cluster: {server: \"https://h\", proxy-url: x}}]\n",
		  "config:6:64: proxy-url is not supported" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct kubeconfig got = { .port = 7 };
		struct err err = { 0 };
		int r;

		TEST_ROW("row %zu: %s", i, rows[i].text);
		arena_init(&a, 0);
		r = parse(rows[i].text, NULL, &a, &got, &err);
		CHECK(r < 0);
		if (rows[i].sentence)
			CHECK_STR(err.msg, rows[i].sentence);
		CHECK(strncmp(err.msg, "config:", 7) == 0);
		CHECK_UINT(got.port, 7);
	}
}

TEST(the_server_is_an_https_url)
{
	static const struct {
		const char *url, *host, *prefix;
		unsigned port; /* 0: refused */
	} rows[] = {
		{ "https://a", "a", "", 443 },
		{ "https://a/", "a", "", 443 },
		{ "https://a:1/b/c//", "a", "/b/c", 1 },
		{ "https://10.0.0.1:65535", "10.0.0.1", "", 65535 },
		{ "https://[fd00::1]", "fd00::1", "", 443 },
		{ "http://a", NULL, NULL, 0 },
		{ "https://", NULL, NULL, 0 },
		{ "https://:443", NULL, NULL, 0 },
		{ "https://a:", "a", "", 443 },
		{ "https://a:0", NULL, NULL, 0 },
		{ "https://a:65536", NULL, NULL, 0 },
		{ "https://a:b", NULL, NULL, 0 },
		{ "https://[::1", NULL, NULL, 0 },
		{ "https://[::1]x", NULL, NULL, 0 },
		{ "https://u@a", NULL, NULL, 0 },
		{ "https://a b", NULL, NULL, 0 },
		{ "https://a/b c", NULL, NULL, 0 },
		{ "https://a/?q", NULL, NULL, 0 },
		{ "a:6443", NULL, NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct kubeconfig got = { 0 };
		struct err err = { 0 };
		int r;

		TEST_ROW("%s", rows[i].url);
		arena_init(&a, 0);
		r = kubeconfig_parse_server(str_from(rows[i].url), &a, &got, &err);
		CHECK_INT(r < 0, !rows[i].port);
		CHECK_UINT(got.port, rows[i].port);
		if (r < 0)
			continue;
		CHECK_STR(got.host, rows[i].host);
		CHECK_STR(got.prefix, rows[i].prefix);
	}
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	CHECK(f != NULL);
	(void)fputs(text, f);
	(void)fclose(f);
}

TEST(the_token_of_a_pod_is_read_again_after_rotation)
{
	CLEANUP(arena_done) struct arena a;
	char dir[] = "/tmp/pinfold-pod-XXXXXX";
	struct credentials now;
	struct err err = { 0 };
	struct kubeconfig got;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	write_file(dir, "ca.crt", "the CA");
	write_file(dir, "token", "first\n");
	write_file(dir, "namespace", "pinfold\n");
	CHECK_OK(kubeconfig_in_cluster("10.96.0.1", "443", dir, &a, &got, &err));
	CHECK_STR(got.namespace, "pinfold");
	CHECK_OK(kubeconfig_read_credentials(&got, &a, &now, &err));
	CHECK_STR(now.token, "first");
	CHECK_STR(now.ca_pem, "the CA");
	write_file(dir, "token", "second");
	CHECK_OK(kubeconfig_read_credentials(&got, &a, &now, &err));
	CHECK_STR(now.token, "second");
	write_file(dir, "token", "two\nlines");
	CHECK(kubeconfig_read_credentials(&got, &a, &now, &err) < 0);
	CHECK(strstr(err.msg, "not a bearer token") != NULL);
	write_file(dir, "token", "");
	CHECK(kubeconfig_read_credentials(&got, &a, &now, &err) < 0);
	CHECK_STR(now.token, "second");
	(void)unlink(got.token_path);
	(void)unlink(got.ca_path);
	(void)unlink(str_printf(&a, "%s/namespace", dir).p);
	(void)rmdir(dir);
}

/* Its credentials may need a program that the agent does not run. */
TEST(the_address_in_the_kubelets_kubeconfig_is_read_without_its_credentials)
{
	char dir[] = "/tmp/pinfold-kubeconfig-XXXXXX";
	CLEANUP(arena_done) struct arena a;
	struct kubeconfig got;
	struct err err = { 0 };
	const char *path;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	path = str_printf(&a, "%s/kubelet.conf", dir).p;
	write_file(dir, "kubelet.conf",
		   "current-context: c\n"
		   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
		   "clusters: [{name: k, cluster: {server: 'https://10.0.0.7:6443'}}]\n"
		   "users: [{name: u, user: {exec: {command: login}}}]\n");
	CHECK(kubeconfig_read(path, NULL, &a, &got, &err) < 0);
	CHECK_OK(kubeconfig_read_server(path, &a, &got, &err));
	CHECK_STR(str_from(got.host), "10.0.0.7");
	CHECK_UINT(got.port, 6443);
	CHECK(!got.ca_path && !got.token_path && !got.cert_path);
	(void)unlink(path);
	(void)rmdir(dir);
}

TEST(the_error_outside_of_a_pod_names_the_variables)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct kubeconfig got;

	arena_init(&a, 0);
	CHECK_ERR(kubeconfig_in_cluster(NULL, "443", "/nowhere", &a, &got, &err), ENOENT,
		  "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
	CHECK_ERR(kubeconfig_in_cluster("h", "x", "/nowhere", &a, &got, &err), EINVAL,
		  "invalid KUBERNETES_SERVICE_HOST \"h\" or KUBERNETES_SERVICE_PORT \"x\"");
}
