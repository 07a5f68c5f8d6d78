#include "page.h"

#include <stddef.h>

#include "base/macro.h"
#include "dashboard/page_files.h"

#define JAVASCRIPT "text/javascript; charset=utf-8"

static const struct page_file files[] = {
	{ "/", "text/html; charset=utf-8", INDEX_HTML },
	{ "/style.css", "text/css; charset=utf-8", STYLE_CSS },
	{ "/icon.svg", "image/svg+xml", ICON_SVG },
	{ "/app.js", JAVASCRIPT, APP_JS },
	{ "/data.js", JAVASCRIPT, DATA_JS },
	{ "/dom.js", JAVASCRIPT, DOM_JS },
	{ "/cpus.js", JAVASCRIPT, CPUS_JS },
	{ "/map.js", JAVASCRIPT, MAP_JS },
	{ "/cluster.js", JAVASCRIPT, CLUSTER_JS },
	{ "/node.js", JAVASCRIPT, NODE_JS },
	{ "/pod.js", JAVASCRIPT, POD_JS },
	{ "/whatif.js", JAVASCRIPT, WHATIF_JS },
};

const struct page_file *page_find(struct str path)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (str_eq(path, str_from(files[i].path)))
			return &files[i];
	return NULL;
}
