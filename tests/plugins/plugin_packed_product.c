/* SPDX-License-Identifier: Apache-2.0 */
/* A device that multiplies only by packed constants: what it asks for, step by step, and that the result is right. */
#include "plugin_subject.h"

#define LOCK "lock_folder=" TM_SCRATCH "/packed_product"
static const char *const npu[] = { NPU, LOCK, NULL };

static void open_npu(subject *s) { assert_int_equal(plugin_open(s, SIMULATOR, npu), TM_OK); }

static void fill_bytes(unsigned char *bytes, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) bytes[i] = (unsigned char)(random_u64(&seed) >> 32);
}

/* Halves of ordinary size. */
static void fill_halves(uint16_t *halves, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) halves[i] = (uint16_t)(0x3000u | (random_u64(&seed) & 0x8bffu));
}

static const tm_change *change_of(const tm_answer *answer, uint32_t kind, uint32_t operand) {
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (answer->changes[i].kind == kind && answer->changes[i].operand == operand) return &answer->changes[i];
  return NULL;
}

/* ---- running ---- */

static tm_buffer *upload(subject *s, void *bytes, uint64_t count) {
  tm_buffer *buffer = NULL;
  assert_int_equal(subject_buffer(s, bytes, count, &buffer), TM_OK);
  return buffer;
}

static void run(subject *s, const tm_operation *operation, const tm_binding *bindings) {
  const tm_answer answer = subject_ask(s, operation);
  tm_kernel *kernel = NULL;
  assert_int_not_equal(answer.level, TM_LEVEL_REFUSED);
  assert_int_equal(s->table.prepare(s->device, operation, &answer, &kernel), TM_OK);
  assert_int_equal(subject_launch(s, 0, kernel, bindings, operation->input_count + 1), TM_OK);
  s->table.release(s->device, kernel);
}

/* x in the private format that an answer asked for. */
static tm_operand pack(subject *s, const tm_operand *x, tm_buffer *buffer, const tm_change *change, tm_buffer **out_packed) {
  tm_operand operands[2] = { *x, *x };
  operands[1].format = change->format;
  operands[1].byte_count = change->value;
  memset(operands[1].strides_bytes, 0, sizeof operands[1].strides_bytes);
  const tm_operation convert = { .struct_size = sizeof convert, .op = TM_OP_CONVERT, .version = 1, .input_count = 1,
                                 .output_count = 1, .operands = operands };
  assert_int_equal(s->table.buffer_create(s->device, 0, change->value, out_packed), TM_OK);
  const tm_binding bindings[] = { { buffer, 0, x->byte_count }, { *out_packed, 0, change->value } };
  run(s, &convert, bindings);
  return operands[1];
}

/* The whole way with the packed copy, against the reference. */
static void check_product(uint32_t format, uint32_t y_format, const tm_matmul_attributes *attributes) {
  enum { M = 7, N = 48, K = 96 };
  subject s;
  unsigned char a[M * K * 2], b[K * N * 2], y[M * N * 4], expected[M * N * 4];
  tm_operand operands[3] = { attributes->transpose_a ? dense(format, K, M, 0) : dense(format, M, K, 0),
                             attributes->transpose_b ? dense(format, N, K, TM_OPERAND_CONSTANT)
                                                     : dense(format, K, N, TM_OPERAND_CONSTANT),
                             dense(y_format, M, N, 0) };
  tm_operation operation = product_of(operands, attributes, TM_NUMERICS_N2);
  void *pointers[] = { a, b, expected };
  open_npu(&s);
  if (format == TM_FORMAT_F16) fill_halves((uint16_t *)(void *)a, M * K, 1), fill_halves((uint16_t *)(void *)b, K * N, 2);
  else fill_bytes(a, M * K, 1), fill_bytes(b, K * N, 2);
  tm_op_find(TM_OP_MATMUL)->reference(&operation, pointers, 0, M);

  const tm_answer answer = subject_ask(&s, &operation);
  const tm_change *change = change_of(&answer, TM_CHANGE_CONVERT, 1);
  assert_int_equal(answer.level, TM_LEVEL_REFUSED);
  assert_int_equal(answer.change_count, 1);
  assert_non_null(change);
  assert_true(change->format >= TM_FORMAT_PRIVATE && change->value >= operands[1].byte_count);

  tm_buffer *buffers[4] = { upload(&s, a, operands[0].byte_count), upload(&s, b, operands[1].byte_count),
                            upload(&s, y, sizeof y), NULL };        /* whole units of the device's stores */
  operands[1] = pack(&s, &operands[1], buffers[1], change, &buffers[3]);
  const tm_binding bindings[] = { { buffers[0], 0, operands[0].byte_count }, { buffers[3], 0, change->value },
                                  { buffers[2], 0, operands[2].byte_count } };
  run(&s, &operation, bindings);
  assert_int_equal(subject_collect(&s, buffers[2], y, sizeof y), TM_OK);
  assert_memory_equal(y, expected, operands[2].byte_count);
  for (int i = 0; i < 4; i++) s.table.buffer_destroy(s.device, 0, buffers[i], 0, 0);
  subject_close(&s);
}

