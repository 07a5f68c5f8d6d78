/* The kernel keeps the list of an interrupt even while no CPU of it is online, and refuses a list
 * without an online CPU. */

#include "interrupts.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"

#define VALUE_MAX ((size_t)64 << 10)
#define DEFAULT_FILE "default_smp_affinity"
#define WORKQUEUE_FILE "cpumask"

/* --- one interrupt --- */

static void path_of(unsigned number, char ret[static 48])
{
	(void)snprintf(ret, 48, "%u/smp_affinity_list", number);
}

/* False when the interrupt is gone, or has no mask. */
static bool read_irq(int irq_fd, unsigned number, struct arena *a, struct str *ret,
		     struct cpuset *ret_cpus)
{
	char path[48];

	path_of(number, path);
	if (file_read_value_at(irq_fd, path, VALUE_MAX, a, ret, NULL) < 0)
		return false;
	*ret = str_trim(*ret);
	return cpuset_parse_kernel(*ret, ret_cpus, NULL) == 0;
}

static int write_irq(int irq_fd, unsigned number, struct str list, struct err *err)
{
	char path[48];

	path_of(number, path);
	return file_write_value_at(irq_fd, path, list, err);
}

/* A read-only mount is a failure of all. Other errors are about one interrupt: EIO and EPERM of a
 * managed one, EACCES of one whose file has no write permission, ENOSPC when a CPU has no vector
 * left, ENOENT of one that is gone. */
static bool is_fatal(int error)
{
	return error == -EROFS;
}

/* Calls `fn` for each interrupt. */
typedef int (*irq_fn)(unsigned number, struct arena *scratch, void *data, struct err *err);

static int each_irq(int irq_fd, irq_fn fn, void *data, struct err *err)
{
	CLEANUP(arena_done) struct arena a, scratch;
	struct str *names;
	size_t n;
	int r;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	r = file_list_at(irq_fd, ".", &a, &names, &n, err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		uint64_t number;

		arena_reset(&scratch);
		if (str_to_u64(names[i], INT32_MAX, &number))
			r = fn((unsigned)number, &scratch, data, err);
	}
	return r < 0 ? r : 0;
}

/* --- masks as hexadecimal words --- */

static int read_mask(int fd, const char *path, struct arena *a, struct str *ret,
		     struct cpuset *ret_cpus, struct err *err)
{
	int r = file_read_value_at(fd, path, VALUE_MAX, a, ret, err);

	if (r < 0)
		return r;
	*ret = str_trim(*ret);
	r = cpuset_parse_words(*ret, ret_cpus, err);
	return r < 0 ? err_wrap(err, "%s", path) : 0;
}

static int record_mask(int fd, const char *path, struct originals *o, struct str *member,
		       struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset cpus;
	struct str text;
	int r;

	arena_init(&a, 0);
	if (member->n)
		return 0;
	r = read_mask(fd, path, &a, &text, &cpus, err);
	if (r == 0)
		originals_set(o, member, text);
	return r;
}

static int apply_mask(int fd, const char *path, struct str original, const struct originals *o,
		      bool is_changed, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset now, before, want;
	struct str text;
	int r;

	arena_init(&a, 0);
	r = read_mask(fd, path, &a, &text, &now, err);
	if (r == 0)
		r = cpuset_parse_words(original, &before, err);
	if (r < 0 || !host_mask_decide(&(struct host_mask){ &now, &before, &o->applied.housekeeping,
							    is_changed },
				       &want))
		return r;
	return file_write_value_at(fd, path, cpuset_format_words(&want, &a), err);
}

/* Written only when it differs: on a host that was never changed nothing is written. */
static int restore_mask(int fd, const char *path, struct str original, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset now;
	struct str text;
	int r;

	arena_init(&a, 0);
	if (!original.n)
		return 0;
	r = read_mask(fd, path, &a, &text, &now, err);
	if (r < 0 || str_eq(text, original))
		return r;
	return file_write_value_at(fd, path, original, err);
}

/* --- all interrupts --- */

struct recording {
	int irq_fd;
	struct originals *o;
	struct cpuset born; /* with which new interrupts come since the default was changed */
	struct str born_original;
};

/* What new interrupts had before the default was changed, as a list. "" when it was not. */
static struct str default_list(const struct originals *o, struct cpuset *ret_born, struct arena *a)
{
	struct cpuset original;

	if (!o->has_applied || !o->irq_default.n ||
	    cpuset_parse_words(o->irq_default, &original, NULL) < 0)
		return STR("");
	host_mask_within(&original, &o->applied.housekeeping, ret_born);
	return cpuset_format(&original, a);
}

