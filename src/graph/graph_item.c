/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_item.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* ---- what is wrong, and where ---- */

uint64_t tm_text_line(const char *text, uint64_t offset) {
  uint64_t line = 1;
  for (uint64_t i = 0; i < offset; i++) line += text[i] == '\n';
  return line;
}

static tm_status fail_at(const tm_json_pull *json, uint64_t offset, const char *what, const char *found, tm_error *error) {
  return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: %s%s", (unsigned long long)tm_text_line(json->text, offset), what, found);
}

static void show_token(const tm_json_token *token, char *text, uint64_t capacity) {
  static const char *const kinds[] = { "the end of the text", "an error", "an object", "the end of an object", "an array",
                                       "the end of an array", "", "", "", "true", "false", "null" };
  if (token->kind == TM_JSON_KEY || token->kind == TM_JSON_STRING || token->kind == TM_JSON_NUMBER)
    tm_text_escape(token->text, token->length, text, capacity);
  else snprintf(text, capacity, "%s", kinds[token->kind]);
}

tm_status tm_graph_unexpected(const tm_json_pull *json, const tm_json_token *found, const char *expected, tm_error *error) {
  if (json->error_text != NULL)
    return fail_at(json, json->error_offset, "no JSON: ", json->error_text, error);
  char shown[80];
  show_token(found, shown, sizeof shown);
  return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: found %s, expected %s",
                 (unsigned long long)tm_text_line(json->text, found->offset),
                 shown, expected);
}

/* ---- single values ---- */

static tm_status read_integer(tm_json_pull *json, uint64_t most, const char *expected, uint64_t *out_value, tm_error *error) {
  tm_json_token token;
  if (tm_json_next(json, &token) != TM_JSON_NUMBER || !token.is_integer || token.integer > most)
    return tm_graph_unexpected(json, &token, expected, error);
  *out_value = token.integer;
  return TM_OK;
}

static tm_status read_number(tm_json_pull *json, uint32_t *out_value, tm_error *error) {
  uint64_t value = 0;
  TM_TRY(read_integer(json, TM_GRAPH_NONE - 1, "a number of a value, or a version", &value, error));
  *out_value = (uint32_t)value;
  return TM_OK;
}

/* Clean text (tm_text_is_clean), NUL-terminated.  An escape takes at most six bytes for one. */
static tm_status read_text(tm_json_pull *json, const char *expected, char *out_text, uint64_t capacity, tm_error *error) {
  tm_json_token token;
  char meaning[6 * TM_GRAPH_LONGEST_NAME];
  if (tm_json_next(json, &token) != TM_JSON_STRING || token.length > sizeof meaning)
    return tm_graph_unexpected(json, &token, expected, error);
  const uint64_t length = tm_json_unescape(&token, meaning);
  if (length >= capacity || !tm_text_is_clean(meaning, length)) return tm_graph_unexpected(json, &token, expected, error);
  memcpy(out_text, meaning, length);
  out_text[length] = '\0';
  return TM_OK;
}

