/* The functions with which a handler fills in its reply. Everything is copied into the arena of the
 * call, because the reply is encoded after the handler has returned. An allocation that fails is
 * not reported here: the arena remembers it, and the session responds with a failure. */

#include "reply.h"

#include <stdarg.h>

#include "base/arena.h"

void reply_init(struct nri_reply *reply, struct arena *a)
{
	*reply = (struct nri_reply){ .a = a };
}

static const char *copy_text(struct arena *a, const char *text)
{
	return str_cstr(a, str_from(text));
}

static struct nri_resources *resources_new(const struct nri_cpu *cpu, struct arena *a)
{
	struct nri_resources *r = arena_new(a, struct nri_resources);

	if (!r)
		return NULL;
	r->cpu = arena_new(a, struct nri_cpu);
	if (!r->cpu)
		return NULL;
	*r->cpu = *cpu;
	/* NULL becomes "", which proto3 does not write: the field is then absent, which means
	 * "unchanged". */
	r->cpu->cpus = copy_text(a, cpu->cpus);
	r->cpu->mems = copy_text(a, cpu->mems);
	return r;
}

static struct nri_adjustment *adjustment(struct nri_reply *reply)
{
	if (!reply->response.adjustment)
		reply->response.adjustment = arena_new(reply->a, struct nri_adjustment);
	return reply->response.adjustment;
}

void nri_adjust_cpu(struct nri_reply *reply, const struct nri_cpu *cpu)
{
	struct nri_adjustment *adj = adjustment(reply);
	struct nri_linux_adjustment *on_linux = arena_new(reply->a, struct nri_linux_adjustment);

	if (!adj || !on_linux)
		return; /* a->failed is set, and the session responds with a failure */
	on_linux->resources = resources_new(cpu, reply->a);
	adj->on_linux = on_linux;
}

static void add_pair(struct nri_pair **pairs, size_t *n, const struct nri_pair *pair,
		     struct arena *a)
{
	struct nri_pair *grown = arena_one_more(a, *pairs, *n, sizeof(**pairs));

	if (!grown)
		return;
	*pairs = grown;
	grown[*n] = (struct nri_pair){ copy_text(a, pair->key), copy_text(a, pair->value) };
	++*n;
}

void nri_adjust_annotation(struct nri_reply *reply, const char *key, const char *value)
{
	struct nri_adjustment *adj = adjustment(reply);

	if (adj)
		add_pair(&adj->annotations, &adj->n_annotations, &(struct nri_pair){ key, value },
			 reply->a);
}

void nri_adjust_env(struct nri_reply *reply, const char *name, const char *value)
{
	struct nri_adjustment *adj = adjustment(reply);

	if (adj)
		add_pair(&adj->env, &adj->n_env, &(struct nri_pair){ name, value }, reply->a);
}

bool reply_add_update(struct nri_response *response, const char *container_id,
		      const struct nri_cpu *cpu, bool may_fail, struct arena *a)
{
	struct nri_update *grown =
		arena_one_more(a, response->updates, response->n_updates, sizeof(*grown));
	struct nri_linux_update *on_linux = arena_new(a, struct nri_linux_update);

	if (!grown || !on_linux)
		return false;
	/* Always present: CRI-O dereferences `resources` without a check. */
	on_linux->resources = resources_new(cpu, a);
	response->updates = grown;
	grown[response->n_updates++] =
		(struct nri_update){ copy_text(a, container_id), on_linux, may_fail };
	return on_linux->resources != NULL;
}

void nri_update_cpu(struct nri_reply *reply, const char *container_id, const struct nri_cpu *cpu,
		    bool may_fail)
{
	(void)reply_add_update(&reply->response, container_id, cpu, may_fail, reply->a);
}

int nri_refuse(struct nri_reply *reply, const char *fmt, ...)
{
	struct strbuf b;
	va_list ap;

	strbuf_init(&b, reply->a);
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	reply->refusal = b.failed ? "refused" : str_cstr(reply->a, strbuf_str(&b));
	/* Any negative number refuses; the text is what the runtime shows. */
	return -1;
}
