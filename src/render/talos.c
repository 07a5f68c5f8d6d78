/* Talos Linux has neither drop-ins nor units: a machine configuration holds everything, and this is
 * what to add to it. Kernel arguments are apart, because machines that boot a unified kernel image
 * take them from the image (schematic.yaml is for the Image Factory). */

#include "base/arena.h"
#include "base/err.h"
#include "codec/yaml.h"
#include "file_set.h"
#include "host_parts.h"
#include "kernel_args.h"
#include "profile/layout.h"

static int add_yaml(struct file_set *files, const struct partition *part, const char *name,
		    const char *comment, yyjson_mut_val *root, struct err *err)
{
	struct str text;
	int r = yaml_write(root, files->a, &text, err);

	if (r < 0)
		return r;
	file_set_add(files,
		     str_printf(files->a, PRI_STR "/talos/%s", FMT_STR(part->pool->name), name),
		     MODE_PLAIN, str_printf(files->a, "# %s\n" PRI_STR, comment, FMT_STR(text)));
	return 0;
}

static int add_kubelet(struct file_set *files, const struct partition *part,
		       yyjson_mut_val *configuration, struct err *err)
{
	yyjson_mut_doc *m = doc_build(files->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *extra;

	extra = yyjson_mut_val_mut_copy(m, configuration);
	yyjson_mut_obj_remove_key(extra, "apiVersion");
	yyjson_mut_obj_remove_key(extra, "kind");
	doc_put(m, doc_put_obj(m, doc_put_obj(m, root, STR("machine")), STR("kubelet")),
		STR("extraConfig"), extra);
	return add_yaml(files, part, "kubelet.yaml",
			"talosctl patch machineconfig --patch @kubelet.yaml", root, err);
}

static void put_args(yyjson_mut_doc *m, yyjson_mut_val *to, const struct kernel_args *args)
{
	yyjson_mut_val *list = doc_put_arr(m, to, STR("extraKernelArgs"));

	for (size_t i = 0; i < args->n; i++)
		if (!str_starts(args->items[i], STR("systemd."))) /* Talos has its own init */
			(void)yyjson_mut_arr_append(list, doc_new_str(m, args->items[i]));
}

static int add_kernel_args(struct file_set *files, const struct partition *part,
			   const struct kernel_args *args, struct err *err)
{
	yyjson_mut_doc *m = doc_build(files->a);
	yyjson_mut_val *patch = yyjson_mut_obj(m), *schematic = yyjson_mut_obj(m);
	int r;

	if (!args->n)
		return 0;
	put_args(m, doc_put_obj(m, doc_put_obj(m, patch, STR("machine")), STR("install")), args);
	put_args(m, doc_put_obj(m, schematic, STR("customization")), args);
	r = add_yaml(files, part, "kernel-args.yaml",
		     "for machines that boot with GRUB: talosctl patch machineconfig --patch "
		     "@kernel-args.yaml, then talosctl upgrade",
		     patch, err);
	return r < 0 ? r :
		       add_yaml(
			       files, part, "schematic.yaml",
			       "for machines that boot a unified kernel image: a schematic for the "
			       "Image Factory, then talosctl upgrade --image",
			       schematic, err);
}

/* From Talos 1.14 on NRI is on. */
static int add_nri(struct file_set *files, const struct partition *part, struct err *err)
{
	yyjson_mut_doc *m = doc_build(files->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *file;

	file = yyjson_mut_arr_add_obj(m, doc_put_arr(m, doc_put_obj(m, root, STR("machine")),
						     STR("files")));
	doc_put_str(m, file, STR("op"), STR("create"));
	doc_put_str(m, file, STR("path"), STR("/etc/cri/conf.d/20-customization.part"));
	doc_put_str(m, file, STR("content"), containerd_nri(0, files->a));
	return add_yaml(files, part, "nri.yaml",
			"only before Talos 1.14: talosctl patch machineconfig --patch @nri.yaml",
			root, err);
}

int talos_render(struct file_set *files, const struct partition *part,
		 yyjson_mut_val *kubelet_configuration, const struct kernel_args *args,
		 struct err *err)
{
	struct str management = part->text[PROFILE_RESERVED], shared = part->text[PROFILE_SHARED];
	struct str isolated = part->text[PROFILE_ISOLATED];
	int r = add_kubelet(files, part, kubelet_configuration, err);

	if (r == 0)
		r = add_kernel_args(files, part, args, err);
	if (r == 0)
		r = add_nri(files, part, err);
	if (r < 0)
		return r;
	/* Where the agent does not follow profiles: /etc cannot hold a pools file. */
	file_set_add(files,
		     str_printf(files->a, PRI_STR "/talos/agent-flags", FMT_STR(part->pool->name)),
		     MODE_PLAIN,
		     profile_has_pools(part->profile) ?
			     str_printf(files->a,
					"--management=" PRI_STR "\n--shared=" PRI_STR
					"\n--guaranteed=" PRI_STR "\n",
					FMT_STR(management), FMT_STR(shared), FMT_STR(isolated)) :
			     str_printf(files->a, "--management=" PRI_STR "\n",
					FMT_STR(management)));
	return 0;
}
