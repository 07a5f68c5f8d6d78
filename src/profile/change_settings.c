#include "change_settings.h"

#include "base/macro.h"
#include "kube/names.h"

#define MAX_NODES 100000

/* Whether the value is one of the two. */
static bool read_choice(struct str value, const char *no, const char *yes, bool *ret)
{
	*ret = str_eq(value, str_from(yes));
	return *ret || str_eq(value, str_from(no));
}

static bool read_host_configuration(struct str value, struct change_settings *s)
{
	return read_choice(value, NAME_HOST_CONFIGURATION_REPORT, NAME_HOST_CONFIGURATION_MANAGED,
			   &s->manages_host);
}

static bool read_max_unavailable(struct str value, struct change_settings *s)
{
	uint64_t n;

	s->is_share = str_ends(value, STR("%"));
	value.n -= s->is_share;
	if (!str_to_u64(value, s->is_share ? 100 : MAX_NODES, &n)) {
		s->is_share = false;
		return false;
	}
	s->max_unavailable = n;
	return true;
}

static bool read_paused(struct str value, struct change_settings *s)
{
	return read_choice(value, "false", "true", &s->is_paused);
}

static bool read_reboot(struct str value, struct change_settings *s)
{
	return read_choice(value, NAME_REBOOT_SENTINEL, NAME_REBOOT_OPERATOR, &s->operator_reboots);
}

static const struct {
	const char *name, *values;
	bool (*read)(struct str value, struct change_settings *s);
} annotations_known[CHANGE_ANNOTATION__COUNT] = {
	[CHANGE_HOST_CONFIGURATION] = { NAME_HOST_CONFIGURATION,
					NAME_HOST_CONFIGURATION_REPORT
					", " NAME_HOST_CONFIGURATION_MANAGED,
					read_host_configuration },
	[CHANGE_MAX_UNAVAILABLE] = { NAME_MAX_UNAVAILABLE,
				     "a number of nodes, or a share from 0% to 100%",
				     read_max_unavailable },
	[CHANGE_PAUSED] = { NAME_PAUSED, "true, false", read_paused },
	[CHANGE_REBOOT] = { NAME_REBOOT, NAME_REBOOT_SENTINEL ", " NAME_REBOOT_OPERATOR,
			    read_reboot },
};

size_t change_settings_read(yyjson_val *annotations, struct change_settings *ret,
			    bool ret_invalid[CHANGE_ANNOTATION__COUNT])
{
	size_t n_invalid = 0;

	*ret = (struct change_settings){ .max_unavailable = 1 };
	for (size_t i = 0; i < CHANGE_ANNOTATION__COUNT; i++) {
		yyjson_val *v = doc_get(annotations, str_from(annotations_known[i].name));
		/* "" is the default. Not a text is true instead of "true", which the API server
		 * refuses. */
		const bool is_invalid =
			v && !(yyjson_is_str(v) &&
			       (!doc_str(v).n || annotations_known[i].read(doc_str(v), ret)));

		if (ret_invalid)
			ret_invalid[i] = is_invalid;
		n_invalid += is_invalid;
	}
	return n_invalid;
}

const char *change_annotation_name(enum change_annotation c)
{
	return annotations_known[c].name;
}

const char *change_annotation_values(enum change_annotation c)
{
	return annotations_known[c].values;
}
