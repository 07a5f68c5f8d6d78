#pragma once

/* Manifests from a text, as bundle/manifest_load reads them from files. */

#include "codec/problems.h"
#include "kube/manifest.h"
#include "profile/manifests.h"

/* The text must outlive `ms`. */
static inline void manifests_from_text(struct manifests *ms, struct str text, struct str file,
				       struct problem_list *p)
{
	struct manifest_list list = { 0 };
	struct doc_list docs;
	struct err err;

	if (manifest_parse(text, file, ms->a, &docs, &err) < 0) {
		problem_from_err(p, &err);
		return;
	}
	manifest_list_add_docs(&list, ms->a, &docs);
	manifests_add(ms, &list, p);
}
