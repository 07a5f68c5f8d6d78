/* Responses of the PodResources socket, from the agent's snapshot and the kubelet's response. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpus.h"
#include "podres/podres_messages.h"
#include "podres/response.h"
#include "test.h"

/* A kubelet's encoded response: shop/web with containers front and cache, the
 * first with a device (field 2) and, of a newer version, a field 9; and shop/job. Packed CPU ids
 * 40, 41 must be replaced. */
#define DEVICE "\x12\x09\x0a\x03gpu\x12\x02g0"
#define NEWER "\x4a\x02hi"
#define FRONT                                                                                      \
	"\x0a\x05"                                                                                 \
	"front" DEVICE "\x1a\x02\x28\x29" NEWER /* 7 + 11 + 4 + 4 */
#define CACHE                                                                                      \
	"\x0a\x05"                                                                                 \
	"cache\x18\x28" /* 7 + 2: an id that is not packed */
#define WEB "\x0a\x03web\x12\x04shop\x1a\x1a" FRONT "\x1a\x09" CACHE /* 5 + 6 + 28 + 11 */
#define JOB "\x0a\x03job\x12\x04shop"				     /* 11 */
static const struct str kubelet_list = STR_INIT("\x0a\x32" WEB "\x0a\x0b" JOB);
static const struct str kubelet_allocatable =
	STR_INIT("\x0a\x09\x0a\x03gpu\x12\x02g0\x12\x03\x00\x02\x07\x22\x00");

static struct podres_container web_containers[2], du_containers[2];
static struct podres_pod pods[2];
static struct cpuset l1_cpus, l2_cpus;

static struct podres_snapshot snapshot(void)
{
	l1_cpus = cpus("4-6");
	l2_cpus = cpus("200");
	web_containers[0] = (struct podres_container){ "front", NULL };
	web_containers[1] = (struct podres_container){ "cache", &l1_cpus };
	du_containers[0] = (struct podres_container){ "l1", NULL };
	du_containers[1] = (struct podres_container){ "l2", &l2_cpus };
	pods[0] = (struct podres_pod){ "shop", "web", web_containers, 2 };
	pods[1] = (struct podres_pod){ "ran", "du", du_containers, 2 };
	return (struct podres_snapshot){ .pods = pods,
					 .n_pods = 2,
					 .allocatable = cpus("2-7,200") };
}

static struct str ids_text(const int64_t *ids, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s%" PRId64, i ? "," : "", ids[i]);
	return strbuf_str(&b);
}

static struct str pod_text(const struct podres_pod_resources *p, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b, "%s/%s", p->namespace, p->name);
	for (size_t i = 0; i < p->n_containers; i++) {
		const struct podres_container_resources *c = &p->containers[i];

		strbuf_printf(&b, " %s(" PRI_STR ")+%zu", c->name,
			      FMT_STR(ids_text(c->cpu_ids, c->n_cpu_ids, a)), c->rest.n);
	}
	return strbuf_str(&b);
}

/* The encoded list as text: "shop/web front()+15; ..." with the bytes that were passed on. */
static struct str list_text(struct str encoded, struct arena *a)
{
	struct podres_list_response list = { 0 };
	struct err err = { 0 };
	struct strbuf b;

	CHECK_OK(pb_decode(&podres_list_response_message, encoded, a, &list, &err));
	strbuf_init(&b, a);
	for (size_t i = 0; i < list.n_pods; i++)
		strbuf_printf(&b, "%s" PRI_STR, i ? "; " : "", FMT_STR(pod_text(&list.pods[i], a)));
	return strbuf_str(&b);
}

