/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read straight from the operands, and only for an element that is not what the reference has; what all elements of a part share is
 * read for the first of them.  Where the exact sum would take more than one pass, more is said rather than less: a device that keeps
 * its promise is never wronged.
 */
#include "ops/output_terms.h"

#include <math.h>

#include "base/checked.h"
#include "ops/op_check.h"
#include "ops/walk.h"
#include "tensor/format.h"

/* Larger scores than this and what is left of a weight is anybody's guess. */
#define LARGEST_SCORE 4096.0

static const char *address_at(const tm_operand *operand, const void *first, const uint64_t *index) {
  const tm_format_info *info = tm_format_find(operand->format);
  const char *address = first;
  for (uint32_t i = 0; i < operand->rank; i++) {
    const uint32_t block = i + 1 == operand->rank ? info->block_elements : 1;
    address += (int64_t)(index[i] / block) * operand->strides_bytes[i];
  }
  return address;
}

static double value_at(const tm_operand *operand, const void *first, const uint64_t *index) {
  const tm_codec *codec = tm_codec_find(operand->format);
  double value = 0;
  if (codec != NULL && tm_format_find(operand->format)->block_elements == 1)
    codec->decode(address_at(operand, first, index), 1, &value);
  return value;
}

/* ---- sums ---- */

static double reduced_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index) {
  const tm_reduce_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  tm_operand reduced = { .format = x->format };
  const char *first = pointers[0];
  double values[TM_RUN], sum = 0;
  uint64_t count = 1;
  for (uint32_t i = 0, kept = 0; i < x->rank; i++) {
    if (attributes->axes >> i & 1u) {
      reduced.dims[reduced.rank] = x->dims[i];
      reduced.strides_bytes[reduced.rank++] = x->strides_bytes[i];
      count *= x->dims[i];
    } else {
      first += (int64_t)index[attributes->keep_dims ? i : kept] * x->strides_bytes[i];
      kept++;
    }
  }
  void *const pointer[1] = { (void *)(uintptr_t)first };
  tm_walk walk = tm_walk_begin(&reduced, &reduced, pointer, 1, 0);
  for (uint64_t left = count, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, tm_min_u64(left, TM_RUN));
    tm_stream_load(&walk.streams[0], walk.addresses[0], n, values);
    for (uint64_t i = 0; i < n; i++) sum += fabs(values[i]);
    tm_walk_advance(&walk, n);
  }
  return operation->op == TM_OP_MEAN && count != 0 ? sum / (double)count : sum;
}

/* ---- products ---- */

/* One line of a factor along K, with its scale. */
typedef struct line {
  tm_element_stream stream;
  const char       *address;
  const tm_operand *scale, *zero;       /* NULL: none */
  const char       *scale_address, *zero_address;
  uint32_t          k_axis;
  uint64_t          k_group;
} line;

/* Where the line's entries begin; each of the scale's extents divides the factor's. */
static const char *entries_of(const tm_operand *factor, const tm_operand *scale, const void *first, const uint64_t *index) {
  uint64_t entry[TM_MAX_RANK];
  for (uint32_t i = 0; i < scale->rank; i++) {
    const uint64_t group = scale->dims[i] == 0 ? 1 : tm_max_u64(1, factor->dims[i] / scale->dims[i]);
    entry[i] = index[i] / group;
  }
  return address_at(scale, first, entry);
}

static line line_of(const tm_operation *operation, void *const *pointers, uint32_t input, const uint64_t *y_index) {
  const tm_matmul_attributes *attributes = operation->attributes;       /* both attribute structs begin with the transposes */
  const tm_operand *x = &operation->operands[input], *y = tm_output_of(operation);
  const bool k_is_last = input == 0 ? !attributes->transpose_a : attributes->transpose_b != 0;
  const uint32_t last = x->rank - 1;
  line l = { .k_axis = k_is_last ? last : last - 1 };
  uint64_t index[TM_MAX_RANK];
  for (uint32_t i = 0; i + 2 < x->rank; i++) index[i] = x->dims[i] == 1 ? 0 : y_index[i + y->rank - x->rank];
  index[l.k_axis] = 0;
  index[k_is_last ? last - 1 : last] = y_index[input == 0 ? y->rank - 2 : y->rank - 1];
  l.stream = tm_stream_along(x, l.k_axis);
  l.address = address_at(x, pointers[input], index);
  if (operation->op != TM_OP_MATMUL_SCALED) return l;
  l.scale = &operation->operands[input + 2];
  l.scale_address = entries_of(x, l.scale, pointers[input + 2], index);
  l.k_group = l.scale->rank == 0 ? UINT64_MAX : tm_max_u64(1, x->dims[l.k_axis] / tm_max_u64(1, l.scale->dims[l.k_axis]));
  if (operation->input_count <= 4) return l;
  l.zero = &operation->operands[input + 4];
  l.zero_address = entries_of(x, l.zero, pointers[input + 4], index);
  return l;
}

