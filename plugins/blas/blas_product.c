/* SPDX-License-Identifier: Apache-2.0 */
#include "blas_product.h"

#include <limits.h>
#include <string.h>

#define A 0u
#define B 1u
#define Y 2u
#define OPERANDS 3u

static uint64_t element_bytes(uint32_t format) { return format == TM_FORMAT_F64 ? sizeof(double) : sizeof(float); }

/* ---- formats ---- */

/* What all three are, or would be cast to. */
static uint32_t common_format(const tm_operation *operation) {
  for (uint32_t i = 0; i < OPERANDS; i++)
    if (operation->operands[i].format == TM_FORMAT_F64) return TM_FORMAT_F64;
  return TM_FORMAT_F32;
}

static int is_block(uint32_t format) { return format >= TM_FORMAT_GGUF && format < TM_FORMAT_GGUF + 0x100u; }

/* The change that makes an operand one of `format`; 0 where there is none. */
static uint32_t change_of_format(uint32_t from, uint32_t format) {
  if (is_block(from)) return TM_CHANGE_DEQUANTIZE;
  const int is_narrow = from == TM_FORMAT_F16 || from == TM_FORMAT_BF16 || (from == TM_FORMAT_F32 && format == TM_FORMAT_F64);
  return is_narrow ? TM_CHANGE_CAST : 0;
}

/* ---- layouts ---- */

/* Where an operand's rows and columns are, as the product sees it. */
typedef struct matrix_axes {
  uint32_t row;
  uint32_t column;
} matrix_axes;

static matrix_axes axes_of(const tm_operation *operation, uint32_t index) {
  const tm_matmul_attributes *attributes = operation->attributes;
  const uint32_t last = operation->operands[index].rank - 1;
  const int is_transposed = index == A ? attributes->transpose_a != 0 : index == B && attributes->transpose_b != 0;
  return is_transposed ? (matrix_axes){ last, last - 1 } : (matrix_axes){ last - 1, last };
}

/* Lines of `inner` dense elements, one leading dimension apart.  0 if it does not lie so. */
static int leading_of(const tm_operand *x, uint32_t outer, uint32_t inner, uint64_t bytes) {
  const uint64_t line = x->dims[inner] == 0 ? 1 : x->dims[inner];
  if (x->dims[inner] > 1 && x->strides_bytes[inner] != (int64_t)bytes) return 0;
  if (x->dims[outer] <= 1) return (int)line;
  const int64_t step = x->strides_bytes[outer];
  if (step <= 0 || (uint64_t)step % bytes != 0) return 0;
  const uint64_t leading = (uint64_t)step / bytes;
  return leading >= line && leading <= INT_MAX ? (int)leading : 0;
}

static int make_matrix(const tm_operation *operation, uint32_t index, blas_matrix *out_matrix) {
  const tm_operand *x = &operation->operands[index];
  const uint32_t batch_rank = operation->operands[Y].rank - 2;
  const matrix_axes axes = axes_of(operation, index);
  const uint64_t bytes = element_bytes(x->format);
  memset(out_matrix, 0, sizeof *out_matrix);
  out_matrix->leading = leading_of(x, axes.row, axes.column, bytes);
  out_matrix->lies_by_rows = out_matrix->leading != 0;
  if (!out_matrix->lies_by_rows) out_matrix->leading = leading_of(x, axes.column, axes.row, bytes);
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++) {
    const int64_t stride = x->dims[axis] == 1 ? 0 : x->strides_bytes[axis];
    if (stride % (int64_t)bytes != 0) return 0;
    out_matrix->batch_strides_bytes[batch_rank - (x->rank - 2) + axis] = stride;
  }
  return out_matrix->leading != 0;
}

/* ---- judging ---- */

static int is_zero(const void *data, uint64_t begin, uint64_t end) {
  while (begin < end && ((const char *)data)[begin] == 0) begin++;
  return begin >= end;
}

static uint32_t judge_kind(const tm_operation *operation) {
  if (operation->op != TM_OP_MATMUL || operation->version != 1) return TM_REASON_OPERATION;
  if ((operation->flags & ~TM_OPERATION_FACTS) != 0) return TM_REASON_DEMAND;
  if (!is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->attribute_bytes < sizeof(tm_matmul_attributes)) return TM_REASON_ATTRIBUTE;
  if (!is_zero(operation->attributes, sizeof(tm_matmul_attributes), operation->attribute_bytes)) return TM_REASON_ATTRIBUTE;
  return operation->worst_numerics < TM_NUMERICS_N2 ? TM_REASON_NUMERICS : 0;
}

static int has_int_extents(const tm_operand *x) { return x->dims[x->rank - 1] <= INT_MAX && x->dims[x->rank - 2] <= INT_MAX; }

static uint32_t judge_shape(const tm_operation *operation, tm_answer *answer) {
  for (uint32_t i = 0; i < OPERANDS; i++) {
    const tm_operand *x = &operation->operands[i];
    answer->operand = i;
    if (x->rank < 2 || x->rank > operation->operands[Y].rank) return TM_REASON_RANK;
    if (!has_int_extents(x)) return TM_REASON_SIZE;
  }
  answer->operand = TM_NO_OPERAND;
  return 0;
}

