/* Host files: what a profile wants, what is decided from what a host has, the record of originals,
 * and all of it on a host of plain files with a systemd that is a child process. */

#include "hostfiles/files_follow.h"

#include <errno.h>

#include "base/file.h"
#include "base/macro.h"
#include "captured.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "distro/distro.h"
#include "fake_systemd.h"
#include "hostfiles/files_record.h"
#include "hostfiles/host_files_read.h"
#include "partition/node_profile.h"
#include "profile/layout.h"
#include "render/file_set.h"
#include "render/host.h"
#include "test.h"

#define DROP_IN "/etc/kubernetes/kubelet.conf.d/50-pinfold.conf"
#define PROFILE(annotations, reserved)                                                             \
	"{\"apiVersion\":\"performance.openshift.io/v2\",\"kind\":\"PerformanceProfile\","         \
	"\"metadata\":{\"name\":\"worker\",\"annotations\":{" annotations "}},"                    \
	"\"spec\":{\"cpu\":{\"reserved\":\"" reserved                                              \
	"\",\"shared\":\"2-3\",\"isolated\":\"4-7\"},"                                             \
	"\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}}}"
#define MANAGED "\"pinfold.io/host-configuration\":\"managed\""
#define REBOOTS MANAGED ",\"pinfold.io/reboot\":\"operator\""

static struct topology machine(struct arena *a)
{
	struct err err = { 0 };
	struct topology t;

	CHECK_OK(topology_read("core:8 pu:1", a, &t, &err));
	return t;
}

static yyjson_val *object(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(text), STR("profile"), NULL, a, &doc, &err));
	return doc.root;
}

/* --- what is wanted --- */

TEST(a_change_of_a_file_needs_what_reads_it)
{
	static const struct {
		const char *path;
		enum host_file_class class;
	} rows[] = {
		{ DROP_IN, HOST_FILE_KUBELET },
		{ "/etc/systemd/system/kubelet.service.d/50-pinfold.conf", HOST_FILE_KUBELET },
		{ "/etc/microshift/config.d/50-pinfold.yaml", HOST_FILE_KUBELET },
		{ "/etc/containerd/conf.d/50-pinfold.toml", HOST_FILE_RUNTIME },
		{ "/etc/crio/crio.conf.d/50-pinfold.conf", HOST_FILE_RUNTIME },
		{ "/etc/systemd/system/hugepages-allocation-2048kB-NUMA0.service", HOST_FILE_BOOT },
		{ "/etc/systemd/system/system.slice.d/50-pinfold.conf", HOST_FILE_QUIET },
		{ "/etc/systemd/system.conf.d/50-pinfold.conf", HOST_FILE_QUIET },
		{ "/etc/tuned/pinfold/tuned.conf", HOST_FILE_QUIET },
		{ HOST_KERNEL_ARGS, HOST_FILE_QUIET },
		{ "/usr/local/sbin/pinfold-kernel-args", HOST_FILE_QUIET },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].path);
		CHECK_INT(host_file_class_of(str_from(rows[i].path)), rows[i].class);
	}
}

