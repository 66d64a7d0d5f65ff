/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/shard_index.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/growth.h"
#include "base/json_pull.h"
#include "formats/archive_builder.h"

typedef struct index_parser {
  tm_shard_index *index;
  const char     *label;
  char           *text;         /* ours to change */
  tm_json_pull    json;
  tm_error       *error;
  bool            keeps_flaws;
} index_parser;

static tm_status fail_token(index_parser *parser, const tm_json_token *token, const char *what) {
  if (parser->json.error_text != NULL)
    return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: is not valid JSON at offset %" PRIu64 ": %s", parser->label,
                   parser->json.error_offset, parser->json.error_text);
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: at offset %" PRIu64 ": expected %s", parser->label, token->offset, what);
}

static tm_status fail_memory(const index_parser *parser) {
  return tm_fail(parser->error, TM_ERROR_NO_MEMORY, "%s: no memory for the index", parser->label);
}

static tm_string copy_meaning(index_parser *parser, const tm_json_token *token) {
  char *text = parser->text + (token->text - parser->text);
  const uint64_t length = token->has_escapes ? tm_json_unescape(token, text) : token->length;
  return (tm_string){ tm_arena_string(&parser->index->arena, text, length), length };
}

/* ------------------------------------------------------------------------------------------------------- shards ---- */

/* What is wrong with the path of a shard; NULL: nothing. */
static const char *refuse_path(tm_string path) {
  if (path.length == 0) return "is empty";
  if (memchr(path.data, 0, (size_t)path.length) != NULL) return "has a NUL character in it, which no file name can have";
  return tm_path_goes_inwards(path.data) ? NULL : "leads out of the folder of the index";
}

/* The number of the shard of that name, new or not. */
static tm_status intern_shard(index_parser *parser, tm_string tensor, const tm_json_token *token, uint32_t *out_shard) {
  tm_shard_index *index = parser->index;
  tm_string name = { token->text, token->length };
  if (!token->has_escapes && tm_name_table_find(&index->shard_names, index->shards, sizeof *index->shards, name, out_shard))
    return TM_OK;
  name = copy_meaning(parser, token);
  if (name.data == NULL) return fail_memory(parser);
  const char *refusal = refuse_path(name);
  if (refusal != NULL)
    return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\": the file name \"%s\" at offset %" PRIu64 " %s",
                   parser->label, tm_show_name(tensor).text, tm_show_name(name).text, token->offset, refusal);
  tm_shard *shards = tm_make_room(index->memory, index->shards, index->shard_count, &index->shard_capacity, sizeof *shards);
  if (shards == NULL) return fail_memory(parser);
  index->shards = shards;
  shards[index->shard_count].file_name = name;
  if (!tm_name_table_add(&index->shard_names, shards, sizeof *shards, (uint32_t)index->shard_count, out_shard))
    return fail_memory(parser);
  if (*out_shard == index->shard_count) index->shard_count++;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------ entries ---- */

static tm_status add_entry(index_parser *parser, tm_string name, const tm_json_token *file) {
  tm_shard_index *index = parser->index;
  uint32_t shard, existing;
  if (file->kind != TM_JSON_STRING) {
    if (!tm_json_skip(&parser->json, file)) return fail_token(parser, file, "a value");
    return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\": at offset %" PRIu64 ": expected a file name",
                   parser->label, tm_show_name(name).text, file->offset);
  }
  if (index->entry_count > TM_NAME_TABLE_LARGEST_INDEX) return fail_token(parser, file, "fewer tensors");
  TM_TRY(intern_shard(parser, name, file, &shard));
  tm_shard_entry *entries = tm_make_room(index->memory, index->entries, index->entry_count, &index->entry_capacity, sizeof *entries);
  if (entries == NULL) return fail_memory(parser);
  index->entries = entries;
  const uint32_t at = (uint32_t)index->entry_count;
  entries[at] = (tm_shard_entry){ .name = name, .shard = shard };
  if (!tm_name_table_add(&index->entry_names, entries, sizeof *entries, at, &existing)) return fail_memory(parser);
  if (existing != at)
    return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: tensor \"%s\" occurs twice in weight_map", parser->label,
                   tm_show_name(entries[at].name).text);
  index->entry_count++;
  return TM_OK;
}

static tm_status keep_flaw(index_parser *parser, tm_string name, const char *text) {
  tm_shard_index *index = parser->index;
  tm_shard_flaw *flaws = tm_make_room(index->memory, index->flaws, index->flaw_count, &index->flaw_capacity, sizeof *flaws);
  if (flaws == NULL) return fail_memory(parser);
  index->flaws = flaws;
  const uint32_t at = (uint32_t)index->flaw_count;
  uint32_t existing;
  flaws[at] = (tm_shard_flaw){ .name = name, .text = tm_arena_string(&index->arena, text, strlen(text)) };
  if (flaws[at].text == NULL || !tm_name_table_add(&index->flaw_names, flaws, sizeof *flaws, at, &existing))
    return fail_memory(parser);
  index->flaw_count++;
  return TM_OK;
}

