#pragma once

/* The reviews by which the API server decides who may see the dashboard: their requests and what
 * their responses mean. Pure. */

#include <yyjson.h>

#include "base/str.h"

struct arena;
struct err;

#define TOKEN_REVIEWS "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_REVIEWS "/apis/authorization.k8s.io/v1/subjectaccessreviews"

/* The body of a TokenReview. */
struct str user_token_review(struct str token, struct arena *a);

/* Whose the token is, as the part of a SubjectAccessReview about the user:
 * {"user":...,"uid":...,"groups":[...],"extra":{...}}. -EACCES when it is not valid. */
int user_of_review(yyjson_val *review, struct arena *a, struct str *ret, struct err *err);

/* The body of the n-th question about this user; "" after the last one. */
struct str user_question(struct str user, unsigned n, struct arena *a);

/* 0 when the user may; -EACCES with what the user may not do. */
int user_answer(yyjson_val *review, unsigned n, struct err *err);
