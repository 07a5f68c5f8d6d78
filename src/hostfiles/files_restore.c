/* Undoes everything, for --uninstall: the boot loader first, because its script is one of the
 * files. */

#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "base/macro.h"
#include "files_apply.h"
#include "files_follow.h"
#include "host_files_read.h"

#define BOOT_LOADER_TIMEOUT_S 120 /* update-grub reads every disk */

static void on_done(struct systemd_client *c)
{
	loop_stop(c->loop);
}

static int call_systemd(const struct files_settings *s, struct systemd_call *calls, size_t n,
			struct err *err)
{
	struct systemd_client client;
	struct loop loop;
	int r = loop_init(&loop, err);

	if (r < 0)
		return r;
	systemd_client_init(&client, &loop, s->root, on_done);
	systemd_client_start(&client, calls, n);
	loop_run(&loop);
	loop_done(&loop);
	for (size_t i = 0; i < n && !client.err.code; i++)
		client.err = calls[i].err;
	if (client.err.code)
		*err = client.err;
	return -client.err.code;
}

static int undo_boot_loader(const struct files_settings *s, struct arena *a, struct err *err)
{
	struct systemd_call call = { .method = SYSTEMD_START, .unit = HOST_KERNEL_ARGS_UNDO };
	int r;

	if (!host_file_content(s->root, HOST_KERNEL_ARGS_APPLIED, a).n)
		return 0;
	r = call_systemd(s, &call, 1, err);
	for (int i = 0; i < BOOT_LOADER_TIMEOUT_S && r == 0; i++) {
		const struct timespec second = { .tv_sec = 1 };

		if (!host_file_content(s->root, HOST_KERNEL_ARGS_APPLIED, a).n)
			return 0;
		(void)nanosleep(&second, NULL);
	}
	return r < 0 ? r :
		       err_set(err, ETIMEDOUT,
			       "the boot loader still has kernel arguments (journalctl -u %s)",
			       HOST_KERNEL_ARGS_UNDO);
}

static int restore_files(const struct files_settings *s, struct files_record *record,
			 struct arena *a, struct err *err)
{
	struct systemd_call calls[FILES_CALLS_MAX] = { 0 };
	struct host_files files = { .a = a };
	size_t n;
	int r = 0;

	host_files_add_originals(&files, record);
	host_files_read(s->root, &files);
	n = files_parse_calls(files_unit_calls(&files, record->systemd_owed, a), calls,
			      FILES_CALLS_MAX, a);
	for (enum host_file_class c = 0; c < HOST_FILE_CLASS__COUNT && r == 0; c++)
		r = host_files_write(s->root, s->state_dir, &files, c, record, err);
	if (r < 0)
		return r;
	host_files_read(s->root, &files);
	for (size_t i = 0; i < files.n; i++)
		if (files.items[i].state != HOST_FILE_SAME)
			return err_set(err, EIO, PRI_STR " could not be restored, run this again",
				       FMT_STR(files.items[i].path));
	/* The files count: a systemd that cannot be reached reads them at its next start. */
	if (call_systemd(s, calls, n, err) < 0)
		log_warning("cannot have systemd read its configuration again", LOG_ERR(err));
	return 0;
}

int files_restore(const struct files_settings *settings, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct files_record record;
	size_t n;
	int r;

	arena_init(&a, 0);
	r = files_record_load(settings->state_dir, settings->boot_id, &a, &record, err);
	if (r < 0)
		return r;
	n = record.n;
	if (!n && !record.loader_args.n && !record.systemd_owed.n)
		return 0;
	r = undo_boot_loader(settings, &a, err);
	if (r == 0)
		r = files_put_sentinel(settings->root, false, &a, err);
	if (r == 0)
		r = restore_files(settings, &record, &a, err);
	if (r < 0)
		return r;
	files_record_init(&record, settings->boot_id, &a);
	record.is_changed = true;
	r = files_record_save(&record, settings->state_dir, err);
	if (r < 0)
		return r;
	files_remove_kubelet_state(settings, &a);
	log_info("host files restored, restart the kubelet and the runtime for them to be read",
		 LOG_INT("files", n));
	return (int)n;
}