/* The one change that makes an operand fit: whatever the host makes is dense and aligned. */
static uint32_t judge_operand(const tm_operation *operation, uint32_t index, uint32_t format, blas_matrix *matrix,
                              tm_change *change) {
  const tm_operand *x = &operation->operands[index];
  *change = (tm_change){ .operand = index, .format = format };
  if (x->format != format) {
    change->kind = change_of_format(x->format, format);
    return TM_REASON_FORMAT;
  }
  if (!make_matrix(operation, index, matrix)) {
    change->kind = TM_CHANGE_CONTIGUOUS;
    return TM_REASON_LAYOUT;
  }
  change->kind = TM_CHANGE_ALIGN;
  change->value = element_bytes(format);
  return x->alignment < change->value ? TM_REASON_ALIGNMENT : 0;
}

static uint32_t judge_operands(const tm_operation *operation, blas_product *product, tm_answer *answer) {
  blas_matrix *const matrices[OPERANDS] = { &product->a, &product->b, &product->y };
  uint32_t reasons = 0, count = 0;
  for (uint32_t i = 0; i < OPERANDS; i++) {
    tm_change change;
    const uint32_t reason = judge_operand(operation, i, product->format, matrices[i], &change);
    if (reason == 0) continue;
    reasons |= reason;
    answer->operand = i;
    if (change.kind == 0) return TM_REASON_FORMAT;
    answer->changes[count++] = change;
  }
  answer->change_count = count;
  return reasons;
}

static void fill_extents(const tm_operation *operation, blas_product *product) {
  const tm_operand *a = &operation->operands[A], *y = &operation->operands[Y];
  product->m = (int)y->dims[y->rank - 2];
  product->n = (int)y->dims[y->rank - 1];
  product->k = (int)a->dims[axes_of(operation, A).column];
  product->batch_rank = y->rank - 2;
  product->batch_count = y->element_count == 0 ? 0 : 1;
  for (uint32_t axis = 0; axis < product->batch_rank; axis++) {
    product->batch_dims[axis] = y->dims[axis];
    product->batch_count *= y->dims[axis];
  }
}

uint32_t blas_product_make(const tm_operation *operation, blas_product *out_product, tm_answer *answer) {
  memset(out_product, 0, sizeof *out_product);
  uint32_t reasons = judge_kind(operation);
  if (reasons == 0) reasons = judge_shape(operation, answer);
  if (reasons != 0) return reasons;
  out_product->format = common_format(operation);
  reasons = judge_operands(operation, out_product, answer);
  if (reasons == 0) fill_extents(operation, out_product);
  return reasons;
}

/* ---- running ---- */

static int transpose_of(const blas_product *product, const blas_matrix *matrix) {
  return matrix->lies_by_rows == product->y.lies_by_rows ? BLAS_AS_IS : BLAS_TRANSPOSED;
}

/* A sum of nothing is zero.  Not every library writes the result then. */
static void clear(const blas_product *product, char *y) {
  const uint64_t bytes = element_bytes(product->format);
  const int lines = product->y.lies_by_rows ? product->m : product->n;
  const int line = product->y.lies_by_rows ? product->n : product->m;
  for (int i = 0; i < lines; i++) memset(y + (uint64_t)i * (uint64_t)product->y.leading * bytes, 0, (uint64_t)line * bytes);
}

static void run_one(const blas_product *p, const blas_library *library, const char *a, const char *b, char *y) {
  const int order = p->y.lies_by_rows ? BLAS_ROW_MAJOR : BLAS_COLUMN_MAJOR;
  const int a_kind = transpose_of(p, &p->a), b_kind = transpose_of(p, &p->b);
  if (p->k == 0)
    clear(p, y);
  else if (p->format == TM_FORMAT_F32)
    library->sgemm(order, a_kind, b_kind, p->m, p->n, p->k, 1, (const float *)(const void *)a, p->a.leading,
                   (const float *)(const void *)b, p->b.leading, 0, (float *)(void *)y, p->y.leading);
  else
    library->dgemm(order, a_kind, b_kind, p->m, p->n, p->k, 1, (const double *)(const void *)a, p->a.leading,
                   (const double *)(const void *)b, p->b.leading, 0, (double *)(void *)y, p->y.leading);
}

static int64_t offset_of(const blas_product *product, const blas_matrix *matrix, uint64_t batch) {
  int64_t offset = 0;
  for (uint32_t axis = product->batch_rank; axis-- > 0; batch /= product->batch_dims[axis])
    offset += (int64_t)(batch % product->batch_dims[axis]) * matrix->batch_strides_bytes[axis];
  return offset;
}

void blas_product_run(const blas_product *product, const blas_library *library, const void *a, const void *b, void *y) {
  for (uint64_t batch = 0; batch < product->batch_count; batch++)
    run_one(product, library, (const char *)a + offset_of(product, &product->a, batch),
            (const char *)b + offset_of(product, &product->b, batch), (char *)y + offset_of(product, &product->y, batch));
}