TEST(the_files_are_those_of_render_without_the_sources_of_the_agent)
{
	CLEANUP(arena_done) struct arena a;
	const struct host_options options = { .distro = distro_get(DISTRO_KUBEADM),
					      .kubelet.strict_reservation = true };
	struct host_files files;
	struct topology t;
	struct problem_list p;
	struct file_set rendered;
	struct layout layout;
	struct err err = { 0 };
	size_t n = 0;

	arena_init(&a, 0);
	t = machine(&a);
	problem_list_init(&p, &a);
	CHECK(node_profile_layout(object(PROFILE("", "0-1"), &a), &t, &a, &layout, &p));
	file_set_init(&rendered, &a);
	CHECK_OK(host_render(&layout, &options, &rendered, &p, &err));
	CHECK_OK(host_files_build(
		&(struct host_files_source){ .profile = object(PROFILE("", "0-1"), &a),
					     .topology = &t,
					     .distro = options.distro },
		&a, &files, &err));
	for (size_t i = 0; i < rendered.n; i++) {
		const struct str path = rendered.items[i].path;
		const struct host_file *f;

		if (!str_starts(path, STR("worker/rootfs/")))
			continue;
		f = host_files_find(&files, str_skip(path, strlen("worker/rootfs")));
		TEST_ROW(PRI_STR, FMT_STR(path));
		if (str_has(path, STR("/openshift-")) || str_has(path, STR("/etc/crio/"))) {
			CHECK(!f);
			continue;
		}
		CHECK(f && str_eq(f->bytes, rendered.items[i].bytes));
		n++;
	}
	CHECK_UINT(files.n, n + 1); /* and the unit that configures the boot loader */
	CHECK(!files.kubelet_is_static && str_has(files.kernel_args, STR("nohz_full=4-7\n")));
}

TEST(arguments_are_compared_as_words)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK_STR(host_missing_args(STR("nohz_full=4-7\nquiet\na=1\n"),
				    STR("ro quiet a=12 nohz_full=4-7\n"), &a),
		  "a=1");
	CHECK_STR(host_missing_args(STR(""), STR("quiet"), &a), "");
}

/* --- decisions --- */

struct deciding_case {
	const char *name;
	bool managed, may_write, reboots, has_no_unit;
	enum host_file_state kubelet, boot, quiet;
	bool owed, owes_reboot, has_loader, was_rebooted;
	const char *missing; /* arguments; NULL: none */
	bool is_granted;     /* the first pending change */
	/* what is decided */
	const char *pending; /* "KubeletRestart+ Reboot": with a hash, without */
	const char *reason;  /* of the condition */
	bool writes, restarts, rebooted, sentinel, updates;
};

static struct str pending_of(const struct host_changes *c, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < c->n_pending; i++)
		strbuf_printf(&b, "%s" PRI_STR "%s", i ? " " : "",
			      FMT_STR(pending_change_what(&c->pending[i])),
			      c->pending[i].hash.n ? "+" : "");
	return strbuf_str(&b);
}

static void check_case(const struct deciding_case *k, struct arena *a)
{
	struct host_file items[] = {
		{ .path = STR(DROP_IN),
		  .bytes = STR("x"),
		  .class = HOST_FILE_KUBELET,
		  .state = k->kubelet },
		{ .path = STR("/etc/systemd/system/a.service"),
		  .bytes = STR("y"),
		  .class = HOST_FILE_BOOT,
		  .state = k->boot },
		{ .path = STR("/etc/tuned/a.conf"),
		  .bytes = STR("z"),
		  .class = HOST_FILE_QUIET,
		  .state = k->quiet },
	};
	struct host_files files = { .items = items,
				    .n = ARRAY_LEN(items),
				    .has_profile = true,
				    .kernel_args = STR("nohz_full=4-7\n"),
				    .changes = { .manages_host = k->managed,
						 .operator_reboots = k->reboots } };
	struct host_facts facts = { .files = &files,
				    .may_write = k->may_write,
				    .owes_reboot = k->owes_reboot,
				    .has_boot_loader = k->has_loader,
				    .was_rebooted = k->was_rebooted,
				    .missing_args = str_from(k->missing) };
	struct host_changes c;

	if (!k->has_no_unit)
		facts.units[HOST_FILE_KUBELET] = STR("kubelet.service");
	facts.owes_restart[HOST_FILE_KUBELET] = k->owed;
	host_changes_decide(&facts, a, &c);
	CHECK(!c.restarts[HOST_FILE_KUBELET] && !c.reboots); /* never without a grant */
	CHECK(!c.writes[HOST_FILE_KUBELET]);
	facts.granted = STR("0123456789abcdef"); /* of another change */
	host_changes_decide(&facts, a, &c);
	CHECK(!c.restarts[HOST_FILE_KUBELET] && !c.reboots && !c.writes[HOST_FILE_KUBELET]);
	if (k->is_granted)
		facts.granted = c.pending[0].hash;
	host_changes_decide(&facts, a, &c);
	CHECK_STR(pending_of(&c, a), k->pending);
	CHECK_STR(c.condition.reason, k->reason);
	CHECK_INT(c.writes[HOST_FILE_KUBELET], k->writes);
	CHECK_INT(c.restarts[HOST_FILE_KUBELET], k->restarts);
	CHECK_INT(c.reboots, k->rebooted);
	CHECK_INT(c.leaves_sentinel, k->sentinel);
	CHECK_INT(c.updates_boot_loader, k->updates);
}