static void test_results(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 4; i++) {
    const tm_matmul_attributes attributes = { i & 1u, i >> 1 };
    check_product(TM_FORMAT_I8, TM_FORMAT_I32, &attributes);
    check_product(TM_FORMAT_F16, TM_FORMAT_F16, &attributes);
  }
}

/* ---- questions ---- */

static tm_answer ask(subject *s, const tm_operand *a, const tm_operand *b, uint32_t y_format, uint32_t worst) {
  const tm_matmul_attributes attributes = { 0, 0 };
  const tm_operand operands[3] = { *a, *b, dense(y_format, a->dims[0], b->dims[1], 0) };
  const tm_operation operation = product_of(operands, &attributes, worst);
  return subject_ask(s, &operation);
}

static void test_floats_are_quantized_where_that_is_accepted(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16 };
  subject s;
  open_npu(&s);
  for (int i = 0; i < 2; i++) {
    const tm_operand a = dense(formats[i], 5, 70, 0), b = dense(formats[i], 70, 33, TM_OPERAND_CONSTANT);
    tm_answer answer = ask(&s, &a, &b, formats[i], TM_NUMERICS_N3);
    assert_int_equal(answer.level, TM_LEVEL_REFUSED);
    assert_int_equal(answer.change_count, 4);
    for (uint32_t operand = 0; operand < 2; operand++) {
      const tm_change *change = change_of(&answer, TM_CHANGE_QUANTIZE, operand);
      assert_non_null(change);
      assert_int_equal(change->format, TM_FORMAT_I8);
    }
    assert_int_equal(change_of(&answer, TM_CHANGE_PAD, 0)->value, 32);
    assert_int_equal(change_of(&answer, TM_CHANGE_PAD, 0)->axis, 1);
    assert_int_equal(change_of(&answer, TM_CHANGE_PAD, 1)->value, 16);
    answer = ask(&s, &a, &b, formats[i], TM_NUMERICS_N2);
    assert_int_equal(answer.change_count, 0);
    assert_true((answer.reasons & TM_REASON_NUMERICS) != 0);
  }
  subject_close(&s);
}

static void test_limits_are_told(void **state) {
  (void)state;
  subject s;
  open_npu(&s);
  const tm_operand a = dense(TM_FORMAT_I8, 5, 8200, 0), b = dense(TM_FORMAT_I8, 8200, 33, TM_OPERAND_CONSTANT);
  tm_answer answer = ask(&s, &a, &b, TM_FORMAT_I32, TM_NUMERICS_N0);
  assert_int_equal(answer.change_count, 1);
  assert_int_equal(change_of(&answer, TM_CHANGE_SPLIT_ABOVE, 0)->value, 4096);
  assert_int_equal(change_of(&answer, TM_CHANGE_SPLIT_ABOVE, 0)->axis, 1);

  const tm_operand variable = dense(TM_FORMAT_I8, 64, 32, 0), factor = dense(TM_FORMAT_I8, 5, 64, 0);
  answer = ask(&s, &factor, &variable, TM_FORMAT_I32, TM_NUMERICS_N0);
  assert_int_equal(answer.reasons, TM_REASON_CONSTANT);
  assert_int_equal(answer.operand, 1);
  assert_int_equal(answer.change_count, 0);

  const tm_operand whole = dense(TM_FORMAT_F64, 5, 64, 0), weights = dense(TM_FORMAT_F64, 64, 32, TM_OPERAND_CONSTANT);
  answer = ask(&s, &whole, &weights, TM_FORMAT_F64, TM_NUMERICS_N4);
  assert_int_equal(answer.reasons, TM_REASON_FORMAT);
  assert_int_equal(answer.change_count, 0);
  subject_close(&s);
}

/* Two set-ups, of which each is priced in full and told apart by its key. */
static void test_set_up_is_priced(void **state) {
  (void)state;
  subject s;
  open_npu(&s);
  tm_operand operands[3] = { dense(TM_FORMAT_F16, 4, 4, 0), dense(TM_FORMAT_F16, 4, 4, 0), dense(TM_FORMAT_F16, 4, 4, 0) };
  tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_ADD, .version = 1, .input_count = 2, .output_count = 1,
                             .operands = operands };
  tm_op_normalize(&operation, operands);
  const tm_answer add = subject_ask(&s, &operation);
  operation.op = TM_OP_MUL;
  const tm_answer mul = subject_ask(&s, &operation);
  assert_int_equal(add.setup_ns, 2000000000);
  assert_int_not_equal(add.setup_key, 0);
  assert_int_equal(add.setup_key, mul.setup_key);
  assert_int_equal(add.cost_ns > add.launch_ns, 1);
  subject_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_results),
    cmocka_unit_test(test_floats_are_quantized_where_that_is_accepted),
    cmocka_unit_test(test_limits_are_told),
    cmocka_unit_test(test_set_up_is_priced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
