#include "rendered_check.h"

#include "kernel_args.h"
#include "kubelet_config.h"

void rendered_check(const struct partition *part, struct arena *a, struct problem_list *p)
{
	static const struct kubelet_options kubelet = { .fill_reservations = true };

	kernel_args_check(part, a, p);
	(void)kubelet_configuration(doc_build(a), part, &kubelet, a, p);
}
