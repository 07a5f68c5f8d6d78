#include <nss.h>
#include <stdlib.h>

#include "command.h"

/* A static program cannot load the modules that nsswitch.conf of the machine names: they belong to
 * another C library (D39). These two are part of the program. */
static void use_builtin_name_lookup(void)
{
#ifdef STATIC_PROGRAM
	(void)__nss_configure_lookup("hosts", "files dns");
	(void)__nss_configure_lookup("passwd", "files");
	(void)__nss_configure_lookup("group", "files");
#endif
}

int main(int argc, char **argv)
{
	use_builtin_name_lookup();
	/* A runtime starts what it finds in /opt/nri/plugins without arguments. */
	if (argc == 1 && getenv("NRI_PLUGIN_SOCKET"))
		return command_main(2, (char *[]){ argv[0], (char *)"agent", NULL });
	return command_main(argc, argv);
}
