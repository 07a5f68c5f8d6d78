#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/macro.h"
#include "net/peer_rate.h"
#include "net/peers.h"
#include "test.h"

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage ret = { 0 };
	struct sockaddr_in *in4 = (struct sockaddr_in *)&ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret;

	if (inet_pton(AF_INET, text, &in4->sin_addr) == 1)
		ret.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		ret.ss_family = AF_INET6;
	CHECK(ret.ss_family != 0);
	return ret;
}

TEST(connections_count_by_the_address_of_the_client)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", true },	     { "192.0.2.1", "192.0.2.2", false },
		{ "192.0.2.1", "::ffff:192.0.2.1", true }, /* a socket for both families */
		{ "2001:db8::1", "2001:db8::2", true },	   /* one /64 */
		{ "2001:db8::1", "2001:db8:0:1::1", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sockaddr_storage a = address(rows[i].a), b = address(rows[i].b);
		struct peer_table t = { 0 };
		struct peer *x, *y;

		TEST_ROW("%s and %s", rows[i].a, rows[i].b);
		peer_table_init(&t);
		x = peer_join(&t, &a);
		y = peer_join(&t, &b);
		CHECK((x == y) == rows[i].same);
		CHECK_UINT(peer_conns(x), rows[i].same ? 2 : 1);
		peer_leave(&t, x);
		CHECK_UINT(peer_conns(y), 1);
		peer_leave(&t, y);
		peer_table_done(&t);
	}
}

TEST(the_share_of_an_address_depends_on_how_many_hold_memory)
{
	struct sockaddr_storage a = address("192.0.2.1"), b = address("192.0.2.2");
	struct peer_table t = { 0 };
	struct peer *x, *y;

	peer_table_init(&t);
	x = peer_join(&t, &a);
	y = peer_join(&t, &b);
	CHECK_UINT(peer_fair_share(&t, 100), 100); /* connections alone do not count */
	peer_hold(&t, x, 0, 50);
	CHECK_UINT(peer_fair_share(&t, 100), 100);
	peer_hold(&t, y, 0, 20);
	CHECK_UINT(peer_fair_share(&t, 100), 50);
	peer_hold(&t, x, 50, 80);
	CHECK_UINT(peer_bytes(x), 80);
	peer_hold(&t, x, 80, 0);
	CHECK_UINT(peer_bytes(x), 0);
	CHECK_UINT(peer_fair_share(&t, 100), 100);
	peer_hold(&t, y, 20, 0);
	peer_leave(&t, x);
	peer_leave(&t, y);
	peer_table_done(&t);
}

TEST(an_address_begins_a_limited_number_of_connections_in_a_window)
{
	const struct sockaddr_storage a = address("192.0.2.1"), b = address("192.0.2.2");
	unsigned char x[PEER_KEY_BYTES], y[PEER_KEY_BYTES];
	struct peer_rate r = { 0 };

	peer_key(&a, x);
	peer_key(&b, y);
	for (int i = 0; i < PEER_RATE_LIMIT; i++)
		CHECK(peer_rate_allow(&r, x, 5000));
	CHECK(!peer_rate_allow(&r, x, 5001));
	CHECK(peer_rate_allow(&r, y, 5001));
	CHECK(!peer_rate_allow(&r, x, 5000 + PEER_RATE_WINDOW_MS - 1));
	CHECK(peer_rate_allow(&r, x, 5000 + PEER_RATE_WINDOW_MS));
}

TEST(more_addresses_than_the_table_has_are_admitted)
{
	struct peer_rate r = { 0 };
	unsigned char key[PEER_KEY_BYTES] = { 0 };

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 4 * ARRAY_LEN(r.entries); i++) {
			key[6] = (unsigned char)(i >> 8);
			key[7] = (unsigned char)i;
			CHECK(peer_rate_allow(&r, key, 7000 + i));
		}
}
