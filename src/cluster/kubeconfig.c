/* Parsing resolves context, cluster and user to one struct kubeconfig; its texts live in the arena.
 * Secrets that the file contains are decoded there, secrets that it names are read later and
 * repeatedly by kubeconfig_read_credentials(). */

#include "kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/quote.h"
#include "codec/base64.h"
#include "codec/yaml.h"

#define MAX_CONFIG_BYTES ((size_t)4 << 20)
#define MAX_SECRET_BYTES ((size_t)1 << 20)

struct kubeconfig_reader {
	const struct doc *doc;
	const char *directory;
	struct arena *a;
	struct kubeconfig *ret;
	bool skips_user;
};

static int split_port(struct str authority, struct str *ret_host, struct str *ret_port)
{
	/* An IPv6 address contains colons, so a URL has it in brackets. */
	if (str_starts(authority, STR("["))) {
		const char *end = memchr(authority.p, ']', authority.n);

		if (!end)
			return -EINVAL;
		*ret_host = (struct str){ authority.p + 1, (size_t)(end - authority.p) - 1 };
		*ret_port = str_skip(authority, (size_t)(end - authority.p) + 1);
	} else {
		const char *colon = memchr(authority.p, ':', authority.n);

		*ret_host = authority;
		if (colon)
			ret_host->n = (size_t)(colon - authority.p);
		*ret_port = str_skip(authority, ret_host->n);
	}
	if (ret_port->n && ret_port->p[0] != ':')
		return -EINVAL;
	*ret_port = str_skip(*ret_port, 1);
	return 0;
}

/* Host names and addresses; no character that has a meaning in a URL or a header. */
static bool is_host(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 127 || strchr("/\\\"@?#<>[]{}%", s.p[i]))
			return false;
	return s.n > 0 && s.n < 254;
}

static bool is_path(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] >= 127 || s.p[i] == '?' || s.p[i] == '#')
			return false;
	return s.n < 1024;
}

int kubeconfig_parse_server(struct str url, struct arena *a, struct kubeconfig *ret,
			    struct err *err)
{
	struct str rest = str_skip(url, strlen("https://")), authority = rest, host, port;
	const char *slash;
	uint64_t number = 443;

	if (str_starts(url, STR("http://")))
		return err_set(err, EINVAL, "server %s does not use TLS, only https is supported",
			       quote(url).text);
	if (!str_starts(url, STR("https://")))
		return err_set(err, EINVAL, "server %s is not a URL like https://host:6443",
			       quote(url).text);
	slash = memchr(rest.p, '/', rest.n);
	if (slash)
		authority.n = (size_t)(slash - rest.p);
	rest = str_skip(rest, authority.n);
	/* Every path begins with a slash itself. */
	while (str_ends(rest, STR("/")))
		rest.n--;
	if (split_port(authority, &host, &port) < 0 || !is_host(host) || !is_path(rest) ||
	    (port.n && (!str_to_u64(port, UINT16_MAX, &number) || !number)))
		return err_set(err, EINVAL, "server %s is not a URL like https://host:6443",
			       quote(url).text);
	ret->host = str_cstr(a, host);
	ret->port = (uint16_t)number;
	ret->prefix = str_cstr(a, rest);
	return 0;
}

/* clusters, users and contexts are lists of {name, cluster|user|context}. */
static yyjson_val *find_named(yyjson_val *root, const char *list, const char *what, struct str name)
{
	yyjson_val *item;

	DOC_EACH_ITEM (doc_get(root, str_from(list)), item)
		if (str_eq(doc_str(doc_get(item, STR("name"))), name))
			return doc_get(item, str_from(what));
	return NULL;
}

static int get_named(const struct kubeconfig_reader *rd, const char *list, const char *what,
		     struct str name, yyjson_val **ret, struct err *err)
{
	yyjson_val *v = find_named(rd->doc->root, list, what, name);

	if (!yyjson_is_obj(v))
		return doc_err(err, rd->doc, v ? v : rd->doc->root, "no %s named %s in %s", what,
			       quote(name).text, list);
	*ret = v;
	return 0;
}