TEST(cpu_ids_are_replaced_and_all_else_is_the_kubelets)
{
	CLEANUP(arena_done) struct arena a;
	struct podres_snapshot s = snapshot();
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	CHECK_OK(podres_list(&s, NULL, &a, &out, &err));
	CHECK_STR(list_text(out, &a), "shop/web front()+0 cache(4,5,6)+0; ran/du l1()+0 l2(200)+0");

	CHECK_OK(podres_list(&s, &kubelet_list, &a, &out, &err));
	CHECK_STR(list_text(out, &a),
		  "shop/web front()+15 cache(4,5,6)+0; shop/job; ran/du l1()+0 l2(200)+0");
	CHECK(memmem(out.p, out.n, DEVICE, sizeof(DEVICE) - 1) != NULL);
	CHECK(memmem(out.p, out.n, NEWER, sizeof(NEWER) - 1) != NULL);

	/* A pod that the kubelet no longer lists and that owns no CPUs is not listed. */
	du_containers[1].cpus = NULL;
	CHECK_OK(podres_list(&s, &kubelet_list, &a, &out, &err));
	CHECK_STR(list_text(out, &a), "shop/web front()+15 cache(4,5,6)+0; shop/job");
}

TEST(where_the_kubelet_assigns_cpus_its_ids_are_passed_on)
{
	CLEANUP(arena_done) struct arena a;
	struct podres_allocatable_response all = { 0 };
	struct podres_snapshot s = snapshot();
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	s.kubelet_manages = true;
	s.n_pods = 1;
	web_containers[1].cpus = NULL;
	CHECK_OK(podres_list(&s, &kubelet_list, &a, &out, &err));
	CHECK_STR(list_text(out, &a), "shop/web front(40,41)+15 cache(40)+0; shop/job");
	CHECK_OK(podres_allocatable(&s, &kubelet_allocatable, &a, &out, &err));
	CHECK_OK(pb_decode(&podres_allocatable_response_message, out, &a, &all, &err));
	CHECK_STR(ids_text(all.cpu_ids, all.n_cpu_ids, &a), "2,7"); /* 0 is a management CPU */
}

TEST(only_guaranteed_cpus_are_allocatable)
{
	const struct str *const kubelets[] = { NULL, &kubelet_allocatable };
	CLEANUP(arena_done) struct arena a;
	struct podres_snapshot s = snapshot();
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	for (size_t i = 0; i < 2; i++) {
		struct podres_allocatable_response all = { 0 };

		TEST_ROW("kubelet %zu", i);
		CHECK_OK(podres_allocatable(&s, kubelets[i], &a, &out, &err));
		CHECK_OK(pb_decode(&podres_allocatable_response_message, out, &a, &all, &err));
		CHECK_STR(ids_text(all.cpu_ids, all.n_cpu_ids, &a), "2,3,4,5,6,7,200");
		CHECK_UINT(all.rest.n, i ? 13 : 0);
	}
}

TEST(an_unknown_pod_fails_with_the_kubelets_message)
{
	CLEANUP(arena_done) struct arena a;
	struct podres_snapshot s = snapshot();
	struct podres_get_response got = { 0 };
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	CHECK_OK(podres_get(&s, STR("\x0a\x03web\x12\x04shop"), NULL, &a, &out, &err));
	CHECK_OK(pb_decode(&podres_get_response_message, out, &a, &got, &err));
	CHECK_STR(pod_text(got.pod, &a), "shop/web front()+0 cache(4,5,6)+0");
	CHECK_ERR(podres_get(&s, STR("\x0a\x03job\x12\x04shop"), NULL, &a, &out, &err), ENOENT,
		  "pod job in namespace shop not found");
	CHECK_OK(podres_get(&s, STR("\x0a\x03job\x12\x04shop"), &kubelet_list, &a, &out, &err));
	CHECK_ERR(podres_get(&s, STR("\x0a\x03"), NULL, &a, &out, &err), EBADMSG,
		  "the message ends inside a field");
}

TEST(an_unreadable_response_of_the_kubelet_is_an_error)
{
	CLEANUP(arena_done) struct arena a;
	struct podres_snapshot s = snapshot();
	struct str broken = { kubelet_list.p, kubelet_list.n - 3 };
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	CHECK_ERR(podres_list(&s, &broken, &a, &out, &err), EBADMSG,
		  "the kubelet's response: the message ends inside a field");
	arena_done(&a);
	/* The arena limit fails the call, not the agent. */
	for (size_t limit = 1; limit < 2000; limit++) {
		int r;

		TEST_ROW("%zu bytes", limit);
		arena_init(&a, limit);
		r = podres_list(&s, limit % 2 ? &kubelet_list : NULL, &a, &out, &err);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK_INT(r == 0, !a.failed);
		arena_done(&a);
	}
}
