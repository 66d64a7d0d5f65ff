/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast, quantize, dequantize: one rounding from the decoded value to the output's format.  Float to integer truncates
 * towards zero and saturates; to bool everything but zero is true, NaN included; a NaN that stays a float keeps its
 * sign and upper payload and becomes quiet.  A cast to the same format keeps the bits.
 */
#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

#define TM_SET_CAST (TM_SET_FLOAT | TM_SET_INTEGER | TM_SET_BOOL | TM_SET_INTEGER_4)

static void run_from_float(tm_walk *walk, uint64_t count) {
  double values[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load(&walk->streams[0], walk->addresses[0], n, values);
    for (uint64_t i = 0; i < n; i++) values[i] = tm_f64_quiet(values[i]);
    tm_stream_store(&walk->streams[1], values, n, walk->addresses[1]);
    tm_walk_advance(walk, n);
  }
}

static void run_between_integers(tm_walk *walk, uint64_t count) {
  int64_t values[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, values);
    tm_stream_store_integer(&walk->streams[1], values, n, walk->addresses[1]);
    tm_walk_advance(walk, n);
  }
}

/* Through f64 a wide integer would be rounded twice, so it goes there rounded to odd; an f64 target takes it directly.
 */
static void run_integer_to_float(bool without_sign, tm_walk *walk, uint64_t count) {
  int64_t integers[TM_RUN];
  double values[TM_RUN];
  for (uint64_t n; count > 0; count -= n) {
    n = tm_walk_line(walk, tm_min_u64(count, TM_RUN));
    tm_stream_load_integer(&walk->streams[0], walk->addresses[0], n, integers);
    for (uint64_t i = 0; i < n; i++) values[i] = tm_f64_to_odd(integers[i], without_sign);
    tm_stream_store(&walk->streams[1], values, n, walk->addresses[1]);
    tm_walk_advance(walk, n);
  }
}

static bool is_exact_in_f64(const tm_format_info *from, uint32_t to) {
  return from->block_bytes < 8 || to == TM_FORMAT_F64;
}

static void run_cast(const tm_format_info *from, const tm_format_info *to, tm_walk *walk, uint64_t count) {
  const bool to_float = to->kind == TM_KIND_FLOAT;
  if (from->format == to->format) tm_walk_copy(walk, count);
  else if (from->kind == TM_KIND_FLOAT) run_from_float(walk, count);
  else if (!to_float) run_between_integers(walk, count);
  else if (is_exact_in_f64(from, to->format)) run_from_float(walk, count);
  else run_integer_to_float(from->kind == TM_KIND_UNSIGNED, walk, count);
}

static void cast_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_cast_attributes *attributes = operation->attributes;
  const tm_operand *y = tm_output_of(operation);
  const uint64_t unit = tm_unit_elements(operation);
  tm_walk walk = tm_walk_begin(y, operation->operands, pointers, 2, begin * unit);
  tm_codec saturating = *walk.streams[1].codec;
  saturating.encode = saturating.encode_saturating;
  if (attributes->saturate) walk.streams[1].codec = &saturating;
  run_cast(tm_format_find(operation->operands[0].format), tm_format_find(y->format), &walk, (end - begin) * unit);
}

static void block_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const uint64_t unit = tm_unit_elements(operation);
  tm_walk walk = tm_walk_begin(tm_output_of(operation), operation->operands, pointers, 2, begin * unit);
  run_from_float(&walk, (end - begin) * unit);
}

static tm_status require_target(const tm_operation *operation, uint32_t set, const tm_operand *output, tm_error *error) {
  char expected[TM_SET_NAME_BYTES];
  if (output->format != TM_FORMAT_NONE) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: the format of y must be given: %s", tm_op_name(operation),
                 tm_format_set_name(set, expected));
}

static tm_status cast_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_cast_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_switch(operation, "saturate", attributes->saturate, error));
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  TM_TRY(tm_require_format(operation, 0, TM_SET_CAST, error));
  TM_TRY(require_target(operation, TM_SET_CAST, out_outputs, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_NONE, TM_SET_CAST, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

static bool is_f8(uint32_t format) { return format == TM_FORMAT_F8_E4M3FN || format == TM_FORMAT_F8_E5M2; }

static tm_status quantize_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_format(operation, 0, TM_SET_FLOAT, error));
  if (is_f8(x->format))
    return tm_fail(error, TM_ERROR_ARGUMENT, "quantize: x has format %s, expected f64, f32, f16 or bf16; cast it first",
                   tm_format_title(x->format));
  TM_TRY(require_target(operation, TM_SET_BLOCK, out_outputs, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_NONE, TM_SET_BLOCK, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

static tm_status dequantize_infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_operand *x = &operation->operands[0];
  TM_TRY(tm_require_format(operation, 0, TM_SET_ANY_BLOCK, error));
  TM_TRY(tm_choose_format(operation, TM_FORMAT_F32, TM_SET_FLOAT, out_outputs, error));
  return tm_make_output(operation, x->rank, x->dims, out_outputs, error);
}

#define CAST_ROW(id, op_name, text, infer_fn, reference_fn, bytes)                                                \
  {                                                                                                               \
    .op = TM_OP_##id, .version = 1, .name = op_name, .summary = text, .op_class = TM_CLASS_CAST, .input_min = 1,  \
    .input_max = 1, .output_count = 1, .attribute_bytes = bytes, .default_numerics = TM_NUMERICS_N0,              \
    .combine = TM_COMBINE_CONCATENATE, .infer = infer_fn, .check = tm_check_outputs, .work = tm_work_elementwise, \
    .splittable = tm_splittable_elementwise, .units = tm_units_elementwise, .reference = reference_fn,            \
    .input_names = { "x" }, .merged_operands = 0x3,                                                               \
  }

const tm_op_row tm_op_rows_cast[] = {
    CAST_ROW(CAST, "cast", "x in another plain or 4-bit format", cast_infer, cast_reference,
             sizeof(tm_cast_attributes)),
    CAST_ROW(QUANTIZE, "quantize", "x in a block format, by the family's reference encoder", quantize_infer,
             block_reference, 0),
    CAST_ROW(DEQUANTIZE, "dequantize", "the values of a block format as floats; y: f32 or any float", dequantize_infer,
             block_reference, 0),
};
TM_OP_ROWS_COUNT(cast);
