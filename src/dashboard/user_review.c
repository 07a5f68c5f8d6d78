#include "user_review.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "kube/names.h"

/* What the dashboard shows of everyone's objects. */
static const struct {
	const char *group, *resource;
} shown[] = {
	{ "", "nodes" },
	{ "", "pods" },
	{ NAME_PARTITION_GROUP, NAME_PARTITION_RESOURCE },
	{ NAME_PROFILE_GROUP, NAME_PROFILE_RESOURCE },
};

static struct str review_text(yyjson_mut_doc *m, const char *api, const char *kind,
			      yyjson_mut_val *spec, struct arena *a)
{
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("");

	doc_put_str(m, root, STR("apiVersion"), str_from(api));
	doc_put_str(m, root, STR("kind"), str_from(kind));
	doc_put(m, root, STR("spec"), spec);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

struct str user_token_review(struct str token, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *spec = yyjson_mut_obj(m);

	doc_put_str(m, spec, STR("token"), token);
	return review_text(m, "authentication.k8s.io/v1", "TokenReview", spec, a);
}

int user_of_review(yyjson_val *review, struct arena *a, struct str *ret, struct err *err)
{
	static const char *const members[] = { "uid", "groups", "extra" };
	yyjson_val *user = doc_find(review, "/status/user");
	const struct str name = doc_str(doc_get(user, STR("username")));
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *v = yyjson_mut_obj(m);

	if (!doc_bool(doc_find(review, "/status/authenticated"), false) || !name.n)
		return err_set(err, EACCES, "the API server does not know the token");
	doc_put_str(m, v, STR("user"), name);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		yyjson_val *member = doc_get(user, str_from(members[i]));

		if (member)
			doc_put(m, v, str_from(members[i]), yyjson_val_mut_copy(m, member));
	}
	return doc_write(v, false, a, ret, err);
}

struct str user_question(struct str user, unsigned n, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *spec, *what;
	struct doc doc = { 0 };

	if (n >= ARRAY_LEN(shown) || doc_parse(user, STR("user"), NULL, a, &doc, NULL) < 0)
		return STR("");
	spec = yyjson_val_mut_copy(m, doc.root);
	what = doc_put_obj(m, spec, STR("resourceAttributes"));
	doc_put_str(m, what, STR("verb"), STR("list"));
	doc_put_str(m, what, STR("group"), str_from(shown[n].group));
	doc_put_str(m, what, STR("resource"), str_from(shown[n].resource));
	return review_text(m, "authorization.k8s.io/v1", "SubjectAccessReview", spec, a);
}

int user_answer(yyjson_val *review, unsigned n, struct err *err)
{
	const struct str user = doc_str(doc_find(review, "/spec/user"));

	if (doc_bool(doc_find(review, "/status/allowed"), false))
		return 0;
	return err_set(err, EACCES, "user " PRI_STR " may not list %s%s%s in all namespaces",
		       FMT_STR(user), shown[n].resource, shown[n].group[0] ? "." : "",
		       shown[n].group);
}
