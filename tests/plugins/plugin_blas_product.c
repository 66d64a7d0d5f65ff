/* SPDX-License-Identifier: Apache-2.0 */
/* What the claims of plugins/blas do not say: views without a copy, special values, and a process left alone. */
#define _GNU_SOURCE
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugin_subject.h"

#define BLAS TM_PLUGINS "/blas.so"
static const char *const plain[] = { NULL };

static void open_blas(subject *s) { assert_int_equal(plugin_open(s, BLAS, plain), TM_OK); }

static tm_answer ask(subject *s, const tm_operand *operands, const tm_matmul_attributes *attributes) {
  const tm_operation operation = product_of(operands, attributes, TM_NUMERICS_N2);
  return subject_ask(s, &operation);
}

static void run(subject *s, const tm_operand *operands, const tm_matmul_attributes *attributes, void *const *data) {
  const tm_operation operation = product_of(operands, attributes, TM_NUMERICS_N2);
  const tm_answer answer = subject_ask(s, &operation);
  tm_kernel *kernel = NULL;
  tm_binding bindings[3];
  assert_int_equal(answer.level, TM_LEVEL_NATIVE);
  assert_int_equal(answer.workspace_bytes, 0);
  for (int i = 0; i < 3; i++) bindings[i] = (tm_binding){ data[i], 0, operands[i].byte_count };
  assert_int_equal(s->table.prepare(s->device, &operation, &answer, &kernel), TM_OK);
  assert_int_equal(subject_launch(s, 0, kernel, bindings, 3), TM_OK);
  s->table.release(s->device, kernel);
}

/* Every second matrix, rows with gaps, one factor and the result column by column: small integers, so sums are exact. */
static void test_views(void **state) {
  (void)state;
  enum { BATCH = 3, M = 5, N = 4, K = 6, A_ROW = 9, Y_COLUMN = 7 };
  static double a[2 * BATCH * M * A_ROW], b[K * N], y[BATCH * N * Y_COLUMN];
  const tm_matmul_attributes none = { 0, 0 };
  subject s;
  open_blas(&s);
  const uint64_t dims[3][3] = { { BATCH, M, K }, { BATCH, K, N }, { BATCH, M, N } };
  const int64_t strides[3][3] = { { -2 * M * A_ROW * 8, A_ROW * 8, 8 }, { 0, 8, K * 8 }, { N * Y_COLUMN * 8, 8, Y_COLUMN * 8 } };
  tm_operand operands[3] = { { .format = TM_FORMAT_F64, .rank = 3 }, { .format = TM_FORMAT_F64, .rank = 3 },
                             { .format = TM_FORMAT_F64, .rank = 3 } };
  for (int i = 0; i < 3; i++) {
    memcpy(operands[i].dims, dims[i], sizeof dims[i]);
    memcpy(operands[i].strides_bytes, strides[i], sizeof strides[i]);
    assert_int_equal(tm_operand_derive(&operands[i], NULL), TM_OK);
    operands[i].alignment = 8;
  }
  double *first = a + (2 * BATCH - 2) * M * A_ROW;
  for (int i = 0; i < 2 * BATCH * M * A_ROW; i++) a[i] = i % 13 - 6;
  for (int i = 0; i < K * N; i++) b[i] = i % 7 - 3;
  for (int i = 0; i < BATCH * N * Y_COLUMN; i++) y[i] = 77;
  run(&s, operands, &none, (void *[]){ first, b, y });
  for (int at = 0; at < BATCH * M * N; at++) {
    const int batch = at / (M * N), row = at / N % M, column = at % N;
    double sum = 0;
    for (int k = 0; k < K; k++) sum += first[-2 * batch * M * A_ROW + row * A_ROW + k] * b[k + column * K];
    assert_true(y[batch * N * Y_COLUMN + row + column * Y_COLUMN] == sum);
  }
  for (int at = 0; at < BATCH * N; at++) assert_true(y[at * Y_COLUMN + M] == 77 && y[at * Y_COLUMN + Y_COLUMN - 1] == 77);
  subject_close(&s);
}

static void test_layouts_that_need_a_copy(void **state) {
  (void)state;
  const tm_matmul_attributes none = { 0, 0 };
  subject s;
  open_blas(&s);
  tm_operand operands[3] = { dense(TM_FORMAT_F32, 4, 4, 0), dense(TM_FORMAT_F32, 4, 4, 0), dense(TM_FORMAT_F32, 4, 4, 0) };
  for (int i = 0; i < 3; i++) {
    const tm_operand before = operands[i];
    operands[i].strides_bytes[1] = 8;
    operands[i].strides_bytes[0] = 32;
    operands[i].flags = 0;
    const tm_answer answer = ask(&s, operands, &none);
    assert_int_equal(answer.reasons, TM_REASON_LAYOUT);
    assert_int_equal(answer.change_count, 1);
    assert_int_equal(answer.changes[0].kind, TM_CHANGE_CONTIGUOUS);
    assert_int_equal(answer.changes[0].operand, i);
    operands[i] = before;
  }
  operands[1].format = TM_FORMAT_Q8_0;
  assert_int_equal(ask(&s, operands, &none).changes[0].kind, TM_CHANGE_DEQUANTIZE);
  operands[1].format = TM_FORMAT_I8;
  assert_int_equal(ask(&s, operands, &none).change_count, 0);
  subject_close(&s);
}

