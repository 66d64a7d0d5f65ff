/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of the library's own: inputs are there, outputs come back element by element, and what lies between stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "execute/trial_operands.h"
#include "tensor/shape.h"

#define ROOM 512u
#define OTHERS 0x5c

typedef struct trial_case {
  tm_memory         memory;
  tm_device_slot    device;
  tm_plan_candidate candidate;
  unsigned char     bytes[2][ROOM];
  void             *pointers[2];
} trial_case;

/* One input and one output of the same layout, whose first element lies at `start`. */
static void make(trial_case *c, uint32_t format, uint32_t rank, const uint64_t *dims, const int64_t *strides, uint64_t start) {
  memset(c, 0, sizeof *c);
  tm_memory_init(&c->memory, 0);
  c->device.memories[0].alignment = 1;
  c->candidate.device = &c->device;
  c->candidate.operation.input_count = c->candidate.operation.output_count = 1;
  for (int i = 0; i < 2; i++) {
    tm_operand *operand = &c->candidate.operands[i];
    operand->format = format;
    operand->rank = rank;
    operand->alignment = 1;
    for (uint32_t axis = 0; axis < rank; axis++) {
      operand->dims[axis] = dims[axis];
      operand->strides_bytes[axis] = strides[axis];
    }
    assert_int_equal(tm_operand_derive(operand, NULL), TM_OK);
    c->pointers[i] = c->bytes[i] + start;
  }
  for (uint32_t i = 0; i < ROOM; i++) c->bytes[0][i] = (unsigned char)(i * 7 + 1);
  memset(c->bytes[1], OTHERS, ROOM);
}

/* Copies the input's bytes to the output as a device would, and spoils what lies between. */
static void check(trial_case *c, uint64_t element_bytes) {
  const tm_operand *operand = &c->candidate.operands[1];
  const uint64_t below = tm_operand_bytes_below(operand);
  tm_trial_operands own;
  assert_true(tm_trial_operands_init(&own, &c->memory, &c->candidate, c->pointers));
  for (int i = 0; i < 2; i++) assert_int_equal((uintptr_t)own.pointers[i] % 64, ((uintptr_t)c->pointers[i]) % 64);
  assert_memory_equal((char *)own.pointers[0] - below, (char *)c->pointers[0] - below, (size_t)operand->byte_count);
  memcpy((char *)own.pointers[1] - below, (char *)own.pointers[0] - below, (size_t)operand->byte_count);
  tm_trial_operands_collect(&own, &c->candidate, c->pointers);
  tm_trial_operands_deinit(&own);
  assert_int_equal(atomic_load(&c->memory.used_bytes), 0);
  unsigned char expected[ROOM];
  memset(expected, OTHERS, sizeof expected);
  const uint64_t start = (uint64_t)((unsigned char *)c->pointers[1] - c->bytes[1]);
  const uint64_t rows = operand->rank > 1 ? operand->dims[0] : 1, columns = operand->rank > 0 ? operand->dims[operand->rank - 1] : 1;
  for (uint64_t row = 0; row < rows; row++)
    for (uint64_t column = 0; column < columns; column++) {
      const int64_t at = (int64_t)start + (operand->rank > 1 ? (int64_t)row * operand->strides_bytes[0] : 0) +
                         (operand->rank > 0 ? (int64_t)column * operand->strides_bytes[operand->rank - 1] : 0);
      memcpy(expected + at, c->bytes[0] + at, (size_t)element_bytes);
    }
  assert_memory_equal(c->bytes[1], expected, ROOM);
}

static void dense_and_scalar(void **state) {
  (void)state;
  trial_case c;
  make(&c, TM_FORMAT_F32, 2, (const uint64_t[]){ 5, 7 }, (const int64_t[]){ 28, 4 }, 8);
  check(&c, 4);
  make(&c, TM_FORMAT_F64, 0, NULL, NULL, 16);
  check(&c, 8);
}

static void what_lies_between_stays(void **state) {
  (void)state;
  trial_case c;
  make(&c, TM_FORMAT_F32, 2, (const uint64_t[]){ 5, 7 }, (const int64_t[]){ 40, 4 }, 0);        /* gaps behind rows */
  check(&c, 4);
  make(&c, TM_FORMAT_F32, 2, (const uint64_t[]){ 6, 4 }, (const int64_t[]){ 4, 48 }, 4);        /* columns of something wider */
  check(&c, 4);
  make(&c, TM_FORMAT_U8, 1, (const uint64_t[]){ 33 }, (const int64_t[]){ 3 }, 1);
  check(&c, 1);
}

static void backwards(void **state) {
  (void)state;
  trial_case c;
  make(&c, TM_FORMAT_I16, 1, (const uint64_t[]){ 21 }, (const int64_t[]){ -6 }, 200);
  check(&c, 2);
  make(&c, TM_FORMAT_I16, 2, (const uint64_t[]){ 3, 5 }, (const int64_t[]){ -20, 2 }, 120);
  check(&c, 2);
}

static void blocks_are_whole(void **state) {
  (void)state;
  trial_case c;
  make(&c, TM_FORMAT_Q8_0, 2, (const uint64_t[]){ 3, 32 }, (const int64_t[]){ 50, 34 }, 0);
  const tm_operand *operand = &c.candidate.operands[1];
  tm_trial_operands own;
  assert_true(tm_trial_operands_init(&own, &c.memory, &c.candidate, c.pointers));
  memset(own.pointers[1], 0x11, (size_t)operand->byte_count);
  tm_trial_operands_collect(&own, &c.candidate, c.pointers);
  tm_trial_operands_deinit(&own);
  for (uint32_t i = 0; i < ROOM; i++) assert_int_equal(c.bytes[1][i], i < 134 && i % 50 < 34 ? 0x11 : OTHERS);
}

static void large_ones_and_no_memory_go_without(void **state) {
  (void)state;
  trial_case c;
  make(&c, TM_FORMAT_F32, 1, (const uint64_t[]){ 8 }, (const int64_t[]){ 4 }, 0);
  tm_trial_operands own;
  c.memory.limit_bytes = 40;    /* for one of the two */
  assert_false(tm_trial_operands_init(&own, &c.memory, &c.candidate, c.pointers));
  assert_int_equal(atomic_load(&c.memory.used_bytes), 0);
  c.memory.limit_bytes = 0;
  c.candidate.operands[0].byte_count = UINT64_MAX - 4;
  assert_false(tm_trial_operands_init(&own, &c.memory, &c.candidate, c.pointers));
  assert_int_equal(atomic_load(&c.memory.used_bytes), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(dense_and_scalar),
    cmocka_unit_test(what_lies_between_stays),
    cmocka_unit_test(backwards),
    cmocka_unit_test(blocks_are_whole),
    cmocka_unit_test(large_ones_and_no_memory_go_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
