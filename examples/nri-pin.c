/* A minimal NRI plugin: containers of pods with the annotation "example.org/cpus" run on those
 * CPUs, also after updates by the kubelet.
 *
 *	cc -o nri-pin nri-pin.c $(pkg-config --cflags --libs nri) && sudo ./nri-pin
 */

#include <errno.h>
#include <nri.h>
#include <stdio.h>
#include <string.h>

static const char *annotated_cpus(const struct nri_pod *pod)
{
	return nri_find(pod->annotations, pod->n_annotations, "example.org/cpus");
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	const char *cpus = annotated_cpus(pod);

	(void)user;
	if (cpus && !*cpus)
		return nri_refuse(reply, "%s/%s: annotation example.org/cpus is empty", pod->name,
				  c->name);
	nri_adjust_cpu(reply, &(struct nri_cpu){ .cpus = cpus });
	return 0;
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	const char *cpus = annotated_cpus(pod);

	(void)user;
	if (cpus && *requested->cpus && strcmp(requested->cpus, cpus) != 0)
		nri_update_cpu(reply, c->id, &(struct nri_cpu){ .cpus = cpus }, false);
	return 0;
}

static void on_disconnected(void *user, const char *why)
{
	(void)user;
	fprintf(stderr, "%s, retrying\n", why);
}

int main(int argc, char **argv)
{
	struct nri_plugin *plugin = nri_plugin_new(&(struct nri_options){
		.name = "pin",
		.index = "90",
		.socket_path = argc > 1 ? argv[1] : NULL,
		.handlers = &(struct nri_handlers){ .create_container = on_create,
						    .update_container = on_update,
						    .disconnected = on_disconnected },
	});
	int r = plugin ? nri_plugin_run(plugin) : -errno;

	nri_plugin_free(plugin);
	if (r < 0)
		fprintf(stderr, "nri-pin: %s\n", strerror(-r));
	return r < 0;
}
