/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the one-pass operations: stats, compare_tensors and magnitudes. */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/one_pass.h"
#include "ops/op_check.h"
#include "ops/op_one_pass.h"
#include "tensor/format.h"
#include "tensor/shape.h"
#include "tensormorph/canonical_sum.h"

#define BLOCKS_CAPACITY 256

static uint64_t word_count(uint32_t op) {
  return op == TM_OP_STATS ? TM_STATS_WORDS : op == TM_OP_COMPARE_TENSORS ? TM_COMPARISON_WORDS : TM_MAGNITUDE_BINS;
}

static tm_status check_magnitudes(const tm_operation *operation, tm_error *error) {
  const tm_magnitudes_attributes *attributes = operation->attributes;
  for (uint32_t i = 0; i < operation->input_count; i++)
    TM_TRY(tm_require_format(operation, i, TM_SET_FLOAT | TM_SET_ANY_BLOCK, error));
  TM_TRY(tm_require_switch(operation, "within", attributes->within, error));
  if (attributes->upper < (attributes->within ? TM_MAGNITUDE_BINS : 1)) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "magnitudes: attribute upper is %u, expected %s", (unsigned)attributes->upper,
                 attributes->within ? "less than 65536" : "0 without `within`");
}

static tm_status check_inputs(const tm_operation *operation, tm_error *error) {
  if (operation->op == TM_OP_MAGNITUDES) TM_TRY(check_magnitudes(operation, error));
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    const tm_format_info *info = tm_format_find(operation->operands[i].format);
    if (info == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "input %u: unknown format %u", i, operation->operands[i].format);
    if (!info->has_values) {
      char blocks[BLOCKS_CAPACITY];
      return tm_fail(error, TM_ERROR_ARGUMENT, "input %u: format %s has no decoder; its values cannot be read; of the block "
                     "formats those of %s can", i, info->name, tm_format_list_blocks(false, blocks, sizeof blocks));
    }
  }
  if (operation->input_count == 2 && !tm_same_dims(&operation->operands[0], &operation->operands[1])) {
    char dims[2][160];
    tm_format_dims(&operation->operands[0], dims[0], sizeof dims[0]);
    tm_format_dims(&operation->operands[1], dims[1], sizeof dims[1]);
    return tm_fail(error, TM_ERROR_ARGUMENT, "dims differ: input 0 has %s, input 1 has %s", dims[0], dims[1]);
  }
  return TM_OK;
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  TM_TRY(check_inputs(operation, error));
  if (out_outputs[0].format != TM_FORMAT_NONE && out_outputs[0].format != TM_FORMAT_U64) {
    return tm_fail(error, TM_ERROR_ARGUMENT, "output: the result is made of u64 words");
  }
  const uint64_t words = word_count(operation->op);
  return tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &out_outputs[0], error);
}

static tm_status check(const tm_operation *operation, tm_error *error) {
  TM_TRY(check_inputs(operation, error));
  const tm_operand *output = &operation->operands[operation->input_count];
  if (output->format != TM_FORMAT_U64 || output->rank != 1 || output->dims[0] != word_count(operation->op)) {
    return tm_fail(error, TM_ERROR_ARGUMENT, "output: expected u64 [%llu]", (unsigned long long)word_count(operation->op));
  }
  return TM_OK;
}

/* Per element: two sums, one product and four comparisons; or four products, four sums, a difference, a quotient and two
   maxima; or a difference, a rounding and the like of a few more. */
static void work(const tm_operation *operation, tm_work *out_work) {
  *out_work = (tm_work){ .written_bytes = word_count(operation->op) * sizeof(uint64_t) };
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    const tm_operand *input = &operation->operands[i];
    const tm_format_info *info = tm_format_find(input->format);
    out_work->read_bytes += tm_saturating_mul(input->element_count / info->block_elements, info->block_bytes);
  }
  out_work->flops = tm_saturating_mul(operation->operands[0].element_count, operation->op == TM_OP_COMPARE_TENSORS ? 12 : 7);
}

/* Parts must follow each other in the order of elements: only the outermost axis of more than one element will do. */
static uint32_t splittable(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0];
  for (uint32_t axis = 0; axis < x->rank; ++axis) {
    if (x->dims[axis] != 1) return UINT32_C(1) << axis;
  }
  return 0;
}

static uint64_t one_unit(const tm_operation *operation) {
  (void)operation;
  return 1;
}

static void store_words(const tm_operand *output, char *pointer, const uint64_t *words) {
  for (uint64_t i = 0; i < output->dims[0]; ++i) {
    memcpy(pointer + (int64_t)i * output->strides_bytes[0], &words[i], sizeof words[i]);
  }
}

static void stats_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  uint64_t words[TM_STATS_WORDS];
  tm_stats_compute(&operation->operands[0], pointers[0], words);
  store_words(&operation->operands[1], pointers[1], words);
}

static void comparison_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  uint64_t words[TM_COMPARISON_WORDS];
  tm_comparison_compute(&operation->operands[0], pointers[0], &operation->operands[1], pointers[1], words);
  store_words(&operation->operands[2], pointers[2], words);
}

static void magnitudes_reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  if (begin < end) tm_magnitudes_compute(operation, pointers);
}

const tm_op_row tm_op_rows_one_pass[] = {
  {
    .op = TM_OP_STATS,
    .version = 1,
    .name = "stats",
    .summary = "count, non-finite values, zeros, subnormals, extremes, sum and sum of squares of a tensor in one pass",
    .op_class = TM_CLASS_SCAN,
    .input_min = 1,
    .input_max = 1,
    .output_count = 1,
    .default_numerics = TM_NUMERICS_N0,
    .combine = TM_COMBINE_WORDS,
    .split_elements = TM_SUM_SUPERBLOCK,
    .infer = infer,
    .check = check,
    .work = work,
    .splittable = splittable,
    .units = one_unit,
    .reference = stats_reference,
    .combine_words = tm_stats_combine,
  },
  {
    .op = TM_OP_COMPARE_TENSORS,
    .version = TM_COMPARISON_VERSION,
    .name = "compare_tensors",
    .summary = "equal elements, largest differences, squared distance, dot product and norms of two tensors in one pass",
    .op_class = TM_CLASS_SCAN,
    .input_min = 2,
    .input_max = 2,
    .output_count = 1,
    .default_numerics = TM_NUMERICS_N0,
    .combine = TM_COMBINE_WORDS,
    .split_elements = TM_SUM_SUPERBLOCK,
    .infer = infer,
    .check = check,
    .work = work,
    .splittable = splittable,
    .units = one_unit,
    .reference = comparison_reference,
    .combine_words = tm_comparison_combine,
  },
  {
    .op = TM_OP_MAGNITUDES,
    .version = 1,
    .name = "magnitudes",
    .summary = "how often which magnitude of the difference of two tensors occurs: bins of the upper or of the lower bits",
    .op_class = TM_CLASS_SCAN,
    .input_min = 2,
    .input_max = 2,
    .output_count = 1,
    .attribute_bytes = sizeof(tm_magnitudes_attributes),
    .default_numerics = TM_NUMERICS_N0,
    .combine = TM_COMBINE_WORDS,
    .split_elements = 1,
    .infer = infer,
    .check = check,
    .work = work,
    .splittable = splittable,
    .units = one_unit,
    .reference = magnitudes_reference,
    .combine_words = tm_magnitudes_combine,
    .input_names = { "x", "base" },
  },
};

const uint32_t tm_op_rows_one_pass_count = sizeof tm_op_rows_one_pass / sizeof tm_op_rows_one_pass[0];