static int digit_of(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tm_status read_hex(tm_json_pull *json, const char *expected, void *out_bytes, uint64_t least, uint64_t most,
                          uint32_t *out_count, tm_error *error) {
  tm_json_token token;
  if (tm_json_next(json, &token) != TM_JSON_STRING || token.length % 2 != 0 || token.length / 2 > most || token.length / 2 < least)
    return tm_graph_unexpected(json, &token, expected, error);
  uint8_t *bytes = out_bytes;
  for (uint64_t i = 0; i < token.length / 2; i++) {
    const int high = digit_of(token.text[2 * i]), low = digit_of(token.text[2 * i + 1]);
    if (high < 0 || low < 0) return tm_graph_unexpected(json, &token, expected, error);
    bytes[i] = (uint8_t)(high * 16 + low);
  }
  *out_count = (uint32_t)(token.length / 2);
  return TM_OK;
}

/* ---- lists ---- */

static tm_status begin_array(tm_json_pull *json, const char *expected, tm_error *error) {
  tm_json_token token;
  if (tm_json_next(json, &token) == TM_JSON_ARRAY_BEGIN) return TM_OK;
  return tm_graph_unexpected(json, &token, expected, error);
}

static tm_status read_values(tm_json_pull *json, uint32_t *out_values, uint32_t *out_count, tm_error *error) {
  static const char expected[] = "an array of at most 16 numbers of values";
  TM_TRY(begin_array(json, expected, error));
  tm_json_token token;
  for (*out_count = 0; tm_json_next(json, &token) != TM_JSON_ARRAY_END; (*out_count)++) {
    if (token.kind != TM_JSON_NUMBER || !token.is_integer || token.integer >= TM_GRAPH_NONE || *out_count == TM_MAX_OPERANDS)
      return tm_graph_unexpected(json, &token, expected, error);
    out_values[*out_count] = (uint32_t)token.integer;
  }
  return TM_OK;
}

static tm_status read_dims(tm_json_pull *json, tm_operand *operand, tm_error *error) {
  static const char expected[] = "an array of at most 8 extents";
  TM_TRY(begin_array(json, expected, error));
  tm_json_token token;
  for (operand->rank = 0; tm_json_next(json, &token) != TM_JSON_ARRAY_END; operand->rank++) {
    if (token.kind != TM_JSON_NUMBER || !token.is_integer || operand->rank == TM_MAX_RANK)
      return tm_graph_unexpected(json, &token, expected, error);
    operand->dims[operand->rank] = token.integer;
  }
  return TM_OK;
}

/* Digits, maybe behind a minus. */
static bool stride_of(const tm_json_token *token, int64_t *out_stride) {
  const bool is_negative = token->length > 1 && token->text[0] == '-';
  uint64_t magnitude = 0;
  for (uint64_t i = is_negative ? 1 : 0; i < token->length; i++) {
    if (token->text[i] < '0' || token->text[i] > '9') return false;
    if (magnitude > (uint64_t)INT64_MAX / 10) return false;
    magnitude = magnitude * 10 + (uint64_t)(token->text[i] - '0');
  }
  if (magnitude > (uint64_t)INT64_MAX + is_negative) return false;
  *out_stride = (int64_t)(is_negative ? UINT64_C(0) - magnitude : magnitude);
  return true;
}

static tm_status read_strides(tm_json_pull *json, int64_t *out_strides, uint32_t *out_count, tm_error *error) {
  static const char expected[] = "an array of at most 8 strides in bytes";
  TM_TRY(begin_array(json, expected, error));
  tm_json_token token;
  for (*out_count = 0; tm_json_next(json, &token) != TM_JSON_ARRAY_END; (*out_count)++) {
    if (token.kind != TM_JSON_NUMBER || *out_count == TM_MAX_RANK || !stride_of(&token, &out_strides[*out_count]))
      return tm_graph_unexpected(json, &token, expected, error);
  }
  return TM_OK;
}

/* ---- members ---- */

typedef enum member {
  KIND, VALUE, VALUES, NAME, FORMAT, DIMS, STRIDES, DIGEST, OP, VERSION, ATTRIBUTES, INPUTS, RESULTS, OF, OFFSET, STATE,
  MEMBER_COUNT
} member;

#define BIT(m) (UINT32_C(1) << (m))

static const char *const member_names[MEMBER_COUNT] = {
  "kind", "value", "values", "name", "format", "dims", "strides", "sha256", "op", "version", "attributes", "inputs", "results",
  "of", "offset", "state",
};

#define LAYOUT (BIT(FORMAT) | BIT(DIMS))

/* What each kind has: all of `needed`, some of `possible`. */
static const struct { const char *name; uint32_t needed; uint32_t possible; } kinds[TM_ITEM_KIND_COUNT] = {
  [TM_ITEM_INPUT] = { "input", BIT(VALUE) | BIT(NAME) | LAYOUT, BIT(STRIDES) },
  [TM_ITEM_CONSTANT] = { "constant", BIT(VALUE) | BIT(NAME) | LAYOUT, BIT(STRIDES) | BIT(DIGEST) },
  [TM_ITEM_STATE] = { "state", BIT(VALUE) | BIT(NAME) | LAYOUT, BIT(STRIDES) },
  [TM_ITEM_VIEW] = { "view", BIT(VALUE) | BIT(OF) | BIT(OFFSET) | LAYOUT, BIT(STRIDES) },
  [TM_ITEM_NODE] = { "node", BIT(VALUES) | BIT(OP) | BIT(VERSION) | BIT(INPUTS) | BIT(RESULTS), BIT(NAME) | BIT(ATTRIBUTES) },
  [TM_ITEM_CARRY] = { "carry", BIT(VALUE) | BIT(STATE), 0 },
  [TM_ITEM_OUTPUT] = { "output", BIT(VALUE) | BIT(NAME), 0 },
};

/* A layout on its way: strides come before or after dims. */
typedef struct layout {
  uint32_t has;
  uint32_t stride_count;
  tm_operand operand;
  int64_t  strides[TM_MAX_RANK];
} layout;

static tm_status read_format(tm_json_pull *json, uint32_t *out_format, tm_error *error) {
  static const char expected[] = "the name of a format that this library knows";
  tm_json_token token;
  if (tm_json_next(json, &token) != TM_JSON_STRING) return tm_graph_unexpected(json, &token, expected, error);
  const tm_format_info *info = tm_format_by_name(token.text, token.length);
  if (info == NULL) return tm_graph_unexpected(json, &token, expected, error);
  *out_format = info->format;
  return TM_OK;
}

static tm_status read_layout_member(tm_json_pull *json, member which, layout *out_layout, tm_error *error) {
  out_layout->has |= BIT(which);
  switch (which) {
    case FORMAT: return read_format(json, &out_layout->operand.format, error);
    case DIMS: return read_dims(json, &out_layout->operand, error);
    default: return read_strides(json, out_layout->strides, &out_layout->stride_count, error);
  }
}

static tm_status make_layout(const layout *given, tm_operand *out_operand, tm_error *error) {
  TM_TRY(tm_operand_contiguous(given->operand.format, given->operand.rank, given->operand.dims, out_operand, error));
  if ((given->has & BIT(STRIDES)) == 0) return TM_OK;
  if (given->stride_count != given->operand.rank)
    return tm_fail(error, TM_ERROR_CORRUPT, "%u strides for %u axes", given->stride_count, given->operand.rank);
  memcpy(out_operand->strides_bytes, given->strides, sizeof given->strides);
  return tm_operand_derive(out_operand, error);
}

static tm_status finish_layout(const tm_json_pull *json, uint64_t offset, const layout *given, tm_operand *out_operand,
                               tm_error *error) {
  const tm_status status = make_layout(given, out_operand, error);
  if (status != TM_OK) tm_error_prefix(error, "line %llu", (unsigned long long)tm_text_line(json->text, offset));
  return status;
}

static tm_status find_member(const tm_json_pull *json, const tm_json_token *key, uint32_t *has, member *out_member,
                             tm_error *error) {
  for (uint32_t m = 0; m < MEMBER_COUNT; m++) {
    if (!tm_json_is(key, member_names[m])) continue;
    if ((*has & BIT(m)) != 0) return tm_graph_unexpected(json, key, "every member once", error);
    *has |= BIT(m);
    *out_member = (member)m;
    return TM_OK;
  }
  return tm_graph_unexpected(json, key, "a member that this library knows", error);
}

/* A result: a dense layout. */
static tm_status read_result(tm_json_pull *json, tm_operand *out_operand, tm_error *error) {
  static const char expected[] = "an object with a format and dims";
  layout given = { 0 };
  tm_json_token token;
  while (tm_json_next(json, &token) == TM_JSON_KEY) {
    member which = KIND;
    uint32_t has = given.has;
    TM_TRY(find_member(json, &token, &has, &which, error));
    if (which != FORMAT && which != DIMS) return tm_graph_unexpected(json, &token, expected, error);
    TM_TRY(read_layout_member(json, which, &given, error));
  }
  if (token.kind != TM_JSON_OBJECT_END || given.has != LAYOUT) return tm_graph_unexpected(json, &token, expected, error);
  return finish_layout(json, token.offset, &given, out_operand, error);
}

static tm_status read_results(tm_json_pull *json, tm_graph_item *item, tm_error *error) {
  static const char expected[] = "an array of at most 16 layouts";
  TM_TRY(begin_array(json, expected, error));
  tm_json_token token;
  for (item->result_count = 0; tm_json_next(json, &token) != TM_JSON_ARRAY_END; item->result_count++) {
    if (token.kind != TM_JSON_OBJECT_BEGIN || item->result_count == TM_MAX_OPERANDS)
      return tm_graph_unexpected(json, &token, expected, error);
    TM_TRY(read_result(json, &item->results[item->result_count], error));
  }
  return TM_OK;
}

static tm_status read_kind(tm_json_pull *json, tm_graph_item *item, tm_error *error) {
  tm_json_token token;
  tm_json_next(json, &token);
  for (uint32_t k = 0; k < TM_ITEM_KIND_COUNT && token.kind == TM_JSON_STRING; k++) {
    if (!tm_json_is(&token, kinds[k].name)) continue;
    item->kind = (tm_item_kind)k;
    return TM_OK;
  }
  return tm_graph_unexpected(json, &token, "a kind: input, constant, state, view, node, carry or output", error);
}

static tm_status read_member(tm_json_pull *json, member which, tm_graph_item *item, layout *given, tm_error *error) {
  uint32_t count = 0;
  switch (which) {
    case KIND: return read_kind(json, item, error);
    case VALUE: return read_number(json, &item->value, error);
    case VALUES: return read_values(json, item->values, &item->value_count, error);
    case NAME: return read_text(json, "a name: at most 255 bytes without control characters", item->name, sizeof item->name, error);
    case DIGEST: return read_hex(json, "64 hexadecimal digits", item->digest, TM_SHA256_BYTES, TM_SHA256_BYTES, &count, error);
    case OP: return read_text(json, "the name of an operation", item->op_name, sizeof item->op_name, error);
    case VERSION: return read_number(json, &item->version, error);
    case ATTRIBUTES:
      return read_hex(json, "at most 64 bytes, two hexadecimal digits each", item->attributes, 0, TM_ITEM_ATTRIBUTE_BYTES,
                      &item->attribute_bytes, error);
    case INPUTS: return read_values(json, item->inputs, &item->input_count, error);
    case RESULTS: return read_results(json, item, error);
    case OF: return read_number(json, &item->of, error);
    case OFFSET: return read_integer(json, UINT64_MAX, "an offset in bytes", &item->offset_bytes, error);
    case STATE: return read_number(json, &item->state, error);
    default: return read_layout_member(json, which, given, error);
  }
}

/* ---- whole items ---- */

void tm_graph_item_label(const tm_graph_item *item, char *text, uint64_t capacity) {
  if (item->name[0] != '\0') {
    snprintf(text, capacity, "%s '%s'", kinds[item->kind].name, item->name);
  } else if (item->kind == TM_ITEM_NODE) {
    snprintf(text, capacity, "node (%s)", item->op_name);
  } else {
    snprintf(text, capacity, "%s %u", kinds[item->kind].name, item->kind == TM_ITEM_CARRY ? item->state : item->value);
  }
}

/* Of a set of members one is named. */
static tm_status fail_members(const tm_json_pull *json, const tm_graph_item *item, uint32_t members, const char *what,
                              tm_error *error) {
  uint32_t m = 0;
  while ((members & BIT(m)) == 0) m++;
  return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: %s %s '%s'", (unsigned long long)tm_text_line(json->text, item->offset),
                 kinds[item->kind].name, what, member_names[m]);
}

