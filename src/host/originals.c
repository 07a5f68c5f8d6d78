/* CPU lists stay text: they are written back as they were read, and a set has 1 KiB. */

#include "originals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/doc.h"

#define VERSION 1

void originals_init(struct originals *o, struct str boot_id)
{
	*o = (struct originals){ .irq_default = STR(""),
				 .workqueue = STR(""),
				 .services = STR("") };
	arena_init(&o->a, 0);
	o->boot_id = str_dup(&o->a, boot_id);
}

void originals_done(struct originals *o)
{
	arena_done(&o->a);
}

void originals_add_unit(struct originals *o, struct str name, struct str cpus, bool has_drop_in)
{
	o->units = arena_one_more(&o->a, o->units, o->n_units, sizeof(*o->units));
	o->units[o->n_units++] =
		(struct unit_original){ str_dup(&o->a, name), str_dup(&o->a, cpus), has_drop_in };
	o->is_changed = true;
}

/* The index of a number, or of the first that is larger. */
static size_t irq_index(const struct originals *o, unsigned number)
{
	size_t from = 0, to = o->n_irqs;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (o->irqs[middle].number < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void originals_add_irq(struct originals *o, unsigned number, struct str cpus)
{
	const size_t at = irq_index(o, number);

	if (at < o->n_irqs && o->irqs[at].number == number)
		return; /* the first is the original */
	o->irqs = arena_one_more(&o->a, o->irqs, o->n_irqs, sizeof(*o->irqs));
	memmove(&o->irqs[at + 1], &o->irqs[at], (o->n_irqs - at) * sizeof(*o->irqs));
	o->irqs[at] = (struct irq_original){ number, str_dup(&o->a, cpus) };
	o->n_irqs++;
	o->is_changed = true;
}

void originals_add_thread(struct originals *o, const struct thread_original *t)
{
	o->threads = arena_one_more(&o->a, o->threads, o->n_threads, sizeof(*o->threads));
	o->threads[o->n_threads] = *t;
	o->threads[o->n_threads++].cpus = str_dup(&o->a, t->cpus);
	o->is_changed = true;
}

void originals_set(struct originals *o, struct str *member, struct str text)
{
	*member = str_dup(&o->a, text);
	o->is_changed = true;
}

void originals_apply(struct originals *o, const struct host_cpus *cpus)
{
	if (o->has_applied && host_cpus_eq(&o->applied, cpus))
		return;
	o->applied = *cpus;
	o->has_applied = o->is_changed = true;
	o->is_complete = false;
}

void originals_complete(struct originals *o)
{
	if (o->is_complete)
		return;
	o->is_complete = o->is_changed = true;
}

void originals_forget_irqs(struct originals *o)
{
	o->n_irqs = 0;
	o->irq_default = STR("");
	o->is_changed = true;
}

const struct unit_original *originals_unit(const struct originals *o, struct str name)
{
	for (size_t i = 0; i < o->n_units; i++)
		if (str_eq(o->units[i].name, name))
			return &o->units[i];
	return NULL;
}

const struct irq_original *originals_irq(const struct originals *o, unsigned number)
{
	const size_t at = irq_index(o, number);

	return at < o->n_irqs && o->irqs[at].number == number ? &o->irqs[at] : NULL;
}

const struct thread_original *originals_thread(const struct originals *o, pid_t tid,
					       uint64_t start_ticks)
{
	for (size_t i = 0; i < o->n_threads; i++)
		if (o->threads[i].tid == tid && o->threads[i].start_ticks == start_ticks)
			return &o->threads[i];
	return NULL;
}

/* --- text --- */

static void put_units(const struct originals *o, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("units"));

	for (size_t i = 0; i < o->n_units; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_str(m, v, STR("name"), o->units[i].name);
		doc_put_str(m, v, STR("cpus"), o->units[i].cpus);
		doc_put_bool(m, v, STR("dropIn"), o->units[i].has_drop_in);
	}
}

static void put_irqs(const struct originals *o, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("interrupts"));

	for (size_t i = 0; i < o->n_irqs; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_int(m, v, STR("irq"), o->irqs[i].number);
		doc_put_str(m, v, STR("cpus"), o->irqs[i].cpus);
	}
}

