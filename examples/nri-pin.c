/* An NRI plugin in one page: containers of pods with the annotation "example.org/cpus" run on those
 * CPUs, whatever the kubelet says later.
 *
 *	cc -o nri-pin nri-pin.c $(pkg-config --cflags --libs nri) && sudo ./nri-pin
 */

#include <errno.h>
#include <nri.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct nri_plugin *plugin;

static const char *wanted(const struct nri_pod *pod)
{
	return nri_find(pod->annotations, pod->n_annotations, "example.org/cpus");
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	const char *cpus = wanted(pod);

	(void)user;
	if (!cpus)
		return 0;
	if (!*cpus)
		return nri_refuse(reply, "%s/%s: which CPUs?", pod->name, c->name);
	printf("%s/%s/%s on %s\n", pod->pod_namespace, pod->name, c->name, cpus);
	nri_adjust_cpu(reply, &(struct nri_cpu){ .cpus = cpus });
	return 0;
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	(void)user;
	if (wanted(pod) && *requested->cpus && strcmp(requested->cpus, wanted(pod)) != 0)
		nri_update_cpu(reply, c->id, &(struct nri_cpu){ .cpus = wanted(pod) }, false);
	return 0;
}

static void on_disconnected(void *user, const char *why)
{
	(void)user;
	fprintf(stderr, "%s; trying again\n", why);
}

static void on_signal(int number)
{
	(void)number;
	nri_plugin_stop(plugin);
}

int main(int argc, char **argv)
{
	static const struct nri_handlers handlers = {
		.create_container = on_create,
		.update_container = on_update,
		.disconnected = on_disconnected,
	};

	plugin = nri_plugin_new(&(struct nri_options){
		.name = "pin",
		.index = "90",
		.socket_path = argc > 1 ? argv[1] : NULL,
		.handlers = &handlers,
	});
	if (!plugin) {
		perror("nri_plugin_new");
		return 1;
	}
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGINT, on_signal);
	errno = -nri_plugin_run(plugin);
	nri_plugin_free(plugin);
	return errno ? (perror("nri-pin"), 1) : 0;
}
