/* The rules are tried in order, and the first that applies is the next step. After each step the
 * state is read again and the rules start over, so a step that a crash interrupted is repeated. */

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

struct cert_decision cert_decide(const struct cert_inventory *have, int64_t now_s)
{
	int64_t leaf_due_s = due_s(have->leaf_made_s, have->leaf_ends_s);
	int64_t next_s;

	if (!have->has_ca || now_s >= have->ca_ends_s)
		return do_now(CERT_MAKE_CA);
	/* One rotation at a time: the present CA must have signed the served certificate first. */
	if (have->has_leaf && have->leaf_is_by_ca &&
	    (have->wants_rotation || now_s >= due_s(have->ca_made_s, have->ca_ends_s)))
		return do_now(CERT_MAKE_CA);
	/* Also when another tool, such as a GitOps controller, has replaced the CA in the
	 * configurations. */
	if (!have->is_published)
		return do_now(CERT_PUBLISH);
	/* While an older CA is trusted, replicas may still serve a certificate signed by it, from a
	 * Secret that was deleted. */
	if (have->has_leaf ? now_s >= have->leaf_ends_s : !have->n_old)
		return do_now(CERT_ISSUE);
	/* A new CA: until every API server has seen it, the certificate of the old one is
	 * served. */
	if (!have->leaf_is_by_ca) {
		next_s = have->ca_made_s + CERT_OVERLAP_S;
		return now_s >= next_s ? do_now(CERT_ISSUE) :
					 (struct cert_decision){ CERT_NOTHING, next_s };
	}
	if (now_s >= leaf_due_s)
		return do_now(CERT_ISSUE);
	next_s = earlier(leaf_due_s, due_s(have->ca_made_s, have->ca_ends_s));
	/* Counted from the new certificate: replicas that have not loaded it yet serve one signed
	 * by an old CA. */
	if (have->n_old) {
		if (now_s >= have->leaf_made_s + CERT_PRUNE_S)
			return do_now(CERT_PRUNE);
		next_s = earlier(next_s, have->leaf_made_s + CERT_PRUNE_S);
	}
	return (struct cert_decision){ CERT_NOTHING, next_s };
}
