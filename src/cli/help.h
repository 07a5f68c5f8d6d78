#pragma once

/* Help texts, made from the command and option tables. */

#include "base/str.h"

struct arena;
struct command;
struct option_desc;

struct str help_overview(struct arena *a);
struct str help_family(const char *family, struct arena *a);
struct str help_command(const struct command *c, struct arena *a);

/* "-o, --output FORMAT": how an option is written. */
struct str help_option_form(const struct option_desc *d, struct arena *a);
