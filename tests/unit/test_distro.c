#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "distro/distro_read.h"
#include "distro/os_release.h"
#include "test.h"

/* Adds empty files to a directory. */
static int tree(const char *dir, const char *const *paths, size_t n, struct arena *a)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < n; i++) {
		struct str path = str_from(paths[i] + 1);
		const char *slash = strrchr(path.p, '/');

		CHECK_INT(file_mkdirs_at(
				  fd, str_cstr(a, (struct str){ path.p, (size_t)(slash - path.p) }),
				  0755, NULL),
			  0);
		CHECK_INT(file_create_at(fd, path.p, STR(""), 0644, NULL), 0);
	}
	return fd;
}

TEST(each_distribution_is_detected_by_the_files_of_its_layout)
{
	static const struct {
		const char *want, *paths[4];
	} cases[] = {
		{ "openshift",
		  { "/etc/machine-config-daemon/currentconfig", "/etc/kubernetes/kubelet.conf" } },
		{ "microshift", { "/var/lib/microshift/version", "/etc/crio/crio.conf" } },
		{ "rke2", { "/var/lib/rancher/rke2/agent/kubelet.kubeconfig" } },
		{ "k3s",
		  { "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
		    "/etc/rancher/k3s/k3s.yaml" } },
		{ "microk8s", { "/var/snap/microk8s/common/run/containerd.sock" } },
		{ "kind", { "/kind/version", "/var/lib/kubelet/kubeadm-flags.env" } },
		{ "kubeadm",
		  { "/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/kubeadm-flags.env" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		char dir[] = "/tmp/test-distro-XXXXXX";
		struct distro_detection d;
		size_t n = 0;

		arena_init(&a, 0);
		CHECK(mkdtemp(dir) != NULL);
		while (n < ARRAY_LEN(cases[i].paths) && cases[i].paths[n])
			n++;
		AUTO_CLOSE int fd = tree(dir, cases[i].paths, n, &a);
		d = distro_read(fd, &a);
		CHECK(d.is_detected);
		CHECK_STR(str_from(d.distro->name), cases[i].want);
		CHECK(d.also == NULL);
		CHECK_INT(system(str_printf(&a, "rm -r %s", dir).p), 0);
	}
}

TEST(talos_is_detected_by_its_os_release)
{
	const struct distro_evidence e = {
		.os_release = STR("NAME=\"Talos\"\nID=talos\nVERSION_ID=v1.14.0\n")
	};

	CHECK_STR(str_from(distro_detect(&e).distro->name), "talos");
}

TEST(a_machine_without_evidence_gets_the_paths_of_kubeadm)
{
	const struct distro_evidence e = { .os_release = STR("ID=debian\n") };
	struct distro_detection d = distro_detect(&e);

	CHECK(!d.is_detected);
	CHECK_STR(str_from(d.distro->name), "kubeadm");
}

TEST(a_second_distribution_that_left_files_is_named)
{
	static const struct str paths[] = { STR_INIT("/var/lib/rancher/rke2/agent"),
					    STR_INIT("/var/lib/rancher/k3s/agent") };
	struct distro_detection d =
		distro_detect(&(struct distro_evidence){ paths, ARRAY_LEN(paths), STR("") });

	CHECK_STR(str_from(d.distro->name), "rke2");
	CHECK_STR(str_from(d.also), "k3s");
}

TEST(a_name_overrides_the_detection_and_an_unknown_one_is_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct distro_detection d;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_INT(distro_choose("microk8s", &a, &d, &err), 0);
	CHECK_STR(str_from(distro_kubelet_path(d.distro, "cpu_manager_state", &a)),
		  "/var/snap/microk8s/common/var/lib/kubelet/cpu_manager_state");
	CHECK(distro_choose("minikube", &a, &d, &err) < 0);
	CHECK(strstr(err.msg, DISTRO_CHOICES) != NULL);
}

TEST(every_row_names_what_the_agent_needs)
{
	for (int i = 0; i < DISTRO__COUNT; i++) {
		const struct distro *d = distro_get((enum distro_id)i);

		CHECK(distro_find(d->name) == d);
		CHECK(strstr(DISTRO_CHOICES, d->name) != NULL);
		CHECK(d->nri_socket && d->cri_socket && d->kubelet_root && d->kubelet_kubeconfig);
		CHECK(d->os_id || d->evidence[0]);
		for (size_t k = 0; k < DISTRO_LIMITS && d->limits[k].what; k++)
			CHECK(d->limits[k].remedy != NULL);
	}
}

TEST(os_release_values_lose_their_quotes)
{
	static const struct {
		struct str text;
		const char *want;
	} cases[] = {
		{ STR_INIT("ID=debian\n"), "debian" },
		{ STR_INIT("NAME=x\nID=\"rhel\"\n"), "rhel" },
		{ STR_INIT("ID='talos'"), "talos" },
		{ STR_INIT("ID_LIKE=debian\n"), "" },
		{ STR_INIT("ID=\"\n"), "\"" },
		{ STR_INIT(""), "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_STR(os_release_get(cases[i].text, STR("ID")), cases[i].want);
}
