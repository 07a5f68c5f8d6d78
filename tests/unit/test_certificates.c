#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/cert_plan.h"
#include "cluster/pki.h"
#include "test.h"

#define DAY 86400LL
#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"
#define MADE 1000000000LL /* creation time of the CA in the rows */
#define CA .has_ca = true, .ca_made_s = MADE, .ca_ends_s = MADE + 300 * DAY
#define LEAF(made) .has_leaf = true, .leaf_made_s = (made), .leaf_ends_s = (made) + 90 * DAY

TEST(a_new_ca_is_published_before_it_signs_and_an_old_one_is_kept_while_used)
{
	static const struct {
		const char *what;
		struct cert_inventory f;
		int64_t now_s;
		struct cert_decision want;
	} rows[] = {
		{ "nothing there", { 0 }, MADE, { CERT_MAKE_CA, 0 } },
		{ "a CA, not published", { CA }, MADE, { CERT_PUBLISH, 0 } },
		{ "published, nothing to serve with",
		  { CA, .is_published = true },
		  MADE,
		  { CERT_ISSUE, 0 } },
		{ "published, but what a deleted Secret held may still be served",
		  { CA, .is_published = true, .n_old = 1 },
		  MADE + CERT_OVERLAP_S - 1,
		  { CERT_NOTHING, MADE + CERT_OVERLAP_S } },
		{ "until now",
		  { CA, .is_published = true, .n_old = 1 },
		  MADE + CERT_OVERLAP_S,
		  { CERT_ISSUE, 0 } },
		{ "all well",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true, .is_published = true },
		  MADE + DAY,
		  { CERT_NOTHING, MADE + 60 * DAY } },
		{ "the configuration was overwritten",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true },
		  MADE + DAY,
		  { CERT_PUBLISH, 0 } },
		{ "two thirds of the certificate's time are over",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true, .is_published = true },
		  MADE + 60 * DAY,
		  { CERT_ISSUE, 0 } },
		{ "the certificate ended",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true, .is_published = true },
		  MADE + 90 * DAY,
		  { CERT_ISSUE, 0 } },
		{ "two thirds of the CA's time are over",
		  { CA, LEAF(MADE + 180 * DAY), .leaf_is_by_ca = true, .is_published = true },
		  MADE + 200 * DAY,
		  { CERT_MAKE_CA, 0 } },
		{ "the next thing is the CA",
		  { CA, LEAF(MADE + 180 * DAY), .leaf_is_by_ca = true, .is_published = true },
		  MADE + 190 * DAY,
		  { CERT_NOTHING, MADE + 200 * DAY } },
		{ "a new CA was requested",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true, .is_published = true,
		    .wants_rotation = true },
		  MADE + DAY,
		  { CERT_MAKE_CA, 0 } },
		{ "and again while that is under way: one after the other",
		  { CA, LEAF(MADE - DAY), .n_old = 1, .wants_rotation = true },
		  MADE,
		  { CERT_PUBLISH, 0 } },
		{ "new CA, not yet published, the old certificate serves",
		  { CA, LEAF(MADE - DAY), .n_old = 1 },
		  MADE + 5,
		  { CERT_PUBLISH, 0 } },
		{ "published; API servers may not have seen it",
		  { CA, LEAF(MADE - DAY), .n_old = 1, .is_published = true },
		  MADE + CERT_OVERLAP_S - 1,
		  { CERT_NOTHING, MADE + CERT_OVERLAP_S } },
		{ "now they have",
		  { CA, LEAF(MADE - DAY), .n_old = 1, .is_published = true },
		  MADE + CERT_OVERLAP_S,
		  { CERT_ISSUE, 0 } },
		{ "replicas may still serve the old one",
		  { CA, LEAF(MADE + 30), .leaf_is_by_ca = true, .n_old = 1, .is_published = true },
		  MADE + 60,
		  { CERT_NOTHING, MADE + 30 + CERT_PRUNE_S } },
		{ "now they do not",
		  { CA, LEAF(MADE + 30), .leaf_is_by_ca = true, .n_old = 1, .is_published = true },
		  MADE + 30 + CERT_PRUNE_S,
		  { CERT_PRUNE, 0 } },
		{ "the CA expired while no replica ran",
		  { CA, LEAF(MADE), .leaf_is_by_ca = true, .is_published = true },
		  MADE + 300 * DAY,
		  { CERT_MAKE_CA, 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cert_decision got = cert_decide(&rows[i].f, rows[i].now_s);

		TEST_ROW("%s", rows[i].what);
		CHECK_INT(got.action, rows[i].want.action);
		CHECK_INT(got.next_s, rows[i].want.next_s);
	}
}