static void put_threads(const struct originals *o, yyjson_mut_doc *m, yyjson_mut_val *root)
{
	yyjson_mut_val *list = doc_put_arr(m, root, STR("threads"));

	for (size_t i = 0; i < o->n_threads; i++) {
		yyjson_mut_val *v = yyjson_mut_arr_add_obj(m, list);

		doc_put_int(m, v, STR("tid"), o->threads[i].tid);
		doc_put_int(m, v, STR("start"), (int64_t)o->threads[i].start_ticks);
		doc_put_str(m, v, STR("cpus"), o->threads[i].cpus);
	}
}

int originals_encode(const struct originals *o, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *applied;

	doc_put_int(m, root, STR("version"), VERSION);
	doc_put_str(m, root, STR("bootId"), o->boot_id);
	if (o->has_applied) {
		applied = doc_put_obj(m, root, STR("applied"));
		doc_put_str(m, applied, STR("services"), cpuset_format(&o->applied.services, a));
		doc_put_str(m, applied, STR("housekeeping"),
			    cpuset_format(&o->applied.housekeeping, a));
		doc_put_bool(m, applied, STR("complete"), o->is_complete);
	}
	doc_put_str(m, root, STR("defaultInterrupts"), o->irq_default);
	doc_put_str(m, root, STR("workqueue"), o->workqueue);
	doc_put_str(m, root, STR("services"), o->services);
	put_units(o, m, root);
	put_irqs(o, m, root);
	put_threads(o, m, root);
	return doc_write(root, true, a, ret, err);
}

/* CPU lists of the file are written to the kernel, so each has to be one. */
static int get_list(const struct doc *doc, yyjson_val *object, const char *key, struct str *ret,
		    struct err *err)
{
	yyjson_val *v = doc_get(object, str_from(key));
	struct cpuset ignored;

	*ret = STR("");
	if (!yyjson_is_str(v))
		return doc_err(err, doc, object, "\"%s\" is missing", key);
	if (cpuset_parse_kernel(doc_str(v), &ignored, NULL) < 0)
		return doc_err(err, doc, v, "\"%s\" is no list of CPUs", key);
	*ret = doc_str(v);
	return 0;
}

static int get_mask(const struct doc *doc, const char *key, struct originals *o, struct str *ret,
		    struct err *err)
{
	yyjson_val *v = doc_get(doc->root, str_from(key));
	struct cpuset ignored;

	if (doc_str(v).n && cpuset_parse_words(doc_str(v), &ignored, NULL) < 0)
		return doc_err(err, doc, v, "\"%s\" is no mask of CPUs", key);
	originals_set(o, ret, doc_str(v));
	return 0;
}

static int get_applied(const struct doc *doc, struct originals *o, struct err *err)
{
	yyjson_val *applied = doc_get(doc->root, STR("applied"));
	struct host_cpus cpus;
	struct str services, housekeeping;

	if (!applied)
		return 0;
	if (get_list(doc, applied, "services", &services, err) < 0 ||
	    get_list(doc, applied, "housekeeping", &housekeeping, err) < 0)
		return -EINVAL;
	(void)cpuset_parse_kernel(services, &cpus.services, NULL);
	(void)cpuset_parse_kernel(housekeeping, &cpus.housekeeping, NULL);
	originals_apply(o, &cpus);
	o->is_complete = doc_bool(doc_get(applied, STR("complete")), false);
	return 0;
}

/* A name is put into a D-Bus call and a path. */
static bool is_unit_name(struct str name)
{
	return name.n > 0 && name.n < 256 && !str_has(name, STR("/")) && !memchr(name.p, 0, name.n);
}

static int get_units(const struct doc *doc, struct originals *o, struct err *err)
{
	yyjson_val *v;

	DOC_EACH_ITEM (doc_get(doc->root, STR("units")), v) {
		const struct str name = doc_str(doc_get(v, STR("name")));
		struct str cpus;

		if (!is_unit_name(name))
			return doc_err(err, doc, v, "\"name\" is no unit");
		if (get_list(doc, v, "cpus", &cpus, err) < 0)
			return -EINVAL;
		originals_add_unit(o, name, cpus, doc_bool(doc_get(v, STR("dropIn")), true));
	}
	return 0;
}

