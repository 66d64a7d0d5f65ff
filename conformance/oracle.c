/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference itself computes in f64 and rounds once, so on operands and outputs in f64 it gives the unrounded results,
 * and on their magnitudes the sums of magnitudes.
 */
#include "conformance/oracle.h"

#include "conformance/token_terms.h"

#include <math.h>

/* Row-major index -> address, block by block along the last axis. */
static const char *block_address(const tm_operand *operand, const char *first, uint64_t block, uint64_t blocks_a_row) {
  uint64_t row = block / blocks_a_row;
  const uint32_t last = operand->rank - 1;
  const char *address = first + (int64_t)(block % blocks_a_row) * operand->strides_bytes[last];
  for (uint32_t axis = last; axis-- > 0;) {
    address += (int64_t)(row % operand->dims[axis]) * operand->strides_bytes[axis];
    row /= operand->dims[axis];
  }
  return address;
}

double *oracle_decode(const tm_operand *operand, const void *first) {
  const tm_format_info *info = tm_format_find(operand->format);
  const tm_codec *codec = tm_codec_find(operand->format);
  double *values = malloc((size_t)(operand->element_count + 1) * sizeof *values);
  if (values == NULL || codec == NULL) {
    free(values);
    return NULL;
  }
  const uint64_t a_row = operand->rank == 0 ? 1 : operand->dims[operand->rank - 1] / info->block_elements;
  for (uint64_t block = 0; block < operand->element_count / info->block_elements; block++) {
    const char *address = operand->rank == 0 ? first : block_address(operand, first, block, a_row);
    codec->decode(address, info->block_elements, values + block * info->block_elements);
  }
  return values;
}

/* ---- an operation on f64 ---- */

typedef struct wide_case {
  tm_operation operation;
  tm_operand   operands[CASE_MAX_OPERANDS];
  void        *pointers[CASE_MAX_OPERANDS];
  tm_matmul_attributes product;
} wide_case;

static bool widen_operand(wide_case *w, uint32_t index, const tm_operand *from) {
  return tm_operand_contiguous(TM_FORMAT_F64, from->rank, from->dims, &w->operands[index], NULL) == TM_OK;
}

/* Entry of a scale (or zero point) that element `index` of the factor uses. */
static double scale_entry(const tm_operand *factor, const tm_operand *scale, const double *entries, uint64_t index) {
  if (scale->rank == 0) return entries[0];
  uint64_t entry = 0, weight = 1;
  for (uint32_t axis = factor->rank; axis-- > 0;) {
    const uint64_t at = index % factor->dims[axis];
    index /= factor->dims[axis];
    const uint64_t group = scale->dims[axis] == 0 ? 1 : factor->dims[axis] / scale->dims[axis];
    entry += at / (group == 0 ? 1 : group) * weight;
    weight *= scale->dims[axis];
  }
  return entries[entry];
}

/* (a - zero) * scale, in place. */
static bool apply_scale(const kernel_case *c, void *const *pointers, uint32_t factor, double *values) {
  const tm_operand *scale = &c->operands[factor + 2];
  double *scales = oracle_decode(scale, pointers[factor + 2]);
  double *zeros = c->operation.input_count > 4 ? oracle_decode(&c->operands[factor + 4], pointers[factor + 4]) : NULL;
  for (uint64_t i = 0; scales != NULL && i < c->operands[factor].element_count; i++) {
    const double zero = zeros == NULL ? 0 : scale_entry(&c->operands[factor], &c->operands[factor + 4], zeros, i);
    values[i] = (values[i] - zero) * scale_entry(&c->operands[factor], scale, scales, i);
  }
  const bool good = scales != NULL && (c->operation.input_count <= 4 || zeros != NULL);
  free(scales);
  free(zeros);
  return good;
}

/* Positions and lengths stay the integers that they are. */
static bool keep_integers(wide_case *w, uint32_t index, const tm_operand *from, const void *first) {
  const tm_codec *codec = tm_codec_find(from->format);
  int64_t *values = malloc((size_t)(from->element_count + 1) * sizeof *values);
  w->pointers[index] = values;
  for (uint64_t i = 0; values != NULL && i < from->element_count; i++) {
    const char *address = from->rank == 0 ? first : block_address(from, first, i, from->dims[from->rank - 1]);
    codec->decode_integer(address, 1, &values[i]);
  }
  return values != NULL && tm_operand_contiguous(TM_FORMAT_I64, from->rank, from->dims, &w->operands[index], NULL) == TM_OK;
}

