/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_bounds [STRIDE] - every STRIDE-th f32 (4099th if not given) through each transcendental function: none may be
 * further from the reference than its row says.  Prints the largest distance, which is how the bounds were found.
 */
#include <math.h>

#include "webgpu/webgpu_subject.h"

#include "kernels/kernel_compare.h"

#define BATCH (UINT64_C(1) << 18)

typedef struct function {
  uint32_t             op;
  tm_gelu_attributes   attributes;
} function;

static const function functions[] = {
  { TM_OP_EXP, { 0, 0 } },  { TM_OP_LOG, { 0, 0 } },  { TM_OP_TANH, { 0, 0 } }, { TM_OP_SIGMOID, { 0, 0 } },
  { TM_OP_ERF, { 0, 0 } },  { TM_OP_SILU, { 0, 0 } }, { TM_OP_GELU, { 0, 0 } }, { TM_OP_GELU, { 1, 0 } },
};

typedef struct bench {
  subject      s;
  tm_operand   operands[2];
  tm_operation operation;
  tm_answer    answer;
  tm_kernel   *kernel;
  tm_buffer   *x, *y;
  uint32_t    *in, *out, *expected;
} bench;

static void bench_ask(bench *b, const function *f) {
  const uint64_t count = BATCH;
  b->operation = (tm_operation){ .struct_size = sizeof b->operation, .op = f->op, .version = 1, .worst_numerics = TM_NUMERICS_N4,
                                 .input_count = 1, .output_count = 1, .operands = b->operands };
  if (f->op == TM_OP_GELU) {
    b->operation.attributes = &f->attributes;
    b->operation.attribute_bytes = sizeof f->attributes;
  }
  for (int i = 0; i < 2; i++) assert_int_equal(tm_operand_contiguous(TM_FORMAT_F32, 1, &count, &b->operands[i], NULL), TM_OK);
  b->answer = subject_ask(&b->s, &b->operation);
  assert_int_equal(b->answer.numerics, TM_NUMERICS_N1);
  assert_int_equal(b->s.table.prepare(b->s.device, &b->operation, &b->answer, &b->kernel), TM_OK);
}

static double distance(const bench *b, uint64_t i) {
  float y, r;
  memcpy(&y, &b->out[i], sizeof y);
  memcpy(&r, &b->expected[i], sizeof r);
  if (isnan(r)) return isnan(y) ? 0 : HUGE_VAL;
  if (isnan(y)) return HUGE_VAL;
  if (fabsf(r) < 0x1p-126f && y == 0) return 0;         /* flushed, as the row says */
  return (double)ulp_distance((const unsigned char *)&b->out[i], (const unsigned char *)&b->expected[i], 4);
}

static double run_batch(bench *b, uint64_t *worst_at) {
  const tm_binding bindings[] = { { b->x, 0, BATCH * 4 }, { b->y, 0, BATCH * 4 } };
  void *const pointers[] = { b->in, b->expected };
  double worst = 0;
  write_all(&b->s, b->x, b->in, BATCH * 4);
  assert_int_equal(subject_launch(&b->s, 0, b->kernel, bindings, 2), TM_OK);
  read_all(&b->s, b->y, b->out, BATCH * 4);
  tm_op_find(b->operation.op)->reference(&b->operation, pointers, 0, BATCH);
  for (uint64_t i = 0; i < BATCH; i++) {
    const double d = distance(b, i);
    if (d > worst) *worst_at = b->in[i];
    if (d > worst) worst = d;
  }
  return worst;
}

static void sweep(bench *b, const function *f, uint64_t stride) {
  double worst = 0;
  uint64_t worst_at = 0;
  bench_ask(b, f);
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
    for (uint64_t i = 0; i < BATCH; i++, bits += stride) b->in[i] = (uint32_t)bits;
    uint64_t at = 0;
    const double here = run_batch(b, &at);
    if (here > worst) worst_at = at;
    if (here > worst) worst = here;
  }
  b->s.table.release(b->s.device, b->kernel);
  print_message("%s%s: %g ulp at 0x%llx, bound %g\n", tm_op_find(f->op)->name, f->attributes.tanh_form ? " (tanh)" : "", worst,
                (unsigned long long)worst_at, b->answer.numerics_bound);
  assert_true(worst <= b->answer.numerics_bound);
}

static void functions_keep_their_bounds(void **state) {
  bench b;
  if (!webgpu_subject_is_open(&b.s, NULL)) skip();
  b.in = malloc(BATCH * 4);
  b.out = malloc(BATCH * 4);
  b.expected = malloc(BATCH * 4);
  assert_true(b.in != NULL && b.out != NULL && b.expected != NULL);
  b.x = make_buffer(&b.s, BATCH * 4);
  b.y = make_buffer(&b.s, BATCH * 4);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) sweep(&b, &functions[i], *(const uint64_t *)*state);
  drop_buffer(&b.s, b.x, BATCH * 4);
  drop_buffer(&b.s, b.y, BATCH * 4);
  free(b.in);
  free(b.out);
  free(b.expected);
  webgpu_subject_close(&b.s);
}

int main(int count, char **words) {
  uint64_t stride = count > 1 ? strtoull(words[1], NULL, 10) : 4099;
  if (stride == 0) stride = 1;
  const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(functions_keep_their_bounds, &stride) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
