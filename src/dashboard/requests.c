#include "requests.h"

#include <string.h>
#include <strings.h>

#include "base/macro.h"
#include "net/http1.h"

/* No script, style, image or connection of another origin, nothing inline, no frame around it, no
 * form that leaves, and no copy in a cache. */
const char request_headers[] =
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
	"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'\r\n"
	"X-Content-Type-Options: nosniff\r\n"
	"X-Frame-Options: DENY\r\n"
	"Referrer-Policy: no-referrer\r\n"
	"Cross-Origin-Opener-Policy: same-origin\r\n"
	"Cross-Origin-Resource-Policy: same-origin\r\n"
	"Cache-Control: no-store\r\n";

struct str request_host_name(struct str host)
{
	const char *end = host.n ? memrchr(host.p, ':', host.n) : NULL;
	const char *bracket = host.n ? memchr(host.p, ']', host.n) : NULL;

	if (end && (!bracket || end > bracket))
		host.n = (size_t)(end - host.p);
	return host;
}

static bool is_name(struct str host, const char *name)
{
	return host.n == strlen(name) && strncasecmp(host.p, name, host.n) == 0;
}

/* The port may be any: `kubectl port-forward` chooses another one. */
static bool is_allowed_host(const struct request_rules *rules, struct str host)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };

	host = request_host_name(host);
	for (size_t i = 0; i < ARRAY_LEN(loopback); i++)
		if (is_name(host, loopback[i]))
			return true;
	for (size_t i = 0; i < rules->n_names; i++)
		if (is_name(host, rules->names[i]))
			return true;
	return false;
}

/* A browser sends it with every request that is not a plain GET of the same origin. */
static bool is_own_origin(struct str origin, struct str host)
{
	if (str_starts(origin, STR("http://")))
		origin = str_skip(origin, strlen("http://"));
	else if (str_starts(origin, STR("https://"))) /* a proxy may add TLS */
		origin = str_skip(origin, strlen("https://"));
	else
		return false;
	return origin.n == host.n && strncasecmp(origin.p, host.p, host.n) == 0;
}

static bool is_own_site(struct str site)
{
	return !site.n || str_eq(site, STR("same-origin")) || str_eq(site, STR("none"));
}

struct str request_token(const struct small_request *request)
{
	const struct str authorization = http1_field(request->head, "Authorization");
	const struct str scheme = STR("Bearer ");

	return str_starts(authorization, scheme) ? str_skip(authorization, scheme.n) : STR("");
}

/* Takes as long for a wrong token as for the right one. */
static bool is_token(struct str given, struct str token)
{
	unsigned difference = 0;

	if (given.n != token.n)
		return false;
	for (size_t i = 0; i < token.n; i++)
		difference |= (unsigned char)(given.p[i] ^ token.p[i]);
	return difference == 0;
}

unsigned request_refuse(const struct request_rules *rules, const struct small_request *request,
			const char **ret_why)
{
	const struct str host = http1_field(request->head, "Host");
	const struct str origin = http1_field(request->head, "Origin");
	const bool is_data = str_starts(request->http.path, STR("/api/"));

	if (!is_allowed_host(rules, host)) {
		*ret_why = "the Host of the request is not one of the dashboard (see --host)";
		return 421;
	}
	if (origin.n && !is_own_origin(origin, host)) {
		*ret_why = "the request comes from a page of another origin";
		return 403;
	}
	if (is_data && !is_own_site(http1_field(request->head, "Sec-Fetch-Site"))) {
		*ret_why = "the request comes from a page of another site";
		return 403;
	}
	if (is_data && rules->token.n && !is_token(request_token(request), rules->token)) {
		*ret_why = "This dashboard asks for the token of its --token-file.";
		return 401;
	}
	return 0;
}
