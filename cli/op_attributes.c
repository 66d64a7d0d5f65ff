/* SPDX-License-Identifier: Apache-2.0 */
#include "op_attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "flag.h"

typedef enum attribute_kind {
  KIND_SWITCH,
  KIND_AXIS,
  KIND_AXES,
  KIND_PREDICATE,
  KIND_PERMUTATION,
  KIND_COUNT,
  KIND_LAYOUT,
  KIND_REAL,
  KIND_FREE_REAL                /* 0, the usual choice, where none is given */
} attribute_kind;

typedef struct attribute_row {
  uint32_t       op;
  attribute_kind kind;
  const char    *key;
  size_t         offset;
  bool           is_required;
} attribute_row;

#define ROW(op, kind, type, member, required) { TM_OP_##op, KIND_##kind, #member, offsetof(type, member), required }
#define REDUCTION(op) \
  ROW(op, AXES, tm_reduce_attributes, axes, true), ROW(op, SWITCH, tm_reduce_attributes, keep_dims, false)

static const attribute_row rows[] = {
  ROW(TRANSPOSE, PERMUTATION, tm_transpose_attributes, permutation, true),
  ROW(GATHER, AXIS, tm_axis_attributes, axis, false),
  ROW(SOFTMAX, AXIS, tm_axis_attributes, axis, false),
  ROW(CAST, SWITCH, tm_cast_attributes, saturate, false),
  ROW(COMPARE, PREDICATE, tm_compare_attributes, predicate, false),
  ROW(GELU, SWITCH, tm_gelu_attributes, tanh_form, false),
  REDUCTION(SUM), REDUCTION(MEAN), REDUCTION(MIN), REDUCTION(MAX), REDUCTION(ARGMAX),
  ROW(MATMUL, SWITCH, tm_matmul_attributes, transpose_a, false),
  ROW(MATMUL, SWITCH, tm_matmul_attributes, transpose_b, false),
  ROW(MATMUL_SCALED, SWITCH, tm_matmul_scaled_attributes, transpose_a, false),
  ROW(MATMUL_SCALED, SWITCH, tm_matmul_scaled_attributes, transpose_b, false),
  ROW(MATMUL_SCALED, SWITCH, tm_matmul_scaled_attributes, zero_points, false),
  ROW(LAYER_NORM, REAL, tm_norm_attributes, epsilon, false),
  ROW(RMS_NORM, REAL, tm_norm_attributes, epsilon, false),
  ROW(ROPE, FREE_REAL, tm_rope_attributes, theta, false),
  ROW(ROPE, FREE_REAL, tm_rope_attributes, scale, false),
  ROW(ROPE, COUNT, tm_rope_attributes, rotary_dims, false),
  ROW(ROPE, LAYOUT, tm_rope_attributes, layout, false),
  ROW(UPDATE, AXIS, tm_axis_attributes, axis, false),
  ROW(ATTENTION, FREE_REAL, tm_attention_attributes, scale, false),
  ROW(ATTENTION, SWITCH, tm_attention_attributes, causal, false),
  ROW(TIES_SUM, SWITCH, tm_ties_attributes, sum, false),
  ROW(MAGNITUDES, SWITCH, tm_magnitudes_attributes, within, false),
  ROW(MAGNITUDES, COUNT, tm_magnitudes_attributes, upper, false),
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

#define MOST_CHOICES 6
static const char *const predicates[MOST_CHOICES] = { "equal", "not_equal", "less", "less_equal", "greater", "greater_equal" };
static const char *const layouts[MOST_CHOICES] = { [TM_ROPE_PAIRS] = "pairs", [TM_ROPE_HALVES] = "halves" };

#define USUAL_EPSILON 1e-5

static void put_u32(tm_op_attributes *attributes, const attribute_row *row, uint32_t value) {
  memcpy(attributes->value.bytes + row->offset, &value, sizeof value);
}

static uint32_t get_u32(const tm_op_attributes *attributes, const attribute_row *row) {
  uint32_t value = 0;
  memcpy(&value, attributes->value.bytes + row->offset, sizeof value);
  return value;
}

/* The name of a choice; NULL if there is none of this number. */
static const char *choice_name(const attribute_row *row, uint32_t choice) {
  const char *const *names = row->kind == KIND_LAYOUT ? layouts : predicates;
  return choice < MOST_CHOICES ? names[choice] : NULL;
}

static void put_real(tm_op_attributes *attributes, const attribute_row *row, double value) {
  memcpy(attributes->value.bytes + row->offset, &value, sizeof value);
}

static double get_real(const tm_op_attributes *attributes, const attribute_row *row) {
  double value = 0;
  memcpy(&value, attributes->value.bytes + row->offset, sizeof value);
  return value;
}

void tm_op_attributes_init(tm_op_attributes *attributes, uint32_t op, uint32_t rank) {
  memset(attributes, 0, sizeof *attributes);
  attributes->op = op;
  attributes->rank = rank;
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].op == op && rows[i].kind == KIND_REAL) put_real(attributes, &rows[i], USUAL_EPSILON);
}

