/* capset() without libcap, whose interface is larger than what is needed here. */

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "confine.h"

struct capabilities {
	uint64_t effective, permitted, inheritable;
};

/* The kernel passes each set as two words of 32 bits. */
static int read_capabilities(struct capabilities *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, words) < 0)
		return -errno;
	*ret = (struct capabilities){
		.effective = words[0].effective | (uint64_t)words[1].effective << 32,
		.permitted = words[0].permitted | (uint64_t)words[1].permitted << 32,
		.inheritable = words[0].inheritable | (uint64_t)words[1].inheritable << 32,
	};
	return 0;
}

static int write_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = { 0 };

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		words[i].effective = words[i].permitted = (uint32_t)(keep >> (32 * i));
	return syscall(SYS_capset, &head, words) < 0 ? -errno : 0;
}

/* Without CAP_SETPCAP this fails. Then the bounding set stays, which matters to a program that is
 * executed only, and no_new_privs forbids that it gains anything. */
static void drop_bounding_set(uint64_t keep)
{
	for (unsigned i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(keep & CONFINE_CAP(i)))
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int confine_capabilities(uint64_t keep, struct err *err)
{
	struct capabilities now = { 0 };
	int r = read_capabilities(&now);

	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, -r, "capabilities: %s", strerror(-r));
	drop_bounding_set(keep);
	keep &= now.permitted;
	/* A service manager may have dropped them already, and may refuse the call itself. */
	if (now.permitted == keep && now.effective == keep && now.inheritable == 0)
		return 0;
	r = write_capabilities(keep);
	return r < 0 ? err_set(err, -r, "cannot drop capabilities: %s", strerror(-r)) : 0;
}