TEST(nothing_that_disturbs_is_done_without_the_grant_of_its_hash)
{
	static const struct deciding_case cases[] = {
		{ .name = "as wanted", .pending = "", .reason = "HostConfigured" },
		{ .name = "report",
		  .kubelet = HOST_FILE_DIFFERS,
		  .may_write = true,
		  .missing = "nohz_full=4-7",
		  .is_granted = true,
		  .pending = "KubeletRestart Reboot",
		  .reason = "HostFilesNotManaged" },
		{ .name = "managed, and the agent may not write",
		  .kubelet = HOST_FILE_MISSING,
		  .managed = true,
		  .pending = "KubeletRestart",
		  .reason = "HostFilesDiffer" },
		{ .name = "managed",
		  .kubelet = HOST_FILE_DIFFERS,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .pending = "KubeletRestart+",
		  .reason = "HostChangesWait" },
		{ .name = "granted",
		  .kubelet = HOST_FILE_DIFFERS,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .is_granted = true,
		  .pending = "KubeletRestart+",
		  .reason = "HostChangesWait",
		  .writes = true,
		  .restarts = true },
		{ .name = "written, not restarted",
		  .owed = true,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .is_granted = true,
		  .pending = "KubeletRestart+",
		  .reason = "HostChangesWait",
		  .restarts = true },
		{ .name = "no unit",
		  .kubelet = HOST_FILE_DIFFERS,
		  .has_no_unit = true,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .pending = "KubeletRestart",
		  .reason = "HostFilesDiffer" },
		{ .name = "files that disturb nothing need no unit",
		  .quiet = HOST_FILE_DIFFERS,
		  .has_no_unit = true,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .pending = "",
		  .reason = "HostConfigured" },
		{ .name = "not mounted",
		  .kubelet = HOST_FILE_UNSEEN,
		  .owed = true,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .is_granted = true,
		  .pending = "KubeletRestart",
		  .reason = "HostFilesDiffer" },
		{ .name = "the boot loader is configured first",
		  .missing = "nohz_full=4-7",
		  .managed = true,
		  .may_write = true,
		  .pending = "Reboot",
		  .reason = "HostFilesDiffer",
		  .updates = true },
		{ .name = "others reboot",
		  .missing = "nohz_full=4-7",
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .is_granted = true,
		  .pending = "Reboot+",
		  .reason = "HostChangesWait",
		  .sentinel = true },
		{ .name = "the operator reboots",
		  .missing = "nohz_full=4-7",
		  .managed = true,
		  .may_write = true,
		  .reboots = true,
		  .has_loader = true,
		  .is_granted = true,
		  .pending = "Reboot+",
		  .reason = "HostChangesWait",
		  .rebooted = true },
		{ .name = "a reboot did not help",
		  .missing = "nohz_full=4-7",
		  .managed = true,
		  .may_write = true,
		  .reboots = true,
		  .has_loader = true,
		  .was_rebooted = true,
		  .pending = "Reboot",
		  .reason = "HostFilesDiffer" },
		{ .name = "units that run at boot",
		  .owes_reboot = true,
		  .managed = true,
		  .may_write = true,
		  .has_loader = true,
		  .pending = "Reboot+",
		  .reason = "HostChangesWait",
		  .sentinel = true },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%s", cases[i].name);
		check_case(&cases[i], &a);
	}
}