/* One axis at the start of `text`; negative ones count from the end. */
static bool parse_axis(const char *text, uint32_t rank, uint32_t *out_axis, const char **out_end) {
  char      *end = NULL;
  const long axis = strtol(text, &end, 10);
  *out_end = end;
  if (end == text || axis < -(long)rank || axis >= (long)rank) return false;
  *out_axis = (uint32_t)(axis < 0 ? axis + (long)rank : axis);
  return true;
}

/* "0,2,1"; at most TM_MAX_RANK of them. */
static bool parse_axes(const char *text, uint32_t rank, uint32_t *out_axes, uint32_t *out_count) {
  *out_count = 0;
  for (;;) {
    if (*out_count == TM_MAX_RANK || !parse_axis(text, rank, &out_axes[*out_count], &text)) return false;
    ++*out_count;
    if (*text == '\0') return true;
    if (*text++ != ',') return false;
  }
}

static bool set_axes(tm_op_attributes *attributes, const attribute_row *row, const char *value) {
  uint32_t axes[TM_MAX_RANK], count = 0, mask = 0;
  if (!parse_axes(value, attributes->rank, axes, &count)) return false;
  for (uint32_t i = 0; i < count; i++) mask |= 1u << axes[i];
  put_u32(attributes, row, mask);
  return true;
}

static bool set_permutation(tm_op_attributes *attributes, const attribute_row *row, const char *value) {
  uint32_t axes[TM_MAX_RANK], count = 0;
  if (!parse_axes(value, attributes->rank, axes, &count) || count != attributes->rank) return false;
  for (uint32_t i = 0; i < count; i++) attributes->value.bytes[row->offset + i] = (uint8_t)axes[i];
  return true;
}

static bool set_choice(tm_op_attributes *attributes, const attribute_row *row, const char *value) {
  for (uint32_t i = 0; choice_name(row, i) != NULL; i++) {
    if (strcmp(choice_name(row, i), value) != 0) continue;
    put_u32(attributes, row, i);
    return true;
  }
  return false;
}

static bool set_count(tm_op_attributes *attributes, const attribute_row *row, const char *value) {
  char      *end = NULL;
  const long count = strtol(value, &end, 10);
  if (end == value || *end != '\0' || count < 0 || count > INT32_MAX) return false;
  put_u32(attributes, row, (uint32_t)count);
  return true;
}

static bool set_value(tm_op_attributes *attributes, const attribute_row *row, const char *value) {
  bool        on = false;
  uint32_t    axis = 0;
  const char *end = NULL;
  char       *real_end = NULL;
  switch (row->kind) {
    case KIND_SWITCH:
      if (!tm_switch_parse(value, &on)) return false;
      put_u32(attributes, row, on);
      return true;
    case KIND_AXIS:
      if (!parse_axis(value, attributes->rank, &axis, &end) || *end != '\0') return false;
      put_u32(attributes, row, axis);
      return true;
    case KIND_AXES: return set_axes(attributes, row, value);
    case KIND_PERMUTATION: return set_permutation(attributes, row, value);
    case KIND_COUNT: return set_count(attributes, row, value);
    case KIND_LAYOUT:
    case KIND_PREDICATE: return set_choice(attributes, row, value);
    case KIND_REAL:
    case KIND_FREE_REAL:
      put_real(attributes, row, strtod(value, &real_end));
      return real_end != value && *real_end == '\0';
  }
  return false;
}

static tm_status set_row(tm_op_attributes *attributes, size_t index, const char *value, tm_error *error) {
  static const char *const wanted[] = { [KIND_SWITCH] = "0 or 1",
                                        [KIND_AXIS] = "an axis of the first operand",
                                        [KIND_AXES] = "axes of the first operand, such as 0,1",
                                        [KIND_PREDICATE] =
                                            "equal, not_equal, less, less_equal, greater or greater_equal",
                                        [KIND_PERMUTATION] = "every axis of the operand once, such as 1,0",
                                        [KIND_COUNT] = "a number of elements",
                                        [KIND_LAYOUT] = "pairs or halves",
                                        [KIND_REAL] = "a number",
                                        [KIND_FREE_REAL] = "a number" };
  if (!set_value(attributes, &rows[index], value))
    return tm_refuse(error, TM_ERROR_ARGUMENT, "attribute %s wants %s, not \"%s\"", rows[index].key,
                     wanted[rows[index].kind], value);
  attributes->is_given |= 1u << index;
  return TM_OK;
}

static tm_status refuse_key(const tm_op_attributes *attributes, const char *key, tm_error *error) {
  tm_refuse(error, TM_ERROR_ARGUMENT, "no attribute \"%s\"; this operation has", key);
  bool any = false;
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (rows[i].op != attributes->op) continue;
    strcat(strcat(error->text, any ? ", " : " "), rows[i].key);
    any = true;
  }
  if (!any) strcat(error->text, " none");
  return TM_ERROR_ARGUMENT;
}

