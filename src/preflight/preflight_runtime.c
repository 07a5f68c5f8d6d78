/* The container runtime: that it is there, new enough, and that NRI is on
 * (docs/reference/nri.md). */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "preflight_node.h"

struct runtime_support preflight_runtime_support(struct str name, struct str version)
{
	const bool is_crio = str_eq(name, STR("cri-o"));
	unsigned v[2];

	if (!is_crio && !str_eq(name, STR("containerd")))
		return (struct runtime_support){ PREFLIGHT_FAILURE, FACT_NO, "it has no NRI",
						 "use containerd or CRI-O, or the OCI hook "
						 "(docs/oci-hook.md)" };
	if (!preflight_version(version, v))
		return (struct runtime_support){ PREFLIGHT_NOTE, FACT_UNKNOWN, NULL, NULL };
	if (preflight_is_older(v, 1, is_crio ? 26 : 7))
		return (struct runtime_support){ PREFLIGHT_FAILURE, FACT_NO, "it has no NRI",
						 "upgrade to containerd 2.0 or CRI-O 1.30, or use "
						 "the OCI hook (docs/oci-hook.md)" };
	if (is_crio ? preflight_is_older(v, 1, 30) : preflight_is_older(v, 2, 0))
		return (struct runtime_support){ PREFLIGHT_OK, FACT_NO,
						 "NRI is off by default in this version", NULL };
	return (struct runtime_support){ PREFLIGHT_OK, FACT_YES, NULL, NULL };
}

static void check_socket(const struct socket_fact *s, enum preflight_check check, const char *what,
			 struct str remedy, struct preflight_report *r)
{
	if (!s->exists)
		preflight_add(r, check, PREFLIGHT_FAILURE,
			      str_printf(r->a, "%s %s does not exist", what, s->path), remedy);
	else if (s->accepts == FACT_NO && (s->error == EACCES || s->error == EPERM))
		preflight_add(r, check, PREFLIGHT_NOTE,
			      str_printf(r->a, "no permission to connect to %s %s", what, s->path),
			      STR("run this command as root"));
	else if (s->accepts == FACT_NO)
		preflight_add(r, check, PREFLIGHT_FAILURE,
			      str_printf(r->a, "cannot connect to %s %s: %s", what, s->path,
					 strerror(s->error)),
			      remedy);
	else
		preflight_add(r, check, PREFLIGHT_OK,
			      str_printf(r->a, "%s %s%s", what, s->path,
					 s->accepts == FACT_YES ? " accepts connections" :
								  " exists"),
			      STR(""));
}

static struct str nri_remedy(const struct machine_facts *f, struct arena *a)
{
	const struct distro *d = f->distro.distro;
	const char *const where = d->runtime_dropin_dir ? d->runtime_dropin_dir :
				  d->runtime_config	? d->runtime_config :
							  "the machine configuration";

	if (d->runtime == DISTRO_CRIO)
		return str_printf(a,
				  "enable_nri = true below [crio.nri] in %s/50-pinfold.conf, then "
				  "restart %s",
				  where, d->runtime_unit);
	return str_printf(a,
			  "disable = false and disable_connections = false below "
			  "[plugins.\"io.containerd.nri.v1.nri\"] in %s%s, then restart the "
			  "runtime; `pinfold render --target host` writes this file",
			  where, d->runtime_dropin_dir ? "/50-pinfold.toml" : "");
}

static void check_version(const struct machine_facts *f, const struct runtime_support *s,
			  struct preflight_report *r)
{
	if (f->runtime.n)
		preflight_add(r, PREFLIGHT_RUNTIME_VERSION_CHECK, s->level,
			      str_printf(r->a, PRI_STR " " PRI_STR "%s%s", FMT_STR(f->runtime),
					 FMT_STR(f->runtime_version), s->why ? ": " : "",
					 s->why ? s->why : ""),
			      str_from(s->remedy));
}

static void check_nri(const struct machine_facts *f, const struct runtime_support *s,
		      struct preflight_report *r)
{
	const struct nri_setting *n = &f->nri_setting;
	enum fact on = n->is_enabled != FACT_UNKNOWN ? n->is_enabled : s->nri_is_on;

	if (n->is_enabled == FACT_NO || n->accepts_connections == FACT_NO)
		preflight_add(r, PREFLIGHT_NRI_ENABLED_CHECK, PREFLIGHT_FAILURE,
			      str_printf(r->a, PRI_STR " %s", FMT_STR(n->file),
					 n->is_enabled == FACT_NO ? "turns NRI off" :
								    "turns connections to NRI off "
								    "(disable_connections)"),
			      nri_remedy(f, r->a));
	else if (on == FACT_NO)
		preflight_add(r, PREFLIGHT_NRI_ENABLED_CHECK, PREFLIGHT_FAILURE,
			      STR("NRI is off: this version of the runtime needs it configured"),
			      nri_remedy(f, r->a));
	else if (on == FACT_YES)
		preflight_add(r, PREFLIGHT_NRI_ENABLED_CHECK, PREFLIGHT_OK,
			      n->is_enabled == FACT_YES ?
				      str_printf(r->a, "NRI is on in " PRI_STR, FMT_STR(n->file)) :
				      STR("NRI is on by default"),
			      STR(""));
}

void preflight_runtime(const struct machine_facts *f, struct preflight_report *r)
{
	const struct runtime_support none = { PREFLIGHT_OK, FACT_UNKNOWN, NULL, NULL };
	const struct runtime_support s =
		f->runtime.n ? preflight_runtime_support(f->runtime, f->runtime_version) : none;

	check_socket(&f->cri, PREFLIGHT_CRI_SOCKET_CHECK, "the CRI socket",
		     STR("start the container runtime, or name the distribution with --distro"), r);
	check_version(f, &s, r);
	check_nri(f, &s, r);
	check_socket(&f->nri, PREFLIGHT_NRI_SOCKET_CHECK, "the NRI socket", nri_remedy(f, r->a), r);
}
