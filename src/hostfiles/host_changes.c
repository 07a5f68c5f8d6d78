/* The hash of a change covers what is wanted, not what is there: it stays the same while the change
 * is applied, and another one needs another grant. A change that the agent would not apply,
 * whatever is granted, has no hash (D37). */

#include "host_changes.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "kube/names.h"

#define LISTED_FILES 6 /* in a message */

struct deciding {
	const struct host_facts *facts;
	struct host_changes *out;
	struct arena *a;
	bool is_managed; /* by the profile, or by an earlier one whose files are to be removed */
};

static bool differs(const struct host_file *f)
{
	return f->state == HOST_FILE_DIFFERS || f->state == HOST_FILE_MISSING ||
	       f->state == HOST_FILE_LEFT;
}

static const char *state_text(const struct host_file *f)
{
	return f->state == HOST_FILE_MISSING ? "is missing" :
	       f->state == HOST_FILE_LEFT    ? "is left over" :
	       f->is_by_hand		     ? "lacks a line" :
					       "differs";
}

static size_t count(const struct host_files *files, enum host_file_class class,
		    bool (*is)(const struct host_file *f))
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++)
		n += files->items[i].class == class && is(&files->items[i]);
	return n;
}

static bool needs_a_hand(const struct host_file *f)
{
	return f->is_by_hand && differs(f);
}

static bool is_unseen(const struct host_file *f)
{
	return f->state == HOST_FILE_UNSEEN;
}

/* "/etc/a differs, /etc/b is missing and 3 more". */
static void list_files(const struct host_files *files, enum host_file_class class,
		       bool (*is)(const struct host_file *f), struct strbuf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		const struct host_file *f = &files->items[i];

		if (f->class != class || !is(f) || n++ >= LISTED_FILES)
			continue;
		strbuf_printf(b, "%s" PRI_STR, n > 1 ? ", " : "", FMT_STR(f->path));
		if (!is_unseen(f))
			strbuf_printf(b, " %s", state_text(f));
	}
	if (n > LISTED_FILES)
		strbuf_printf(b, " and %zu more", n - LISTED_FILES);
}

static struct str hash_of(const struct deciding *d, enum host_file_class class)
{
	const struct host_files *files = d->facts->files;
	uint64_t hash = (uint64_t) class + 1;

	for (size_t i = 0; i < files->n; i++) {
		const struct host_file *f = &files->items[i];

		if (f->class != class)
			continue;
		hash = xxh64(f->path, hash);
		hash = xxh64(f->bytes, hash + f->is_absent);
	}
	if (class == HOST_FILE_BOOT)
		hash = xxh64(files->kernel_args, hash);
	return str_printf(d->a, "%016llx", (unsigned long long)hash);
}

static void add_pending(struct deciding *d, struct pending_change change)
{
	d->out->pending[d->out->n_pending++] = change;
}

/* Why the agent does not apply a change of this class; "" when it does, once granted. */
static const char *obstacle(const struct deciding *d, enum host_file_class class)
{
	const struct host_facts *facts = d->facts;

	if (!d->is_managed)
		return "the profile has no annotation " NAME_HOST_CONFIGURATION
		       ": " NAME_HOST_CONFIGURATION_MANAGED;
	if (!facts->may_write)
		return "the agent runs without --host-configuration=managed";
	if (count(facts->files, class, needs_a_hand))
		return "the agent does not change files of the distribution";
	if (count(facts->files, class, is_unseen))
		return "files are not mounted into the agent's container";
	if ((class == HOST_FILE_KUBELET || class == HOST_FILE_RUNTIME) && !facts->units[class].n)
		return "no systemd unit that could be restarted was found";
	return "";
}

static void decide_restart(struct deciding *d, enum host_file_class class)
{
	static const struct {
		enum pending_need need;
		const char *differs, *owed, *program;
	} kinds[HOST_FILE_CLASS__COUNT] = {
		[HOST_FILE_KUBELET] = { NEED_KUBELET_RESTART, "KubeletConfigDiffers",
					"KubeletNotRestarted", "kubelet" },
		[HOST_FILE_RUNTIME] = { NEED_RUNTIME_RESTART, "RuntimeConfigDiffers",
					"RuntimeNotRestarted", "container runtime" },
	};
	const struct host_facts *facts = d->facts;
	const size_t n = count(facts->files, class, differs);
	const char *why_not = obstacle(d, class);
	struct pending_change change = { .need = kinds[class].need };
	struct strbuf b;

	if (!n && !facts->owes_restart[class])
		return;
	strbuf_init(&b, d->a);
	list_files(facts->files, class, differs, &b);
	if (!n)
		strbuf_printf(&b, "the %s runs with what it read before its files were written",
			      kinds[class].program);
	if (*why_not)
		strbuf_printf(&b, "; not applied: %s", why_not);
	else
		change.hash = hash_of(d, class);
	change.reason = str_from(n ? kinds[class].differs : kinds[class].owed);
	change.message = strbuf_str(&b);
	add_pending(d, change);
	if (change.hash.n && str_eq(facts->granted, change.hash)) {
		d->out->writes[class] = n > 0;
		d->out->restarts[class] = true;
	}
}