/* Simulates the decisions over time: the served certificate must always be trusted. */
TEST(the_served_certificate_is_trusted_throughout_ten_years)
{
	struct cert_inventory f = { 0 };
	int64_t now_s = MADE, served_by = 0, old_trusted = 0, trusted = 0, bundle = 0;
	unsigned cas = 0, leaves = 0;

	for (unsigned step = 0; step < 5000 && now_s < MADE + 3650 * DAY; step++) {
		struct cert_decision d = cert_decide(&f, now_s);

		switch (d.action) {
		case CERT_MAKE_CA:
			old_trusted = bundle;
			bundle = ++cas;
			f.n_old += f.has_ca;
			f.has_ca = true;
			f.ca_made_s = now_s;
			f.ca_ends_s = now_s + CERT_CA_LIFETIME_S;
			f.is_published = f.leaf_is_by_ca = false;
			break;
		case CERT_PUBLISH:
			trusted = bundle;
			f.is_published = true;
			break;
		case CERT_ISSUE:
			leaves++;
			served_by = bundle;
			f.has_leaf = f.leaf_is_by_ca = true;
			f.leaf_made_s = now_s;
			f.leaf_ends_s = now_s + CERT_LEAF_LIFETIME_S;
			break;
		case CERT_PRUNE:
			old_trusted = 0;
			f.n_old = 0;
			f.is_published = false;
			break;
		case CERT_NOTHING:
			CHECK(d.next_s > now_s);
			now_s = d.next_s;
			break;
		}
		if (!served_by)
			continue;
		CHECK(served_by == trusted || served_by == old_trusted);
		CHECK(f.leaf_ends_s > now_s);
	}
	CHECK(now_s >= MADE + 3650 * DAY);
	CHECK_UINT(cas, 5);
	TEST_NOTE("%u CAs and %u certificates in ten years", cas, leaves);
}

TEST(a_certificate_has_its_names_and_is_signed_by_its_ca)
{
	static const char *const names[] = { "pinfold-webhook.pinfold.svc", "127.0.0.1", "::1" };
	static const char *const more[] = { "pinfold-webhook.pinfold.svc", "other.svc" };
	struct pki_leaf how = { names, ARRAY_LEN(names), MADE, 90 * DAY };
	CLEANUP(arena_done) struct arena a;
	struct pki_pair ca, other, leaf, mixed;
	struct pki_info facts;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(pki_make_ca("one", MADE, 300 * DAY, &a, &ca, &err));
	CHECK_OK(pki_make_ca("one", MADE, 300 * DAY, &a, &other, &err));
	CHECK_OK(pki_issue(&ca, &how, &a, &leaf, &err));
	CHECK(pki_is_pair(&ca) && pki_is_pair(&leaf));
	mixed = (struct pki_pair){ leaf.cert_pem, ca.key_pem };
	CHECK(!pki_is_pair(&mixed));
	CHECK(pki_is_signed_by(leaf.cert_pem, ca.cert_pem));
	CHECK(!pki_is_signed_by(leaf.cert_pem, other.cert_pem)); /* of the same name */
	CHECK(pki_has_names(leaf.cert_pem, names, ARRAY_LEN(names)));
	CHECK(!pki_has_names(leaf.cert_pem, more, ARRAY_LEN(more)));
	CHECK_OK(pki_read(leaf.cert_pem, &facts, &err));
	CHECK(!facts.is_ca);
	CHECK_INT(facts.made_s, MADE);
	CHECK_INT(facts.ends_s, MADE + 90 * DAY);
	CHECK_OK(pki_read(ca.cert_pem, &facts, &err));
	CHECK(facts.is_ca);
}

TEST(invalid_certificates_are_rejected)
{
	static const char *const bad_names[] = { "a,DNS:b", "a b", "" };
	static const char *const rows[] = { "", "x", BEGIN "AAAA\n", BEGIN "AAAA\n" END };
	CLEANUP(arena_done) struct arena a;
	struct pki_pair ca, got;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(pki_make_ca("one", MADE, DAY, &a, &ca, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str pem = str_from(rows[i]);
		struct pki_info facts;

		TEST_ROW("%s", rows[i]);
		CHECK(pki_read(pem, &facts, &err) < 0);
		CHECK(!pki_is_pair(&(struct pki_pair){ pem, pem }));
		CHECK(!pki_is_signed_by(pem, ca.cert_pem) && !pki_is_signed_by(ca.cert_pem, pem));
		CHECK(!pki_has_names(pem, bad_names, 0));
		CHECK(pki_issue(&(struct pki_pair){ pem, pem }, &(struct pki_leaf){ 0 }, &a, &got,
				&err) < 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad_names); i++) {
		TEST_ROW("name \"%s\"", bad_names[i]);
		CHECK(pki_issue(&ca, &(struct pki_leaf){ &bad_names[i], 1, MADE, DAY }, &a, &got,
				&err) < 0);
	}
}

TEST(a_bundle_is_split_into_certificates)
{
	CLEANUP(arena_done) struct arena a;
	struct pki_pair one, two;
	struct err err = { 0 };
	struct str bundle, got;

	arena_init(&a, 0);
	CHECK_OK(pki_make_ca("one", MADE, DAY, &a, &one, &err));
	CHECK_OK(pki_make_ca("two", MADE, DAY, &a, &two, &err));
	bundle = str_printf(&a, "# comment\n" PRI_STR "\n\n" PRI_STR "-----BEGIN CERT",
			    FMT_STR(one.cert_pem), FMT_STR(two.cert_pem));
	CHECK(pki_next(&bundle, &got));
	CHECK_STR(got, str_trim(one.cert_pem));
	CHECK(pki_next(&bundle, &got));
	CHECK_STR(got, str_trim(two.cert_pem));
	CHECK(!pki_next(&bundle, &got));
}
