/* SPDX-License-Identifier: Apache-2.0 */
/* What random data does not meet: the built-in kernels on operands made for one line of code each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "kernel_host.h"
#include "ops/op_table.h"
#include "plugin/builtin_plugins.h"
#include "tensor/shape.h"

static kernel_host host;

static int open_host(void **state) {
  (void)state;
  for (uint32_t i = 0; i < tm_builtin_plugin_count; ++i) {
    if (strcmp(tm_builtin_plugins[i].name, "cpu") == 0) kernel_host_open(&host, tm_builtin_plugins[i].query, "auto", 3, 0);
  }
  return host.status;
}

static int close_host(void **state) {
  (void)state;
  kernel_host_close(&host);
  return 0;
}

/* Runs an operation of one input on the kernel and on the reference; gives the kernel's output and asserts equal bytes. */
static void run_both(uint32_t op, const tm_operand *x, const void *data, uint32_t y_format, const void *attributes, void *out) {
  const tm_op_row *row = tm_op_find(op);
  unsigned char expected[64] = { 0 };
  tm_operand operands[2] = { *x, { .format = y_format } };
  tm_operation operation = {
    .struct_size = sizeof operation, .op = op, .version = row->version, .worst_numerics = TM_NUMERICS_N0, .input_count = 1,
    .output_count = 1, .operands = operands, .attribute_bytes = row->attribute_bytes, .attributes = attributes,
  };
  assert_int_equal(tm_op_infer_outputs(&operation, &operands[1], NULL), TM_OK);
  tm_op_normalize(&operation, operands);
  void *pointers[] = { (void *)(uintptr_t)data, out };
  kernel_run run;
  if (kernel_run_prepare(&run, &host, &operation) != TM_OK) {
    print_message("skipped: this processor has no vector kernels\n");
    skip();
  }
  assert_int_equal(kernel_run_launch(&run, pointers), TM_OK);
  kernel_run_release(&run);
  pointers[1] = expected;
  row->reference(&operation, pointers, 0, row->units(&operation));
  assert_true(operands[1].byte_count <= sizeof expected);
  assert_memory_equal(out, expected, operands[1].byte_count);
}

static tm_operand line(uint32_t format, uint64_t count) {
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, 1, &count, &operand, NULL), TM_OK);
  return operand;
}

/* A sum just above the middle between two results: rounded to f32 first it would lie in the middle, and go down. */
static void test_narrow_sums_are_rounded_once(void **state) {
  (void)state;
  const uint16_t bf16[] = { 0x3f80, 0x3b80, 0x2b80 };   /* 1, 2^-8, 2^-40 */
  const uint16_t f16[] = { 0x3c00, 0x1000, 0x0001 };    /* 1, 2^-11, 2^-24 */
  const tm_reduce_attributes all = { 1, 0 };
  const tm_operand x = line(TM_FORMAT_BF16, 3), z = line(TM_FORMAT_F16, 3);
  uint16_t sum;
  run_both(TM_OP_SUM, &x, bf16, TM_FORMAT_BF16, &all, &sum);
  assert_int_equal(sum, 0x3f81);
  run_both(TM_OP_SUM, &z, f16, TM_FORMAT_F16, &all, &sum);
  assert_int_equal(sum, 0x3c01);
}

/* Halves of a quant go away from zero; the number just below a half must not be lifted over it by an addition. */
static void test_quants_at_halves(void **state) {
  (void)state;
  float x[32] = { 127.0f, 0.5f, -0.5f, 1.5f, -2.5f, 0x1.fffffep-2f, -0x1.fffffep-2f, 126.5f, -126.5f };
  const tm_operand operand = line(TM_FORMAT_F32, 32);
  int8_t block[34];
  run_both(TM_OP_QUANTIZE, &operand, x, TM_FORMAT_Q8_0, NULL, block);
  static const int8_t quants[] = { 127, 1, -1, 2, -3, 0, 0, 127, -127 };
  for (int i = 0; i < 9; ++i) assert_int_equal(block[2 + i], quants[i]);
}

/* Blocks of zeros, of numbers so small that their scale has no finite inverse, with infinities, with NaN. */
static void test_quants_of_odd_blocks(void **state) {
  (void)state;
  const tm_operand operand = line(TM_FORMAT_F32, 32);
  const float odd[] = { 0.0f, -0.0f, 0x1p-149f, -0x1p-140f, 0x1p-126f, (float)INFINITY, (float)-INFINITY, (float)NAN, 0x1.fffffep127f };
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i) {
    float x[32];
    unsigned char block[34];
    for (int k = 0; k < 32; ++k) x[k] = k % 3 ? odd[i] : 0.0f;
    run_both(TM_OP_QUANTIZE, &operand, x, TM_FORMAT_Q8_0, NULL, block);
    run_both(TM_OP_QUANTIZE, &operand, x, TM_FORMAT_Q4_0, NULL, block);
  }
}

static void test_limits_of_casts(void **state) {
  (void)state;
  const float x[] = { 0x1p31f, -0x1p31f, 0x1.fffffep30f, (float)NAN, 127.99f, -128.99f, 255.99f, -0.99f, 65504.0f, 65519.9f, 65520.0f, 0x1.fefffep127f };
  const tm_operand operand = line(TM_FORMAT_F32, 12);
  static const uint32_t targets[] = { TM_FORMAT_I32, TM_FORMAT_I8, TM_FORMAT_U8, TM_FORMAT_F16, TM_FORMAT_BF16 };
  for (uint32_t saturate = 0; saturate < 2; ++saturate) {
    const tm_cast_attributes attributes = { saturate, 0 };
    unsigned char out[64];
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; ++i) run_both(TM_OP_CAST, &operand, x, targets[i], &attributes, out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_narrow_sums_are_rounded_once),
    cmocka_unit_test(test_quants_at_halves),
    cmocka_unit_test(test_quants_of_odd_blocks),
    cmocka_unit_test(test_limits_of_casts),
  };
  return cmocka_run_group_tests(tests, open_host, close_host);
}