/* A string field; another type is an error. Absent gives "". */
static int get_text(const struct kubeconfig_reader *rd, yyjson_val *object, const char *key,
		    struct str *ret, struct err *err)
{
	yyjson_val *v = doc_get(object, str_from(key));
	struct str text = doc_str(v);

	if (v && !yyjson_is_null(v) && !yyjson_is_str(v))
		return doc_err(err, rd->doc, v, "%s must be a string, not %s", key, doc_type(v));
	/* Texts become C strings; a NUL would cut a path or a name silently. */
	if (memchr(text.p ? text.p : "", '\0', text.n))
		return doc_err(err, rd->doc, v, "%s contains a NUL byte", key);
	*ret = text;
	return 0;
}

static int get_path(const struct kubeconfig_reader *rd, yyjson_val *object, const char *key,
		    const char **ret, struct err *err)
{
	struct str text;
	int r = get_text(rd, object, key, &text, err);

	if (r < 0)
		return r;
	*ret = !text.n ? NULL :
	       str_starts(text, STR("/")) ?
			 str_cstr(rd->a, text) :
			 str_printf(rd->a, "%s/" PRI_STR, rd->directory, FMT_STR(text)).p;
	return 0;
}

/* "<key>-data" in base64, or else a path under "<key>". */
static int get_data(const struct kubeconfig_reader *rd, yyjson_val *object, const char *key,
		    struct str *ret, const char **ret_path, struct err *err)
{
	const char *data_key = str_printf(rd->a, "%s-data", key).p;
	struct str text;
	struct err why;
	int r = get_text(rd, object, data_key, &text, err);

	if (r < 0)
		return r;
	if (!text.n)
		return get_path(rd, object, key, ret_path, err);
	if (base64_decode(text, rd->a, ret, &why) < 0)
		return doc_err(err, rd->doc, doc_get(object, str_from(data_key)), "%s: %s",
			       data_key, why.msg);
	return 0;
}

static int read_cluster(const struct kubeconfig_reader *rd, yyjson_val *cluster, struct err *err)
{
	struct str server, tls_name, proxy;
	struct kubeconfig *ret = rd->ret;
	struct err why;
	int r = get_text(rd, cluster, "server", &server, err);

	if (r >= 0)
		r = get_text(rd, cluster, "tls-server-name", &tls_name, err);
	if (r >= 0)
		r = get_text(rd, cluster, "proxy-url", &proxy, err);
	if (r < 0)
		return r;
	/* Refused and not ignored: the server may be unreachable, or meant to be unreachable,
	 * without it. */
	if (proxy.n)
		return doc_err(err, rd->doc, doc_get(cluster, STR("proxy-url")),
			       "proxy-url is not supported");
	if (kubeconfig_parse_server(server, rd->a, ret, &why) < 0)
		return doc_err(err, rd->doc, server.n ? doc_get(cluster, STR("server")) : cluster,
			       "%s", why.msg);
	ret->tls_name = tls_name.n ? str_cstr(rd->a, tls_name) : NULL;
	ret->insecure = doc_bool(doc_get(cluster, STR("insecure-skip-tls-verify")), false);
	return get_data(rd, cluster, "certificate-authority", &ret->ca_pem, &ret->ca_path, err);
}

static int check_unsupported(const struct kubeconfig_reader *rd, yyjson_val *user, struct err *err)
{
	static const char *const refused[] = { "exec", "auth-provider", "username", "password" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		yyjson_val *v = doc_get(user, str_from(refused[i]));

		if (v && !yyjson_is_null(v))
			return doc_err(err, rd->doc, v,
				       "%s is not supported: use a client certificate, a token or "
				       "a tokenFile",
				       refused[i]);
	}
	return 0;
}

