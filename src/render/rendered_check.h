#pragma once

/* What is wrong with a partition only once it becomes files: kernel arguments that are too long,
 * and settings of the kubelet that contradict the profile. No file is made. */

struct arena;
struct partition;
struct problem_list;

void rendered_check(const struct partition *part, struct arena *a, struct problem_list *p);