static int record_irq(unsigned number, struct arena *scratch, void *data, struct err *err)
{
	struct recording *r = data;
	struct cpuset cpus;
	struct str text;

	(void)err;
	if (originals_irq(r->o, number) || !read_irq(r->irq_fd, number, scratch, &text, &cpus))
		return 0;
	if (r->born_original.n && cpuset_eq(&cpus, &r->born))
		text = r->born_original;
	originals_add_irq(r->o, number, text);
	return 0;
}

int interrupts_record(int irq_fd, struct originals *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct recording recording = { .irq_fd = irq_fd, .o = o };
	int r;

	arena_init(&a, 0);
	recording.born_original = default_list(o, &recording.born, &a);
	r = record_mask(irq_fd, DEFAULT_FILE, o, &o->irq_default, err);
	return r < 0 ? r : each_irq(irq_fd, record_irq, &recording, err);
}

struct applying {
	int irq_fd;
	const struct originals *o;
	bool is_changed;
	struct interrupts_result result;
	struct cpuset born; /* as above, for restoring */
	struct str born_original;
};

static int count_write(struct applying *p, unsigned number, struct str list, struct err *err)
{
	struct err refusal = { 0 };
	const int r = write_irq(p->irq_fd, number, list, &refusal);

	if (is_fatal(r)) {
		*err = refusal;
		return r;
	}
	if (r < 0)
		p->result.n_refused++;
	else
		p->result.n_written++;
	return 0;
}

static int apply_irq(unsigned number, struct arena *scratch, void *data, struct err *err)
{
	struct applying *p = data;
	const struct irq_original *original = originals_irq(p->o, number);
	struct cpuset now, before, want;
	struct str text;

	/* One that is not recorded came after the record was written: it is next. */
	if (!original || !read_irq(p->irq_fd, number, scratch, &text, &now) ||
	    cpuset_parse_kernel(original->cpus, &before, NULL) < 0)
		return 0;
	p->result.n++;
	if (!host_mask_decide(&(struct host_mask){ &now, &before, &p->o->applied.housekeeping,
						   p->is_changed },
			      &want))
		return 0;
	return count_write(p, number, cpuset_format(&want, scratch), err);
}

int interrupts_apply(int irq_fd, const struct originals *o, bool is_changed,
		     struct interrupts_result *ret, struct err *err)
{
	struct applying p = { .irq_fd = irq_fd, .o = o, .is_changed = is_changed };
	int r;

	r = apply_mask(irq_fd, DEFAULT_FILE, o->irq_default, o, is_changed, err);
	if (r == 0)
		r = each_irq(irq_fd, apply_irq, &p, err);
	if (r == 0)
		*ret = p.result;
	return r;
}

static int restore_irq(unsigned number, struct arena *scratch, void *data, struct err *err)
{
	struct applying *p = data;
	const struct irq_original *original = originals_irq(p->o, number);
	struct str list = original ? original->cpus : p->born_original, text;
	struct cpuset now;

	if (!read_irq(p->irq_fd, number, scratch, &text, &now))
		return 0;
	p->result.n++;
	if (!list.n || str_eq(text, list) || (!original && !cpuset_eq(&now, &p->born)))
		return 0;
	return count_write(p, number, list, err);
}

int interrupts_restore(int irq_fd, const struct originals *o, struct interrupts_result *ret,
		       struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct applying p = { .irq_fd = irq_fd, .o = o };
	int r;

	arena_init(&a, 0);
	p.born_original = default_list(o, &p.born, &a);
	r = restore_mask(irq_fd, DEFAULT_FILE, o->irq_default, err);
	if (r == 0 && o->irq_default.n)
		r = each_irq(irq_fd, restore_irq, &p, err);
	if (r == 0)
		*ret = p.result;
	return r;
}

/* --- workqueues --- */

int workqueue_record(int dir_fd, struct originals *o, struct err *err)
{
	return record_mask(dir_fd, WORKQUEUE_FILE, o, &o->workqueue, err);
}

int workqueue_apply(int dir_fd, const struct originals *o, bool is_changed, struct err *err)
{
	return apply_mask(dir_fd, WORKQUEUE_FILE, o->workqueue, o, is_changed, err);
}

int workqueue_restore(int dir_fd, const struct originals *o, struct err *err)
{
	return restore_mask(dir_fd, WORKQUEUE_FILE, o->workqueue, err);
}
