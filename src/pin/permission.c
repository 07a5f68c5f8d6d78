/* A flag is read at every question: there are few, and a question costs no allocation. */

#include "permission.h"

#include <errno.h>

#include "admission/namespaces.h"
#include "base/err.h"
#include "base/quote.h"
#include "kube/names.h"
#include "kube/workload_type.h"

struct permission_flag {
	struct str namespace, types;
};

static struct permission_flag flag_of(const char *text)
{
	struct str_split split = str_split(str_from(text));
	struct permission_flag f = { .types = STR(NAME_TYPE_MANAGEMENT) };

	(void)str_next(&split, '=', &f.namespace);
	if (!split.ended)
		f.types = split.rest;
	return f;
}

int permission_flags_check(const struct permission_flags *flags, struct err *err)
{
	for (size_t i = 0; i < flags->n; i++) {
		const struct permission_flag f = flag_of(flags->items[i]);
		struct str_split split = str_split(f.types);
		struct str type;

		if (!workload_type_is_valid(f.namespace) /* also a DNS label */)
			return err_set(err, EINVAL,
				       "--allow-namespace %s: want NAMESPACE or "
				       "NAMESPACE=TYPE,TYPE with the name of a namespace",
				       quote(str_from(flags->items[i])).text);
		while (str_next(&split, ',', &type))
			if (!workload_type_is_valid(type))
				return err_set(err, EINVAL,
					       "--allow-namespace %s: %s is not a workload type",
					       quote(str_from(flags->items[i])).text,
					       quote(type).text);
	}
	return 0;
}

enum permission permission_from_flags(const struct permission_flags *flags, struct str namespace,
				      struct str type)
{
	for (size_t i = 0; i < flags->n; i++) {
		const struct permission_flag f = flag_of(flags->items[i]);

		if (str_eq(f.namespace, namespace) && type_is_allowed(f.types, type))
			return PERMISSION_GRANTED;
	}
	return flags->n ? PERMISSION_DENIED : PERMISSION_UNKNOWN;
}
