/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product of floats by way of integers.  Data that this is no good for (values that are not finite, an error beyond what
 * is promised: quantized_check.h) are found out before anything is written to y; the run then goes to the next candidate.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/lowered_run.h"
#include "execute/quantized_check.h"
#include "schedule/composed_numerics.h"

#define SAFETY 4                /* see quantized_check.h */
#define BLOCK_ALIGNMENT 64u

/* One block of memory: the integers, the scales and, of b, its projection. */
typedef struct factor {
  uint32_t         index;
  tm_line_view     view;
  tm_scratch_block block;
  tm_kept         *kept;                /* instead of the block, of a constant */
  uint64_t         scales_at;
  uint64_t         projection_at;
  uint64_t         bytes;
  char            *memory;
} factor;

typedef struct quantized_run {
  const tm_lowered_run *run;
  tm_pool              *pool;
  factor                factors[2];
} quantized_run;

static bool k_is_last(const tm_request *whole, uint32_t index) {
  const tm_operation operation = tm_request_operation(whole);
  const tm_matmul_attributes *attributes = operation.attributes;
  return index == 0 ? attributes->transpose_a == 0 : attributes->transpose_b != 0;
}

static tm_status measure_factor(const quantized_run *q, uint32_t index, factor *f) {
  const tm_lowered_run *run = q->run;
  const tm_operand *integers = &run->candidate->lowering->inner.operands[index];
  uint64_t lines, sums;
  f->index = index;
  f->view = tm_line_view_make(&run->whole->operands[index], integers->dims, k_is_last(run->whole, index), run->pointers[index]);
  const bool fits = tm_checked_round_up(integers->byte_count, BLOCK_ALIGNMENT, &f->scales_at) &&
                    tm_checked_mul(f->view.batch_count * f->view.line_count, sizeof(float), &lines) &&
                    tm_checked_add(f->scales_at, lines, &lines) && tm_checked_round_up(lines, BLOCK_ALIGNMENT, &f->projection_at) &&
                    tm_checked_mul(f->view.batch_count * f->view.term_count, sizeof(double) * TM_PROJECTIONS, &sums) &&
                    tm_checked_add(f->projection_at, index == 0 ? 0 : sums, &f->bytes);
  return fits ? TM_OK : tm_fail(run->error, TM_ERROR_NO_MEMORY, "a factor larger than 64 bits can count");
}

static const float *scales_of(const factor *f) { return (const float *)(const void *)(f->memory + f->scales_at); }

static const double *projection_of(const factor *f) { return (const double *)(const void *)(f->memory + f->projection_at); }

/* The next choices pass the candidate over for a while if that happens again. */
static tm_status is_no_good(const tm_lowered_run *run, const char *why) {
  return tm_fail(run->error, TM_ERROR_PREDECESSOR, "these numbers are not for i8: %s", why);
}

static tm_status fill_factor(const quantized_run *q, factor *f) {
  if (f->block.memory == NULL) memset(f->memory, 0, (size_t)f->bytes);  /* kept, so hashed: gaps count, too */
  if (!tm_quantized_factor_make(q->pool, &f->view, (int8_t *)f->memory, (float *)(void *)(f->memory + f->scales_at)))
    return is_no_good(q->run, "not all are finite and of a usual size");
  if (f->index == 1) tm_projection_of_lines(q->pool, &f->view, (double *)(void *)(f->memory + f->projection_at));
  return TM_OK;
}

static tm_status no_memory(const tm_lowered_run *run) {
  return tm_fail(run->error, TM_ERROR_NO_MEMORY, "no memory for a quantized tensor");
}

/* ---- a constant is quantized once ---- */

static tm_kept_key source_of(const quantized_run *q, const factor *f) {
  struct {
    uint64_t   origin, address, role, k_axis;
    tm_operand original;
  } source;
  memset(&source, 0, sizeof source);
  source.origin = q->run->origins[f->index];
  source.address = (uint64_t)(uintptr_t)q->run->pointers[f->index];
  source.role = TM_OP_QUANTIZE + ((uint64_t)f->index << 32);
  source.k_axis = f->view.k_axis;
  source.original = *f->view.operand;
  return tm_kept_hash(&source, sizeof source);
}

/* What it is made from does not matter here: equal integers, scales and projections are equal. */
static tm_kept_key content_of(const factor *f) {
  tm_kept_key key = tm_kept_hash(f->memory, f->bytes);
  key.words[0] ^= f->view.k_axis + 2 * f->index + 4 * f->view.line_count;
  return key;
}

static tm_status keep_factor(const quantized_run *q, factor *f, const tm_kept_key *source) {
  tm_kept_constants *kept = q->run->runner->kept;
  f->memory = tm_memory_alloc(kept->memory, f->bytes, BLOCK_ALIGNMENT);
  if (f->memory == NULL) return no_memory(q->run);
  const tm_status status = fill_factor(q, f);
  if (status == TM_OK) {
    const tm_kept copy = { .content = content_of(f), .buffer = (tm_buffer *)(void *)f->memory, .bytes = f->bytes };
    f->kept = tm_kept_add(kept, &copy, source);
  }
  if (f->kept == NULL) tm_memory_free(kept->memory, f->memory, f->bytes);
  else f->memory = (char *)f->kept->buffer;
  return status == TM_OK && f->kept == NULL ? no_memory(q->run) : status;
}