static tm_status check_members(const tm_json_pull *json, const tm_graph_item *item, tm_error *error) {
  if ((item->has & BIT(KIND)) == 0) return fail_at(json, item->offset, "an item without", " a kind", error);
  const uint32_t has = item->has & ~BIT(KIND);
  const uint32_t needed = kinds[item->kind].needed;
  if ((needed & ~has) != 0) return fail_members(json, item, needed & ~has, "without", error);
  const uint32_t strange = has & ~(needed | kinds[item->kind].possible);
  if (strange != 0) return fail_members(json, item, strange, "with", error);
  return TM_OK;
}

tm_status tm_graph_item_read(tm_json_pull *json, const tm_json_token *first, tm_graph_item *out_item, tm_error *error) {
  if (first->kind != TM_JSON_OBJECT_BEGIN) return tm_graph_unexpected(json, first, "an item: an object with a kind", error);
  memset(out_item, 0, sizeof *out_item);
  out_item->offset = first->offset;
  layout given = { 0 };
  tm_json_token token;
  while (tm_json_next(json, &token) == TM_JSON_KEY) {
    member which = KIND;
    TM_TRY(find_member(json, &token, &out_item->has, &which, error));
    TM_TRY(read_member(json, which, out_item, &given, error));
  }
  if (token.kind != TM_JSON_OBJECT_END) return tm_graph_unexpected(json, &token, "a member", error);
  TM_TRY(check_members(json, out_item, error));
  out_item->has_digest = (out_item->has & BIT(DIGEST)) != 0;
  if ((out_item->has & BIT(OP)) != 0) out_item->row = tm_op_by_name(out_item->op_name, strlen(out_item->op_name));
  return (out_item->has & BIT(FORMAT)) == 0 ? TM_OK : finish_layout(json, out_item->offset, &given, &out_item->operand, error);
}