/* 0 * NaN and 0 * infinity are NaN, in every place of a block, and no other row or column hears of them. */
static void test_special_values(void **state) {
  (void)state;
  enum { M = 37, N = 41, K = 67 };
  static float a[M * K], b[K * N], y[M * N];
  const tm_matmul_attributes none = { 0, 0 };
  const tm_operand operands[3] = { dense(TM_FORMAT_F32, M, K, 0), dense(TM_FORMAT_F32, K, N, 0), dense(TM_FORMAT_F32, M, N, 0) };
  const float specials[] = { NAN, INFINITY, -INFINITY };
  subject s;
  open_blas(&s);
  for (int at = 0; at < K * 3; at++) {
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    const int row = at * 5 % M, k = at / 3;
    a[row * K + k] = specials[at % 3];
    for (int i = 0; i < M * N; i++) y[i] = NAN;
    run(&s, operands, &none, (void *[]){ a, b, y });
    for (int i = 0; i < M * N; i++) assert_true(i / N == row ? isnan(y[i]) : y[i] == 0);
  }
  subject_close(&s);
}

static void test_sums_of_nothing(void **state) {
  (void)state;
  enum { M = 3, N = 5 };
  float y[M * N], nothing[1] = { 0 };
  const tm_matmul_attributes none = { 0, 0 };
  const tm_operand operands[3] = { dense(TM_FORMAT_F32, M, 0, 0), dense(TM_FORMAT_F32, 0, N, 0), dense(TM_FORMAT_F32, M, N, 0) };
  const tm_operand empty[3] = { dense(TM_FORMAT_F32, 0, 4, 0), dense(TM_FORMAT_F32, 4, N, 0), dense(TM_FORMAT_F32, 0, N, 0) };
  subject s;
  open_blas(&s);
  for (int i = 0; i < M * N; i++) y[i] = NAN;
  run(&s, operands, &none, (void *[]){ nothing, nothing, y });
  for (int i = 0; i < M * N; i++) assert_true(y[i] == 0 && !signbit(y[i]));
  run(&s, empty, &none, (void *[]){ nothing, nothing, nothing });
  subject_close(&s);
}

typedef struct process_state {
  cpu_set_t cores;
  char      environment[8192];
  char      folder[1024];
  char      language[64];
  int       rounding;
  int       exceptions;
  void    (*handlers[32])(int);
} process_state;

static void look(process_state *out) {
  memset(out, 0, sizeof *out);
  assert_int_equal(sched_getaffinity(0, sizeof out->cores, &out->cores), 0);
  for (int i = 0; environ[i] != NULL; i++)
    strncat(out->environment, environ[i], sizeof out->environment - strlen(out->environment) - 1);
  assert_non_null(getcwd(out->folder, sizeof out->folder));
  snprintf(out->language, sizeof out->language, "%s", setlocale(LC_ALL, NULL));
  out->rounding = fegetround();
  out->exceptions = fetestexcept(0);
  for (int i = 1; i < 32; i++) {
    struct sigaction action;
    if (sigaction(i, NULL, &action) == 0) out->handlers[i] = action.sa_handler;
  }
}

/* *state: the process before the library was loaded, and after. */
static void test_the_process_is_left_alone(void **state) {
  const process_state *looks = *state;
  enum { SIDE = 300 };
  static float a[SIDE * SIDE], b[SIDE * SIDE], y[SIDE * SIDE];
  static process_state before, after;
  const tm_matmul_attributes none = { 0, 0 };
  const tm_operand one = dense(TM_FORMAT_F32, SIDE, SIDE, 0), operands[3] = { one, one, one };
  subject s;
  assert_memory_equal(&looks[0], &looks[1], sizeof looks[0]);
  look(&before);
  open_blas(&s);
  run(&s, operands, &none, (void *[]){ a, b, y });
  subject_close(&s);
  look(&after);
  assert_memory_equal(&before, &after, sizeof after);
}

int main(void) {
  static process_state looks[2];
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_prestate(test_the_process_is_left_alone, looks),
    cmocka_unit_test(test_views),
    cmocka_unit_test(test_layouts_that_need_a_copy),
    cmocka_unit_test(test_special_values),
    cmocka_unit_test(test_sums_of_nothing),
  };
  subject s;
  look(&looks[0]);
  const tm_status status = plugin_open(&s, BLAS, plain);
  if (status == TM_ERROR_NO_DEVICE) {
    printf("skipped: %s\n", s.text);
    return 77;
  }
  if (status == TM_OK) subject_close(&s);
  look(&looks[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
