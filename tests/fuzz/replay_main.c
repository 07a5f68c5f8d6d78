/* Runs files, or all files of the given directories, through a fuzz target once each: the corpus as
 * a plain test, without libFuzzer. A crash is the failure. */

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_done;

static void die(const char *path)
{
	printf("Bail out! %s: %s\n", path, strerror(errno));
	exit(EXIT_FAILURE);
}

static void replay_file(const char *path, size_t size)
{
	/* Exactly as long as the file, so that a sanitizer sees any read past its end. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");

	if (!data || !f || fread(data, 1, size, f) != size)
		die(path);
	(void)fclose(f);
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	printf("ok %u - %s\n", ++n_done, path);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
	struct dirent **entries;
	struct stat st;
	int n;

	if (stat(path, &st) != 0)
		die(path);
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path, (size_t)st.st_size);
		return;
	}

	n = scandir(path, &entries, is_visible, alphasort);
	if (n < 0)
		die(path);
	for (int i = 0; i < n; i++) {
		char below[4096];

		(void)snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
		free(entries[i]);
		replay(below);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* a crash shows which input it was not */
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("1..%u%s\n", n_done, n_done ? "" : " # SKIP empty corpus");
	return EXIT_SUCCESS;
}
