#include "api_failures.h"

#include "base/log.h"

void api_failures_add(struct api_failures *f, uint64_t now_ms, const char *request,
		      const struct err *err)
{
	/* The first failure is always logged: a wrong address or a missing permission shows at the
	 * start. */
	if (f->n++ && now_ms - f->logged_ms < API_FAILURES_LOG_MS)
		return;
	f->logged_ms = now_ms;
	log_warning("API server request failed, retrying", LOG_STR("request", str_from(request)),
		    LOG_ERR(err));
}
