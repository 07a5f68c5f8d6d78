/* Keeps the TLS context of the server up to date. Runs on the main thread; the serving threads see
 * only the context, which has its own lock, and the atomic fields. */

#include "certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/macro.h"

#define MAX_PEM_BYTES ((size_t)1 << 20)
#define DEBOUNCE_MS 200 /* both files change, one after the other */
#define POLL_MS 60000	/* not every file system reports changes */

/* Detects changes only, so a fast hash is enough. */
static uint64_t fnv1a(uint64_t hash, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * 1099511628211u;
	return hash;
}

int certificate_use(struct certificate *c, struct str cert_pem, struct str key_pem, struct err *err)
{
	struct tls_server_config config = { .cert_pem = cert_pem,
					    .key_pem = key_pem,
					    .alpn = "h2,http/1.1" };
	CLEANUP(arena_done) struct arena a;
	uint64_t digest;
	int64_t expiry;
	int r;

	arena_init(&a, 0);
	if (c->client_ca_path) {
		r = file_read_at(AT_FDCWD, c->client_ca_path, MAX_PEM_BYTES, &a,
				 &config.client_ca_pem, err);
		if (r >= 0 && !config.client_ca_pem.n)
			r = err_set(err, EINVAL, "%s: empty", c->client_ca_path);
		if (r < 0)
			return r;
	}
	digest =
		fnv1a(fnv1a(fnv1a(14695981039346656037u, cert_pem), key_pem), config.client_ca_pem);
	if (digest == c->digest)
		return 0; /* directory events also come for other files */
	/* First, because nothing may fail after the context was replaced. */
	r = tls_cert_expiry(cert_pem, &expiry, err);
	if (r >= 0)
		r = tls_context_load_server(c->tls, &config, err);
	if (r < 0)
		return r;
	/* 0 before the first load, which is not a reload. */
	if (c->digest)
		atomic_fetch_add(&c->reloads, 1);
	c->digest = digest;
	atomic_store(&c->expiry_unix_s, expiry);
	return 1;
}

static int load_files(struct certificate *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str cert_pem, key_pem;
	int r;

	/* Only for the load: OpenSSL keeps its own copies. */
	arena_init(&a, 0);
	r = file_read_at(AT_FDCWD, c->cert_path, MAX_PEM_BYTES, &a, &cert_pem, err);
	if (r >= 0)
		r = file_read_at(AT_FDCWD, c->key_path, MAX_PEM_BYTES, &a, &key_pem, err);
	if (r < 0)
		return r;
	r = certificate_use(c, cert_pem, key_pem, err);
	return r < 0 ? err_wrap(err, "%s, %s", c->cert_path, c->key_path) : r;
}

static void on_reload(struct timer *t)
{
	struct certificate *c = container_of(t, struct certificate, timer);
	struct err err;
	int r = load_files(c, &err);

	timer_start(&c->timer, POLL_MS, POLL_MS);
	if (r < 0) {
		atomic_fetch_add(&c->failed_reloads, 1);
		if (!c->has_logged_failure)
			log_error("cannot load the new certificate, keeping the old one",
				  LOG_ERR(&err));
		c->has_logged_failure = true;
	} else if (r > 0) {
		c->has_logged_failure = false;
		log_info("loaded a new certificate",
			 LOG_INT("expires", atomic_load(&c->expiry_unix_s)));
	}
}

static void schedule_reload(struct certificate *c)
{
	c->has_logged_failure = false;
	timer_start(&c->timer, DEBOUNCE_MS, POLL_MS);
}

static void on_cert_change(struct file_watch *w)
{
	schedule_reload(container_of(w, struct certificate, cert_watch));
}

static void on_key_change(struct file_watch *w)
{
	schedule_reload(container_of(w, struct certificate, key_watch));
}

/* Not the file: a Secret mount is updated by replacing the symbolic link ..data in the directory,
 * which a watch of the file does not report. */
static int watch_directory(struct file_watch *w, struct loop *loop, const char *path,
			   file_watch_fn on_change, struct err *err)
{
	char copy[PATH_MAX];

	(void)snprintf(copy, sizeof(copy), "%s", path);
	return file_watch_init(w, loop, dirname(copy), on_change, err);
}

int certificate_init(struct certificate *c, struct loop *loop, struct tls_context *tls,
		     struct err *err)
{
	int r;

	c->tls = tls;
	if (!c->cert_path)
		return 0;
	r = load_files(c, err);
	if (r >= 0)
		r = watch_directory(&c->cert_watch, loop, c->cert_path, on_cert_change, err);
	if (r >= 0)
		r = watch_directory(&c->key_watch, loop, c->key_path, on_key_change, err);
	if (r < 0)
		return r;
	timer_init(&c->timer, loop, on_reload);
	timer_start(&c->timer, POLL_MS, POLL_MS);
	return 0;
}
