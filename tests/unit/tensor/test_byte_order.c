/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/byte_order.h"

#define MOST_BYTES 512

static void fill(unsigned char *bytes) {
  for (int i = 0; i < MOST_BYTES; i++) bytes[i] = (unsigned char)(i * 7 + 1);
}

/* Bytes keep their values, stay in their block, and come back when they are turned again. */
static void every_format(void **state) {
  (void)state;
  uint32_t known = 0;
  for (uint32_t i = 0; tm_format_at(i) != NULL; i++) {
    const tm_format_info *info = tm_format_at(i);
    unsigned char before[MOST_BYTES], after[MOST_BYTES];
    int histogram[256] = { 0 };
    assert_true(info->block_bytes <= MOST_BYTES);
    if (!tm_byte_order_is_known(info)) {
      assert_int_equal(info->format, TM_FORMAT_IQ2_XXS);
      continue;
    }
    fill(before);
    fill(after);
    tm_byte_order_swap(info, after, 1);
    assert_memory_equal(after + info->block_bytes, before + info->block_bytes, MOST_BYTES - info->block_bytes);
    for (uint32_t b = 0; b < info->block_bytes; b++) histogram[before[b]]++, histogram[after[b]]--;
    for (int b = 0; b < 256; b++) assert_int_equal(histogram[b], 0);
    tm_byte_order_swap(info, after, 1);
    assert_memory_equal(after, before, MOST_BYTES);
    known++;
  }
  assert_true(known > 40);
}

/* Which bytes of a block are turned, as (where, how many) pairs. */
static void expect_turned(uint32_t format, const int *pairs, int pair_count) {
  unsigned char wanted[MOST_BYTES], got[MOST_BYTES];
  fill(wanted);
  fill(got);
  for (int p = 0; p < pair_count; p++) {
    unsigned char *number = wanted + pairs[2 * p];
    const int width = pairs[2 * p + 1];
    for (int i = 0; i < width / 2; i++) {
      const unsigned char byte = number[i];
      number[i] = number[width - 1 - i];
      number[width - 1 - i] = byte;
    }
  }
  tm_byte_order_swap(tm_format_find(format), got, 1);
  assert_memory_equal(got, wanted, MOST_BYTES);
}

#define EXPECT(format, ...) \
  do { \
    const int pairs[] = { __VA_ARGS__ }; \
    expect_turned(format, pairs, (int)(sizeof pairs / sizeof pairs[0] / 2)); \
  } while (0)

static void known_places(void **state) {
  (void)state;
  EXPECT(TM_FORMAT_F64, 0, 8);
  EXPECT(TM_FORMAT_BF16, 0, 2);
  EXPECT(TM_FORMAT_U32, 0, 4);
  EXPECT(TM_FORMAT_C64, 0, 4, 4, 4);
  EXPECT(TM_FORMAT_I8, 0, 1);
  EXPECT(TM_FORMAT_F8_E4M3FN, 0, 1);
  EXPECT(TM_FORMAT_Q4_0, 0, 2);
  EXPECT(TM_FORMAT_Q8_0, 0, 2);
  EXPECT(TM_FORMAT_Q5_1, 0, 2, 2, 2, 4, 4);
  EXPECT(TM_FORMAT_Q2_K, 80, 2, 82, 2);
  EXPECT(TM_FORMAT_Q3_K, 108, 2);
  EXPECT(TM_FORMAT_Q4_K, 0, 2, 2, 2);
  EXPECT(TM_FORMAT_Q6_K, 208, 2);
  EXPECT(TM_FORMAT_IQ1_M, 48, 2, 50, 2, 52, 2, 54, 2);
  EXPECT(TM_FORMAT_MXFP4, 0, 1);
}

static void many_blocks(void **state) {
  (void)state;
  unsigned char got[MOST_BYTES], wanted[MOST_BYTES];
  const tm_format_info *info = tm_format_find(TM_FORMAT_Q8_0);
  fill(got);
  fill(wanted);
  tm_byte_order_swap(info, got, 15);
  for (uint32_t i = 0; i < 15; i++) tm_byte_order_swap(info, wanted + i * info->block_bytes, 1);
  assert_memory_equal(got, wanted, MOST_BYTES);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_format), cmocka_unit_test(known_places), cmocka_unit_test(many_blocks) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