static int get_irqs(const struct doc *doc, struct originals *o, struct err *err)
{
	yyjson_val *v;

	DOC_EACH_ITEM (doc_get(doc->root, STR("interrupts")), v) {
		int64_t number;
		struct str cpus;

		if (!doc_int(doc_get(v, STR("irq")), &number) || number < 0 || number > INT32_MAX)
			return doc_err(err, doc, v, "\"irq\" is no number of an interrupt");
		if (get_list(doc, v, "cpus", &cpus, err) < 0)
			return -EINVAL;
		originals_add_irq(o, (unsigned)number, cpus);
	}
	return 0;
}

static int get_threads(const struct doc *doc, struct originals *o, struct err *err)
{
	yyjson_val *v;

	DOC_EACH_ITEM (doc_get(doc->root, STR("threads")), v) {
		int64_t tid, start;
		struct str cpus;

		if (!doc_int(doc_get(v, STR("tid")), &tid) || tid <= 0 || tid > INT32_MAX ||
		    !doc_int(doc_get(v, STR("start")), &start) || start < 0)
			return doc_err(err, doc, v, "\"tid\" or \"start\" is no number");
		if (get_list(doc, v, "cpus", &cpus, err) < 0)
			return -EINVAL;
		originals_add_thread(o, &(struct thread_original){ (pid_t)tid, (uint64_t)start,
								   cpus });
	}
	return 0;
}

static int decode(const struct doc *doc, struct originals *o, struct err *err)
{
	struct str services = STR("");
	int r;

	r = get_applied(doc, o, err);
	if (r == 0)
		r = get_mask(doc, "defaultInterrupts", o, &o->irq_default, err);
	if (r == 0)
		r = get_mask(doc, "workqueue", o, &o->workqueue, err);
	if (r == 0)
		r = get_list(doc, doc->root, "services", &services, err);
	if (r == 0)
		originals_set(o, &o->services, services);
	if (r == 0)
		r = get_units(doc, o, err);
	if (r == 0)
		r = get_irqs(doc, o, err);
	return r < 0 ? r : get_threads(doc, o, err);
}

int originals_decode(struct str text, struct str boot_id, struct originals *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	int64_t version;
	struct doc doc;
	int r;

	arena_init(&a, 0);
	originals_init(ret, boot_id);
	r = doc_parse(text, STR(ORIGINALS_FILE), NULL, &a, &doc, err);
	if (r < 0)
		return r;
	if (!doc_int(doc_get(doc.root, STR("version")), &version) || version != VERSION)
		return doc_err(err, &doc, doc.root, "not a record of version %d", VERSION);
	if (!str_eq(doc_str(doc_get(doc.root, STR("bootId"))), boot_id))
		return 0;
	r = decode(&doc, ret, err);
	ret->is_changed = false;
	return r;
}

/* --- file --- */

int originals_load(int state_fd, struct str boot_id, struct originals *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	originals_init(ret, boot_id);
	if (faccessat(state_fd, ORIGINALS_FILE, F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	r = file_read_at(state_fd, ORIGINALS_FILE, DOC_MAX_SIZE, &a, &text, err);
	if (r < 0)
		return r;
	originals_done(ret);
	return originals_decode(text, boot_id, ret, err);
}

int originals_save(struct originals *o, int state_fd, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;
	int r;

	arena_init(&a, 0);
	if (!o->is_changed)
		return 0;
	r = originals_encode(o, &a, &text, err);
	if (r == 0)
		r = file_replace_at(state_fd, ORIGINALS_FILE, text, 0600, err);
	if (r < 0)
		return r;
	o->is_changed = false;
	return 0;
}

int originals_remove(int state_fd, struct err *err)
{
	if (unlinkat(state_fd, ORIGINALS_FILE, 0) < 0 && errno != ENOENT)
		return err_set(err, errno, "remove " ORIGINALS_FILE ": %s", strerror(errno));
	return 0;
}