/* What is wrong with an entry alone costs the others nothing; where the text is no JSON nobody knows what comes after. */
static tm_status add_entry_or_flaw(index_parser *parser, tm_string name, const tm_json_token *file) {
  tm_error why = TM_ERROR_INIT, *error = parser->error;
  parser->error = &why;
  const tm_status status = add_entry(parser, name, file);
  parser->error = error;
  if (status == TM_OK) return TM_OK;
  const bool is_own = status == TM_ERROR_CORRUPT && parser->json.error_text == NULL;
  return is_own ? keep_flaw(parser, name, why.text) : tm_fail(error, status, "%s", why.text);
}

static tm_status read_entry(index_parser *parser, const tm_json_token *key) {
  tm_json_token file;
  const tm_string name = copy_meaning(parser, key);
  if (name.data == NULL) return fail_memory(parser);
  (void)tm_json_next(&parser->json, &file);
  return parser->keeps_flaws ? add_entry_or_flaw(parser, name, &file) : add_entry(parser, name, &file);
}

static tm_status read_weight_map(index_parser *parser, const tm_json_token *first) {
  tm_json_token key;
  if (first->kind != TM_JSON_OBJECT_BEGIN) return fail_token(parser, first, "an object as weight_map");
  while (tm_json_next(&parser->json, &key) == TM_JSON_KEY) TM_TRY(read_entry(parser, &key));
  return key.kind == TM_JSON_OBJECT_END ? TM_OK : fail_token(parser, &key, "}");
}

/* Of "metadata" only total_size matters here; anything else in it is passed over. */
static tm_status read_index_metadata(index_parser *parser, const tm_json_token *first) {
  tm_json_token key, value;
  if (first->kind != TM_JSON_OBJECT_BEGIN)
    return tm_json_skip(&parser->json, first) ? TM_OK : fail_token(parser, first, "a value");
  while (tm_json_next(&parser->json, &key) == TM_JSON_KEY) {
    (void)tm_json_next(&parser->json, &value);
    if (tm_json_is(&key, "total_size")) {
      parser->index->has_total_bytes = value.kind == TM_JSON_NUMBER && value.is_integer;
      parser->index->has_odd_total = !parser->index->has_total_bytes;
      parser->index->total_bytes = parser->index->has_total_bytes ? value.integer : 0;
    }
    if (!tm_json_skip(&parser->json, &value)) return fail_token(parser, &value, "a value");
  }
  return key.kind == TM_JSON_OBJECT_END ? TM_OK : fail_token(parser, &key, "}");
}

static tm_status parse(index_parser *parser) {
  tm_json_token key, value;
  bool has_map = false;
  if (tm_json_next(&parser->json, &value) != TM_JSON_OBJECT_BEGIN) return fail_token(parser, &value, "an object");
  while (tm_json_next(&parser->json, &key) == TM_JSON_KEY) {
    (void)tm_json_next(&parser->json, &value);
    if (tm_json_is(&key, "weight_map")) {
      if (has_map) return fail_token(parser, &key, "weight_map once");
      has_map = true;
      TM_TRY(read_weight_map(parser, &value));
    } else if (tm_json_is(&key, "metadata")) {
      TM_TRY(read_index_metadata(parser, &value));
    } else if (!tm_json_skip(&parser->json, &value)) {
      return fail_token(parser, &value, "a value");
    }
  }
  if (key.kind != TM_JSON_OBJECT_END || tm_json_next(&parser->json, &key) != TM_JSON_END)
    return fail_token(parser, &key, "the end");
  if (has_map) return TM_OK;
  return tm_fail(parser->error, TM_ERROR_CORRUPT, "%s: is not the index of a safetensors set: it has no \"weight_map\"",
                 parser->label);
}

static tm_status init(tm_shard_index *index, tm_memory *memory, index_parser parser, uint64_t length) {
  *index = (tm_shard_index){ .memory = memory };
  tm_arena_init(&index->arena, memory);
  tm_name_table_init(&index->entry_names, memory);
  tm_name_table_init(&index->shard_names, memory);
  tm_name_table_init(&index->flaw_names, memory);
  tm_json_init(&parser.json, parser.text, length);
  return parse(&parser);
}

tm_status tm_shard_index_init(tm_shard_index *index, tm_memory *memory, const char *label, char *text, uint64_t length,
                              tm_error *error) {
  return init(index, memory, (index_parser){ .index = index, .label = label, .text = text, .error = error }, length);
}

tm_status tm_shard_index_init_flawed(tm_shard_index *index, tm_memory *memory, const char *label, char *text, uint64_t length,
                                     tm_error *error) {
  const index_parser parser = { .index = index, .label = label, .text = text, .error = error, .keeps_flaws = true };
  return init(index, memory, parser, length);
}

void tm_shard_index_deinit(tm_shard_index *index) {
  tm_memory_free(index->memory, index->entries, index->entry_capacity * sizeof *index->entries);
  tm_memory_free(index->memory, index->shards, index->shard_capacity * sizeof *index->shards);
  tm_memory_free(index->memory, index->flaws, index->flaw_capacity * sizeof *index->flaws);
  tm_name_table_deinit(&index->entry_names);
  tm_name_table_deinit(&index->flaw_names);
  tm_name_table_deinit(&index->shard_names);
  tm_arena_deinit(&index->arena);
}