static double entry_at(const line *l, const tm_operand *operand, const char *first, uint64_t k) {
  double value = 0;
  const int64_t step = operand->rank == 0 ? 0 : operand->strides_bytes[l->k_axis];
  tm_codec_find(operand->format)->decode(first + (int64_t)(k / l->k_group) * step, 1, &value);
  return value;
}

static void load_line(const line *l, uint64_t k, uint64_t n, double *out_values) {
  tm_stream_load(&l->stream, l->address + (int64_t)(k / l->stream.block_elements) * l->stream.step_bytes, n, out_values);
  double zero = 0, scale = 1;
  for (uint64_t i = 0; l->scale != NULL && i < n; i++) {
    const bool is_next = i == 0 || (k + i) % l->k_group == 0;
    if (is_next) scale = entry_at(l, l->scale, l->scale_address, k + i);
    if (is_next && l->zero != NULL) zero = entry_at(l, l->zero, l->zero_address, k + i);
    out_values[i] = (out_values[i] - zero) * scale;
  }
}

static double product_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index) {
  const line a = line_of(operation, pointers, 0, index), b = line_of(operation, pointers, 1, index);
  const uint64_t count = operation->operands[0].dims[a.k_axis];
  double p[TM_RUN], q[TM_RUN], sum = 0;
  for (uint64_t k = 0, n; k < count; k += n) {
    n = tm_min_u64(TM_RUN, count - k);
    load_line(&a, k, n, p);
    load_line(&b, k, n, q);
    for (uint64_t i = 0; i < n; i++) sum += fabs(p[i] * q[i]);
  }
  return sum;
}

/* ---- tokens ---- */

/* |a| + |b| of the pair; an element that does not turn is its own only term. */
static double rope_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index) {
  const tm_rope_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  const uint64_t dim = x->dims[x->rank - 1], at = index[x->rank - 1];
  const uint64_t count = attributes->rotary_dims != 0 ? attributes->rotary_dims : dim, half = count / 2;
  uint64_t other[TM_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) other[i] = index[i];
  other[x->rank - 1] = attributes->layout == TM_ROPE_PAIRS ? at ^ 1u : at < half ? at + half : at - half;
  return fabs(value_at(x, pointers[0], index)) + (at < count ? fabs(value_at(x, pointers[0], other)) : 0);
}

/* The magnitudes that the score of a key is made of. */
static double score_size(const tm_operation *operation, const char *q_address, const char *k_address) {
  const tm_attention_attributes *attributes = operation->attributes;
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1];
  const uint64_t dim = q->dims[q->rank - 1];
  const tm_element_stream a = tm_stream_along(q, q->rank - 1), b = tm_stream_along(k, k->rank - 1);
  double p[TM_RUN], r[TM_RUN], sum = 0;
  for (uint64_t at = 0, n; at < dim; at += n) {
    n = tm_min_u64(TM_RUN, dim - at);
    tm_stream_load(&a, q_address + (int64_t)at * a.step_bytes, n, p);
    tm_stream_load(&b, k_address + (int64_t)at * b.step_bytes, n, r);
    for (uint64_t i = 0; i < n; i++) sum += fabs(p[i] * r[i]);
  }
  return attributes->scale != 0 ? sum * fabs(attributes->scale) : dim == 0 ? 0 : sum / sqrt((double)dim);
}

/* A key's addend of the scores; an extent of 1 stands for all. */
static double mask_size(const tm_operation *operation, void *const *pointers, const uint64_t at[4]) {
  if (operation->input_count <= 4 || operation->operands[4].format == TM_FORMAT_BOOL) return 0;
  const tm_operand *mask = &operation->operands[4];
  uint64_t index[TM_MAX_RANK];
  for (uint32_t i = 0; i < mask->rank; i++) index[i] = mask->dims[i] == 1 ? 0 : at[4 - mask->rank + i];
  const double value = value_at(mask, pointers[4], index);
  return isfinite(value) ? fabs(value) : 0;
}

static uint64_t keys_there(const tm_operation *operation, void *const *pointers) {
  const tm_operand *k = &operation->operands[1];
  const tm_element_stream stream = tm_stream_along(&operation->operands[3], 0);
  int64_t length;
  tm_stream_load_integer(&stream, pointers[3], 1, &length);
  return length < 0 ? 0 : tm_min_u64((uint64_t)length, k->dims[k->rank - 3]);
}

