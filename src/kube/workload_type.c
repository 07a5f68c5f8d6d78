#include "workload_type.h"

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || str_is_digit(c);
}

bool workload_type_is_valid(struct str type)
{
	if (type.n == 0 || type.n > WORKLOAD_TYPE_MAX || !is_alphanumeric(type.p[0]) ||
	    !is_alphanumeric(type.p[type.n - 1]))
		return false;
	for (size_t i = 0; i < type.n; i++)
		if (!is_alphanumeric(type.p[i]) && type.p[i] != '-')
			return false;
	return true;
}
