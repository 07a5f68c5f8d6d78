#include "command.h"

/* Every command, in the order the help shows them. To add one: write cmd_<name>.c with its
 * `const struct command cmd_<name>`, declare it here, and give it a row. */

extern const struct command cmd_admit;
extern const struct command cmd_cpuset;
extern const struct command cmd_webhook;
extern const struct command cmd_explain;
extern const struct command cmd_lint;
extern const struct command cmd_migrate;
extern const struct command cmd_completion;
extern const struct command cmd_man;

const struct command *const commands[] = {
	&cmd_admit,   &cmd_explain,    &cmd_lint, &cmd_migrate, &cmd_cpuset,
	&cmd_webhook, &cmd_completion, &cmd_man,  NULL,
};
