/* The cost of hostile files. Each kind is written to a file of 1 MB, which another process reads;
 * its CPU time and its largest resident set are printed with the result. The limits are 100 ms and
 * 32 MB; the exit status is 1 when one is exceeded. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/yaml.h"

#define BOMB_BYTES (1 << 20)
#define MAX_MS 100.0
#define MAX_MB 32.0

/* Writes the pattern, with a number for "%u", until the file has BOMB_BYTES. */
static void fill(FILE *f, const char *pattern)
{
	const char *number = strstr(pattern, "%u");

	for (unsigned i = 0; ftell(f) < BOMB_BYTES; i++)
		if (number)
			fprintf(f, "%.*s%u%s", (int)(number - pattern), pattern, i, number + 2);
		else
			fputs(pattern, f);
}

static void write_billion_laughs(FILE *f)
{
	fputs("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n", f);
	for (unsigned i = 1; ftell(f) < BOMB_BYTES; i++) {
		fprintf(f, "a%u: &a%u [", i, i);
		for (unsigned k = 0; k < 10; k++)
			fprintf(f, "*a%u%s", i - 1, k < 9 ? ", " : "]\n");
	}
}

static void write_far_aliases(FILE *f)
{
	fputs("- &first x\n", f);
	for (unsigned i = 0; ftell(f) < BOMB_BYTES * 9 / 10; i++)
		fprintf(f, "- &a%u x\n", i);
	fill(f, "- *first\n");
}

static void write_merges(FILE *f, const char *merged)
{
	fputs("base: &base {", f);
	for (unsigned i = 0; i < 2000; i++)
		fprintf(f, "b%u: 1, ", i);
	fputs("}\nmerged:\n", f);
	for (unsigned i = 0; i < 20000; i++)
		fprintf(f, "  key%u: 1\n", i);
	fputs("  <<: [", f);
	fill(f, merged);
	fputs("]\n", f);
}

static void write_alias_merges(FILE *f)
{
	write_merges(f, "*base, ");
}

static void write_literal_merges(FILE *f)
{
	write_merges(f, "{c%u: 1}, ");
}

/* Must be accepted: a bundle of custom resource definitions. */
static void write_crds(FILE *f)
{
	for (unsigned i = 0; ftell(f) < BOMB_BYTES; i++) {
		fprintf(f,
			"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
			"metadata:\n  name: things%u.example.com\nspec:\n  versions:\n"
			"  - name: v1\n    schema:\n      openAPIV3Schema:\n"
			"        properties:\n",
			i);
		for (unsigned k = 0; k < 200; k++)
			fprintf(f, "          field%u:\n            type: string\n", k);
	}
}

static void write_large(FILE *f)
{
	(void)!ftruncate(fileno(f), 100 << 20);
}

static const struct kind {
	const char *name, *head, *pattern;
	void (*write)(FILE *f);
	const char *command; /* whose output is read instead of a file */
	bool accepted;
} kinds[] = {
	{ .name = "CRD bundle", .write = write_crds, .accepted = true },
	{ .name = "100 MB file", .write = write_large },
	{ .name = "100 MB pipe", .command = "head -c 100M /dev/zero" },
	{ .name = "billion laughs", .write = write_billion_laughs },
	{ .name = "one anchor, many aliases", .head = "- &a [x, x, x, x]\n", .pattern = "- *a\n" },
	{ .name = "many anchors", .pattern = "- &a%u x\n" },
	{ .name = "many anchors, far aliases", .write = write_far_aliases },
	{ .name = "merged aliases", .write = write_alias_merges },
	{ .name = "merged literals", .write = write_literal_merges },
	{ .name = "nested flow lists", .pattern = "[" },
	{ .name = "nested flow mappings", .pattern = "{a: " },
	{ .name = "nested block lists", .pattern = "- " },
	{ .name = "nested complex keys", .pattern = "? " },
	{ .name = "nested below the limit",
	  .head = "[",
	  .pattern = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]," },
	{ .name = "tiny flow values", .head = "[", .pattern = "a," },
	{ .name = "tiny flow pairs", .head = "[", .pattern = "a: b," },
	{ .name = "empty flow lists", .head = "[", .pattern = "[]," },
	{ .name = "tiny block values", .pattern = "- a\n" },
	{ .name = "nothing but dashes", .pattern = "-\n" },
	{ .name = "tiny numbers", .head = "[", .pattern = "07," },
	{ .name = "many keys", .pattern = "k%u: v\n" },
	{ .name = "many keys, no values", .pattern = "k%u:\n" },
	{ .name = "many equal keys", .pattern = "k: v\n" },
	{ .name = "many flow keys", .head = "{", .pattern = "k%u: v," },
	{ .name = "huge plain scalar", .head = "a: ", .pattern = "word ", .accepted = true },
	{ .name = "huge folded scalar", .head = "a: ", .pattern = "b\n  ", .accepted = true },
	{ .name = "huge literal scalar", .head = "a: |\n", .pattern = "  b\n", .accepted = true },
	{ .name = "huge quoted scalar", .head = "a: \"", .pattern = "\\x41" },
	{ .name = "huge number", .head = "a: 0", .pattern = "1_", .accepted = true },
	{ .name = "huge key", .head = "? ", .pattern = "word ", .accepted = true },
	{
		.name = "huge tag",
		.head = "a: !",
		.pattern = "t",
	},
	{ .name = "huge anchor", .head = "a: &", .pattern = "t", .accepted = true },
	{ .name = "many documents", .pattern = "--- a\n" },
	{ .name = "many empty documents", .pattern = "---\n" },
	{ .name = "many tag directives", .pattern = "%TAG !a%u! tag:b,2000:\n" },
	{ .name = "many comments", .pattern = "# c\n", .accepted = true },
	{ .name = "many blank lines", .pattern = "\n", .accepted = true },
	{ .name = "many blanks", .head = "a:", .pattern = " ", .accepted = true },
	{ .name = "not UTF-8", .head = "a: ", .pattern = "\xff" },
	{ .name = "JSON: nested lists", .head = "[", .pattern = "[" },
	{ .name = "JSON: nested objects", .head = "{", .pattern = "\"a\":{" },
	{ .name = "JSON: tiny values, cut", .head = "[", .pattern = "0," },
	{ .name = "JSON: many keys, cut", .head = "{", .pattern = "\"k%u\":0," },
	{ .name = "JSON: equal keys, cut", .head = "{", .pattern = "\"k\":0," },
};

