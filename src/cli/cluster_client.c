#include "cluster_client.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"

int cluster_client_open(struct api_sync *s, const struct cluster_client_options *o, struct arena *a,
			struct err *err)
{
	struct kubeconfig kubeconfig;
	int r = api_sync_find_kubeconfig(o->kubeconfig, o->context, a, &kubeconfig, err);

	return r < 0 ? r : api_sync_open(s, &kubeconfig, "pinfold/" PINFOLD_VERSION, a, err);
}

int cluster_client_find(struct api_sync *s, struct str path, struct arena *a, yyjson_val **ret,
			struct err *err)
{
	int r = api_sync_get(s, path, a, ret, err);

	if (r != -ENOENT)
		return r;
	*ret = NULL;
	return 0;
}

int confirm(const char *question, bool yes, struct err *err)
{
	char line[16] = "";
	struct str answer;

	if (yes)
		return 1;
	if (!isatty(STDIN_FILENO))
		return err_set(
			err, EINVAL,
			"standard input is no terminal, so the question cannot be asked: give "
			"--yes");
	(void)fprintf(stderr, "%s Type yes to continue: ", question);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	answer = str_trim(str_from(line));
	return str_eq(answer, STR("yes"));
}
