/* The same files three times, for machines that are installed already (a tree with install.sh), by
 * Ignition and by cloud-init. */

#include "bundle.h"

#include "base/arena.h"
#include "codec/doc.h"
#include "codec/yaml.h"
#include "file_set.h"
#include "kernel_args.h"
#include "machine_config.h"
#include "scripts.h"

#define UNIT_DIR "/etc/systemd/system/"

static struct str below(struct file_set *files, struct str dir, const char *what, struct str path)
{
	return str_printf(files->a, PRI_STR "/%s" PRI_STR, FMT_STR(dir), what, FMT_STR(path));
}

/* As a drop-in for /etc/default/grub.d, which update-grub reads as shell code; it extends the line
 * of the distribution instead of replacing it. */
static struct str grub_text(struct str line, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, STR("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX "));
	for (size_t i = 0; i < line.n; i++) {
		if (line.p[i] == '"' || line.p[i] == '\\' || line.p[i] == '$' || line.p[i] == '`')
			strbuf_addc(&b, '\\');
		strbuf_addc(&b, line.p[i]);
	}
	strbuf_add(&b, STR("\"\n"));
	return strbuf_str(&b);
}

void bundle_add_tree(struct file_set *files, struct str dir, const struct node_config *config,
		     const struct kernel_args *args)
{
	struct str line = kernel_args_join(args, files->a);

	for (size_t i = 0; i < config->files.n; i++) {
		const struct rendered_file *f = &config->files.items[i];

		file_set_add(files, below(files, dir, "rootfs", f->path), f->mode, f->bytes);
	}
	for (size_t i = 0; i < config->n_units; i++)
		file_set_add(files, below(files, dir, "rootfs" UNIT_DIR, config->units[i].name),
			     MODE_PLAIN, config->units[i].contents);
	file_set_add(files, below(files, dir, "install.sh", STR("")), 0755, STR(INSTALL_SH));
	if (!args->n)
		return;
	file_set_add(files, below(files, dir, "boot/grub.d/50-pinfold.cfg", STR("")), MODE_PLAIN,
		     grub_text(line, files->a));
	file_set_add(files, below(files, dir, "boot/systemd-boot/cmdline", STR("")), MODE_PLAIN,
		     str_printf(files->a, PRI_STR "\n", FMT_STR(line)));
}

static void add_ignition_files(yyjson_mut_doc *m, yyjson_mut_val *root, const struct file_set *from,
			       struct arena *a)
{
	yyjson_mut_val *list = doc_put_arr(m, doc_put_obj(m, root, STR("storage")), STR("files"));

	for (size_t i = 0; i < from->n; i++) {
		yyjson_mut_val *file = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, file, STR("path"), from->items[i].path);
		doc_put_int(m, file, STR("mode"), from->items[i].mode);
		/* Ignition fails on a file that exists, unless told otherwise. */
		doc_put_bool(m, file, STR("overwrite"), true);
		doc_put_str(m, doc_put_obj(m, file, STR("contents")), STR("source"),
			    data_url(from->items[i].bytes, a));
	}
}

int bundle_add_ignition(struct file_set *files, struct str dir, const struct node_config *config,
			const struct kernel_args *args, struct err *err)
{
	yyjson_mut_doc *m = doc_build(files->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;
	struct str text;
	int r;

	/* Kernel arguments came with version 3.3. */
	doc_put_str(m, doc_put_obj(m, root, STR("ignition")), STR("version"), STR("3.4.0"));
	if (args->n) {
		list = doc_put_arr(m, doc_put_obj(m, root, STR("kernelArguments")),
				   STR("shouldExist"));
		for (size_t i = 0; i < args->n; i++)
			(void)yyjson_mut_arr_append(list, doc_new_str(m, args->items[i]));
	}
	add_ignition_files(m, root, &config->files, files->a);
	list = doc_put_arr(m, doc_put_obj(m, root, STR("systemd")), STR("units"));
	for (size_t i = 0; i < config->n_units; i++) {
		yyjson_mut_val *unit = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, unit, STR("name"), config->units[i].name);
		if (config->units[i].enabled)
			doc_put_bool(m, unit, STR("enabled"), true);
		doc_put_str(m, unit, STR("contents"), config->units[i].contents);
	}
	r = doc_write(root, true, files->a, &text, err);
	if (r < 0)
		return r;
	file_set_add(files, below(files, dir, "ignition.json", STR("")), MODE_PLAIN,
		     str_printf(files->a, PRI_STR "\n", FMT_STR(text)));
	return 0;
}

static void add_cloud_file(yyjson_mut_doc *m, yyjson_mut_val *list,
			   const struct rendered_file *from, struct arena *a)
{
	yyjson_mut_val *file = yyjson_mut_arr_add_obj(m, list);

	doc_put_str(m, file, STR("path"), from->path);
	/* A string: YAML would read a bare 0644 as a number. */
	doc_put_str(m, file, STR("permissions"), str_printf(a, "0%o", from->mode));
	doc_put_str(m, file, STR("content"), from->bytes);
}

static void add_command(yyjson_mut_doc *m, yyjson_mut_val *list, const char *const *words, size_t n)
{
	yyjson_mut_val *command = yyjson_mut_arr_add_arr(m, list);

	for (size_t i = 0; i < n; i++)
		(void)yyjson_mut_arr_append(command, doc_new_str(m, str_from(words[i])));
}

int bundle_add_cloud_config(struct file_set *files, struct str dir,
			    const struct node_config *config, struct err *err)
{
	static const char *const reload[] = { "systemctl", "daemon-reload" };
	static const char *const boot[] = { "/usr/local/sbin/pinfold-kernel-args", "add" };
	yyjson_mut_doc *m = doc_build(files->a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *list;
	struct str text;
	int r;

	list = doc_put_arr(m, root, STR("write_files"));
	for (size_t i = 0; i < config->files.n; i++)
		add_cloud_file(m, list, &config->files.items[i], files->a);
	for (size_t i = 0; i < config->n_units; i++) {
		const struct rendered_file unit = {
			str_printf(files->a, UNIT_DIR PRI_STR, FMT_STR(config->units[i].name)),
			MODE_PLAIN,
			config->units[i].contents,
		};

		add_cloud_file(m, list, &unit, files->a);
	}
	list = doc_put_arr(m, root, STR("runcmd"));
	add_command(m, list, reload, 2);
	for (size_t i = 0; i < config->n_units; i++) {
		const char *const enable[] = { "systemctl", "enable", config->units[i].name.p };

		if (config->units[i].enabled)
			add_command(m, list, enable, 3);
	}
	if (file_set_find(&config->files, str_from(boot[0])))
		add_command(m, list, boot, 2);
	/* The kernel and most services already run, with the old settings. */
	doc_put_str(m, doc_put_obj(m, root, STR("power_state")), STR("mode"), STR("reboot"));
	r = yaml_write(root, files->a, &text, err);
	if (r < 0)
		return r;
	file_set_add(files, below(files, dir, "cloud-config.yaml", STR("")), MODE_PLAIN,
		     str_printf(files->a, "#cloud-config\n" PRI_STR, FMT_STR(text)));
	return 0;
}