/* NaN is passed over in both: of a key that is seen it would be the result, too. */
static double largest_score(const tm_operation *operation, void *const *pointers, const uint64_t *index) {
  const tm_operand *q = &operation->operands[0], *k = &operation->operands[1];
  const uint32_t token_axis = q->rank - 3;
  const uint64_t batch = token_axis == 0 ? 0 : index[0], key_count = keys_there(operation, pointers);
  uint64_t at[TM_MAX_RANK] = { batch }, own[TM_MAX_RANK];
  for (uint32_t i = 0; i < q->rank; i++) own[i] = i + 1 == q->rank ? 0 : index[i];
  const char *q_address = address_at(q, pointers[0], own);
  double most = 0;
  at[token_axis + 1] = index[token_axis + 1] / (q->dims[token_axis + 1] / k->dims[token_axis + 1]);
  at[token_axis + 2] = 0;
  for (uint64_t key = 0; key < key_count; key++) {
    const uint64_t mask_at[4] = { batch, index[token_axis + 1], index[token_axis], key };
    at[token_axis] = key;
    const double size = score_size(operation, q_address, address_at(k, pointers[1], at)) + mask_size(operation, pointers, mask_at);
    most = size > most ? size : most;
  }
  return most;
}

static void find_largest_values(const tm_operation *operation, void *const *pointers, const uint64_t *index, tm_part_terms *part) {
  const tm_operand *q = &operation->operands[0], *v = &operation->operands[2];
  const uint32_t token_axis = q->rank - 3, last = q->rank - 1;
  const tm_element_stream stream = tm_stream_along(v, last);
  const uint64_t key_count = keys_there(operation, pointers);
  uint64_t at[TM_MAX_RANK] = { token_axis == 0 ? 0 : index[0] };
  double values[TM_RUN];
  part->first_column = index[last] - index[last] % TM_RUN;
  part->column_count = tm_min_u64(TM_RUN, v->dims[last] - part->first_column);
  at[token_axis + 1] = index[token_axis + 1] / (q->dims[token_axis + 1] / v->dims[token_axis + 1]);
  at[last] = part->first_column;
  for (uint64_t i = 0; i < part->column_count; i++) part->largest[i] = 0;
  for (uint64_t key = 0; key < key_count; key++) {
    at[token_axis] = key;
    tm_stream_load(&stream, address_at(v, pointers[2], at), part->column_count, values);
    for (uint64_t i = 0; i < part->column_count; i++)
      part->largest[i] = fabs(values[i]) > part->largest[i] ? fabs(values[i]) : part->largest[i];
  }
}

/* As if the largest value had all the weight, and the largest score all the error; keys that the token does not see included. */
static double attention_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index, tm_part_terms *part) {
  const uint64_t column = index[operation->operands[0].rank - 1];
  if (part->column_count == 0) part->score = largest_score(operation, pointers, index);
  if (part->column_count == 0 || column - part->first_column >= part->column_count)
    find_largest_values(operation, pointers, index, part);
  return part->score <= LARGEST_SCORE ? part->largest[column - part->first_column] * (1 + 2 * part->score) : HUGE_VAL;
}

/* ---- all of them ---- */

double tm_output_terms(const tm_operation *operation, void *const *pointers, const uint64_t *index, double result,
                       tm_part_terms *part) {
  const tm_operand *operands = operation->operands;
  switch (operation->op) {
    case TM_OP_ADD:
    case TM_OP_SUB: return fabs(value_at(&operands[0], pointers[0], index)) + fabs(value_at(&operands[1], pointers[1], index));
    case TM_OP_SUM:
    case TM_OP_MEAN: return reduced_terms(operation, pointers, index);
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: return product_terms(operation, pointers, index);
    case TM_OP_LAYER_NORM: {    /* the normal part and the shift, which may cancel */
      const double shift = value_at(&operands[2], pointers[2], &index[operands[0].rank - 1]);
      return fabs(result - shift) + fabs(shift);
    }
    case TM_OP_ROPE: return rope_terms(operation, pointers, index);
    case TM_OP_ATTENTION: return attention_terms(operation, pointers, index, part);
    case TM_OP_LERP:
    case TM_OP_WEIGHTED_SUM:
    case TM_OP_DARE_SUM:
    case TM_OP_TIES_SUM: return HUGE_VAL;       /* terms that may cancel, and that are not looked for */
    default: return fabs(result);       /* one term, the result itself */
  }
}

bool tm_output_terms_take_a_pass(uint32_t op) {
  return op == TM_OP_SUM || op == TM_OP_MEAN || op == TM_OP_MATMUL || op == TM_OP_MATMUL_SCALED || op == TM_OP_ATTENTION;
}