/* Why a reboot would not help yet; "" when it would. */
static const char *boot_obstacle(const struct deciding *d)
{
	const struct host_facts *facts = d->facts;
	const char *why_not = obstacle(d, HOST_FILE_BOOT);

	if (*why_not)
		return why_not;
	if (count(facts->files, HOST_FILE_BOOT, differs))
		return "files are not written yet";
	if (!facts->missing_args.n)
		return "";
	if (!facts->has_boot_loader)
		return "the boot loader is not configured (journalctl -u " HOST_KERNEL_ARGS_UPDATE
		       ")";
	return facts->was_rebooted ? "a reboot did not bring them: check the boot loader" : "";
}

static void decide_reboot(struct deciding *d)
{
	const struct host_facts *facts = d->facts;
	const size_t n = count(facts->files, HOST_FILE_BOOT, differs);
	const char *why_not = boot_obstacle(d);
	struct pending_change change = { .need = NEED_REBOOT };
	struct strbuf b;

	if (!n && !facts->owes_reboot && !facts->missing_args.n)
		return;
	strbuf_init(&b, d->a);
	list_files(facts->files, HOST_FILE_BOOT, differs, &b);
	if (facts->missing_args.n)
		strbuf_printf(&b, "%s/proc/cmdline lacks " PRI_STR, b.n ? "; " : "",
			      FMT_STR(facts->missing_args));
	if (!b.n)
		strbuf_add(&b, STR("units that run at boot were changed"));
	if (*why_not)
		strbuf_printf(&b, "; not applied: %s", why_not);
	else
		change.hash = hash_of(d, HOST_FILE_BOOT);
	change.reason = facts->missing_args.n ? STR("KernelArgumentsDiffer") :
						STR("BootFilesDiffer");
	change.message = strbuf_str(&b);
	add_pending(d, change);
	if (!change.hash.n)
		return;
	d->out->reboots = facts->files->changes.operator_reboots &&
			  str_eq(facts->granted, change.hash);
	d->out->leaves_sentinel = !facts->files->changes.operator_reboots;
}

static bool has_no_content_here(const struct host_file *f)
{
	return is_unseen(f) && !f->is_absent;
}

static struct str reason_of_difference(const struct deciding *d)
{
	return d->is_managed ? STR("HostFilesDiffer") : STR(NAME_REASON_NOT_MANAGED);
}

/* The first thing that an administrator has to know. */
static struct condition condition_of(const struct deciding *d)
{
	const struct host_facts *facts = d->facts;
	const size_t n_quiet = count(facts->files, HOST_FILE_QUIET, differs);
	struct condition c = { .status = CONDITION_FALSE };
	struct strbuf b;

	strbuf_init(&b, d->a);
	if (facts->problem.n) {
		c.reason = STR(HOST_REASON_FILES_FAIL);
		strbuf_add(&b, facts->problem);
	} else if (facts->owes_systemd && d->is_managed && facts->may_write) {
		c.reason = STR("HostChangesWait");
		strbuf_add(&b, STR("systemd has not confirmed the units that were written"));
	} else if (d->is_managed && facts->files->has_profile &&
		   count(facts->files, HOST_FILE_QUIET, has_no_content_here)) {
		c.reason = STR("HostFilesNotMounted");
		list_files(facts->files, HOST_FILE_QUIET, has_no_content_here, &b);
	} else if (n_quiet && *obstacle(d, HOST_FILE_QUIET)) {
		c.reason = reason_of_difference(d);
		list_files(facts->files, HOST_FILE_QUIET, differs, &b);
		strbuf_printf(&b, "; not written: %s", obstacle(d, HOST_FILE_QUIET));
	} else if (d->out->n_pending) {
		c.reason = d->out->pending[0].hash.n ? STR("HostChangesWait") :
						       reason_of_difference(d);
		strbuf_add(&b, d->out->pending[0].message);
	} else {
		c.status = CONDITION_TRUE;
		c.reason = STR("HostConfigured");
	}
	c.message = strbuf_str(&b);
	return c;
}

void host_changes_decide(const struct host_facts *facts, struct arena *a, struct host_changes *ret)
{
	struct deciding d = { .facts = facts,
			      .out = ret,
			      .a = a,
			      .is_managed = facts->files->has_profile ?
						    facts->files->changes.manages_host :
						    facts->was_managed };
	const bool writes = d.is_managed && facts->may_write;

	*ret = (struct host_changes){ 0 };
	/* The script that takes the arguments off the boot loader is one of the files. */
	ret->undoes_boot_loader = writes && facts->has_applied_args && !facts->files->kernel_args.n;
	if (writes && !ret->undoes_boot_loader) {
		ret->writes[HOST_FILE_QUIET] = count(facts->files, HOST_FILE_QUIET, differs) > 0;
		ret->writes[HOST_FILE_BOOT] = count(facts->files, HOST_FILE_BOOT, differs) > 0;
		ret->updates_boot_loader = !facts->has_boot_loader && facts->files->kernel_args.n &&
					   !ret->writes[HOST_FILE_QUIET] &&
					   !count(facts->files, HOST_FILE_QUIET, is_unseen);
	}
	decide_restart(&d, HOST_FILE_RUNTIME);
	decide_restart(&d, HOST_FILE_KUBELET);
	decide_reboot(&d);
	ret->condition = condition_of(&d);
}
