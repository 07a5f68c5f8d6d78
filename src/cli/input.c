#include "input.h"

#include <fcntl.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/walk.h"
#include "codec/doc.h"
#include "profile/manifests.h"

struct reading {
	struct manifests *manifests;
	struct problem_list *problems;
};

static int read_file(void *data, const char *path, struct err *err)
{
	struct reading *to = data;
	struct str text;
	int r = file_read_at(AT_FDCWD, path, DOC_MAX_SIZE, to->manifests->a, &text, err);

	if (r < 0)
		return r;
	manifests_add(to->manifests, text, str_from(path), to->problems);
	return 0;
}

int input_read(struct manifests *ms, const char *path, struct problem_list *p, struct err *err)
{
	struct reading to = { ms, p };
	struct walk w = { .a = ms->a, .visit = read_file, .data = &to };

	return walk_files(&w, str_cstr(ms->a, str_from(path)), err);
}

int input_read_list(struct manifests *ms, const char *paths, struct problem_list *p,
		    struct err *err)
{
	struct str_split split = str_split(str_from(paths));
	struct str path;
	int r = 0;

	while (r == 0 && str_next(&split, ',', &path))
		r = input_read(ms, str_cstr(ms->a, path), p, err);
	return r;
}
