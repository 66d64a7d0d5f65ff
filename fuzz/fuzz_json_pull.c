/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json_pull.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Tokens lie in the text, in order; a string's meaning is never longer than its text; containers are closed as opened. */
static void check_token(const uint8_t *data, size_t size, const tm_json_pull *json, const tm_json_token *token, uint64_t *offset) {
  const char *text = (const char *)data;
  if (token->offset < *offset || token->offset > size || json->depth > TM_JSON_MAX_DEPTH) __builtin_trap();
  *offset = token->offset;
  if (token->kind != TM_JSON_KEY && token->kind != TM_JSON_STRING) return;
  if (token->text < text || token->text + token->length > text + size) __builtin_trap();
  char *meaning = malloc((size_t)token->length + 1);
  if (meaning == NULL) return;
  if (tm_json_unescape(token, meaning) > token->length) __builtin_trap();
  (void)tm_json_is(token, "__metadata__");
  free(meaning);
}

static void pull(const uint8_t *data, size_t size, int skips) {
  tm_json_pull json;
  tm_json_token token;
  uint64_t offset = 0;
  tm_json_init(&json, (const char *)data, size);
  for (uint64_t steps = 0; steps <= 2 * size + 2; steps++) {
    const tm_json_kind kind = tm_json_next(&json, &token);
    if (kind == TM_JSON_ERROR && (json.error_text == NULL || json.error_offset > size)) __builtin_trap();
    if (kind == TM_JSON_ERROR) return;
    if (kind == TM_JSON_END) {
      if (json.depth != 0 || json.position != size) __builtin_trap();
      return;
    }
    check_token(data, size, &json, &token, &offset);
    if (skips && steps % 3 == 2 && token.kind != TM_JSON_OBJECT_END && token.kind != TM_JSON_ARRAY_END &&
        token.kind != TM_JSON_KEY && !tm_json_skip(&json, &token))
      return;
  }
  __builtin_trap();             /* it did not come to an end */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pull(data, size, 0);
  pull(data, size, 1);
  return 0;
}