static int read_user(const struct kubeconfig_reader *rd, yyjson_val *user, struct err *err)
{
	struct kubeconfig *ret = rd->ret;
	int r = check_unsupported(rd, user, err);

	if (r >= 0)
		r = get_data(rd, user, "client-certificate", &ret->cert_pem, &ret->cert_path, err);
	if (r >= 0)
		r = get_data(rd, user, "client-key", &ret->key_pem, &ret->key_path, err);
	if (r >= 0)
		r = get_path(rd, user, "tokenFile", &ret->token_path, err);
	if (r >= 0)
		r = get_text(rd, user, "token", &ret->token, err);
	if (r < 0)
		return r;
	if (ret->token_path)
		ret->token = STR(""); /* client-go prefers the file, too: it is rotated */
	if ((ret->cert_pem.n || ret->cert_path) != (ret->key_pem.n || ret->key_path))
		return doc_err(err, rd->doc, user,
			       "client-certificate and client-key must be set together");
	return 0;
}

static int read_context(const struct kubeconfig_reader *rd, const char *wanted, struct err *err)
{
	struct str name = str_from(wanted), cluster_name = STR(""), user_name = STR("");
	struct str namespace = STR("");
	yyjson_val *context, *cluster, *user = NULL;
	int r = wanted ? 0 : get_text(rd, rd->doc->root, "current-context", &name, err);

	if (r < 0)
		return r;
	if (!name.n)
		return doc_err(err, rd->doc, rd->doc->root, "current-context is not set");
	r = get_named(rd, "contexts", "context", name, &context, err);
	if (r >= 0)
		r = get_text(rd, context, "cluster", &cluster_name, err);
	if (r >= 0)
		r = get_text(rd, context, "user", &user_name, err);
	if (r >= 0)
		r = get_text(rd, context, "namespace", &namespace, err);
	if (r >= 0)
		r = get_named(rd, "clusters", "cluster", cluster_name, &cluster, err);
	/* A context without a user is valid: the server then decides what anonymous requests may
	 * do. */
	if (r >= 0 && user_name.n && !rd->skips_user)
		r = get_named(rd, "users", "user", user_name, &user, err);
	if (r >= 0)
		r = read_cluster(rd, cluster, err);
	if (r >= 0 && user)
		r = read_user(rd, user, err);
	if (r >= 0 && namespace.n)
		rd->ret->namespace = str_cstr(rd->a, namespace);
	return r;
}

static int parse(struct kubeconfig_reader *rd, struct str text, struct str file,
		 const char *context, struct err *err)
{
	const struct doc_limits limits = { .size_bytes = MAX_CONFIG_BYTES, .documents = 1 };
	struct doc_list docs;
	int r = yaml_parse(text, file, &limits, rd->a, &docs, err);

	if (r < 0)
		return r;
	if (!docs.n)
		return err_set(err, EINVAL, PRI_STR ": empty", FMT_STR(file));
	rd->doc = docs.items;
	if (!yyjson_is_obj(rd->doc->root))
		return doc_err(err, rd->doc, rd->doc->root, "expected a kubeconfig, found %s",
			       doc_type(rd->doc->root));
	return read_context(rd, context, err);
}

int kubeconfig_parse(struct str text, struct str file, const char *directory, const char *context,
		     struct arena *a, struct kubeconfig *ret, struct err *err)
{
	struct kubeconfig kubeconfig = { .prefix = "" };
	struct kubeconfig_reader rd = { .directory = directory, .a = a, .ret = &kubeconfig };
	int r = parse(&rd, text, file, context, err);

	if (r >= 0)
		*ret = kubeconfig;
	return r;
}

int kubeconfig_read(const char *path, const char *context, struct arena *a, struct kubeconfig *ret,
		    struct err *err)
{
	/* As in kubectl, relative paths are relative to the file and not to the working
	 * directory. */
	const char *slash = strrchr(path, '/');
	struct str directory = slash ? (struct str){ path, (size_t)(slash - path) } : STR(".");
	struct str text;
	int r = file_read_at(AT_FDCWD, path, MAX_CONFIG_BYTES, a, &text, err);

