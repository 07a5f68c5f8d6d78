/* The unit is that of deploy/agent, with the program's path in the bundle. */

#include <string.h>

#include "base/arena.h"
#include "distro/distro.h"
#include "file_set.h"
#include "host_parts.h"
#include "machine_config.h"
#include "render/agent_unit.h"

#define PROGRAM "/usr/local/bin/pinfold"

/* "ExecStart=/some/where/pinfold agent ...": the path, up to " agent", is replaced. */
static struct str unit_text(struct arena *a)
{
	const char *const text = PINFOLD_AGENT_SERVICE;
	const char *const key = "\nExecStart=";
	const char *const start = strstr(text, key) + strlen(key);
	const char *const end = strstr(start, " agent");

	return str_printf(a, "%.*s" PROGRAM "%s", (int)(start - text), text, end);
}

void host_add_agent(struct node_config *c, const struct distro *d, struct str program,
		    struct arena *a)
{
	node_config_add(c, PROGRAM, 0755, program);
	node_config_add_unit(c, "pinfold-agent.service", unit_text(a));
	/* With the kubelet's credentials the agent learns which namespaces may use the management
	 * pool (deploy/agent/node-rbac.yaml). /etc/default/pinfold-agent takes precedence. */
	node_config_add(c, "/etc/systemd/system/pinfold-agent.service.d/50-pinfold.conf",
			MODE_PLAIN,
			str_printf(a,
				   "[Service]\nEnvironment=PINFOLD_DISTRO=%s "
				   "PINFOLD_KUBECONFIG=%s\n",
				   d->name, d->kubelet_kubeconfig));
	node_config_add(c, "/etc/tmpfiles.d/pinfold-agent.conf", MODE_PLAIN,
			str_printf(a,
				   "# A kubelet that starts with an empty directory forgets "
				   "extended resources of its Node.\n"
				   "d %s/device-plugins 0750 root root -\n"
				   "f %s/device-plugins/pinfold 0644 root root -\n",
				   d->kubelet_root, d->kubelet_root));
}
