/* The cost of parsing and writing an admission review of 10 KB, with our codec and with jansson,
 * alternating in one run. The fastest of several rounds counts, since other load only adds time. */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/doc.h"

#define ROUNDS 15
#define REPEATS 400

static void die(const char *what)
{
	(void)fprintf(stderr, "bench_json: %s\n", what);
	exit(EXIT_FAILURE);
}

static size_t run_ours(struct str text)
{
	static struct arena a; /* kept between requests, as the webhook does */
	struct err err = { 0 };
	struct doc doc;
	struct str out;

	arena_reset(&a);
	if (doc_parse(text, STR("review"), NULL, &a, &doc, &err) < 0 ||
	    doc_write_val(doc.root, false, &a, &out, &err) < 0)
		die(err.msg);
	return out.n;
}

static size_t run_jansson(struct str text)
{
	json_error_t why;
	json_t *json = json_loadb(text.p, text.n, 0, &why);
	char *out = json ? json_dumps(json, JSON_COMPACT) : NULL;
	size_t n = out ? strlen(out) : 0;

	if (!out)
		die(why.text);
	free(out);
	json_decref(json);
	return n;
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double time_us(size_t (*run)(struct str), struct str text)
{
	double begin = now_us();

	for (unsigned i = 0; i < REPEATS; i++)
		if (run(text) < text.n / 2)
			die("too little was written");
	return (now_us() - begin) / REPEATS;
}

static struct str read_review(struct arena *a)
{
	const char *dir = getenv("TESTS_DIR");
	struct err err = { 0 };
	char path[4096];
	struct str text;

	(void)snprintf(path, sizeof(path), "%s/bench/data/review-10k.json", dir ? dir : "tests");
	if (file_read_at(AT_FDCWD, path, DOC_MAX_SIZE, a, &text, &err) < 0)
		die(err.msg);
	return text;
}

int main(void)
{
	double ours = 1e9, theirs = 1e9;
	struct arena a;
	struct str text;

	arena_init(&a, 0);
	text = read_review(&a);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double t = time_us(run_ours, text);

		ours = t < ours ? t : ours;
		t = time_us(run_jansson, text);
		theirs = t < theirs ? t : theirs;
	}
	printf("parse and write %zu bytes: pinfold %.1f us, jansson %.1f us, ratio %.1f\n", text.n,
	       ours, theirs, theirs / ours);
	arena_done(&a);
	return EXIT_SUCCESS;
}
