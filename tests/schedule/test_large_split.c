/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor larger than a device takes at once: 300 MB in parts of at most 128 MiB, every element right. */
#include "fakes/picky_case.h"
#include "free_memory.h"

#define ROWS UINT64_C(7501)
#define COLUMNS UINT64_C(10007)         /* 300.25 million bytes, and no part of it is round */
#define SKIPPED 77

static void a_300_mb_tensor_is_split(void **state) {
  (void)state;
  picky_case one = {
    .control = { .only_op = TM_OP_NEG,
                 .has_own_memory = 1,
                 .capacity_bytes = UINT64_C(280) << 20,
                 .rules = { { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 0, .value = UINT64_C(32) << 20 } } }
  };
  picky_case_open(&one);
  const uint64_t dims[] = { ROWS, COLUMNS };
  picky_call call = { .op = TM_OP_NEG, .input_count = 1 };
  assert_int_equal(tm_tensor_create(one.context, TM_FORMAT_F32, 2, dims, &call.inputs[0], NULL), TM_OK);
  float *x = tm_tensor_data(call.inputs[0]);
  for (uint64_t i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 16777213);
  tm_tensor *y = picky_output(&one, &call);
  if (picky_try(&one, &call, one.device + 1, y) != TM_OK) fail_msg("%s", one.error.text);
  assert_int_equal(one.report.device, one.device);
  assert_int_equal(atomic_load(&one.control.launches), 3);
  const float *found = tm_tensor_data(y);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < ROWS * COLUMNS; i++) wrong += found[i] != -x[i];
  assert_int_equal(wrong, 0);
  tm_tensor_destroy(y);
  tm_tensor_destroy(call.inputs[0]);
  picky_case_close(&one);
}

int main(void) {
  if (available_bytes() < UINT64_C(1500) << 20) {
    printf("skipped: needs 1.5 GB of free memory\n");
    return SKIPPED;
  }
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_300_mb_tensor_is_split) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
