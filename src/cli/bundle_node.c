/* The state of this node. The agent may not run, or be the problem: every part is read on its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "audit_print.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "bundle_collect.h"
#include "check_print.h"
#include "cpu/topology_read.h"
#include "distro/os_release.h"
#include "preflight/machine_read.h"

#define STATE_MAX ((size_t)8 << 20)

struct node_files {
	struct bundle_build *b;
	struct arena *a;
	struct str node;
	const struct node_collection *c;
};

static struct str path_of(const struct node_files *f, const char *file)
{
	return saved_bundle_node_path(f->node, file, f->a);
}

static void leave_out(const struct node_files *f, const char *file, const struct err *err)
{
	bundle_build_leave_out(f->b, path_of(f, file), str_dup(f->a, str_from(err->msg)));
}

/* A file as it is: also a damaged one says something. */
static void add_file(const struct node_files *f, const char *dir, const char *name, const char *as)
{
	const char *path = name ? str_printf(f->a, "%s/%s", dir, name).p : dir;
	struct err err = { 0 };
	struct str text;

	if (file_read_at(AT_FDCWD, path, STATE_MAX, f->a, &text, &err) < 0)
		leave_out(f, as, &err);
	else
		(void)bundle_build_add(f->b, path_of(f, as), text);
}

static void add_topology(const struct node_files *f)
{
	struct topology topology;
	struct err err = { 0 };

	if (topology_read(f->c->topology, f->a, &topology, &err) < 0)
		leave_out(f, BUNDLE_NODE_TOPOLOGY, &err);
	else
		(void)bundle_build_add_doc(f->b, path_of(f, BUNDLE_NODE_TOPOLOGY),
					   topology_to_doc(&topology, doc_build(f->a), f->a));
}

static void add_verify(const struct node_files *f, enum cgroup_version *ret_version)
{
	const struct audit_format form = { 0 };
	struct node_verify v;
	struct err err = { 0 };

	if (node_verify(&f->c->from, f->a, &v, &err) < 0) {
		leave_out(f, BUNDLE_NODE_VERIFY, &err);
		return;
	}
	*ret_version = v.host.version;
	(void)bundle_build_add_doc(
		f->b, path_of(f, BUNDLE_NODE_VERIFY),
		audit_document(&v.audit, &(struct audit_format){ form.output, false, v.host },
			       doc_build(f->a), f->a));
}

static void add_check(const struct node_files *f)
{
	struct machine_facts *facts = arena_new(f->a, struct machine_facts);
	const struct machine_source source = { .run_dir = f->c->from.run_dir };
	struct preflight_report report;
	struct err err = { 0 };

	preflight_report_init(&report, f->a);
	if (machine_read(&source, f->a, facts, &err) < 0) {
		leave_out(f, BUNDLE_NODE_CHECK, &err);
		return;
	}
	preflight_node(facts, &report);
	(void)bundle_build_add_doc(f->b, path_of(f, BUNDLE_NODE_CHECK),
				   check_document(&report, doc_build(f->a), f->a));
}

/* Parameters of the kernel that place work on CPUs. Others may hold addresses and tokens. */
static struct str cpu_parameters(struct str cmdline, struct arena *a)
{
	static const char *const kept[] = {
		"isolcpus=",
		"nohz_full=",
		"nohz=",
		"rcu_nocbs=",
		"irqaffinity=",
		"nosmt",
		"systemd.cpu_affinity=",
		"systemd.unified_cgroup",
		"maxcpus=",
		"nr_cpus=",
		"cgroup_no_v1=",
		"tuned.non_isolcpus=",
		"rcutree.",
		"skew_tick=",
		"intel_pstate=",
		"kthread_cpus=",
	};
	struct str_split words = str_split(str_trim(cmdline));
	struct strbuf b;
	struct str word;

	strbuf_init(&b, a);
	while (str_next(&words, ' ', &word))
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			if (str_starts(word, str_from(kept[i]))) {
				strbuf_printf(&b, "%s" PRI_STR, b.n ? " " : "", FMT_STR(word));
				break;
			}
	return strbuf_str(&b);
}

static struct str read_or_empty(const char *path, struct arena *a)
{
	struct str text;

	return file_read_at(AT_FDCWD, path, STATE_MAX, a, &text, NULL) < 0 ? STR("") : text;
}

static void add_host(const struct node_files *f, bool is_running, enum cgroup_version version)
{
	yyjson_mut_doc *m = doc_build(f->a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str os = read_or_empty("/etc/os-release", f->a);
	struct utsname *u = arena_new(f->a, struct utsname);

	if (uname(u) == 0) {
		doc_put_str(m, root, STR("kernel"), str_from(u->release));
		doc_put_str(m, root, STR("machine"), str_from(u->machine));
	}
	doc_put_str(m, root, STR("os"), os_release_get(os, STR("PRETTY_NAME")));
	doc_put_str(m, root, STR("cpuParameters"),
		    cpu_parameters(read_or_empty("/proc/cmdline", f->a), f->a));
	doc_put_str(m, root, STR("pinfold"), STR(PINFOLD_VERSION));
	doc_put_bool(m, root, STR("agentRunning"), is_running);
	if (version)
		doc_put_int(m, root, STR("cgroupVersion"), version);
	(void)bundle_build_add_doc(f->b, path_of(f, BUNDLE_NODE_HOST), root);
	bundle_build_leave_out(f->b, STR("parameters of the kernel that do not concern CPUs"),
			       STR("they may contain credentials"));
}

static struct str host_name(struct arena *a)
{
	char name[256] = "";

	(void)gethostname(name, sizeof(name) - 1);
	return str_dup(a, str_from(name));
}

struct str bundle_collect_node(struct bundle_build *b, const struct node_collection *c)
{
	struct node_files f = { .b = b, .a = b->a, .c = c };
	struct agent_status status = { 0 };
	enum cgroup_version version = 0;
	struct err err = { 0 };
	struct str text, name;
	int r = status_client_read(c->from.run_dir, b->a, &status, &err);

	name = doc_str(doc_get(status.doc.root, STR("node")));
	f.node = bundle_path_part(name.n ? name : host_name(b->a), b->a);
	bundle_build_source(b, str_printf(b->a, "node " PRI_STR, FMT_STR(f.node)));
	if (r >= 0)
		r = doc_write_val(status.doc.root, true, b->a, &text, &err);
	if (r < 0)
		leave_out(&f, BUNDLE_NODE_STATUS, &err);
	else
		(void)bundle_build_add(b, path_of(&f, BUNDLE_NODE_STATUS), text);
	add_topology(&f);
	add_verify(&f, &version);
	add_host(&f, status.is_running, version);
	add_check(&f);
	add_file(&f, c->from.run_dir, AGENT_LEDGER_FILE, BUNDLE_NODE_LEDGER);
	add_file(&f, c->pools_file, NULL, BUNDLE_NODE_POOLS);
	add_file(&f, c->state_dir, "profile.json", BUNDLE_NODE_PROFILE);
	bundle_build_leave_out(b, STR("the journal of the host"),
			       STR("not read: journalctl -u pinfold-agent"));
	return f.node;
}