tm_status tm_op_attributes_set(tm_op_attributes *attributes, const char *key, const char *value, tm_error *error) {
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].op == attributes->op && strcmp(rows[i].key, key) == 0) return set_row(attributes, i, value, error);
  return refuse_key(attributes, key, error);
}

tm_status tm_op_attributes_set_axis(tm_op_attributes *attributes, const char *value, tm_error *error) {
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].op == attributes->op && (rows[i].kind == KIND_AXIS || rows[i].kind == KIND_AXES))
      return set_row(attributes, i, value, error);
  return refuse_key(attributes, "axis", error);
}

tm_status tm_op_attributes_check(const tm_op_attributes *attributes, const char *op_name, tm_error *error) {
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].op == attributes->op && rows[i].is_required && (attributes->is_given >> i & 1u) == 0)
      return tm_refuse(error, TM_ERROR_ARGUMENT, "%s needs %s: give --attr %s=LIST%s", op_name, rows[i].key,
                       rows[i].key, rows[i].kind == KIND_AXES ? " or --axis LIST" : "");
  return TM_OK;
}

static void print_list(const tm_op_attributes *attributes, const attribute_row *row, tm_json_writer *json) {
  const uint32_t mask = row->kind == KIND_AXES ? get_u32(attributes, row) : 0;
  tm_json_begin_array(json, row->key, true);
  for (uint32_t i = 0; i < attributes->rank; i++) {
    if (row->kind == KIND_PERMUTATION) tm_json_count(json, NULL, attributes->value.bytes[row->offset + i]);
    if ((mask >> i & 1u) != 0) tm_json_count(json, NULL, i);
  }
  tm_json_end_array(json);
}

void tm_op_attributes_print_json(const tm_op_attributes *attributes, tm_json_writer *json) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    const attribute_row *row = &rows[i];
    if (row->op != attributes->op) continue;
    switch (row->kind) {
      case KIND_SWITCH: tm_json_bool(json, row->key, get_u32(attributes, row) != 0); break;
      case KIND_AXIS: tm_json_count(json, row->key, get_u32(attributes, row)); break;
      case KIND_COUNT: tm_json_count(json, row->key, get_u32(attributes, row)); break;
      case KIND_LAYOUT:
      case KIND_PREDICATE: tm_json_text(json, row->key, choice_name(row, get_u32(attributes, row))); break;
      case KIND_FREE_REAL:
      case KIND_REAL: tm_json_number(json, row->key, get_real(attributes, row)); break;
      default: print_list(attributes, row, json);
    }
  }
}

static void append(char *out, size_t capacity, const char *key, const char *value) {
  const size_t used = strlen(out);
  if (used < capacity) snprintf(out + used, capacity - used, "%s%s=%s", used > 0 ? " " : "", key, value);
}

/* "2,0,1": a permutation whole, of others the axes that are set. */
static void print_axes(const tm_op_attributes *attributes, const attribute_row *row, char *text, size_t capacity) {
  const bool     is_permutation = row->kind == KIND_PERMUTATION;
  const uint32_t mask = row->kind == KIND_AXES ? get_u32(attributes, row) : 0;
  for (uint32_t axis = 0; axis < attributes->rank; axis++) {
    const size_t   used = strlen(text);
    const uint32_t value = is_permutation ? attributes->value.bytes[row->offset + axis] : axis;
    if (is_permutation || (mask >> axis & 1u) != 0)
      snprintf(text + used, capacity - used, "%s%u", used > 0 ? "," : "", value);
  }
}

void tm_op_attributes_print(const tm_op_attributes *attributes, char *out, size_t capacity) {
  out[0] = '\0';
  for (size_t i = 0; i < ROW_COUNT; i++) {
    const attribute_row *row = &rows[i];
    char                 text[64] = "";
    if (row->op != attributes->op) continue;
    switch (row->kind) {
      case KIND_SWITCH:
        if (get_u32(attributes, row) != 0) strcpy(text, "1");
        break;
      case KIND_AXIS: snprintf(text, sizeof text, "%u", get_u32(attributes, row)); break;
      case KIND_COUNT:
        if (get_u32(attributes, row) != 0) snprintf(text, sizeof text, "%u", get_u32(attributes, row));
        break;
      case KIND_FREE_REAL:
        if (get_real(attributes, row) != 0) snprintf(text, sizeof text, "%g", get_real(attributes, row));
        break;
      case KIND_LAYOUT:
      case KIND_PREDICATE: strcpy(text, choice_name(row, get_u32(attributes, row))); break;
      case KIND_REAL: snprintf(text, sizeof text, "%g", get_real(attributes, row)); break;
      default: print_axes(attributes, row, text, sizeof text);
    }
    if (text[0] != '\0') append(out, capacity, row->key, text);
  }
}
