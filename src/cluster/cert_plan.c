#include "cert_plan.h"

/* Renewed after two thirds of the lifetime: one third is left to fix problems. */
static int64_t due_s(int64_t made_s, int64_t ends_s)
{
	return made_s + (ends_s - made_s) / 3 * 2;
}

static struct cert_decision do_now(enum cert_action action)
{
	return (struct cert_decision){ .action = action };
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct cert_decision cert_decide(const struct cert_inventory *f, int64_t now_s)
{
	int64_t leaf_due_s = due_s(f->leaf_made_s, f->leaf_ends_s);
	int64_t next_s;

	if (!f->has_ca || now_s >= f->ca_ends_s)
		return do_now(CERT_MAKE_CA);
	/* One rotation at a time: the present CA must have signed the served certificate first. */
	if (f->has_leaf && f->leaf_is_by_ca &&
	    (f->wants_rotation || now_s >= due_s(f->ca_made_s, f->ca_ends_s)))
		return do_now(CERT_MAKE_CA);
	if (!f->is_published)
		return do_now(CERT_PUBLISH);
	/* While an older CA is trusted, replicas may still serve a certificate signed by it, from a
	 * Secret that was deleted. */
	if (f->has_leaf ? now_s >= f->leaf_ends_s : !f->n_old)
		return do_now(CERT_ISSUE);
	if (!f->leaf_is_by_ca) {
		next_s = f->ca_made_s + CERT_OVERLAP_S;
		return now_s >= next_s ? do_now(CERT_ISSUE) :
					 (struct cert_decision){ CERT_NOTHING, next_s };
	}
	if (now_s >= leaf_due_s)
		return do_now(CERT_ISSUE);
	next_s = earlier(leaf_due_s, due_s(f->ca_made_s, f->ca_ends_s));
	if (f->n_old) {
		if (now_s >= f->leaf_made_s + CERT_PRUNE_S)
			return do_now(CERT_PRUNE);
		next_s = earlier(next_s, f->leaf_made_s + CERT_PRUNE_S);
	}
	return (struct cert_decision){ CERT_NOTHING, next_s };
}
