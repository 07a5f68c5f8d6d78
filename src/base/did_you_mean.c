/* The distance counts inserted, removed and replaced letters, and two that changed places as one. A
 * third of the letters may differ: more is another word. */

#include "did_you_mean.h"

#define WORD_MAX 40

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(struct str a, struct str b)
{
	size_t rows[3][WORD_MAX + 1]; /* of the last three letters of `a` */

	for (size_t k = 0; k <= b.n; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t k = 1; k <= b.n; k++) {
			const bool differs = a.p[i - 1] != b.p[k - 1];

			now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + differs);
			if (i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] && a.p[i - 2] == b.p[k - 1])
				now[k] = least(now[k], before[k - 2] + 1);
		}
	}
	return rows[a.n % 3][b.n];
}

struct did_you_mean did_you_mean_of(struct str word)
{
	return (struct did_you_mean){ word, STR(""), word.n / 3 + (word.n > 1) };
}

void did_you_mean_offer(struct did_you_mean *s, struct str candidate)
{
	size_t d;

	if (!s->word.n || s->word.n > WORD_MAX || candidate.n > WORD_MAX)
		return;
	d = distance(s->word, candidate);
	/* A word that was cut off is meant, however much is missing. */
	if (s->word.n > 2 && str_starts(candidate, s->word))
		d = 1;
	if (d < s->distance || (d == s->distance && !s->best.n)) {
		s->best = candidate;
		s->distance = d;
	}
}
