#include "runtime_config.h"

#include "base/arena.h"
#include "codec/toml_read.h"
#include "codec/yaml.h"

#define NRI_PLUGIN "io.containerd.nri.v1.nri"

static enum fact fact_of(yyjson_val *v, bool yes)
{
	return doc_bool(v, false) == yes ? FACT_YES : FACT_NO;
}

int runtime_config_read(enum distro_runtime runtime, struct str text, struct str file,
			struct arena *a, struct nri_setting *setting, struct err *err)
{
	yyjson_val *root, *table, *v;
	int r = toml_parse(text, file, a, &root, err);

	if (r < 0)
		return r;
	if (runtime == DISTRO_CRIO) {
		v = doc_find(root, "/crio/nri/enable_nri");
		if (yyjson_is_bool(v))
			*setting = (struct nri_setting){ fact_of(v, true), FACT_UNKNOWN, file };
		return 0;
	}
	table = doc_get(doc_get(root, STR("plugins")), STR(NRI_PLUGIN));
	v = doc_get(table, STR("disable"));
	if (yyjson_is_bool(v))
		setting->is_enabled = fact_of(v, false);
	v = doc_get(table, STR("disable_connections"));
	if (yyjson_is_bool(v))
		setting->accepts_connections = fact_of(v, false);
	if (table)
		setting->file = file;
	return 0;
}

bool cmdline_cpus(struct str cmdline, struct str name, struct cpuset *ret)
{
	struct str_split words = str_split(str_trim(cmdline));
	bool is_found = false;
	struct str word;

	/* The kernel uses the last one. */
	while (str_next(&words, ' ', &word)) {
		struct str value;

		if (!str_starts(word, name) || word.n <= name.n || word.p[name.n] != '=')
			continue;
		value = str_skip(word, name.n + 1);
		/* Flags come first; a list begins with a digit. */
		while (value.n && !str_is_digit(value.p[0])) {
			size_t at = 0;

			while (at < value.n && value.p[at] != ',')
				at++;
			value = str_skip(value, at + 1);
		}
		is_found = value.n && cpuset_parse(value, ret, NULL) == 0;
	}
	return is_found;
}

int kubelet_config_apply(struct str text, struct str file, struct arena *a, struct kubelet_fact *k,
			 struct err *err)
{
	struct doc_list docs;
	int r = yaml_parse(text, file, NULL, a, &docs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < docs.n; i++) {
		yyjson_val *root = docs.items[i].root, *v;

		if (!str_eq(doc_str(doc_get(root, STR("kind"))), STR("KubeletConfiguration")))
			continue;
		k->config_file = file;
		/* Without the member the policy is none. */
		if (!k->policy.n)
			k->policy = STR("none");
		if ((v = doc_get(root, STR("cpuManagerPolicy"))))
			k->policy = doc_str(v);
		if ((v = doc_get(root, STR("reservedSystemCPUs"))))
			k->reserved_cpus = doc_str(v);
		if ((v = doc_get(root, STR("topologyManagerPolicy"))))
			k->topology_policy = doc_str(v);
	}
	return 0;
}
