/* Memory and huge pages of each NUMA node, from the files that the kernel has for it: nodeN/meminfo
 * and nodeN/hugepages/hugepages-SIZEkB/nr_hugepages. The sizes in these names and files are in KiB
 * although the kernel writes "kB". */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "nrt.h"

#define NODE_DIR "sys/devices/system/node"
#define MAX_FILE 16384
/* With these limits no product overflows: bytes of memory fit into 64 bits, and huge pages stay
 * below 2^58 bytes. */
#define MAX_KIB (UINT64_MAX >> 10)
#define MAX_PAGE_KIB ((uint64_t)1 << 24)
#define MAX_PAGES ((uint64_t)1 << 24)

/* The kernel's "hugepages-2048kB" is Kubernetes' "hugepages-2Mi". */
static struct str resource_name(uint64_t kib, struct arena *a)
{
	if (kib >= 1 << 20 && kib % (1 << 20) == 0)
		return str_printf(a, "hugepages-%lluGi", (unsigned long long)(kib >> 20));
	if (kib >= 1 << 10 && kib % (1 << 10) == 0)
		return str_printf(a, "hugepages-%lluMi", (unsigned long long)(kib >> 10));
	return str_printf(a, "hugepages-%lluKi", (unsigned long long)kib);
}

struct memory_reader {
	int root_fd;
	struct arena *a;
	struct nrt_memories list;
};

static void add_memory(struct memory_reader *r, uint32_t node, struct str name, uint64_t bytes)
{
	struct nrt_memories *list = &r->list;

	list->items = arena_one_more(r->a, list->items, list->n, sizeof(*list->items));
	list->items[list->n++] = (struct nrt_memory){ node, name, bytes };
}

/* "Node 0 MemTotal:       16605764 kB" */
static int parse_total(struct str text, uint64_t *ret_kib, struct err *err)
{
	struct str_split lines = str_split(text);
	struct str line;

	while (str_next(&lines, '\n', &line)) {
		struct str_split words = str_split(line);
		struct str field;
		bool is_total = false;

		while (str_next(&words, ' ', &field)) {
			if (is_total && str_to_u64(field, MAX_KIB, ret_kib))
				return 0;
			is_total |= str_eq(field, STR("MemTotal:"));
		}
	}
	return err_set(err, EINVAL, "no MemTotal");
}

static int add_hugepages(struct memory_reader *reading, const char *dir, uint32_t node,
			 struct err *err)
{
	struct arena *a = reading->a;
	const char *pages = str_cstr(a, str_printf(a, "%s/hugepages", dir));
	struct str *names;
	size_t n;
	int r;

	r = file_list_at(reading->root_fd, pages, a, &names, &n, err);
	if (r == -ENOENT)
		return 0; /* a kernel without them */
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct str prefix = STR("hugepages-"), suffix = STR("kB");
		struct str size = str_skip(names[i], prefix.n), path, text;
		uint64_t kib, count;

		if (!str_starts(names[i], prefix) || !str_ends(size, suffix))
			continue;
		size.n -= suffix.n;
		path = str_printf(a, "%s/" PRI_STR "/nr_hugepages", pages, FMT_STR(names[i]));
		/* nr_hugepages counts all pages of this size, used or free: Kubernetes reports
		 * capacity. */
		r = file_read_at(reading->root_fd, str_cstr(a, path), MAX_FILE, a, &text, err);
		if (r == 0 && str_to_u64(size, MAX_PAGE_KIB, &kib) &&
		    str_to_u64(str_trim(text), MAX_PAGES, &count))
			add_memory(reading, node, resource_name(kib, a), count * kib << 10);
	}
	return r;
}

/* MemTotal includes huge pages; Kubernetes counts them separately from "memory". */
static int add_node(struct memory_reader *reading, const char *dir, uint32_t node, struct err *err)
{
	const char *path = str_cstr(reading->a, str_printf(reading->a, "%s/meminfo", dir));
	const size_t first = reading->list.n;
	struct str text;
	uint64_t left = 0;
	int r;

	r = file_read_at(reading->root_fd, path, MAX_FILE, reading->a, &text, err);
	if (r == 0)
		r = parse_total(text, &left, err);
	if (r < 0)
		return err_wrap(err, "%s", path);
	r = add_hugepages(reading, dir, node, err);
	if (r < 0)
		return r;
	left <<= 10;
	for (size_t i = first; i < reading->list.n; i++) {
		const uint64_t bytes = reading->list.items[i].bytes;

		left -= bytes < left ? bytes : left;
	}
	add_memory(reading, node, STR("memory"), left);
	return 0;
}

int nrt_memory_read(int root_fd, struct arena *a, struct nrt_memories *ret, struct err *err)
{
	struct memory_reader reading = { .root_fd = root_fd, .a = a };
	struct str *names;
	size_t n;
	int r;

	r = file_list_at(root_fd, NODE_DIR, a, &names, &n, err);
	if (r == -ENOENT)
		n = 0;
	else if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct str dir = str_printf(a, NODE_DIR "/" PRI_STR, FMT_STR(names[i]));
		uint64_t node;

		/* The directory also has files such as "online" and "has_cpu". */
		if (!str_starts(names[i], STR("node")) ||
		    !str_to_u64(str_skip(names[i], 4), UINT32_MAX - 1, &node))
			continue;
		r = add_node(&reading, str_cstr(a, dir), (uint32_t)node, err);
		if (r < 0)
			return r;
	}
	*ret = reading.list;
	return 0;
}