static bool widen_input(wide_case *w, const kernel_case *c, uint32_t index, void *const *pointers) {
  const tm_operand *from = &c->operands[index];
  if (case_index_input(c) == index) return keep_integers(w, index, from, pointers[index]);
  double *values = oracle_decode(from, pointers[index]);
  w->pointers[index] = values;
  if (values == NULL || !widen_operand(w, index, from)) return false;
  const bool is_mask = c->operation.op == TM_OP_ATTENTION && from->format == TM_FORMAT_BOOL;
  for (uint64_t i = 0; is_mask && i < from->element_count; i++) values[i] = values[i] != 0 ? 0 : -HUGE_VAL;
  return true;
}

static bool wide_begin(wide_case *w, const kernel_case *c, void *const *pointers) {
  const bool is_scaled = c->operation.op == TM_OP_MATMUL_SCALED;
  const uint32_t inputs = is_scaled ? 2 : c->operation.input_count;
  memset(w, 0, sizeof *w);
  w->operation = c->operation;
  w->operation.operands = w->operands;
  w->operation.input_count = inputs;
  for (uint32_t i = 0; i < inputs; i++) {
    if (!widen_input(w, c, i, pointers)) return false;
    if (is_scaled && !apply_scale(c, pointers, i, w->pointers[i])) return false;
  }
  if (is_scaled) {
    w->product = (tm_matmul_attributes){ c->attributes.scaled.transpose_a, c->attributes.scaled.transpose_b };
    w->operation.op = TM_OP_MATMUL;
    w->operation.attributes = &w->product;
    w->operation.attribute_bytes = sizeof w->product;
  }
  w->pointers[inputs] = malloc((size_t)(c->operands[c->operation.input_count].element_count + 1) * sizeof(double));
  return w->pointers[inputs] != NULL && widen_operand(w, inputs, &c->operands[c->operation.input_count]);
}

static void wide_run(wide_case *w) {
  const tm_op_row *row = tm_op_find(w->operation.op);
  tm_operation as_asked = w->operation;
  row->reference(&as_asked, w->pointers, 0, row->units(&as_asked));
}

static void wide_end(wide_case *w) {
  for (uint32_t i = 0; i < CASE_MAX_OPERANDS; i++) free(w->pointers[i]);
}

/* ---- sums of magnitudes ---- */

static void make_positive(wide_case *w) {
  for (uint32_t i = 0; i < w->operation.input_count; i++) {
    double *values = w->pointers[i];
    for (uint64_t e = 0; e < w->operands[i].element_count; e++) values[e] = fabs(values[e]);
  }
}

/* Of layer_norm: the normal part and the shift, which may cancel. */
static void norm_terms(const wide_case *w, oracle *o) {
  const double *shift = w->pointers[2];
  const uint64_t line = w->operands[0].dims[w->operands[0].rank - 1];
  for (uint64_t i = 0; i < o->count; i++) o->terms[i] = fabs(o->results[i] - shift[i % line]) + fabs(shift[i % line]);
}

static void make_terms(wide_case *w, oracle *o) {
  double *output = w->pointers[w->operation.input_count];
  make_positive(w);
  switch (w->operation.op) {
    case TM_OP_SUB:
      w->operation.op = TM_OP_ADD;
      break;
    case TM_OP_ADD:
    case TM_OP_SUM:
    case TM_OP_MEAN:
    case TM_OP_MATMUL:
      break;
    default:                    /* one term, the result itself */
      for (uint64_t i = 0; i < o->count; i++) o->terms[i] = fabs(o->results[i]);
      return;
  }
  wide_run(w);
  memcpy(o->terms, output, o->count * sizeof *output);
}

bool oracle_make(oracle *o, const kernel_case *c, void *const *pointers) {
  const tm_operand *y = &c->operands[c->operation.input_count];
  wide_case w;
  *o = (oracle){ .count = y->element_count };
  const tm_format_info *info = tm_format_find(y->format);
  bool good = info->kind == TM_KIND_FLOAT && tm_codec_find(y->format) != NULL;
  if (!good) return false;
  good = wide_begin(&w, c, pointers);
  o->results = malloc((size_t)(o->count + 1) * sizeof(double));
  o->terms = malloc((size_t)(o->count + 1) * sizeof(double));
  good = good && o->results != NULL && o->terms != NULL;
  if (good) {
    wide_run(&w);
    memcpy(o->results, w.pointers[w.operation.input_count], o->count * sizeof(double));
    switch (w.operation.op) {
      case TM_OP_LAYER_NORM: norm_terms(&w, o); break;
      case TM_OP_ROPE: rope_terms(&w.operation, w.pointers[0], o->terms); break;
      case TM_OP_ATTENTION: attention_terms(&w.operation, w.pointers, o->terms); break;
      default: make_terms(&w, o);
    }
  }
  wide_end(&w);
  if (!good) oracle_free(o);
  return good;
}

void oracle_free(oracle *o) {
  free(o->results);
  free(o->terms);
  *o = (oracle){ NULL, NULL, 0 };
}