/* --- record --- */

TEST(a_record_of_files_reads_back_and_what_is_owed_ends_with_the_boot)
{
	CLEANUP(arena_done) struct arena a;
	struct files_record r, back;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	files_record_init(&r, STR("boot-1"), &a);
	files_record_add(&r, (struct file_original){ .path = STR("/etc/a"),
						     .existed = true,
						     .mode = 0640,
						     .bytes = { "a\0b", 3 },
						     .class = HOST_FILE_KUBELET });
	files_record_add(&r, (struct file_original){ .path = STR("/etc/b") });
	r.owed[HOST_FILE_KUBELET] = (struct owed_restart){ STR("kubelet.service"), STR("id") };
	r.loader_boot = STR("boot-0");
	r.systemd_owed = STR("reload\nenable a.service\n");
	CHECK_OK(files_record_encode(&r, &a, &text, &err));
	CHECK_OK(files_record_decode(text, STR("boot-1"), &a, &back, &err));
	CHECK_UINT(back.n, 2);
	CHECK_UINT(files_record_find(&back, STR("/etc/a"))->bytes.n, 3);
	CHECK_INT(files_record_find(&back, STR("/etc/a"))->mode, 0640);
	CHECK(!files_record_find(&back, STR("/etc/b"))->existed);
	CHECK_STR(back.owed[HOST_FILE_KUBELET].invocation, "id");
	CHECK_OK(files_record_decode(text, STR("boot-2"), &a, &back, &err));
	CHECK_UINT(back.n, 2);
	CHECK_STR(back.owed[HOST_FILE_KUBELET].unit, "");
	CHECK_STR(back.loader_boot, "boot-0");
	CHECK_STR(back.systemd_owed, "reload\nenable a.service\n");
}

TEST(a_damaged_record_of_files_is_an_error)
{
#define FILES(file) "{\"version\":1,\"files\":[{" file "}]}"
	static const char *const texts[] = {
		"{",
		"{}",
		"{\"version\":2}",
		FILES("\"path\":\"etc/a\",\"class\":\"kubelet\""),
		FILES("\"path\":\"/etc/../a\",\"class\":\"kubelet\""),
		FILES("\"path\":\"/etc/a\",\"class\":\"x\""),
		"{\"version\":1,\"systemdCalls\":\"enable a.service\"}",
		"{\"version\":1,\"systemdCalls\":\"stop a.service\\n\"}",
		"{\"version\":1,\"systemdCalls\":\"enable\\n\"}",
		FILES("\"path\":\"/etc/a\",\"class\":\"boot\",\"mode\":420,\"content\":\"?\""),
		FILES("\"path\":\"/etc/a\",\"class\":\"boot\",\"mode\":99999,\"content\":\"\""),
	};
#undef FILES
	CLEANUP(arena_done) struct arena a;
	struct files_record r;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		TEST_ROW("%s", texts[i]);
		CHECK(files_record_decode(str_from(texts[i]), STR("b"), &a, &r, NULL) < 0);
	}
}

/* --- a host --- */

struct host_fixture {
	struct arena a;
	struct captured host;
	char state[64];
	struct topology topology;
	struct loop loop;
	struct fake_systemd systemd;
	struct files_follow follow;
};

#define HOST_SCRIPT                                                                                \
	"mkdir -p etc/kubernetes/kubelet.conf.d etc/containerd run/systemd/units usr/local proc "  \
	"var/lib/kubelet state && touch etc/passwd && "                                            \
	"echo 'ro quiet' >proc/cmdline && echo original >etc/kubernetes/kubelet.conf.d/"           \
	"50-pinfold.conf && chmod 600 etc/kubernetes/kubelet.conf.d/50-pinfold.conf && "           \
	"echo '{\"policyName\":\"static\"}' >var/lib/kubelet/cpu_manager_state && "                \
	"ln -s first 'run/systemd/units/invocation:kubelet.service' && "                           \
	"ln -s first 'run/systemd/units/invocation:containerd.service'"