static void write_file(const char *path, const struct kind *k)
{
	FILE *f = fopen(path, "w");

	if (!f)
		exit(EXIT_FAILURE);
	if (k->write)
		k->write(f);
	else if (k->pattern) {
		fputs(k->head ? k->head : "", f);
		fill(f, k->pattern);
		fputs("\n", f);
	}
	exit(fclose(f) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static struct err *response; /* shared with the process that reads */

static int open_bomb(const char *path, const struct kind *k)
{
	FILE *f = k->command ? popen(k->command, "r") : NULL;

	return f ? fileno(f) : open(path, O_RDONLY | O_CLOEXEC);
}

/* Exits 0 when the file was read, 1 when it was refused. */
static void read_file(const char *path, const struct kind *k)
{
	int fd = open_bomb(path, k);
	struct doc_list docs;
	struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	r = file_read_fd(fd, "bomb", DOC_MAX_SIZE, &a, &text, response);
	if (r == 0)
		r = yaml_parse(text, STR("bomb"), NULL, &a, &docs, response);
	if (r == 0)
		(void)err_set(response, EINVAL, "accepted, %zu documents", docs.n);
	_exit(r < 0);
}

static int wait_for(pid_t pid, struct rusage *ret)
{
	int status;

	if (pid < 0 || wait4(pid, &status, 0, ret) < 0 || !WIFEXITED(status))
		exit(EXIT_FAILURE);
	return WEXITSTATUS(status);
}

static double ms(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/* True when the limits are met. */
static bool measure(const char *path, const struct kind *k)
{
	double took_ms, took_mb;
	struct rusage usage;
	bool refused, ok;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		write_file(path, k);
	if (wait_for(pid, &usage) != EXIT_SUCCESS)
		exit(EXIT_FAILURE);
	pid = fork();
	if (pid == 0)
		read_file(path, k);
	refused = wait_for(pid, &usage);
	took_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
	took_mb = (double)usage.ru_maxrss / 1024;
	ok = took_ms <= MAX_MS && took_mb <= MAX_MB && refused != k->accepted;
	printf("%-26s%8.1f ms%7.1f MB  %s%s\n", k->name, took_ms, took_mb, response->msg,
	       ok ? "" : "  LIMIT EXCEEDED");
	return ok;
}

int main(void)
{
	char path[] = "/tmp/pinfold-bomb-XXXXXX";
	unsigned n_exceeded = 0;

	response = mmap(NULL, sizeof(*response), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (response == MAP_FAILED || close(mkstemp(path)) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		n_exceeded += !measure(path, &kinds[i]);
	(void)unlink(path);
	printf("%zu kinds, %u above the limits\n", ARRAY_LEN(kinds), n_exceeded);
	return n_exceeded ? EXIT_FAILURE : EXIT_SUCCESS;
}
