/* Quantities: printing is exact, and value, millicores and order agree. */

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/quantity.h"
#include "prop.h"

static void draw_digits(struct prop *r, struct strbuf *b, uint64_t most)
{
	for (uint64_t n = prop_below(r, most + 1); n > 0; n--)
		strbuf_addc(b, (char)('0' + (prop_one_in(r, 2) ? 0 : prop_below(r, 10))));
}

static struct str draw_text(struct prop *r, struct arena *a)
{
	static const char *const suffixes[] = { "",   "n",  "u",  "m",	"k",   "M",   "G",   "T",
						"P",  "E",  "Ki", "Mi", "Gi",  "Ti",  "Pi",  "Ei",
						"e0", "e3", "E5", "e1", "e-2", "e-9", "e-30" };
	static const char *const signs[] = { "", "", "", "+", "-" };
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "%s", prop_pick(r, signs));
	draw_digits(r, &b, prop_one_in(r, 4) ? 19 : 5);
	strbuf_printf(&b, "%u", (unsigned)prop_below(r, 10)); /* at least one digit */
	if (prop_one_in(r, 2)) {
		strbuf_addc(&b, '.');
		draw_digits(r, &b, prop_one_in(r, 4) ? 40 : 4);
	}
	strbuf_printf(&b, "%s", prop_pick(r, suffixes));
	return strbuf_str(&b);
}

/* Repeats until the text is in range; about every second one is. */
static struct quantity draw(struct prop *r, struct arena *a)
{
	struct quantity q;
	struct str text;

	do
		text = draw_text(r, a);
	while (quantity_parse(text, &q, NULL) < 0);
	return q;
}

TEST(printed_quantities_parse_to_the_same_value)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct quantity q, back, canonical;
		struct err err = { 0 };
		struct str text;

		arena_reset(&a);
		q = draw(&r, &a);
		CHECK_OK(quantity_parse(quantity_format(&q, &a), &back, &err));
		CHECK_INT(quantity_cmp(&q, &back), 0);

		q.text = STR("");
		text = quantity_format(&q, &a);
		CHECK_OK(quantity_parse(text, &canonical, &err));
		CHECK_INT(quantity_cmp(&q, &canonical), 0);
		CHECK_STR(quantity_format(&canonical, &a), text);
	}
}

TEST(the_order_by_value_and_by_millicores_is_the_same)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		int64_t milli_x, milli_y;
		struct quantity x, y;
		int order;

		arena_reset(&a);
		x = draw(&r, &a);
		y = draw(&r, &a);
		order = quantity_cmp(&x, &y);
		CHECK_INT(quantity_cmp(&y, &x), -order);
		CHECK(order >= 0 || quantity_value(&x) <= quantity_value(&y));
		if (quantity_milli(&x, &milli_x, NULL) < 0 ||
		    quantity_milli(&y, &milli_y, NULL) < 0)
			continue;
		CHECK(order >= 0 || milli_x <= milli_y);
		CHECK(order != 0 || milli_x == milli_y);
	}
}

TEST(rounding_is_away_from_zero_and_by_less_than_one_thousandth)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct quantity q, rounded, milli;
		__int128 moved;
		int64_t m;

		arena_reset(&a);
		q = draw(&r, &a);
		rounded = quantity_round_up_milli(&q);
		moved = (rounded.nano - q.nano) * quantity_sign(&q);
		CHECK(moved >= 0 && moved < 1000000);
		CHECK(rounded.nano % 1000000 == 0);
		if (quantity_milli(&q, &m, NULL) < 0)
			continue;
		milli = quantity_from_milli(m, q.format);
		CHECK_INT(quantity_cmp(&milli, &rounded), 0);
	}
}

TEST(sums_do_not_depend_on_the_order)
{
	CLEANUP(arena_done) struct arena a;
	struct prop r;

	arena_init(&a, 0);
	PROP_LOOP (&r) {
		struct quantity x, y, xy, yx, minus;

		arena_reset(&a);
		xy = x = draw(&r, &a);
		yx = y = draw(&r, &a);
		CHECK_INT(quantity_add(&xy, &y, NULL), quantity_add(&yx, &x, NULL));
		if (xy.nano == x.nano && quantity_sign(&y))
			continue; /* out of range, and *sum is unchanged */
		CHECK_INT(quantity_cmp(&xy, &yx), 0);
		minus = y;
		minus.nano = -minus.nano;
		CHECK_INT(quantity_add(&xy, &minus, NULL), 0);
		CHECK_INT(quantity_cmp(&xy, &x), 0);
	}
}