static tm_status take_factor(const quantized_run *q, uint32_t index, factor *f) {
  TM_TRY(measure_factor(q, index, f));
  const bool is_constant = (f->view.operand->flags & TM_OPERAND_CONSTANT) != 0;
  if (is_constant) {
    const tm_kept_key key = source_of(q, f), *source = q->run->origins[index] == 0 ? NULL : &key;
    f->kept = source == NULL ? NULL : tm_kept_find(q->run->runner->kept, source);
    if (f->kept == NULL) return keep_factor(q, f, source);
    f->memory = (char *)f->kept->buffer;
    return TM_OK;
  }
  f->block = tm_scratch_take(q->run->runner->scratch, f->bytes);
  f->memory = f->block.memory;
  return f->memory == NULL ? no_memory(q->run) : fill_factor(q, f);
}

/* ---- after the product ---- */

static tm_status check(const quantized_run *q, const int32_t *integers) {
  const tm_request *inner = &q->run->candidate->lowering->inner;
  const factor *a = &q->factors[0], *b = &q->factors[1];
  const tm_scratch_block sums = tm_scratch_take(q->run->runner->scratch, tm_quantized_check_bytes(&inner->operands[2]));
  if (sums.memory == NULL) return no_memory(q->run);
  const tm_quantized_product product = { &a->view,     scales_of(a),        projection_of(b),
                                         scales_of(b), &inner->operands[2], &inner->operands[1],
                                         integers,     sums.memory };
  const double error = tm_quantized_check_error(q->pool, &product);
  tm_scratch_give(q->run->runner->scratch, sums);
  if (error <= TM_QUANTIZED_ERROR / SAFETY) return TM_OK;       /* a NaN is not */
  return is_no_good(q->run, "their product would be too far off");
}

static tm_status rescale(const quantized_run *q, int32_t *integers, float *const temporary[2]) {
  const tm_request *inner = &q->run->candidate->lowering->inner;
  const tm_operand *y = &q->run->whole->operands[2];
  void *result = q->run->pointers[2];
  const bool is_f32 = y->format == TM_FORMAT_F32;
  void *const factors[2] = { (void *)(uintptr_t)scales_of(&q->factors[0]), (void *)(uintptr_t)scales_of(&q->factors[1]) };
  void *const to_float[2] = { integers, temporary[0] };
  void *const rows[3] = { temporary[0], factors[0], temporary[1] };
  void *const columns[3] = { temporary[1], factors[1], is_f32 ? result : temporary[0] };
  void *const to_format[2] = { temporary[0], result };
  void *const *const pointers[TM_RESCALE_STEPS] = { to_float, rows, columns, to_format };
  for (uint32_t step = 0; step < TM_RESCALE_STEPS; step++) {
    tm_request request;
    if (step == TM_RESCALE_TO_FORMAT && is_f32) continue;
    tm_lowering_rescale_request(inner, y, step, &request);
    TM_TRY(tm_lowered_run_step(q->run, &request, pointers[step], NULL));
  }
  return TM_OK;
}

static tm_status multiply(const quantized_run *q, int32_t *integers, float *const temporary[2]) {
  const factor *a = &q->factors[0], *b = &q->factors[1];
  void *const pointers[3] = { a->memory, b->memory, integers };
  const uint64_t origins[3] = { a->kept == NULL ? 0 : a->kept->origin, b->kept == NULL ? 0 : b->kept->origin, 0 };
  TM_TRY(tm_lowered_run_step(q->run, &q->run->candidate->lowering->inner, pointers, origins));
  TM_TRY(check(q, integers));
  return rescale(q, integers, temporary);
}

static tm_status run_in_scratch(const quantized_run *q) {
  tm_scratch *scratch = q->run->runner->scratch;
  tm_scratch_block blocks[3];                   /* i32 and f32 are of one size */
  const uint64_t bytes = q->run->candidate->lowering->inner.operands[2].byte_count;
  bool has_all = true;
  for (uint32_t i = 0; i < 3; i++) {
    blocks[i] = tm_scratch_take(scratch, bytes);
    has_all &= blocks[i].memory != NULL;
  }
  float *const temporary[2] = { blocks[1].memory, blocks[2].memory };
  const tm_status status = has_all ? multiply(q, blocks[0].memory, temporary) : no_memory(q->run);
  for (uint32_t i = 0; i < 3 && !tm_lowered_run_is_held(q->run); i++) tm_scratch_give(scratch, blocks[i]);
  return status;
}

tm_status tm_lowered_run_quantized(const tm_lowered_run *run) {
  quantized_run q = { .run = run, .pool = run->runner->table->market.inventory->pool };
  tm_status status = take_factor(&q, 1, &q.factors[1]);
  if (status == TM_OK) status = take_factor(&q, 0, &q.factors[0]);
  if (status == TM_OK) status = run_in_scratch(&q);
  for (uint32_t i = 0; i < 2 && !tm_lowered_run_is_held(run); i++) {
    tm_scratch_give(run->runner->scratch, q.factors[i].block);
    tm_kept_release(run->runner->kept, q.factors[i].kept);
  }
  return status;
}
