#include "pools_status.h"

#include <stdio.h>
#include <string.h>

void pools_in_force_set(struct pools_in_force *in_force, const struct pools_found *found)
{
	memset(in_force, 0, sizeof(*in_force)); /* it is compared as bytes */
	in_force->origin = found->origin;
	in_force->generation = found->generation;
	(void)snprintf(in_force->from, sizeof(in_force->from), "%s", found->from);
	(void)snprintf(in_force->profile, sizeof(in_force->profile), PRI_STR,
		       FMT_STR(found->profile));
}

void pools_status_describe(const struct pools_in_force *in_force, const struct profile_report *r,
			   yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *source = doc_put_obj(doc, root, STR("source")), *profile;

	(void)doc_put_str(doc, source, STR("kind"), str_from(pools_origin_name(in_force->origin)));
	(void)doc_put_str(doc, source, STR("from"), str_from(in_force->from));
	if (in_force->profile[0]) {
		(void)doc_put_str(doc, source, STR("profile"), str_from(in_force->profile));
		(void)doc_put_int(doc, source, STR("generation"), in_force->generation);
	}
	if (r->state == PROFILE_UNKNOWN)
		return;
	profile = doc_put_obj(doc, root, STR("profile"));
	(void)doc_put_str(doc, profile, STR("state"), str_from(profile_state_name(r->state)));
	if (r->name[0])
		(void)doc_put_str(doc, profile, STR("name"), str_from(r->name));
	if (r->message[0])
		(void)doc_put_str(doc, profile, STR("message"), str_from(r->message));
}
