#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "codec/yaml.h"
#include "test.h"
#include "webhook/print_config.h"

static struct str make(const struct print_config *c, struct arena *a)
{
	struct err err = { 0 };
	yyjson_mut_val *list;
	struct str text;

	CHECK_OK(print_config_make(c, a, &list, &err));
	CHECK_OK(doc_write(list, false, a, &text, &err));
	return text;
}

TEST(the_printed_configuration_equals_the_deployed_one)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf deployed;
	struct err err = { 0 };
	struct doc_list docs;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(AT_FDCWD, test_data("../deploy/base/webhooks.yaml"), 1 << 20, &a,
			      &text, &err));
	CHECK_OK(yaml_parse(text, STR("webhooks.yaml"), NULL, &a, &docs, &err));
	strbuf_init(&deployed, &a);
	for (size_t i = 0; i < docs.n; i++) {
		CHECK_OK(doc_write_val(docs.items[i].root, false, &a, &text, &err));
		strbuf_printf(&deployed, "%c" PRI_STR, i ? ',' : '[', FMT_STR(text));
	}
	strbuf_addc(&deployed, ']');
	/* The deployed webhook taints nodes. */
	CHECK_STR(make(&(struct print_config){ .taint_nodes = true }, &a), strbuf_str(&deployed));
}

TEST(each_option_changes_only_its_field)
{
	static const struct {
		struct print_config config;
		const char *has, *lacks;
	} cases[] = {
		{ { .url = "https://127.0.0.1:8443/" },
		  "\"url\":\"https://127.0.0.1:8443/mutate/pods\"",
		  "\"service\"" },
		{ { .service = "infra/guard:8443" },
		  "\"service\":{\"name\":\"guard\",\"namespace\":\"infra\",\"path\":\"/validate/"
		  "nodes\","
		  "\"port\":8443}",
		  "\"url\"" },
		{ { .service = "infra/guard" },
		  "\"values\":[\"pinfold\",\"pinfold-agent\",\"infra\"]",
		  "/mutate/nodes" },
		{ { .failure_policy = "Fail" },
		  "\"failurePolicy\":\"Fail\"",
		  "\"failurePolicy\":\"Ignore\"" },
		{ { .ca_pem = STR_INIT("PEM") }, "\"caBundle\":\"UEVN\"", "\"url\"" },
		{ { .taint_nodes = true }, "\"path\":\"/mutate/nodes\"", "\"url\"" },
		{ { .all_pods = true }, "\"name\":\"pods.mutate.pinfold.io\"", "warning" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		struct str text;

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		text = make(&cases[i].config, &a);
		CHECK(str_has(text, str_from(cases[i].has)));
		CHECK(!str_has(text, str_from(cases[i].lacks)));
	}
}

TEST(errors_name_the_invalid_address)
{
	static const struct {
		struct print_config config;
		const char *sentence;
	} cases[] = {
		{ { .url = "http://x" }, "--url \"http://x\" does not begin with https://" },
		{ { .service = "guard" }, "--service \"guard\" is not NAMESPACE/NAME[:PORT]" },
		{ { .service = "a/b:0" }, "--service \"a/b:0\": bad port" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		yyjson_mut_val *list;

		arena_init(&a, 0);
		CHECK_ERR(print_config_make(&cases[i].config, &a, &list, &err), EINVAL,
			  cases[i].sentence);
	}
}