static void host_fixture_init(struct host_fixture *h)
{
	struct err err = { 0 };

	memset(h, 0, sizeof(*h));
	arena_init(&h->a, 0);
	h->host = captured_make(HOST_SCRIPT);
	(void)snprintf(h->state, sizeof(h->state), "%s/state", h->host.dir);
	h->topology = machine(&h->a);
	h->systemd = fake_systemd_start(h->host.dir, "/run/systemd/private");
	CHECK_OK(loop_init(&h->loop, &err));
	files_follow_init(&h->follow,
			  &(struct files_settings){ .root = h->host.dir,
						    .state_dir = h->state,
						    .boot_id = STR("boot-1"),
						    .distro = distro_get(DISTRO_KUBEADM),
						    .may_write = true });
	files_follow_start(&h->follow, &h->loop);
}

static void host_fixture_done(struct host_fixture *h)
{
	files_follow_done(&h->follow);
	loop_done(&h->loop);
	fake_systemd_stop(&h->systemd);
	captured_remove(&h->host);
	arena_done(&h->a);
}

/* Checks until nothing more is being done, as the agent does every other second. */
static void settle(struct host_fixture *h, const char *profile, const char *granted)
{
	const struct files_input in = { .profile = profile ? object(profile, &h->a) : NULL,
					.topology = &h->topology };

	for (int i = 0; i < 8; i++) {
		h->follow.n_ticks += 100; /* past every delay */
		(void)files_follow_tick(&h->follow, granted);
		files_follow_check(&h->follow, &in);
		while (!systemd_client_is_idle(&h->follow.systemd))
			(void)uv_run(&h->loop.uv, UV_RUN_ONCE);
	}
}

static struct str content(struct host_fixture *h, const char *path)
{
	return host_file_content(h->host.dir, path, &h->a);
}

static struct str pending(struct host_fixture *h)
{
	CHECK(h->follow.is_decided);
	return pending_of(&h->follow.changes, &h->a);
}

static const char *hash(struct host_fixture *h, enum pending_need need)
{
	for (size_t i = 0; i < h->follow.changes.n_pending; i++)
		if (h->follow.changes.pending[i].need == need)
			return str_cstr(&h->a, h->follow.changes.pending[i].hash);
	return "";
}

TEST(a_reported_difference_changes_nothing)
{
	CLEANUP(host_fixture_done) struct host_fixture h;

	host_fixture_init(&h);
	settle(&h, PROFILE("", "0-1"), "");
	CHECK_STR(pending(&h), "RuntimeRestart KubeletRestart Reboot");
	CHECK(str_has(h.follow.changes.pending[1].message, STR(DROP_IN " differs")));
	CHECK_STR(content(&h, DROP_IN), "original\n");
	CHECK_STR(content(&h, "/state/" FILES_RECORD), "");
	CHECK_STR(content(&h, "/calls"), "");
}