	if (r < 0)
		return r;
	return kubeconfig_parse(text, str_from(path), str_cstr(a, directory), context, a, ret, err);
}

int kubeconfig_read_server(const char *path, struct arena *a, struct kubeconfig *ret,
			   struct err *err)
{
	struct kubeconfig kubeconfig = { .prefix = "" };
	struct kubeconfig_reader rd = {
		.directory = ".", .a = a, .ret = &kubeconfig, .skips_user = true
	};
	struct str text;
	int r = file_read_at(AT_FDCWD, path, MAX_CONFIG_BYTES, a, &text, err);

	if (r >= 0)
		r = parse(&rd, text, str_from(path), NULL, err);
	if (r < 0)
		return r;
	*ret = (struct kubeconfig){ .host = kubeconfig.host,
				    .port = kubeconfig.port,
				    .prefix = kubeconfig.prefix };
	return 0;
}

int kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
			  struct arena *a, struct kubeconfig *ret, struct err *err)
{
	struct kubeconfig kubeconfig = { .prefix = "" };
	struct str namespace;
	uint64_t number;

	if (!host || !port || !*host || !*port)
		return err_set(err, ENOENT,
			       "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
			       "are not set");
	if (!is_host(str_from(host)) || !str_to_u64(str_from(port), UINT16_MAX, &number) || !number)
		return err_set(err, EINVAL,
			       "invalid KUBERNETES_SERVICE_HOST %s or KUBERNETES_SERVICE_PORT %s",
			       quote(str_from(host)).text, quote(str_from(port)).text);
	kubeconfig.host = str_cstr(a, str_from(host));
	kubeconfig.port = (uint16_t)number;
	kubeconfig.ca_path = str_printf(a, "%s/ca.crt", directory).p;
	kubeconfig.token_path = str_printf(a, "%s/token", directory).p;
	/* Optional: pods with their own token volume may not have this file. */
	if (file_read_at(AT_FDCWD, str_printf(a, "%s/namespace", directory).p, 4096, a, &namespace,
			 NULL) >= 0)
		kubeconfig.namespace = str_cstr(a, str_trim(namespace));
	*ret = kubeconfig;
	return 0;
}

static int read_secret(struct str inline_text, const char *path, struct arena *a, struct str *ret,
		       struct err *err)
{
	if (inline_text.n || !path) {
		*ret = inline_text;
		return 0;
	}
	return file_read_at(AT_FDCWD, path, MAX_SECRET_BYTES, a, ret, err);
}

/* A token becomes a header value: printable characters on one line. */
static int check_token(struct str token, const char *path, struct err *err)
{
	for (size_t i = 0; i < token.n; i++)
		if (token.p[i] <= ' ' || token.p[i] >= 127)
			return err_set(err, EINVAL, "%s: not a bearer token",
				       path ? path : "token");
	if (path && !token.n)
		return err_set(err, EINVAL, "%s: empty", path);
	return 0;
}

/* Certificate and key may be replaced between two reads. They do not match then, loading them
 * fails, and the previous ones stay in use until the next attempt. */
int kubeconfig_read_credentials(const struct kubeconfig *kubeconfig, struct arena *a,
				struct credentials *ret, struct err *err)
{
	struct credentials now = { 0 };
	int r = 0;

	if (!kubeconfig->insecure)
		r = read_secret(kubeconfig->ca_pem, kubeconfig->ca_path, a, &now.ca_pem, err);
	if (r >= 0)
		r = read_secret(kubeconfig->cert_pem, kubeconfig->cert_path, a, &now.cert_pem, err);
	if (r >= 0)
		r = read_secret(kubeconfig->key_pem, kubeconfig->key_path, a, &now.key_pem, err);
	if (r >= 0)
		r = read_secret(kubeconfig->token, kubeconfig->token_path, a, &now.token, err);
	/* A file may end with a newline. */
	now.token = str_trim(now.token);
	if (r >= 0)
		r = check_token(now.token, kubeconfig->token_path, err);
	if (r >= 0)
		*ret = now;
	return r;
}
