#include <stdlib.h>

#include "command.h"

int main(int argc, char **argv)
{
	/* A runtime starts what it finds in /opt/nri/plugins without arguments. */
	if (argc == 1 && getenv("NRI_PLUGIN_SOCKET"))
		return command_main(2, (char *[]){ argv[0], (char *)"agent", NULL });
	return command_main(argc, argv);
}
