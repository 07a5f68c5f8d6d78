/* One review of about 10 KB, processed many times: CPU time per review, and whether the heap is
 * used. PINFOLD_BENCH_RUNS sets the number for review.sh, which counts instructions. */

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "admission/admission_state.h"
#include "admission/review.h"
#include "base/arena.h"
#include "base/err.h"

static void add_container(struct strbuf *b, unsigned n)
{
	strbuf_printf(
		b,
		"%s{\"name\":\"c%u\",\"image\":\"quay.example/ocp/operator@sha256:"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
		"\"command\":[\"/usr/bin/operator\",\"--config=/etc/config.yaml\",\"-v=2\"],"
		"\"ports\":[{\"name\":\"https\",\"containerPort\":8443,\"protocol\":\"TCP\"}],"
		"\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"50Mi\"},\"limits\":"
		"{\"cpu\":\"500m\",\"memory\":\"100Mi\"}},\"env\":[",
		n ? "," : "", n, 10 + n);
	for (unsigned i = 0; i < 8; i++)
		strbuf_printf(
			b,
			"%s{\"name\":\"VARIABLE_%u\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":"
			"\"v1\",\"fieldPath\":\"metadata.namespace\"}}}",
			i ? "," : "", i);
	strbuf_printf(b,
		      "],\"volumeMounts\":[{\"name\":\"kube-api-access\",\"readOnly\":true,"
		      "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],"
		      "\"terminationMessagePath\":\"/dev/termination-log\","
		      "\"terminationMessagePolicy\":\"FallbackToLogsOnError\",\"imagePullPolicy\":"
		      "\"IfNotPresent\",\"securityContext\":{\"capabilities\":{\"drop\":[\"ALL\"]},"
		      "\"runAsNonRoot\":true,\"allowPrivilegeEscalation\":false}}");
}

static struct str review(struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b,
		      "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		      "\"request\":{\"uid\":\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"kind\":{"
		      "\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},\"resource\":{\"group\":"
		      "\"\",\"version\":\"v1\",\"resource\":\"pods\"},\"namespace\":\"platform\","
		      "\"operation\":\"CREATE\",\"userInfo\":{\"username\":\"system:serviceaccount:"
		      "kube-system:replicaset-controller\",\"groups\":[\"system:serviceaccounts\","
		      "\"system:authenticated\"]},\"object\":{\"kind\":\"Pod\",\"apiVersion\":"
		      "\"v1\",\"metadata\":{\"generateName\":\"operator-5d4f8c7b9-\",\"namespace\":"
		      "\"platform\",\"labels\":{\"app\":\"operator\"},\"annotations\":{"
		      "\"openshift.io/scc\":\"restricted-v2\",\"target.workload.openshift.io/"
		      "management\":\"{\\\"effect\\\": \\\"PreferredDuringScheduling\\\"}\"}},"
		      "\"spec\":{\"containers\":[");
	for (unsigned i = 0; i < 6; i++)
		add_container(&b, i);
	strbuf_printf(&b, "],\"restartPolicy\":\"Always\",\"serviceAccountName\":\"operator\","
			  "\"priorityClassName\":\"system-cluster-critical\"}},\"oldObject\":null,"
			  "\"dryRun\":false}}");
	return strbuf_str(&b);
}

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	(void)owner;
	(void)name;
	*ret = (struct namespace_permission){ .has_allowed = true, .allowed = STR("management") };
	return true;
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const size_t n = str_eq(type, STR("management"));

	(void)owner;
	return (struct cores_count){ n, n };
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void response(const struct admission_state *state, struct str body, struct arena *a)
{
	struct review_outcome facts;
	struct err err = { 0 };
	struct str text;

	arena_reset(a);
	if (review_respond(state, REVIEW_MUTATE, body, a, &text, &facts, &err) < 0 ||
	    !facts.is_changed) {
		(void)fprintf(stderr, "bench_review: %s\n", err.msg);
		exit(EXIT_FAILURE);
	}
}

int main(void)
{
	const char *runs_text = getenv("PINFOLD_BENCH_RUNS");
	unsigned long runs = runs_text ? strtoul(runs_text, NULL, 10) : 20000;
	struct admission_state state = {
		.infrastructure = { .is_present = true,
				    .has_status = true,
				    .is_partitioned = true },
		.nodes = { .n = 1, .n_available = 1 },
		.is_synced = true,
		.find_namespace = find_namespace,
		.count_cores = count_cores,
	};
	struct arena texts, work;
	struct mallinfo2 before;
	struct str body;
	int64_t begin;

	arena_init(&texts, 0);
	arena_init(&work, 0);
	body = review(&texts);
	for (unsigned i = 0; i < 8; i++) /* the arena finds its size */
		response(&state, body, &work);
	before = mallinfo2();
	begin = cpu_ns();
	for (unsigned long i = 0; i < runs; i++)
		response(&state, body, &work);
	if (runs)
		printf("review of %zu bytes: %.2f us CPU each, %zu bytes of arena, heap %s\n",
		       body.n, (double)(cpu_ns() - begin) / 1000 / (double)runs, work.used,
		       mallinfo2().uordblks == before.uordblks ? "unchanged" : "GREW");
	arena_done(&work);
	arena_done(&texts);
	return EXIT_SUCCESS;
}
