/* The kubelet creates a refused container again and again, so an entry is replaced, not repeated.
 */

#include "refusals.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text)
{
	char *p = strdup(text);

	if (!p)
		abort(); /* D21 */
	return p;
}

static void remove_at(struct refusals *r, size_t at)
{
	free(r->items[at].namespace);
	free(r->items[at].pod);
	free(r->items[at].uid);
	free(r->items[at].container);
	r->n--;
	memmove(&r->items[at], &r->items[at + 1], (r->n - at) * sizeof(r->items[0]));
}

void refusals_done(struct refusals *r)
{
	while (r->n)
		remove_at(r, r->n - 1);
}

void refusals_remove(struct refusals *r, const char *uid, const char *container)
{
	for (size_t i = r->n; i-- > 0;)
		if (strcmp(r->items[i].uid, uid) == 0 &&
		    (!container || strcmp(r->items[i].container, container) == 0))
			remove_at(r, i);
}

void refusals_add(struct refusals *r, const struct event_subject *about, const struct err *why)
{
	refusals_remove(r, about->uid, about->container);
	if (r->n == REFUSALS_MAX)
		remove_at(r, 0);
	r->items[r->n++] = (struct refusal){
		.namespace = copy_text(about->namespace),
		.pod = copy_text(about->pod),
		.uid = copy_text(about->uid),
		.container = copy_text(about->container),
		.why = *why,
	};
}
