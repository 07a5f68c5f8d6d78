/* libyaml's emitter decides layout and escaping. Which strings need quotes is decided here: the
 * emitter only knows the syntax, and would write the string "no" as a boolean. */

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "yaml.h"
#include "yaml_scalar.h"

static int append(void *data, unsigned char *bytes, size_t n)
{
	struct strbuf *b = data;

	strbuf_add(b, (struct str){ (const char *)bytes, n });
	return !b->failed;
}

static yaml_scalar_style_t style_of(struct str s)
{
	if (yaml_scalar_is_plain_safe(s))
		return YAML_PLAIN_SCALAR_STYLE;
	/* After a block with blank lines at its end libyaml ends the document with "...". */
	if (s.n < 2 || !memchr(s.p, '\n', s.n - 1) || str_ends(s, STR("\n\n")))
		return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	/* U+2028 and U+2029 end a line in YAML 1.1, which libyaml writes, but not in YAML 1.2. */
	if (str_has(s, STR("\xe2\x80\xa8")) || str_has(s, STR("\xe2\x80\xa9")))
		return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	/* The emitter uses double quotes where a block is not possible. */
	return YAML_LITERAL_SCALAR_STYLE;
}

static bool emit_text(yaml_emitter_t *e, struct str s, yaml_scalar_style_t style)
{
	yaml_event_t event;
	const char *text = s.n ? s.p : "";

	return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)s.n,
					    1, 1, style) &&
	       yaml_emitter_emit(e, &event);
}

static bool emit_scalar(yaml_emitter_t *e, yyjson_mut_val *v)
{
	AUTO_FREE char *number = yyjson_mut_is_num(v) ? yyjson_mut_val_write(v, 0, NULL) : NULL;
	struct str s = doc_mut_str(v);

	if (yyjson_mut_is_str(v))
		return emit_text(e, s, style_of(s));
	if (yyjson_mut_is_raw(v))
		s = (struct str){ yyjson_mut_get_raw(v), yyjson_mut_get_len(v) };
	else if (number)
		s = str_from(number);
	else if (yyjson_mut_is_bool(v))
		s = yyjson_mut_get_bool(v) ? STR("true") : STR("false");
	else
		s = STR("null");
	return emit_text(e, s, YAML_PLAIN_SCALAR_STYLE);
}

static bool emit(yaml_emitter_t *e, yyjson_mut_val *v);

static bool emit_array(yaml_emitter_t *e, yyjson_mut_val *v)
{
	yyjson_mut_arr_iter it = yyjson_mut_arr_iter_with(v);
	yaml_event_t event;
	yyjson_mut_val *item;

	if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
						  YAML_BLOCK_SEQUENCE_STYLE) ||
	    !yaml_emitter_emit(e, &event))
		return false;
	while ((item = yyjson_mut_arr_iter_next(&it)))
		if (!emit(e, item))
			return false;
	return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

static bool emit_object(yaml_emitter_t *e, yyjson_mut_val *v)
{
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(v);
	yaml_event_t event;
	yyjson_mut_val *key;

	if (!yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) ||
	    !yaml_emitter_emit(e, &event))
		return false;
	while ((key = yyjson_mut_obj_iter_next(&it)))
		if (!emit_scalar(e, key) || !emit(e, yyjson_mut_obj_iter_get_val(key)))
			return false;
	return yaml_mapping_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

static bool emit(yaml_emitter_t *e, yyjson_mut_val *v)
{
	if (yyjson_mut_is_obj(v))
		return emit_object(e, v);
	if (yyjson_mut_is_arr(v))
		return emit_array(e, v);
	return emit_scalar(e, v);
}

static bool emit_document(yaml_emitter_t *e, yyjson_mut_val *v)
{
	yaml_event_t event;

	return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
	       yaml_emitter_emit(e, &event) &&
	       yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
	       yaml_emitter_emit(e, &event) && emit(e, v) &&
	       yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(e, &event) &&
	       yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(e, &event);
}

int yaml_write(yyjson_mut_val *v, struct arena *a, struct str *ret, struct err *err)
{
	CLEANUP(yaml_emitter_delete) yaml_emitter_t e;
	struct strbuf b;

	strbuf_init(&b, a);
	if (!yaml_emitter_initialize(&e))
		return err_set(err, ENOMEM, "cannot write YAML: not enough memory");
	yaml_emitter_set_output(&e, append, &b);
	/* No line folding: a folded plain scalar reads back the same, but diffs and searches of
	 * long values break. */
	yaml_emitter_set_width(&e, -1);
	/* Otherwise every character beyond ASCII is written as an escape. */
	yaml_emitter_set_unicode(&e, 1);
	if (!emit_document(&e, v))
		return err_set(err, b.failed ? ENOMEM : EINVAL, "cannot write YAML: %s",
			       b.failed	 ? "not enough memory" :
			       e.problem ? e.problem :
					   "a string is not UTF-8");
	*ret = strbuf_str(&b);
	return 0;
}

int yaml_write_val(yyjson_val *v, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = m ? yyjson_val_mut_copy(m, v) : NULL;

	if (!copy)
		return err_set(err, ENOMEM, "cannot write YAML: not enough memory");
	return yaml_write(copy, a, ret, err);
}