TEST(managed_files_are_written_with_the_grant_and_restored)
{
	CLEANUP(host_fixture_done) struct host_fixture h;
	struct err err = { 0 };
	struct stat st;

	host_fixture_init(&h);
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	/* What disturbs nothing is there, the boot loader has its arguments, the rest waits. */
	CHECK_STR(pending(&h), "RuntimeRestart+ KubeletRestart+ Reboot+");
	CHECK(content(&h, "/etc/systemd/system/system.slice.d/50-pinfold.conf").n);
	CHECK_STR(content(&h, "/calls"), HOST_KERNEL_ARGS_UPDATE "\n");
	CHECK(content(&h, "/run/reboot-required").n);
	CHECK_STR(content(&h, DROP_IN), "original\n");
	settle(&h, PROFILE(MANAGED, "0-1"), hash(&h, NEED_KUBELET_RESTART));
	CHECK_STR(pending(&h), "RuntimeRestart+ Reboot+");
	CHECK(str_has(content(&h, DROP_IN), STR("KubeletConfiguration")));
	CHECK_STR(content(&h, "/var/lib/kubelet/cpu_manager_state"), "");
	CHECK(content(&h, "/state/kubelet-cpu_manager_state").n);
	CHECK_STR(content(&h, "/calls"), HOST_KERNEL_ARGS_UPDATE "\nkubelet.service\n");
	/* The grant is for this change only: another one waits again. */
	settle(&h, PROFILE(MANAGED, "0"), h.follow.granted);
	CHECK_STR(pending(&h), "RuntimeRestart+ KubeletRestart+ Reboot+");
	settle(&h, PROFILE(MANAGED, "0"), hash(&h, NEED_RUNTIME_RESTART));
	CHECK_STR(pending(&h), "KubeletRestart+ Reboot+");
	CHECK(content(&h, "/etc/containerd/conf.d/50-pinfold.toml").n);

	CHECK(files_restore(&h.follow.settings, &err) > 0);
	CHECK_STR(content(&h, DROP_IN), "original\n");
	CHECK_INT(fstatat(h.host.fd, &DROP_IN[1], &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_STR(content(&h, "/etc/containerd/conf.d/50-pinfold.toml"), "");
	CHECK_STR(content(&h, HOST_KERNEL_ARGS_APPLIED), "");
	CHECK_STR(content(&h, "/run/reboot-required"), "");
	CHECK_STR(content(&h, "/state/" FILES_RECORD), "");
	CHECK_STR(content(&h, "/state/kubelet-cpu_manager_state"), "");
	CHECK_INT(files_restore(&h.follow.settings, &err), 0);
}

TEST(a_restart_that_is_owed_survives_the_agent)
{
	CLEANUP(host_fixture_done) struct host_fixture h;
	struct files_record r;
	struct err err = { 0 };
	const char *granted;

	host_fixture_init(&h);
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	granted = hash(&h, NEED_KUBELET_RESTART);
	settle(&h, PROFILE(MANAGED, "0-1"), granted);
	/* As if the agent had ended between writing and restarting. */
	CHECK_OK(files_record_load(h.state, STR("boot-1"), &h.a, &r, &err));
	r.owed[HOST_FILE_KUBELET] = (struct owed_restart){
		STR("kubelet.service"),
		host_unit_invocation(h.host.dir, STR("kubelet.service"), &h.a)
	};
	r.is_changed = true;
	CHECK_OK(files_record_save(&r, h.state, &err));
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	CHECK_STR(pending(&h), "RuntimeRestart+ KubeletRestart+ Reboot+");
	CHECK_STR(h.follow.changes.pending[1].reason, "KubeletNotRestarted");
	CHECK_STR(h.follow.changes.pending[1].hash, granted);
	/* After a reboot nothing is owed. */
	h.follow.settings.boot_id = STR("boot-2");
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	CHECK_STR(pending(&h), "RuntimeRestart+ Reboot");
	CHECK(str_has(h.follow.changes.pending[1].message, STR("a reboot did not bring them")));
}

TEST(without_a_profile_the_files_go_back_and_the_kubelet_waits_for_its_grant)
{
	CLEANUP(host_fixture_done) struct host_fixture h;

	host_fixture_init(&h);
	settle(&h, PROFILE(REBOOTS, "0-1"), "");
	CHECK_STR(content(&h, "/run/reboot-required"), "");
	settle(&h, PROFILE(REBOOTS, "0-1"), hash(&h, NEED_KUBELET_RESTART));
	settle(&h, PROFILE(REBOOTS, "0-1"), hash(&h, NEED_REBOOT));
	CHECK_STR(content(&h, "/calls"),
		  HOST_KERNEL_ARGS_UPDATE "\nkubelet.service\nreboot.target\nreboot.target\n"
					  "reboot.target\nreboot.target\nreboot.target\n"
					  "reboot.target\nreboot.target\nreboot.target\n");
	settle(&h, NULL, "");
	CHECK_STR(pending(&h), "KubeletRestart+");
	CHECK_STR(content(&h, HOST_KERNEL_ARGS_APPLIED), "");
	CHECK_STR(content(&h, "/etc/systemd/system/system.slice.d/50-pinfold.conf"), "");
	CHECK(str_has(content(&h, DROP_IN), STR("KubeletConfiguration")));
	settle(&h, NULL, hash(&h, NEED_KUBELET_RESTART));
	CHECK_STR(pending(&h), "");
	CHECK_STR(content(&h, DROP_IN), "original\n");
	CHECK_STR(content(&h, "/state/" FILES_RECORD), "");
}

TEST(a_directory_that_is_not_mounted_is_said)
{
	CLEANUP(host_fixture_done) struct host_fixture h;

	host_fixture_init(&h);
	CHECK(system(str_cstr(&h.a, str_printf(&h.a, "rm -r %s/usr", h.host.dir))) == 0);
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	CHECK_STR(h.follow.changes.condition.reason, "HostFilesNotMounted");
	CHECK(str_has(h.follow.changes.condition.message, STR("/usr/local/sbin")));
}

TEST(a_failure_to_write_is_reported_and_changes_nothing)
{
	CLEANUP(host_fixture_done) struct host_fixture h;

	host_fixture_init(&h);
	CHECK(system(str_cstr(&h.a, str_printf(&h.a, "rm -r %s", h.state))) == 0);
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	CHECK_STR(h.follow.changes.condition.reason, "HostFilesFail");
	CHECK_STR(content(&h, "/etc/systemd/system/system.slice.d/50-pinfold.conf"), "");
}

TEST(a_record_that_cannot_be_read_leaves_no_host_configured)
{
	CLEANUP(host_fixture_done) struct host_fixture h;
	struct node_partition_status status = { 0 };
	struct condition *condition = &status.conditions[PARTITION_HOST_CONFIGURED];

	host_fixture_init(&h);
	CHECK(system(str_cstr(&h.a, str_printf(&h.a, "echo '{' >%s/" FILES_RECORD, h.state))) == 0);
	settle(&h, PROFILE(MANAGED, "0-1"), "");
	condition->status = CONDITION_TRUE; /* of the live configuration */
	files_follow_describe(&h.follow, &status, &h.a);
	CHECK_INT(condition->status, CONDITION_FALSE);
	CHECK_STR(condition->reason, "HostFilesFail");
	CHECK(condition->message.n > 0);
	CHECK_STR(content(&h, "/etc/systemd/system/system.slice.d/50-pinfold.conf"), "");
}

#define HUGE_PROFILE(annotations)                                                                  \
	"{\"apiVersion\":\"performance.openshift.io/v2\",\"kind\":\"PerformanceProfile\","         \
	"\"metadata\":{\"name\":\"worker\",\"annotations\":{" annotations "}},"                    \
	"\"spec\":{\"cpu\":{\"reserved\":\"0-1\",\"isolated\":\"2-7\"},"                           \
	"\"hugepages\":{\"defaultHugepagesSize\":\"2M\",\"pages\":[{\"size\":\"2M\",\"count\":8,"  \
	"\"node\":0}]},"                                                                           \
	"\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}}}"
#define HUGE_UNIT "hugepages-allocation-2048kB-NUMA0.service"

static void refuse_all(struct host_fixture *h, bool yes)
{
	const char *path = str_printf(&h->a, "%s/refuse", h->host.dir).p;

	if (yes)
		fake_write(path, "x");
	else
		CHECK_INT(unlink(path), 0);
}

TEST(a_unit_that_systemd_did_not_enable_is_enabled_later)
{
	CLEANUP(host_fixture_done) struct host_fixture h;
	struct node_partition_status status = { 0 };

	host_fixture_init(&h);
	refuse_all(&h, true);
	settle(&h, HUGE_PROFILE(MANAGED), "");
	CHECK(content(&h, "/etc/systemd/system/" HUGE_UNIT).n);
	CHECK_STR(content(&h, "/enabled"), "");
	/* The files are as wanted, and the host is not. */
	CHECK_STR(h.follow.changes.condition.reason, "HostFilesFail");
	CHECK(str_has(h.follow.changes.condition.message, STR("no unit")));
	/* Another agent finds what is owed. */
	refuse_all(&h, false);
	files_follow_done(&h.follow);
	(void)uv_run(&h.loop.uv, UV_RUN_NOWAIT);
	files_follow_init(&h.follow, &(struct files_settings){ .root = h.host.dir,
							       .state_dir = h.state,
							       .boot_id = STR("boot-1"),
							       .distro = distro_get(DISTRO_KUBEADM),
							       .may_write = true });
	files_follow_start(&h.follow, &h.loop);
	h.follow.is_awaited = true;
	status.conditions[PARTITION_HOST_CONFIGURED].status = CONDITION_TRUE;
	files_follow_describe(&h.follow, &status, &h.a);
	CHECK_INT(status.conditions[PARTITION_HOST_CONFIGURED].status, CONDITION_UNKNOWN);
	settle(&h, HUGE_PROFILE(MANAGED), "");
	CHECK_STR(content(&h, "/enabled"), "+" HUGE_UNIT "\n");
	CHECK_STR(h.follow.changes.condition.reason, "HostChangesWait"); /* for restarts */
	CHECK(!str_has(content(&h, "/state/" FILES_RECORD), STR("enable")));
	/* And the other way round, when the profile is gone and nothing is left to restore. */
	refuse_all(&h, true);
	settle(&h, NULL, "");
	refuse_all(&h, false);
	settle(&h, NULL, "");
	CHECK_STR(content(&h, "/enabled"), "+" HUGE_UNIT "\n-" HUGE_UNIT "\n");
	CHECK_STR(pending(&h), "");
	CHECK_STR(content(&h, "/state/" FILES_RECORD), "");
}

/* Whether the next tick is a check, when nothing is done in between. */
static bool is_checked(struct host_fixture *h)
{
	h->follow.n_ticks += 40;
	return files_follow_tick(&h->follow, h->follow.granted);
}

TEST(files_are_compared_again_only_after_a_change)
{
	CLEANUP(host_fixture_done) struct host_fixture h;

	host_fixture_init(&h);
	settle(&h, PROFILE("", "0-1"), "");
	CHECK(!is_checked(&h));
	h.follow.n_ticks += 600; /* metadata is not relied on for ever */
	CHECK(is_checked(&h));
	settle(&h, PROFILE("", "0-1"), "");
	for (int i = 0; i < 4; i++) {
		static const char *const changes[] = {
			"echo x >>etc/kubernetes/kubelet.conf.d/50-pinfold.conf",
			"cd etc/containerd; mkdir -p conf.d; touch conf.d/50-pinfold.toml",
			"ln -sfn other run/systemd/units/invocation:kubelet.service",
			"mkdir -p etc/tuned; touch etc/tuned/active_profile",
		};

		TEST_ROW("%s", changes[i]);
		CHECK(!is_checked(&h));
		CHECK(system(str_printf(&h.a, "cd %s && %s", h.host.dir, changes[i]).p) == 0);
		CHECK(is_checked(&h));
		settle(&h, PROFILE("", "0-1"), "");
	}
	CHECK(!is_checked(&h));
	files_follow_soon(&h.follow);
	CHECK(is_checked(&h));
	settle(&h, PROFILE("", "0-1"), "");
	CHECK(files_follow_tick(&h.follow, "abcd"));
}
